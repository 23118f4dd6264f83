"""Timelines: what every stream of a run did when, as a table, as a file for trace viewers and as a picture."""
