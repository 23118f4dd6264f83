"""Answers of systems whose constants are drawn from their laws.

Scores of the constants are the points of a scrambled Sobol' sequence, turned by a root of their correlation. Every
drawn system is asked by `screen`: the same fixed walks for all, so that what they have of error is nearly the same and
cancels in ratios to the system of the estimates. An answer is that system's own (of the full effort) times such a
ratio.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.engines.analysis import Problem, TtftLaw
from asapmodel.engines.effort import STEADY
from asapmodel.engines.queueing import analyse
from asapmodel.engines.screening import LAST_LOAD, screen
from asapmodel.engines.side_by_side import side_by_side
from asapmodel.engines.walk_analysis import WalkAnalysis
from asapmodel.engines.walk_nodes import NodeTable
from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from asapmodel.scenario_resolve import DEFAULT_CLUSTER
from asapmodel.scenario_tables import SloTable
from asapmodel.sensitivity.knobs import scaled_costs
from asapmodel.solvers.marginals import correlation_root, inside, sobol_points
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import law_statistic
from asapmodel.uncertainties.sources import Source, Sources
from asapmodel.uncertainties.table import cost_names

__all__ = ["Look", "Sampled", "costs_with", "draw_scores", "sample", "sample_rates", "values_of"]

Array = NDArray[np.float64]

_EFFORT = replace(
    STEADY,
    walks=((0.05, 2800), (0.15, 2800), (0.35, 2800), (0.6, 4200), (0.8, 1400), (0.93, 1400)),
    step=1400,  # nearly all drawn systems walk equally long, hence through the same prompts
    lockstep_light=(6000, 1),
    lockstep_walks=((0.35, 6000, 1), (0.6, 8000, 2), (0.8, 2500, 1), (0.93, 4000, 2)),
)
"""Long walks at light loads, where a rate is looked at and quantiles jump; short ones for the SLO throughput."""

_AROUND = (0.85, 1.15)  # of the load of the estimates: where TTFT is walked for
_LOADS = (0.02, 0.9, 0.96)  # least load, and the largest of the two


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Answers of drawn systems, one row each; NaN where a system has none in this model.

    `limit` and `throughput` in requests/s, 0 where the objective is missed at every rate; of TTFT `mean`, `p99` and the
    objective's `statistic` in seconds, infinite where the rate is not below the stability limit.
    """

    limit: Array
    throughput: Array
    mean: Array
    p99: Array
    statistic: Array

    @classmethod
    def of(cls, rows: Array) -> "Sampled":
        """From an array of shape (n, 5)."""
        return cls(*(np.ascontiguousarray(column) for column in rows.T))


def draw_scores(sources: Sources, samples: int, seed: int) -> tuple[Array, int]:
    """Scores of the constants, shape (samples, constants), and how many draws were left out as no constants can be so.

    Raises
    ------
    InputError
        If hardly any draw is possible.
    """
    d, laws = len(sources.constants), [one.law for one in sources.constants]
    root = correlation_root(sources.correlation)
    for times in (1, 4, 16, 64):
        scores = np.asarray(ndtri(sobol_points(times * samples, d, seed)) @ root.T)
        kept = np.flatnonzero(inside(laws, scores))
        if len(kept) >= samples:
            last = int(kept[samples - 1]) + 1
            return scores[kept[:samples]], last - samples
    widest = max(sources.constants, key=lambda one: one.relative_std)
    problem = f"is so uncertain ({widest.relative_std:.0%}) that hardly any drawn system is possible"
    raise InputError(widest.origin, widest.key, problem, "measure more, or state its range")


def values_of(sources: Sources, scores: Array) -> Array:
    """Numbers that belong to scores, of the same shape."""
    columns = [one.law.of_scores(scores[:, k]) for k, one in enumerate(sources.constants)]
    return np.column_stack(columns) if columns else np.empty((len(scores), 0))


def costs_with(scenario: Scenario, constants: Sequence[Source], values: Sequence[float]) -> LayerCosts:
    """Costs of a layer if some constants had other values (of costs: the factors).

    Raises
    ------
    InputError
        If such a value is outside what the cost models know.
    """
    changes: dict[str, float | str] = {}
    factors: dict[str, float] = {}
    for one, value in zip(constants, values, strict=True):
        if one.is_factor:
            for name in cost_names()[one.key.removeprefix("costs.")]:
                factors[name] = factors.get(name, 1.0) * value
        else:
            changes[one.key] = value
    if changes and not scenario.cluster.given():  # with a field of its own a table no longer means the default cluster
        changes["cluster.use"] = DEFAULT_CLUSTER
    return scaled_costs(layer_costs(scenario.replace(**changes) if changes else scenario).costs, factors)


@dataclass(frozen=True, slots=True)
class Look:
    """A rate at which TTFT is looked at, requests/s, and the loads of the walks that tell it.

    Every drawn system walks at the same loads and is interpolated to its own: a walk's error changes with its load.
    """

    rate: float
    loads: tuple[float, float]

    @classmethod
    def around(cls, rate: float, limit: float) -> "Look":
        """For systems with stability limits around `limit`, requests/s."""
        load = rate / limit
        low = min(max(_AROUND[0] * load, _LOADS[0]), _LOADS[1])
        return cls(rate, (low, max(min(_AROUND[1] * load, 0.5 * (1.0 + load), _LOADS[2]), low + _LOADS[0])))


def sample(scenario: Scenario, problem: Problem, sources: Sources, values: Array, look: Look | None) -> Sampled:
    """Ask systems with other constants for their SLO throughput, and for TTFT at a rate.

    Parameters
    ----------
    scenario : Scenario
        The system of the estimates.
    problem : Problem
        The same for the engine.
    sources : Sources
        The constants.
    values : float64 array, shape (n, constants)
        What they are to be.
    look : Look, optional
        Where to look at TTFT.

    Notes
    -----
    On the machine's cores; the answers do not depend on how many.
    """

    def ask(row: list[float]) -> tuple[float, ...]:
        try:
            changed = replace(problem, costs=costs_with(scenario, sources.constants, row))
            found = screen(changed, lambda law: law_statistic(law, scenario.slo), scenario.slo.ttft, None, _EFFORT)
            throughput = 0.0 if math.isnan(found.throughput_rps) else found.throughput_rps
            return (found.limit_rps, throughput, *_ttft(changed, look, scenario.slo))
        except (InputError, QueueError):
            return (math.nan,) * 5

    rows = side_by_side(ask, values.tolist())
    return Sampled.of(np.array(rows, dtype=np.float64).reshape(len(values), 5))


def sample_rates(scenario: Scenario, problem: Problem, sources: Sources, values: Array, looks: Sequence[Look]) -> Array:
    """Ask systems with other constants for TTFT at several rates.

    Parameters
    ----------
    scenario, problem, sources, values
        As of `sample`.
    looks : sequence of Look
        Where to look.

    Returns
    -------
    array, shape (n, rates, 3)
        Mean, p99 and the statistic of the objective, seconds; infinite where the rate is not below the stability limit,
        NaN where the model has no answer.
    """

    def ask(row: list[float]) -> list[tuple[float, float, float]]:
        try:
            analysis = _analysis(replace(problem, costs=costs_with(scenario, sources.constants, row)))
            return [_times(_law(analysis, look), scenario.slo) for look in looks]
        except (InputError, QueueError):
            return [(math.nan,) * 3] * len(looks)

    rows = side_by_side(ask, values.tolist())
    return np.array(rows, dtype=np.float64).reshape(len(values), len(looks), 3)


def _ttft(problem: Problem, look: Look | None, slo: SloTable) -> tuple[float, float, float]:
    """Mean, p99 and the objective's statistic."""
    return (math.nan,) * 3 if look is None else _times(_law(_analysis(problem), look), slo)


def _times(law: TtftLaw | None, slo: SloTable) -> tuple[float, float, float]:
    return (math.inf,) * 3 if law is None else (law.mean, law.quantile(0.99), law_statistic(law, slo))


def _analysis(problem: Problem) -> WalkAnalysis:
    analysis = analyse(problem, effort=_EFFORT)
    assert isinstance(analysis, WalkAnalysis)
    return analysis


def _law(analysis: WalkAnalysis, look: Look) -> TtftLaw | None:
    """Law of TTFT; None where the rate is not below the stability limit."""
    load, problem = look.rate / analysis.saturation_rps, analysis.problem
    if load >= LAST_LOAD:
        return None
    waits = problem.layout.kind == "asap" and problem.policy.batch_window > 0
    table = NodeTable((analysis.lone, *map(analysis.node, look.loads)), may_fall=waits)
    return analysis.point_of(look.rate, table.at(np.array([load]))[0]).ttft
