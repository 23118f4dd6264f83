"""A system of a report by the queueing engine: its law of TTFT over a dense row of rates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asapmodel.html.runs import measured
from asapmodel.html.system import Point, System
from asapmodel.result import Capacity, Result
from asapmodel.verbs.prepared import Prepared
from asapmodel.verbs.sweep import sweep_results

__all__ = ["dense_rates", "law_system"]

_EVEN, _BENT = 24, 36  # rates over the whole axis, and rates that crowd towards the stability limit
_LAST = 0.998  # of the stability limit: the end of a stationary curve, far above every chart
_SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)  # of the stability limit: where the graph engine is asked as well

Progress = Callable[[str], None] | None


def dense_rates(limit: float, last: float, detail: float, stationary: bool) -> list[float]:
    """Rates of a curve from low load to `last`, or to just below the stability limit, requests/s.

    A stationary curve bends like `1 / (limit - rate)`: half of its rates are evenly spaced in the logarithm of the
    distance to the limit.
    """
    low = min(0.02 * last, detail)
    rates = np.linspace(low, last, _EVEN)
    bent = limit * (1.0 - np.geomspace(1.0, 1.0 - _LAST, _BENT))[1:]
    chosen = np.concatenate([rates, bent, [detail]])
    top = min(last, _LAST * limit) if stationary else last
    chosen = np.unique(chosen[(chosen >= low) & (chosen <= top)])
    return [float(rate) for rate in chosen]


def law_system(
    ready: Prepared,
    found: tuple[Capacity | None, str],
    names: tuple[str, int],
    last: float,
    detail: float,
    graph_points: bool,
    progress: Progress = None,
) -> System:
    """Evaluate a scenario up to its group's last rate.

    Parameters
    ----------
    ready : Prepared
        The scenario.
    found : (Capacity or None, str)
        Its SLO throughput, or why there is none.
    names : (str, int)
        Its label and look.
    last, detail
        The group's last rate and the one of the detailed figures, below the stability limit; requests/s.
    graph_points : bool
        Whether to run the graph engine at a few rates.
    progress
        See `asapmodel.html.data.collect`.
    """
    scenario, limit = ready.scenario, ready.limit_rps
    rates = dense_rates(limit, last, detail, scenario.workload.horizon is None)
    results = tuple(sweep_results(scenario, rates, progress=progress, prepared=ready))
    at = results[rates.index(detail)]
    assert at.distribution is not None  # the rate is below the limit
    points = [share * limit for share in _SHARES if share * limit <= last] if graph_points else []
    return System(
        *names,
        scenario,
        ready.costing,
        *found,
        curve=tuple(_point(one) for one in results),
        results=results,
        detail=at,
        law=at.distribution,
        prompt_tokens_mean=float(ready.problem.prompts.prompt.mean()),
        measured=measured(scenario, ready.costing, points, progress),
    )


def _point(one: Result) -> Point:
    return Point(one.rate_rps, one.slo.value_s, one.ttft.p99_s if one.slo.statistic == "mean" else one.ttft.mean_s)
