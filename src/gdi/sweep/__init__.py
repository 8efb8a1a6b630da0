"""Sweeps: many runs in one folder, over presets, environments, settings and seeds (``gdi sweep``).

Read the modules in this order: ``plan`` (what to run), ``jobs`` (one run of it), ``status`` (what a run folder says),
``claim`` (which process works on a job), ``worker`` and ``process`` (one attempt at a job), ``driver`` (all jobs over
the cores) and ``results`` (the CSV files).
"""
