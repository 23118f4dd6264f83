"""What a space is searched for: objectives as columns of the table, each to be as large or as small as possible.

With `X` the SLO throughput of an instance (requests/s), `N` its devices, `r` the rate, `m` the mean prompt (tokens) and
`p` the price of a device-hour::

    slo_throughput_per_device   X / N
    devices_for_rate            N ceil(r / X)                  whole instances
    cost_per_million_tokens     1e6 p N / (3600 s X m)         at the SLO throughput
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.pareto import pareto_front

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MARGINS", "OBJECTIVES", "Objective", "add_derived", "front_of", "near_front", "ranking"]


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective: `column` of the table, what it `needs` of the space, and a short `title` with its unit."""

    column: str
    largest: bool
    title: str
    needs: str = ""


OBJECTIVES = {
    "slo_throughput_per_device": Objective("slo_throughput_per_device_rps", True, "req/s per device"),
    "slo_throughput": Objective("slo_throughput_rps", True, "req/s"),
    "devices": Objective("devices", False, "devices"),
    "ttft_at_rate": Objective("ttft_at_rate_s", False, "TTFT at rate (s)", "rate"),
    "devices_for_rate": Objective("devices_for_rate", False, "devices for rate", "rate"),
    "cost_per_million_tokens": Objective("cost_per_million_tokens", False, "cost per M tokens", "price"),
}
"""By the name that a space gives."""


def add_derived(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return the table with the columns that follow from others; `rate_rps` and `price` may be NaN."""
    capacity, devices = table["slo_throughput_rps"], table["devices"]
    instances = np.ceil(table["rate_rps"] / capacity)
    tokens = 3600.0 * capacity * table["prompt_tokens_mean"]
    return table.assign(
        slo_throughput_per_device_rps=capacity / devices,
        devices_for_rate=instances * devices,
        cost_per_million_tokens=1e6 * table["price"] * devices / tokens,
    )


def _costs(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.float64]:
    """Objectives as costs, to be minimised; NaN where a point has no value."""
    signs = [-1.0 if OBJECTIVES[name].largest else 1.0 for name in names]
    values = table[[OBJECTIVES[name].column for name in names]].to_numpy(dtype=np.float64)
    costs: NDArray[np.float64] = values * np.array(signs)
    return costs


def front_of(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.bool_]:
    """Rows of the exact Pareto front; a row without a value of every objective is in none."""
    costs = _costs(table, names)
    known = np.isfinite(costs).all(axis=1)
    front = np.zeros(len(table), dtype=np.bool_)
    front[known] = pareto_front(costs[known])
    return front


MARGINS = {"slo_throughput_rps": 1.02, "ttft_at_rate_s": 0.92}
"""By what factor a quick answer may be better in full. On 50 random points of a space of 7,569 the quick effort was off
by -1.7 to +1.0 % in the SLO throughput, and by -9 to +6 % in the mean TTFT at 4 requests/s."""


def near_front(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.bool_]:
    """Rows of quick effort that could be in the front if their answers were better by the margins.

    That is, rows that no row of full effort dominates even then.
    """
    quick = (table["effort"] == "quick").to_numpy()
    better = {name: table[name] * factor for name, factor in MARGINS.items()}
    best = _costs(add_derived(table.assign(**better)), names)
    costs = _costs(table, names)
    front = np.flatnonzero(front_of(table, names) & ~quick)
    near = quick & np.isfinite(best).all(axis=1)
    for row in costs[front]:
        near &= ~((row <= best).all(axis=1) & (row < best).any(axis=1))
    return near


def ranking(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.int64]:
    """Rows with a value of every objective: those of the front first, within it and beyond by the objectives in turn.

    Ties go to the row that comes first.
    """
    costs = _costs(table, names)
    known = np.flatnonzero(np.isfinite(costs).all(axis=1))
    beyond = ~front_of(table, names)[known]
    keys = [*reversed(costs[known].T), beyond]  # of lexsort the last key counts first
    order: NDArray[np.int64] = known[np.lexsort(keys)].astype(np.int64)
    return order
