"""One question each, answered by a run that writes a table and a figure."""
