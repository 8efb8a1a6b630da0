"""GDI compared with PPO and DQN on MinAtar, and the paper's ablation at a small scale.

    python -m benchmarks.minatar_sweep --quick                  # 2 games, 2 seeds, 200k steps
    python -m benchmarks.minatar_sweep                          # the full sweep, or the rest of it
    python -m benchmarks.minatar_sweep.analysis                 # tables and figures from the CSV files

Read the modules in this order: ``agents`` (the agents and their settings), ``jobs`` (one run), ``gdi_run`` and
``peers`` (how one trains), ``records`` (the CSV files), ``sweep`` (all runs over the cores), ``stats`` (the
statistics), ``tables`` and ``figures``.

The folder is not called ``minatar``, because next to the scripts of ``benchmarks/`` it would hide the games' package.
"""
