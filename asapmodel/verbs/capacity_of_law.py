"""The SLO throughput from the law of TTFT, by root finding without noise.

The statistic grows like `1 / (limit - rate)` towards the stability limit, so the search runs on `exp(-objective /
statistic)`: its logarithm is nearly straight where queues build up, and at the limit it is 1 without an evaluation.
"""

import math
from collections.abc import Callable

from asapmodel import summary
from asapmodel.engines.analysis import Point
from asapmodel.errors import NoAnswer
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.solvers.roots import Crossing, NoCrossing, find_crossing
from asapmodel.verbs.evaluate import Prepared, law_name, prepare

__all__ = ["capacity_of_law"]

_LAST = 0.999  # of the stability limit: a stationary law nearer to it answers no question of practice
_CLOSE = 0.99  # of it: from here on it is stability that limits, not the objective
_MOST = 600.0  # exponent that is still a number
_BEYOND = 50.0  # stability limits at which a finite run that still meets its objective is given up

Progress = Callable[[str], None] | None


class _Search:
    """The statistic of `[slo]` as a function of the rate; keeps every evaluated point."""

    def __init__(self, scenario: Scenario, ready: Prepared, horizon: float | None, progress: Progress) -> None:
        self.scenario, self.ready, self.horizon, self.progress = scenario, ready, horizon, progress
        self.limit = ready.limit_rps
        self.seen: dict[float, tuple[Point, float]] = {}

    def statistic(self, rate: float) -> float:
        """Seconds; infinite where no stationary law is looked for."""
        if rate not in self.seen:
            found = None
            if self.horizon is not None or rate <= _LAST * self.limit:
                found = self.ready.point(rate, self.horizon)
            if found is None:
                return math.inf
            value = summary.law_statistic(found.ttft, self.scenario.slo)
            self.seen[rate] = found, value
            if self.progress is not None:
                self.progress(f"{rate:.2f} requests/s: {self.scenario.slo.statistic} TTFT {value:.3g} s")
        return self.seen[rate][1]

    def closeness(self, rate: float) -> float:
        """`exp(-objective / statistic)`, increasing in the statistic; 1/e where the objective is just met."""
        value = self.statistic(rate)
        return math.exp(-min(self.scenario.slo.ttft / value, _MOST)) if value > 0 else math.exp(-_MOST)

    def crossing(self, tolerance: float) -> Crossing:
        """Where the objective is just met.

        Raises
        ------
        NoCrossing
            If it is missed at every rate, or met at every rate looked at.
        """
        limit, level = self.limit, math.exp(-1.0)
        if self.horizon is None:
            return find_crossing(self.closeness, level, 0.6 * limit, limit, tolerance, limit=limit)
        last = _BEYOND * limit
        return find_crossing(self.closeness, level, 0.6 * limit, 1.1 * limit, tolerance, limit=last)


def capacity_of_law(
    scenario: Scenario, horizon: float | None, tolerance: float, progress: Progress, prepared: Prepared | None
) -> Capacity:
    """SLO throughput of the queueing engine's law; see `asapmodel.verbs.capacity.capacity`."""
    search = _Search(scenario, prepared or prepare(scenario), horizon, progress)
    try:
        found = search.crossing(tolerance)
    except NoCrossing:
        raise NoAnswer(_explain(search)) from None
    point = search.seen[found.low][0]
    bottleneck = summary.bottleneck(scenario.layout, point.utilisation)
    stability = horizon is None and found.estimate >= _CLOSE * search.limit
    return Capacity(
        engine="queueing",
        scenario=scenario.name,
        system=scenario.layout.kind,
        law=law_name(horizon),
        slo_throughput_rps=found.estimate,
        bracket_rps=(found.low, found.high),
        interval_rps=None,
        run_std_rps=None,
        replications=0,
        stability_limit_rps=search.limit,
        limited_by="stability" if stability else bottleneck,
        bottleneck=bottleneck,
        slo_ttft_s=scenario.slo.ttft,
        statistic=scenario.slo.statistic,
        devices=scenario.layout.devices,
        points=tuple((rate, value) for rate, (_, value) in sorted(search.seen.items())),
        assumptions=search.ready.law_assumptions,
    )


def _explain(search: _Search) -> str:
    scenario = search.scenario
    objective = f"{scenario.source}: {scenario.slo.statistic} TTFT <= {scenario.slo.ttft:g} s"
    rate = min(search.seen)
    value = search.seen[rate][1]
    if value > scenario.slo.ttft:
        return f"{objective} is missed at every rate: {value:.3g} s even at {rate:.3g} requests/s"
    rate = max(search.seen)
    value = search.seen[rate][1]
    return (
        f"{objective} is met at every rate looked at, up to {rate:.4g} requests/s ({value:.3g} s): "
        "so short a run does not saturate; raise the horizon, or leave it out"
    )
