"""The command line: one module per command, each with ``run(argv)``, which returns the exit code."""
