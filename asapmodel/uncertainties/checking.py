"""Drawn SLO throughputs against those of the full effort, in a few draws: what short walks are off by as a whole.

Drawn throughputs are ratios of short walks to those of the estimates. Where a walk just meets an objective that another
just misses, the curve between walks is another one, and the ratios are off by a per cent or two, nearly the same in all
draws: it is the system of the estimates that stands out. That much is found in a few draws and taken off all. What is
left scatters from draw to draw (`docs/background/uncertainty.md` has figures).
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.side_by_side import side_by_side
from asapmodel.errors import InputError, NoAnswer
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.uncertainties.sampling import costs_with
from asapmodel.uncertainties.sources import Sources
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import Prepared

__all__ = ["CHECKS", "checked", "full_throughputs"]

Array = NDArray[np.float64]

CHECKS = 8
"""Draws that are asked in full."""


def checked(ready: Prepared, sources: Sources, values: Array, drawn: Array, checks: int = CHECKS) -> Array:
    """Take off drawn SLO throughputs what the first draws are off by on geometric average.

    Parameters
    ----------
    ready : Prepared
        The system of the estimates.
    sources, values
        The constants and what was drawn for them.
    drawn : float64 array, shape (n,)
        The throughputs, requests/s.
    checks : int
        How many draws to ask in full, at least 1. If that is all of them their answers are returned.
    """
    full = full_throughputs(ready, sources, values[:checks])
    if checks >= len(values):
        return full
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.log(full / drawn[: len(full)])
    known = off[np.isfinite(off)]
    return drawn * math.exp(float(known.mean())) if len(known) else drawn


def full_throughputs(ready: Prepared, sources: Sources, values: Array) -> Array:
    """SLO throughputs of drawn systems by the full effort of the queueing engine.

    0 where the objective is missed at every rate, NaN where the model has no answer.
    """

    def ask(row: list[float]) -> float:
        try:
            costs = costs_with(ready.scenario, sources.constants, row)
            other = replace(ready, costing=replace(ready.costing, costs=costs))
            _ = other.analysis.saturation_rps
        except (InputError, NoAnswer, QueueError):
            return math.nan
        try:
            return capacity(ready.scenario, prepared=other).slo_throughput_rps
        except NoAnswer:
            return 0.0

    return np.array(side_by_side(ask, values.tolist()), dtype=np.float64)
