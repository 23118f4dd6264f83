"""A first look at one system among tens of thousands: one short walk, where the objective is expected to be met.

With `x` the stability limit and `c` the prompts in service under a backlog, a prompt stays `c / x` there (Little). So
the statistic of the TTFT at load `rho` is about::

    S(rho) = s + max(c / x - s, 0) rho^2 + k (a^2 + b^2) / 2 * rho / (1 - rho) / x

with `s` the statistic of prompts alone, which is exact, `a` and `b` the coefficients of variation of the gaps and of
the work, whose term is the mean wait of a single server (Pollaczek and Khinchine; exact there for Poisson arrivals),
and `k` the statistic of an exponential law of mean 1. A walk is made where `S` meets the objective.
Through it and the prompts alone goes a curve, straight pieces of `log` of the statistic over `-log(1 - rho)`, of slope
1 beyond the last walk, which is as steep as a queue near saturation and too steep far from it. More walks follow where
the curve meets the objective, or the objective with the margin of the effort, far from any walk, or beyond the last
one at a light load. A TTFT is never below that of the prompt alone without its window, so an objective below that is
known to be missed.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.engines.analysis import Point, Problem, Prompts, TtftLaw
from asapmodel.engines.effort import ROUGH
from asapmodel.engines.queueing import analyse
from asapmodel.engines.screening import LAST_LOAD, Screened
from asapmodel.engines.walk_analysis import WalkAnalysis
from asapmodel.engines.walk_nodes import SHARES
from asapmodel.policy import Layout, Policy

__all__ = ["RoughLook"]

Floats = NDArray[np.float64]
Statistic = Callable[[TtftLaw], float]

_KEPT = 512  # systems
_WALKS = 5  # at most
_NEAR = 0.35  # in `-log(1 - load)`
_HEAVY, _HEAVIEST = 0.8, 0.96  # loads: from where on the slope is 1 or nearly so, of the heaviest walk
_LEAST = 1e-6  # load that stands for 0, which is no rate
_LOADS: Floats = -np.expm1(-np.linspace(0.005, -math.log1p(-LAST_LOAD), 800))
_EXPONENTIAL = TtftLaw(-np.log1p(-np.minimum(SHARES, 1.0 - 1e-7)), SHARES, 1.0, 1.0)


class RoughLook:
    """First looks at systems with the same prompts and gaps; a backlog is followed once for all windows.

    Parameters
    ----------
    prompts, gap_cv
        As in `Problem`.
    """

    def __init__(self, prompts: Prompts, gap_cv: float) -> None:
        self.prompts, self.gap_cv = prompts, gap_cv
        self._without_window = lru_cache(maxsize=_KEPT)(self._analysis)

    def _analysis(self, layout: Layout, policy: Policy, costs: LayerCosts) -> WalkAnalysis:
        analysis = analyse(Problem(layout, policy, costs, self.prompts, self.gap_cv), effort=ROUGH)
        assert isinstance(analysis, WalkAnalysis)
        return analysis

    def screen(
        self,
        layout: Layout,
        policy: Policy,
        costs: LayerCosts,
        statistic: Statistic,
        objective: float,
        rate: float | None = None,
    ) -> Screened | None:
        """Find the SLO throughput of a system and its answer at a rate, roughly.

        Parameters
        ----------
        layout, policy, costs
            The system.
        statistic : callable
            Of a law of TTFT, seconds.
        objective : float
            What the statistic is to stay within, seconds.
        rate : float, optional
            A rate to answer at, too, requests/s: one walk more.

        Returns
        -------
        Screened or None
            None where so rough a look cannot tell whether the objective is ever met.

        Raises
        ------
        QueueError
            If the system is beyond the queueing engine.
        """
        base = self._without_window(layout, replace(policy, batch_window=0.0), costs)
        analysis = base.with_window(policy.batch_window)
        limit = analysis.saturation_rps
        point = analysis.point_of(_LEAST * limit, analysis.lone)
        alone = statistic(point.ttft)
        throughput = most = math.nan
        if alone - policy.batch_window <= objective:
            first = _first(self._expected(analysis, alone, statistic), objective)
            met, met_with_margin, point = _search(analysis, alone, first, statistic, objective)
            throughput, most = met * limit, met_with_margin * limit * ROUGH.limit_margin
            if math.isnan(throughput):
                return None
        at_rate = None
        if rate is not None and rate < LAST_LOAD * limit:
            at_rate = analysis.point_of(rate, analysis.node(rate / limit))
        return Screened(limit, throughput, most, point, at_rate)

    def _expected(self, analysis: WalkAnalysis, alone: float, statistic: Statistic) -> Floats:
        """The statistic at `_LOADS` by the formula above, seconds."""
        limit, work, in_service = analysis.saturated
        wait = 0.5 * (self.gap_cv**2 + float(np.mean(work**2)) - 1.0) * _LOADS / (1.0 - _LOADS)
        crowd = max(in_service / limit - alone, 0.0) * _LOADS**2
        expected: Floats = alone + crowd + statistic(_EXPONENTIAL) * wait / limit
        return expected


def _first(expected: Floats, objective: float) -> float:
    """Load of the first walk: where the expected statistic, which ascends, meets the objective."""
    return float(np.interp(objective, expected, _LOADS))


def _search(
    analysis: WalkAnalysis, alone: float, load: float, statistic: Statistic, objective: float
) -> tuple[float, float, Point]:
    """Loads that meet the objective and the objective with its margin, and the answer at the walk nearest to the first.

    `load` is that of the first walk.
    """
    limit, values = analysis.saturation_rps, {0.0: alone}
    points: dict[float, Point] = {}
    while True:
        load = min(load, _HEAVIEST)
        points[load] = analysis.point_of(load * limit, analysis.node(load))
        values[load] = statistic(points[load].ttft)
        wanted = _meeting(values, objective), _meeting(values, objective * ROUGH.time_margin)
        last = max(values)
        far = [one for one in wanted if one == one and _distance(min(one, _HEAVIEST), values) > _NEAR]
        if wanted[1] > last and last < _HEAVY:
            far.append(max(wanted[1], 0.5 * (1.0 + last)))
        if not far or len(points) == _WALKS:
            return *wanted, points[min(points, key=lambda one: abs(one - wanted[0]))]
        load = far[0] if far[0] < last else far[-1]


def _meeting(values: Mapping[float, float], objective: float) -> float:
    """Largest load at which the curve through the values at some loads meets the objective; NaN if there is none."""
    curve = sorted((load, -math.log1p(-load), math.log(value / objective)) for load, value in values.items())
    _, place, above = curve[-1]
    if above <= 0.0:
        return min(-math.expm1(above - place), LAST_LOAD)
    for (_, left, low), (_, right, high) in reversed(list(pairwise(curve))):
        if low <= 0.0:
            return -math.expm1(-(left - low * (right - left) / (high - low)))
    return math.nan


def _distance(load: float, loads: Iterable[float]) -> float:
    """From a load to the nearest of some, in `-log(1 - load)`."""
    return min(abs(math.log((1.0 - one) / (1.0 - load))) for one in loads)
