"""Scenarios drawn together: constants that they share are drawn once, and cancel in a comparison."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.uncertainties.checking import CHECKS, checked
from asapmodel.uncertainties.linear import acting
from asapmodel.uncertainties.sampling import Look, Sampled, draw_scores, sample, values_of
from asapmodel.uncertainties.sources import Source, Sources, sources_of
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import check_rate, evaluate
from asapmodel.verbs.prepared import Prepared

__all__ = [
    "Drawn",
    "Estimate",
    "Shared",
    "answers_of",
    "check_stationary",
    "draw",
    "estimate_of",
    "shared_draws",
    "together",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Answers with the constants at their estimates; NaN TTFT if there is no rate.

    `statistic` is the one of TTFT that the objective speaks of.
    """

    throughput: float
    limit: float
    rate: float | None
    mean: float
    p99: float
    statistic: float


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


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The constants of several systems, drawn once for all of them.

    Attributes
    ----------
    sources : Sources
        Every constant that acts on any of them, equal ones once.
    values : array (samples, constants)
        What was drawn.
    own : tuple of Sources
        By system: those that act on it.
    places : tuple of list of int
        Columns of `values` that these are.
    named : tuple of frozenset
        By system: keys of all constants with a stated error, also of those without an effect.
    outside : int
        Draws that were left out as impossible.
    """

    sources: Sources
    values: Array
    own: tuple[Sources, ...]
    places: tuple[list[int], ...]
    named: tuple[frozenset[str], ...]
    outside: int

    def values_of(self, system: int) -> Array:
        """What was drawn for the constants of one system."""
        return self.values[:, self.places[system]]


def shared_draws(systems: Sequence[tuple[Scenario, LayerCosts]], samples: int, seed: int) -> Shared:
    """Draw the constants of some systems, given with their layer costs.

    Raises
    ------
    InputError
        If what is stated of a constant is not valid, or hardly any draw is possible.
    """
    stated = [sources_of(scenario, costs) for scenario, costs in systems]
    own = [acting(scenario, one) for (scenario, _), one in zip(systems, stated, strict=True)]
    sources, places = together(own)
    scores, outside = draw_scores(sources, samples, seed)
    named = tuple(frozenset(one.key for one in every.constants) for every in stated)
    return Shared(sources, values_of(sources, scores), tuple(own), tuple(places), named, outside)


def draw(
    prepared: Sequence[Prepared], rate: float | None, samples: int, seed: int, progress: Callable[[str], None] | None
) -> list[Drawn]:
    """Draw the constants of scenarios, and ask every drawn system.

    Raises
    ------
    NoAnswer, InputError
        See `asapmodel.verbs.uncertainty.uncertainty`.
    """
    estimates = [estimate_of(ready, _rate(ready.scenario, rate)) for ready in prepared]
    shared = shared_draws([(ready.scenario, ready.costing.costs) for ready in prepared], samples, seed)
    out = []
    for k, (ready, estimate) in enumerate(zip(prepared, estimates, strict=True)):
        if progress is not None:
            progress(f"{samples} systems like {ready.scenario.name}")
        values = shared.values_of(k)
        answers = answers_of(ready, estimate, shared.own[k], values)
        out.append(Drawn(ready, estimate, shared.named[k], shared.own[k], values, answers, shared.outside))
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


def _rate(scenario: Scenario, rate: float | None) -> float | None:
    """The rate to look at: the one asked for, else the scenario's."""
    return scenario.workload.rate if rate is None else check_rate(rate)


def estimate_of(ready: Prepared, rate: float | None) -> Estimate:
    """Ask the system of the estimates, by the full effort; no TTFT without a rate.

    Raises
    ------
    NoAnswer
        If the objective is missed at every rate, or the rate is not below the stability limit.
    InputError
        If the scenario asks for runs of finite length.
    """
    scenario = ready.scenario
    check_stationary(scenario)
    found = capacity(scenario, prepared=ready)
    limits = found.slo_throughput_rps, found.stability_limit_rps
    if rate is None:
        return Estimate(*limits, None, math.nan, math.nan, math.nan)
    answer = evaluate(scenario, rate, prepared=ready)
    return Estimate(*limits, rate, answer.ttft.mean_s, answer.ttft.p99_s, answer.slo.value_s)


def answers_of(ready: Prepared, estimate: Estimate, sources: Sources, values: Array, checks: int = CHECKS) -> Sampled:
    """Answers of drawn systems, times what makes those of the estimates right.

    The SLO throughput of `checks` draws is asked in full (`asapmodel.uncertainties.checking`).

    Raises
    ------
    NoAnswer
        If the system of the estimates is at the edge of what has an answer.
    """
    if not sources.constants:
        columns = (estimate.limit, estimate.throughput, estimate.mean, estimate.p99, estimate.statistic)
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
    throughput = estimate.throughput * found.throughput / base.throughput[0]
    return Sampled(
        estimate.limit / limit * found.limit,
        checked(ready, sources, values, throughput, checks),
        estimate.mean * found.mean / base.mean[0],
        estimate.p99 * found.p99 / base.p99[0],
        estimate.statistic * found.statistic / base.statistic[0],
    )
