"""Runtimes decide where the parts live; they hold no learning code."""
