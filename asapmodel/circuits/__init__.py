"""The two systems as timed event graphs: exact cycle times, circuits with names, bounds of the throughput."""
