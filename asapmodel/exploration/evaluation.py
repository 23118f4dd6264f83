"""Points evaluated with the queueing engine, and candidates with the graph engine: what a worker does.

A task is a few points, and its answer a row for each. What points share (costs, prompts, backlogs) is computed once.
The same point gives the same row, whatever task and process it is in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from asapmodel.costing import Costing, layer_costs
from asapmodel.engines.analysis import Problem, Prompts, TtftLaw
from asapmodel.engines.effort import CLOSE, EFFORTS, QUICK, Effort, EffortName
from asapmodel.engines.problem import gap_cv_of, prompts_of
from asapmodel.engines.rough import RoughLook
from asapmodel.engines.screening import Screened, screen
from asapmodel.errors import NoAnswer
from asapmodel.exploration.designs import Changes, Group
from asapmodel.policy import Policy
from asapmodel.scenario import Scenario
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import bottleneck as bottleneck_of
from asapmodel.summary import law_statistic
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import Prepared

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

__all__ = ["BEYOND", "MISSED", "OK", "Confirmation", "Level", "Measures", "Task", "confirm", "evaluate", "measure"]

Level = Literal["rough", "close"] | EffortName
"""How closely a point is looked at: ``"rough"``, ``"quick"``, ``"close"`` or ``"full"``."""

OK, MISSED, BEYOND = "ok", "no SLO throughput", "beyond the queueing engine"
"""What `Measures.status` may be."""


class Measures(NamedTuple):
    """A row of the table: rates in requests/s, times in seconds; NaN where there is no answer.

    `slo_throughput_most_rps` is what the SLO throughput may be with the full effort. `batch_tokens_mean` and
    `bottleneck` are at the SLO throughput, `ttft_...` at `rate_rps`.
    """

    point: int
    status: str
    effort: str
    slo_throughput_rps: float = math.nan
    slo_throughput_most_rps: float = math.nan
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
    effort: Level
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


@lru_cache(maxsize=16)
def _rough_look(workload: WorkloadTable) -> RoughLook:
    return RoughLook(*_traffic(workload))


def evaluate(task: Task) -> pd.DataFrame:
    """A row of `Measures` for each point of a task, in their order."""
    import pandas as pd

    rows = [row for group in task.groups for row in _rows(group, task)]
    return pd.DataFrame(rows, columns=list(Measures._fields))


def _rows(group: Group, task: Task) -> Iterator[Measures]:
    """Rows of a group; its costs are those of its layout and of what batches there are, which no window changes."""
    known: dict[Policy, tuple[Scenario, Costing]] = {}
    for k, changes in enumerate(group.policies):
        table = (group.scenario.system.kind, group.scenario.policy_table, *changes.items())
        policy, batching = _policies(_Policies(table, group.scenario, changes))
        if batching not in known:
            scenario = group.scenario.replace(**changes)
            known[batching] = scenario, layer_costs(scenario)
        similar, costing = known[batching]
        row = _roughly(group.first + k, similar, policy, costing, task.rate) if task.effort == "rough" else None
        again: Level = "quick" if task.effort == "rough" else task.effort
        yield row or measure(group.first + k, group.scenario.replace(**changes), again, task.rate, costing)


@dataclass(frozen=True, slots=True)
class _Policies:
    """A policy: equal if its `table` is, whatever the layout, so that each is read once and not once a layout."""

    table: tuple[Any, ...]
    scenario: Scenario = field(compare=False)
    changes: Changes = field(compare=False)


@lru_cache(maxsize=4096)
def _policies(wanted: _Policies) -> tuple[Policy, Policy]:
    """The policy, and what of it decides which batches there are."""
    policy = wanted.scenario.replace(**wanted.changes).policy
    return policy, replace(policy, batch_window=0.0, pairing="locked")


def measure(
    point: int, scenario: Scenario, effort: Level, rate: float | None, costing: Costing | None = None
) -> Measures:
    """SLO throughput of a scenario as `asapmodel.verbs.capacity.capacity` finds it, and TTFT at a rate.

    Parameters
    ----------
    point : int
        Number of the point.
    scenario : Scenario
        What fits its devices.
    effort : str
        Of the queueing engine. ``"rough"`` becomes ``"quick"`` where it has no answer.
    rate : float, optional
        Requests per second; default the workload's.
    costing : Costing, optional
        Result of `layer_costs(scenario)`, to share it.
    """
    costing = costing or layer_costs(scenario)
    horizon = scenario.workload.horizon
    if effort == "rough":
        row = _roughly(point, scenario, scenario.policy, costing, rate)
        if row is not None:
            return row
        effort = "quick"
    rate, known = _known(scenario.workload, rate)
    if effort != "full" and horizon is None:
        ready = _Shared(scenario, costing)
        return _screened(point, scenario, ready.problem, rate, known, effort)
    # Of finite runs nothing is known that is between quick and full.
    named: EffortName = "quick" if effort == "quick" else "full"
    return _whole(point, _Shared(scenario, costing, None, named), rate, known)


def _known(workload: WorkloadTable, rate: float | None) -> tuple[float | None, dict[str, Any]]:
    """The rate to answer at, default the workload's, and the columns that need no analysis."""
    rate = workload.rate if rate is None else rate
    tokens = _mean_tokens(workload)
    return rate, {"prompt_tokens_mean": tokens, "rate_rps": math.nan if rate is None else rate}


def _whole(point: int, ready: Prepared, rate: float | None, known: dict[str, Any]) -> Measures:
    """`measure` by a whole analysis."""
    scenario, effort, horizon = ready.scenario, ready.effort, ready.scenario.workload.horizon
    try:
        limit = ready.limit_rps
        at_rate = None if rate is None else ready.point(rate, horizon)
    except NoAnswer:
        return Measures(point, BEYOND, effort, **known)
    if at_rate is not None:
        known |= _at_rate(at_rate.ttft, scenario)
    most = _most(ready, limit)
    try:
        found = capacity(scenario, prepared=ready)
        best = ready.point(found.slo_throughput_rps, horizon)
    except NoAnswer:
        return Measures(point, MISSED, effort, math.nan, most, stability_limit_rps=limit, **known)
    batch = math.nan if best is None else best.batch_tokens_mean
    throughput = found.slo_throughput_rps
    most = throughput if effort == "full" else most
    return Measures(point, OK, effort, throughput, most, limit, found.bottleneck, batch, **known)


def _most(ready: Prepared, limit: float) -> float:
    """SLO throughput that the full effort may find, by the margins of a lower one; NaN for the full effort itself."""
    effort, scenario = EFFORTS[ready.effort], ready.scenario
    if ready.effort == "full":
        return math.nan
    lenient = scenario.replace(**{"slo.ttft": scenario.slo.ttft * effort.time_margin})
    try:
        return effort.limit_margin * capacity(lenient, prepared=ready).slo_throughput_rps
    except NoAnswer:  # missed even so, or met at every rate
        at_limit = ready.point(limit, scenario.workload.horizon)
        met = at_limit is not None and law_statistic(at_limit.ttft, scenario.slo) <= lenient.slo.ttft
        return math.inf if met else math.nan


_LENGTHS: dict[Level, Effort] = {"quick": QUICK, "close": CLOSE}


@lru_cache(maxsize=16)
def _mean_tokens(workload: WorkloadTable) -> float:
    return float(_traffic(workload)[0].prompt.mean())


def _roughly(point: int, scenario: Scenario, policy: Policy, costing: Costing, rate: float | None) -> Measures | None:
    """SLO throughput by a rough look, of a scenario with another window or pairing; None where it has no answer."""
    if scenario.workload.horizon is not None:
        return None
    slo, look = scenario.slo, _rough_look(scenario.workload)
    rate, known = _known(scenario.workload, rate)
    system = scenario.layout, policy, costing.costs
    try:
        found = look.screen(*system, lambda law: law_statistic(law, slo), slo.ttft, rate)
    except QueueError:
        return None
    return None if found is None else _row(point, scenario, "rough", found, known)


def _screened(
    point: int, scenario: Scenario, problem: Problem, rate: float | None, known: dict[str, Any], level: Level
) -> Measures:
    """The same by no more walks than the questions need."""
    slo = scenario.slo
    try:
        found = screen(problem, lambda law: law_statistic(law, slo), slo.ttft, rate, _LENGTHS[level])
    except QueueError:
        return Measures(point, BEYOND, level, **known)
    return _row(point, scenario, level, found, known)


def _row(point: int, scenario: Scenario, effort: Level, found: Screened, known: dict[str, Any]) -> Measures:
    if found.at_rate is not None:
        known |= _at_rate(found.at_rate.ttft, scenario)
    best = found.point
    bottleneck = bottleneck_of(scenario.layout, best.utilisation)
    if math.isnan(found.throughput_rps):
        most = found.most_rps
        return Measures(point, MISSED, effort, math.nan, most, stability_limit_rps=found.limit_rps, **known)
    rates = found.throughput_rps, found.most_rps, found.limit_rps
    return Measures(point, OK, effort, *rates, bottleneck, best.batch_tokens_mean, **known)


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
