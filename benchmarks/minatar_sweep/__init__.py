"""The MinAtar benchmark: its committed records, and the tables and figures that are made of them.

    gdi sweep benchmarks/minatar.toml                                                        # the runs, in runs/minatar
    python -m benchmarks.minatar_sweep.export runs/minatar --results runs/minatar/results    # its CSV files
    python -m benchmarks.minatar_sweep.analysis                                              # tables and figures

Read the modules in this order: ``agents`` (whom it compares), ``records`` (the CSV files), ``export`` (from a sweep to
them), ``stats`` (the statistics), ``tables`` and ``figures``.

The folder is not called ``minatar``, because next to the scripts of ``benchmarks/`` it would hide the games' package.
"""
