"""Does the asynchronous deployment form its steps ahead? Prompts answered together, and rules, from calibrated cells.

Prompts of one step are answered within a millisecond. A step that is formed when the one before it starts misses what
arrives while that one runs, so steps hold fewer prompts, and no prompt waits for a crowd.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.studies.evidence_deployments_data import (
    ASYNC,
    BUDGETS,
    CALIBRATED_RATES,
    calibrated,
    cells,
    log_of,
    replays,
    statistics,
)
from asapmodel.studies.pages import markdown_table

__all__ = ["AT_START", "answered_together", "rules_table", "together_table"]

AT_START: dict[str, Any] = {"schedule_ahead": False, "hide_overhead": True}
"""The asynchronous system with steps formed when they start."""

_TOGETHER = 0.0015  # seconds between the answers of one step
_RULES: dict[str, dict[str, Any]] = {
    "formed ahead, overhead paid (shipped)": {},
    "formed ahead, overhead hidden": {"hide_overhead": True},
    "formed at the start": AT_START,
}


def answered_together(end: NDArray[np.float64]) -> NDArray[np.int64]:
    """Prompts of each step, read off the instants of their answers (seconds)."""
    breaks = np.flatnonzero(np.diff(np.sort(end)) > _TOGETHER)
    return np.diff(np.concatenate([[-1], breaks, [len(end) - 1]]))


def together_table() -> str:
    """Steps by the prompts in them, budget 65536: measured, and by either rule."""
    base, rows = log_of(ASYNC, 4).requests.arrival, []
    for rate in CALIBRATED_RATES:
        runs = {"measured": log_of(ASYNC, rate)} | ({"repeat": log_of(ASYNC, rate, repeat=3)} if rate == 4 else {})
        ends = {name: log.requests.arrival + log.ttft for name, log in runs.items()}
        for name, rule in (("model, formed ahead", {}), ("model, formed at the start", AT_START)):
            ends[name] = base * 4.0 / rate + replays(ASYNC, 65536, rate, **rule)[0]
        for name, end in ends.items():
            prompts = answered_together(end)
            counts = [*(np.sum(prompts == k) for k in (1, 2, 3)), np.sum(prompts > 3)]
            rows.append([f"{rate} requests/s, {name}", *map(str, counts)])
    return markdown_table(["steps with so many prompts", "1", "2", "3", "4 or more"], rows, right=range(1, 5))


def rules_table() -> str:
    """Errors of mean and 99th percentile of the asynchronous cells calibrated on, with the shipped costs."""
    known = {(x.budget, x.rate): x for x in cells() if x.system == ASYNC and calibrated(x)}
    rows = []
    for name, rule in _RULES.items():
        row = [name]
        for budget in BUDGETS:
            for rate in CALIBRATED_RATES:
                found, one = statistics(replays(ASYNC, budget, rate, **rule)), known[budget, rate]
                row.append(f"{found.mean_s / one.mean_s - 1:+.0%} / {found.p99_s / one.p99_s - 1:+.0%}")
        rows.append(row)
    heads = [f"{budget}, {rate}/s" for budget in BUDGETS for rate in CALIBRATED_RATES]
    return markdown_table(["mean / 99th percentile", *heads], rows, right=range(1, 5))
