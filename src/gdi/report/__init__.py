"""Displays of a run: the live console."""
