"""Closed forms: what the cycle of a pair, the limits of throughput and the good settings are, as formulas.

One module a question; `catalogue` lists all formulas, `advice` puts a scenario's numbers into them.
"""

__all__: list[str] = []
