"""Displays of runs: the live console, and the reader and the page that need only run folders."""
