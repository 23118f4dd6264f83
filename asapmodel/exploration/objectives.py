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

from asapmodel.engines.effort import CLOSE, FULL, QUICK, ROUGH, Effort
from asapmodel.solvers.pareto import pareto_front

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OBJECTIVES", "Objective", "add_derived", "costs_of", "front_of", "near_front", "ranking"]


_EFFORTS: dict[str, Effort] = {"rough": ROUGH, "quick": QUICK, "close": CLOSE, "full": FULL}


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


def costs_of(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.float64]:
    """Objectives as costs, to be minimised; NaN where a point has no value."""
    signs = [-1.0 if OBJECTIVES[name].largest else 1.0 for name in names]
    values = table[[OBJECTIVES[name].column for name in names]].to_numpy(dtype=np.float64)
    costs: NDArray[np.float64] = values * np.array(signs)
    return costs


def front_of(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.bool_]:
    """Rows of the exact Pareto front; a row without a value of every objective is in none."""
    costs = costs_of(table, names)
    known = np.isfinite(costs).all(axis=1)
    front = np.zeros(len(table), dtype=np.bool_)
    front[known] = pareto_front(costs[known])
    return front


def near_front(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.bool_]:
    """Rows of less than full effort that could be in the front if their answers were better by the margins of effort.

    That is, rows that no row of full effort dominates even then.
    """
    best = costs_of(add_derived(_at_best(table)), names)
    full = (table["effort"] == "full").to_numpy()
    near = ~full & np.isfinite(best).all(axis=1)
    for row in costs_of(table, names)[front_of(table, names) & full]:
        near &= ~((row <= best).all(axis=1) & (row < best).any(axis=1))
    return near


def _at_best(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table with the best that the full effort may say.

    With a stability limit `x` that may be `a x` a load `rho` may be `rho / a`. The TTFT `y` there, which may be `y / b`
    at an equal load, falls with it by at most as much as a queue near saturation::

        y / b * (1 - rho) / (1 - rho / a)

    At a rate beyond the stability limit by less than the margin it could be anything.
    """
    effort = table["effort"]
    limit_margin = effort.map({name: one.limit_margin for name, one in _EFFORTS.items()})
    time_margin = effort.map({name: one.time_margin for name, one in _EFFORTS.items()})
    load = table["rate_rps"] / table["stability_limit_rps"]
    least = table["ttft_at_rate_s"] / time_margin * (1.0 - load) / (1.0 - load / limit_margin)
    unknown = table["ttft_at_rate_s"].isna() & (load < limit_margin)
    return table.assign(slo_throughput_rps=table["slo_throughput_most_rps"], ttft_at_rate_s=least.mask(unknown, 0.0))


def ranking(table: "pd.DataFrame", names: Sequence[str]) -> NDArray[np.int64]:
    """Rows with a value of every objective: those of the front first, within it and beyond by the objectives in turn.

    Ties go to the row that comes first.
    """
    costs = costs_of(table, names)
    known = np.flatnonzero(np.isfinite(costs).all(axis=1))
    beyond = ~front_of(table, names)[known]
    keys = [*reversed(costs[known].T), beyond]  # of lexsort the last key counts first
    order: NDArray[np.int64] = known[np.lexsort(keys)].astype(np.int64)
    return order
