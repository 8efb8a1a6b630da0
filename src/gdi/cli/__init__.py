"""The command line: one module per command, each with ``SUMMARY`` and ``run(argv) -> exit code``."""
