"""What a report knows of one system, whichever engine it is from."""

from __future__ import annotations

from dataclasses import dataclass

from asapmodel.costing import Costing
from asapmodel.engines.analysis import TtftLaw
from asapmodel.result import Capacity, Records, Result
from asapmodel.scenario import Scenario

__all__ = ["Measured", "Point", "System"]


@dataclass(frozen=True, slots=True)
class Point:
    """TTFT at one rate: the objective's statistic, and p99 or, beside a quantile, the mean."""

    rate_rps: float
    judged_s: float
    other_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The objective's statistic from runs of the graph engine, with a 95 % interval over replications if there are."""

    rate_rps: float
    judged_s: float
    interval_s: tuple[float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """One scenario of a group. `look` is the place of its system in the palette; without `capacity`, `why` not.

    `curve`, `law` and `records`, those at the common rate, pool the runs of the graph engine; `results` and `detail`,
    the one of them at the common rate, are of the first run. The queueing engine has no runs, hence no `records`;
    `measured` then are points of the graph engine to hold its curve against, if they were asked for.
    """

    label: str
    look: int
    scenario: Scenario
    costing: Costing
    capacity: Capacity | None
    why: str
    curve: tuple[Point, ...]
    results: tuple[Result, ...]
    detail: Result
    law: TtftLaw
    prompt_tokens_mean: float
    records: Records | None = None
    measured: tuple[Measured, ...] = ()

    @property
    def stability_limit(self) -> float:
        """Rate at which the backlogged system serves, requests/s."""
        return self.detail.saturation_rps
