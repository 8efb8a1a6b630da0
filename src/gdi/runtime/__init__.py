"""Runtimes, which decide where the components of a run live. They contain no learning code."""
