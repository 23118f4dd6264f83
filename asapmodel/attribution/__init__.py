"""Where TTFT and device time go: exact accounts of one run of the graph engine."""
