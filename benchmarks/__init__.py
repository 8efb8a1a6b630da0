"""Measurements of this project: speed (`speed.py`, `atari.py`, `scores.py`) and learning (`minatar_sweep/`)."""
