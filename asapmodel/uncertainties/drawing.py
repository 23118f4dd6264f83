"""Scenarios drawn together: constants that they share are drawn once, and cancel in a comparison."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.uncertainties.linear import acting
from asapmodel.uncertainties.sampling import Look, Sampled, draw_scores, sample, values_of
from asapmodel.uncertainties.sources import Source, Sources, sources_of
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import check_rate, evaluate
from asapmodel.verbs.prepared import Prepared

__all__ = ["Drawn", "Estimate", "check_stationary", "draw", "together"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Answers with the constants at their estimates; NaN TTFT if there is no rate."""

    throughput: float
    limit: float
    rate: float | None
    mean: float
    p99: float


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A scenario, its constants, and the answers of the drawn systems.

    `named` are the keys of all constants with a stated error, also of those without an effect here; `values` has a row
    a system, and `outside` draws were left out as impossible.
    """

    ready: Prepared
    estimate: Estimate
    named: frozenset[str]
    sources: Sources
    values: Array
    answers: Sampled
    outside: int


def draw(
    prepared: Sequence[Prepared], rate: float | None, samples: int, seed: int, progress: Callable[[str], None] | None
) -> list[Drawn]:
    """Draw the constants of scenarios, and ask every drawn system.

    Raises
    ------
    NoAnswer, InputError
        See `asapmodel.verbs.uncertainty.uncertainty`.
    """
    estimates = [_estimate(ready, rate) for ready in prepared]
    stated = [sources_of(ready.scenario, ready.costing.costs) for ready in prepared]
    own = [acting(ready.scenario, one) for ready, one in zip(prepared, stated, strict=True)]
    shared, places = together(own)
    scores, outside = draw_scores(shared, samples, seed)
    out = []
    for ready, estimate, every, sources, columns in zip(prepared, estimates, stated, own, places, strict=True):
        if progress is not None:
            progress(f"{samples} systems like {ready.scenario.name}")
        values = values_of(sources, scores[:, columns])
        answers = _answers(ready, estimate, sources, values)
        named = frozenset(one.key for one in every.constants)
        out.append(Drawn(ready, estimate, named, sources, values, answers, outside))
    return out


def together(own: Sequence[Sources]) -> tuple[Sources, list[list[int]]]:
    """The constants of several scenarios, equal ones once, and the places of each scenario's among them."""
    known: list[Source] = []
    places = []
    for sources in own:
        known += [one for one in sources.constants if one not in known]
        places.append([known.index(one) for one in sources.constants])
    correlation = np.eye(len(known))
    for sources, columns in zip(own, places, strict=True):
        correlation[np.ix_(columns, columns)] = sources.correlation
    return Sources(tuple(known), correlation), places


def check_stationary(scenario: Scenario) -> None:
    """Refuse runs of finite length.

    Raises
    ------
    InputError
        If the scenario asks for one.
    """
    if scenario.workload.horizon is not None:
        remedy = "leave it out: intervals are of the stationary law"
        raise InputError(scenario.source, "workload.horizon", "cannot be combined with an uncertainty", remedy)


def _estimate(ready: Prepared, rate: float | None) -> Estimate:
    scenario = ready.scenario
    check_stationary(scenario)
    found = capacity(scenario, prepared=ready)
    wanted = scenario.workload.rate if rate is None else check_rate(rate)
    if wanted is None:
        return Estimate(found.slo_throughput_rps, found.stability_limit_rps, None, math.nan, math.nan)
    ttft = evaluate(scenario, wanted, prepared=ready).ttft
    return Estimate(found.slo_throughput_rps, found.stability_limit_rps, wanted, ttft.mean_s, ttft.p99_s)


def _answers(ready: Prepared, estimate: Estimate, sources: Sources, values: Array) -> Sampled:
    """Answers of drawn systems, times what makes those of the estimates right."""
    if not sources.constants:
        columns = (estimate.limit, estimate.throughput, estimate.mean, estimate.p99)
        return Sampled.of(np.tile(columns, (len(values), 1)))
    scenario, problem = ready.scenario, ready.problem
    middle = np.array([[one.law.value for one in sources.constants]])
    # The shorter walks' stability limit is a little off: the same load, not the same rate.
    limit = float(sample(scenario, problem, sources, middle, None).limit[0])
    look = None if estimate.rate is None else Look.around(estimate.rate * limit / estimate.limit, limit)
    base = sample(scenario, problem, sources, middle, look)
    if not (base.throughput[0] > 0 and (look is None or math.isfinite(base.mean[0]))):
        raise NoAnswer(
            f"{scenario.source}: at the edge of what has an answer, too near for its uncertainty; raise slo.ttft or "
            "lower the rate"
        )
    found = sample(scenario, problem, sources, values, look)
    return Sampled(
        estimate.limit / limit * found.limit,
        estimate.throughput * found.throughput / base.throughput[0],
        estimate.mean * found.mean / base.mean[0],
        estimate.p99 * found.p99 / base.p99[0],
    )
