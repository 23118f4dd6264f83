"""Points evaluated with the queueing engine, and candidates with the graph engine: what a worker does.

A task is a few consecutive points, and its answer a row for each. What the points share (laws of costs, prompts) is
computed once a process. The same point gives the same row, whatever task and process it is in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from asapmodel.costing import layer_costs
from asapmodel.engines.analysis import Problem, Prompts, TtftLaw
from asapmodel.engines.effort import EffortName
from asapmodel.engines.problem import gap_cv_of, prompts_of
from asapmodel.engines.screening import screen
from asapmodel.errors import NoAnswer
from asapmodel.exploration.designs import Group
from asapmodel.scenario import Scenario
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import bottleneck as bottleneck_of
from asapmodel.summary import law_statistic
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import Prepared

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BEYOND", "MISSED", "OK", "Confirmation", "Measures", "Task", "confirm", "evaluate", "measure"]

OK, MISSED, BEYOND = "ok", "no SLO throughput", "beyond the queueing engine"
"""What `Measures.status` may be."""


class Measures(NamedTuple):
    """A row of the table: rates in requests/s, times in seconds; NaN where there is no answer.

    `batch_tokens_mean` and `bottleneck` are at the SLO throughput, `ttft_...` at `rate_rps`.
    """

    point: int
    status: str
    effort: str
    slo_throughput_rps: float = math.nan
    stability_limit_rps: float = math.nan
    bottleneck: str = ""
    batch_tokens_mean: float = math.nan
    prompt_tokens_mean: float = math.nan
    rate_rps: float = math.nan
    ttft_at_rate_s: float = math.nan
    ttft_mean_s: float = math.nan
    ttft_p99_s: float = math.nan


@dataclass(frozen=True, slots=True)
class Task:
    """Points for one worker; `rate` None: the workload's, if it has one."""

    groups: tuple[Group, ...]
    effort: EffortName
    rate: float | None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """One point for the graph engine."""

    point: int
    scenario: Scenario
    replications: int


class _Shared(Prepared):
    """A prepared scenario that shares the prompts of its workload with others."""

    @cached_property
    def problem(self) -> Problem:
        scenario = self.scenario
        return Problem(scenario.layout, scenario.policy, self.costing.costs, *_traffic(scenario.workload))


@lru_cache(maxsize=16)
def _traffic(workload: WorkloadTable) -> tuple[Prompts, float]:
    return prompts_of(workload), gap_cv_of(workload)


def evaluate(task: Task) -> pd.DataFrame:
    """A row of `Measures` for each point of a task, in their order."""
    import pandas as pd

    rows = [
        measure(group.first + k, group.scenario.replace(**changes), task.effort, task.rate)
        for group in task.groups
        for k, changes in enumerate(group.policies)
    ]
    return pd.DataFrame(rows, columns=list(Measures._fields))


def measure(point: int, scenario: Scenario, effort: EffortName, rate: float | None) -> Measures:
    """SLO throughput of a scenario as `asapmodel.verbs.capacity.capacity` finds it, and TTFT at a rate.

    Parameters
    ----------
    point : int
        Number of the point.
    scenario : Scenario
        What fits its devices.
    effort : str
        Of the queueing engine.
    rate : float, optional
        Requests per second; default the workload's.
    """
    ready = _Shared(scenario, layer_costs(scenario), None, effort)
    tokens = float(ready.problem.prompts.prompt.mean())
    rate = scenario.workload.rate if rate is None else rate
    known: dict[str, Any] = {"prompt_tokens_mean": tokens, "rate_rps": math.nan if rate is None else rate}
    horizon = scenario.workload.horizon
    if effort == "quick" and horizon is None:
        return _screened(point, scenario, ready.problem, rate, known)
    try:
        limit = ready.analysis.saturation_rps
        at_rate = None if rate is None else ready.point(rate, horizon)
    except NoAnswer:
        return Measures(point, BEYOND, effort, **known)
    if at_rate is not None:
        known |= _at_rate(at_rate.ttft, scenario)
    try:
        found = capacity(scenario, prepared=ready)
        best = ready.point(found.slo_throughput_rps, horizon)
    except NoAnswer:
        return Measures(point, MISSED, effort, stability_limit_rps=limit, **known)
    batch = math.nan if best is None else best.batch_tokens_mean
    return Measures(point, OK, effort, found.slo_throughput_rps, limit, found.bottleneck, batch, **known)


def _screened(point: int, scenario: Scenario, problem: Problem, rate: float | None, known: dict[str, Any]) -> Measures:
    """The same by no more walks than the questions need."""
    slo = scenario.slo
    try:
        found = screen(problem, lambda law: law_statistic(law, slo), slo.ttft, rate)
    except QueueError:
        return Measures(point, BEYOND, "quick", **known)
    if found.at_rate is not None:
        known |= _at_rate(found.at_rate.ttft, scenario)
    best = found.point
    bottleneck = bottleneck_of(scenario.layout, best.utilisation)
    if math.isnan(found.throughput_rps):
        return Measures(point, MISSED, "quick", stability_limit_rps=found.limit_rps, **known)
    return Measures(
        point, OK, "quick", found.throughput_rps, found.limit_rps, bottleneck, best.batch_tokens_mean, **known
    )


def _at_rate(law: TtftLaw, scenario: Scenario) -> dict[str, float]:
    return {
        "ttft_at_rate_s": law_statistic(law, scenario.slo),
        "ttft_mean_s": law.mean,
        "ttft_p99_s": law.quantile(0.99),
    }


def confirm(task: Confirmation) -> pd.DataFrame:
    """SLO throughput of one point by the graph engine: a row of `point` and `graph_...`, requests/s."""
    import pandas as pd

    low = high = value = math.nan
    try:
        found = capacity(task.scenario, engine="graph", replications=task.replications)
        value, (low, high) = found.slo_throughput_rps, found.interval_rps or found.bracket_rps
    except NoAnswer:
        pass
    row = {"point": task.point, "graph_rps": value, "graph_low_rps": low, "graph_high_rps": high}
    return pd.DataFrame([row])
