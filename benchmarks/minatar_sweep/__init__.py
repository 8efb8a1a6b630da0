"""GDI against PPO and DQN on MinAtar, and the paper's ablation at a scale anyone can rerun.

    python -m benchmarks.minatar_sweep --quick                  # 2 games, 2 seeds, 200k steps
    python -m benchmarks.minatar_sweep                          # the whole sweep, or what is left of it
    python -m benchmarks.minatar_sweep.analysis                 # tables and figures from the CSV files

Read in this order: ``agents`` (who runs, with which settings), ``jobs`` (one run), ``gdi_run`` and ``peers`` (how one
trains), ``records`` (the CSV files), ``sweep`` (all of them over the cores), ``measures`` (the statistics), ``tables``
and ``figures``.

The folder is not called ``minatar``: beside the scripts of ``benchmarks/`` that would hide the package of the games.
"""
