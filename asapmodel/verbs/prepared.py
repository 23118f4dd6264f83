"""What the verbs share: the names of the engines, and a scenario with all that does not depend on the rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asapmodel import summary, units
from asapmodel.costing import Costing, layer_costs
from asapmodel.engines import queueing
from asapmodel.engines.analysis import Analysis, Point, Problem
from asapmodel.engines.effort import EFFORTS, EffortName
from asapmodel.engines.graph import Run, run
from asapmodel.engines.problem import problem_of
from asapmodel.errors import InputError, NoAnswer
from asapmodel.policy_rules import backlogged
from asapmodel.result import Assumption
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.systems.arrays import Requests
from asapmodel.workload import Traffic

__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "Prepared",
    "check_engine",
    "check_horizon",
    "prepare",
    "saturation_throughput",
]

ENGINES = ("queueing", "graph")
"""Engines this version has."""

DEFAULT_ENGINE = "queueing"

_BACKLOG = {"sync": 50_000, "asap": 8_000}
"""Drawn requests in the saturated run: 1 to 3 % (standard deviation) on the throughput, in up to a quarter second."""

_NEAR_LIMIT = 0.98  # of the stability limit: where to look for what sets it


def check_engine(engine: str) -> None:
    """Refuse an engine that does not exist.

    Raises
    ------
    InputError
        Names the engines there are.
    """
    if engine not in ENGINES:
        raise InputError("--engine", "", f"no engine '{engine}'", f"give one of: {', '.join(ENGINES)}")


def check_horizon(scenario: Scenario, horizon: float | str | None, engine: str) -> float | None:
    """Return the length of the run that the queueing engine's law is to be of, seconds; None for the stationary law.

    Parameters
    ----------
    scenario : Scenario
        Its workload's `horizon` holds where no other is given.
    horizon : float, str or None
        Seconds, or text with a unit.
    engine : str
        The graph engine has no use for one: its runs last `workload.duration`.

    Raises
    ------
    InputError
        If it is no positive time, or given for the graph engine.
    """
    if horizon is None:
        return scenario.workload.horizon if engine == "queueing" else None
    if engine != "queueing":
        remedy = "a run of the graph engine lasts workload.duration: give that (--set duration=...)"
        raise InputError("--horizon", "", f"is not for engine '{engine}'", remedy)
    try:
        seconds = units.seconds(horizon)
    except units.UnitError as error:
        raise InputError("--horizon", "", error.problem, error.remedy) from None
    if seconds <= 0:
        raise InputError("--horizon", "", f"is {horizon}", "give a time greater than 0, e.g. 300s")
    return seconds


@dataclass(frozen=True, eq=False)
class Prepared:
    """A scenario with everything that does not depend on the rate, each computed when first asked for.

    `traffic` and `saturation_rps` are the graph engine's, `analysis`, `limit_rps` and `limit_bottleneck` the queueing
    engine's. That has two efforts: ``"quick"`` is for screening thousands of scenarios; `docs/engines.md` has the
    errors of both.
    """

    scenario: Scenario
    costing: Costing
    seed: int | None = None
    effort: EffortName = "full"

    @cached_property
    def traffic(self) -> Traffic:
        """Arrivals and lengths, drawn once for all rates."""
        return Traffic(self.scenario.workload, self.seed)

    def requests(self, rate: float) -> Requests:
        """Requests at a rate."""
        return self.traffic.at(rate)

    def run(self, requests: Requests) -> Run:
        """Run a request sequence."""
        return run(self.scenario.layout, self.scenario.policy, self.costing.costs, requests)

    @cached_property
    def saturation_rps(self) -> float:
        """Rate at which the system serves when prompts of this traffic all wait from the start, requests/s."""
        return saturation_throughput(self, self.traffic.backlog(_BACKLOG[self.scenario.layout.kind]))

    def ttft(self, rate: float) -> NDArray[np.float64]:
        """TTFT of every request at a rate, seconds."""
        requests = self.requests(rate)
        return self.run(requests).outcome.end - requests.arrival + self.costing.costs.request_latency

    @cached_property
    def problem(self) -> Problem:
        """What the queueing engine is given."""
        return problem_of(self.scenario, self.costing)

    @cached_property
    def analysis(self) -> Analysis:
        """The problem, analysed by the queueing engine.

        Raises
        ------
        NoAnswer
            If it is outside what the engine can treat.
        """
        try:
            return queueing.analyse(self.problem, effort=EFFORTS[self.effort])
        except QueueError as error:
            raise self._beyond(error) from None

    @cached_property
    def limit_rps(self) -> float:
        """Stability limit of the queueing engine, requests/s.

        Raises
        ------
        NoAnswer
            If it is outside what the engine can treat.
        """
        try:
            return self.analysis.saturation_rps
        except QueueError as error:
            raise self._beyond(error) from None

    @cached_property
    def _laws(self) -> dict[float | None, Analysis]:
        return {}

    def _law(self, horizon: float | None) -> Analysis:
        law = self._laws.get(horizon)
        if law is None:
            law = self._laws[horizon] = queueing.law_of(self.analysis, horizon)
        return law

    def point(self, rate: float, horizon: float | None) -> Point | None:
        """Answer of the queueing engine; see `asapmodel.engines.queueing.operating_point`.

        Parameters
        ----------
        rate : float
            Requests per second.
        horizon : float, optional
            Seconds of the run that the law is to be of; None for the stationary law.

        Raises
        ------
        NoAnswer
            If the engine finds none although there should be one.
        """
        try:
            return queueing.operating_point(self._law(horizon), rate)
        except QueueError as error:
            raise self._beyond(error) from None

    def points(self, rates: Sequence[float], horizon: float | None) -> list[Point | None]:
        """Answers of the queueing engine at several rates; see `point`."""
        try:
            return queueing.operating_points(self._law(horizon), rates)
        except QueueError as error:
            raise self._beyond(error) from None

    def _beyond(self, error: QueueError) -> NoAnswer:
        return NoAnswer(f"{self.scenario.source}: beyond the queueing engine ({error}); give --engine graph")

    @cached_property
    def limit_bottleneck(self) -> str:
        """The resource that sets the queueing engine's stability limit."""
        point = self.point(_NEAR_LIMIT * self.limit_rps, None)
        return summary.bottleneck(self.scenario.layout, point.utilisation) if point is not None else "stability"

    @cached_property
    def law_assumptions(self) -> tuple[Assumption, ...]:
        """What the queueing engine's answers rest on: the costs, and for a replayed trace what is left of it."""
        known = self.costing.assumptions
        if self.effort != "full":
            source = "errors in docs/engines.md"
            known = (*known, Assumption("effort of the queueing engine", self.effort, "", "assumed", source))
        if self.scenario.workload.trace is None:
            return known
        value = f"its lengths in no order, gaps between arrivals independent with cv {self.problem.gap_cv:.3g}"
        source = "asapmodel.engines.problem; the graph engine replays the trace itself"
        return (*known, Assumption("trace replaced by its laws", value, "", "derived", source))


def prepare(
    scenario: Scenario, seed: int | None = None, costing: Costing | None = None, effort: EffortName = "full"
) -> Prepared:
    """Evaluate the cost models; traffic is drawn or analysed when first needed.

    Raises
    ------
    InputError
        If the layout does not fit the memory, a trace cannot be read, or the queueing engine has no such effort.
    """
    if effort not in EFFORTS:
        raise InputError("effort", "", f"there is no effort {effort!r}", f"give one of: {', '.join(EFFORTS)}")
    return Prepared(scenario, costing or layer_costs(scenario), seed, effort)


def saturation_throughput(ready: Prepared, waiting: Requests) -> float:
    """Rate at which the system serves prompts that all wait from the start, requests/s.

    Measured between the 10th and 90th percentile of completions, so that filling and emptying do not count; with
    fewer than 50 requests over the whole run.
    """
    count = len(waiting.arrival)
    layout, policy = ready.scenario.layout, backlogged(ready.scenario.policy)
    ends = np.sort(run(layout, policy, ready.costing.costs, waiting).outcome.end)
    if count < 50:
        return count / float(ends[-1])
    first, last = int(0.1 * count), int(0.9 * count)
    return (last - first) / float(ends[last] - ends[first])
