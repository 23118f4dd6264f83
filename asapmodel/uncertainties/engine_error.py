"""The queueing engine's own error, which is not that of any constant: figures of `docs/engines.md`, held out cases."""

__all__ = ["THROUGHPUT"]

THROUGHPUT = {"sync": (0.002, 0.015), "asap": (0.005, 0.028)}
"""Median and 95th percentile of the relative error of the SLO throughput against the graph engine."""
