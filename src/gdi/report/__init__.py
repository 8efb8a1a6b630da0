"""What a run leaves behind and shows: the run log, the console, and reports made from files."""
