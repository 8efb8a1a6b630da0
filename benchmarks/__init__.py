"""Benchmarks of speed (`speed.py`, `atari.py`, `scores.py`, `ray_*.py`) and learning (`minatar_sweep/`)."""
