"""The command line: one module per command, each with ``run(argv) -> exit code``."""
