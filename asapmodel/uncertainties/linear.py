"""The same interval to first order: elasticities of the answer, slopes of the cost models, covariance of the constants.

With elasticities ``e_c = d ln y / d ln c`` to the coefficients c of a layer (`asapmodel.sensitivity`: other walks,
other steps) and slopes of the coefficients with respect to the constants x, by differences over the middle of their
laws::

    g_i = sum_c e_c d ln c / d x_i,     Var ln y ~ g' S g,     S_ij = R_ij s_i s_j

A second way to the spread of an answer, right where the answer bends little over the laws.
"""

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy_rules import is_vllm_like
from asapmodel.scenario import Scenario
from asapmodel.sensitivity.elasticities import STEP, Point, elasticities
from asapmodel.sensitivity.knobs import knobs_of
from asapmodel.sensitivity.local import LAST_LOAD, Curve, NoLocalAnswer
from asapmodel.solvers.marginals import Marginal
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import law_statistic
from asapmodel.uncertainties.answer import Exact
from asapmodel.uncertainties.sampling import costs_with, sample
from asapmodel.uncertainties.sources import Source, Sources
from asapmodel.uncertainties.table import cost_names, quantity_type
from asapmodel.verbs.prepared import Prepared

__all__ = ["acting", "exact_constants", "linear_std", "log_slopes", "throughput_elasticities"]

Array = NDArray[np.float64]

_STEP = 0.25  # of a score
_BELOW = 0.8  # of the SLO throughput: where elasticities of TTFT, which nobody asks for here, are taken


def coefficients(scenario: Scenario, costs: LayerCosts) -> dict[str, float]:
    """Every coefficient that acts on this kind of system by name: ``moe.floor``, ``step_overhead``."""
    hidden = {"host_dispatch"} if scenario.layout.kind == "sync" or scenario.policy.super_kernel else set()
    out = {}
    for name, parts in cost_names().items():
        if parts == (name,) and name not in hidden:
            law, _, field = name.partition(".")
            own = getattr(costs, law)
            out[name] = float(getattr(own, field) if field else own)
    return out


def log_slopes(scenario: Scenario, constants: tuple[Source, ...]) -> dict[str, Array]:
    """``d ln c / d x`` of every coefficient that is not 0, by differences around the medians; shape (constants,).

    The other constants are at their estimates.
    """
    estimates = [one.law.value for one in constants]
    slopes: dict[str, Array] = {}
    for k, one in enumerate(constants):
        ends = one.law.of_scores(np.array([-_STEP, _STEP]))
        low, high = (
            coefficients(scenario, costs_with(scenario, constants, [*estimates[:k], float(end), *estimates[k + 1 :]]))
            for end in ends
        )
        for name, first in low.items():
            if first > 0 and high[name] > 0:
                rise = np.log(high[name] / first) / float(ends[1] - ends[0])
                slopes.setdefault(name, np.zeros(len(constants)))[k] = rise
    return slopes


def acting(scenario: Scenario, sources: Sources) -> Sources:
    """The constants that move any coefficient of this system's costs that acts."""
    slopes = log_slopes(scenario, sources.constants)
    moved = np.zeros(len(sources.constants), dtype=bool)
    for row in slopes.values():
        moved |= np.abs(row) > 0
    return sources.take([int(k) for k in np.flatnonzero(moved)])


def throughput_elasticities(ready: Prepared, throughput: float) -> dict[str, float] | None:
    """Of the SLO throughput with respect to every coefficient that is not 0; None where the system has none.

    Groups that form steps of their own have long walks; they are judged by the short ones of the drawn systems.
    """
    slo = ready.scenario.slo
    if is_vllm_like(ready.scenario.policy):
        return _short_elasticities(ready)
    curve = Curve(ready.analysis, lambda law: law_statistic(law, slo))
    if throughput >= LAST_LOAD * curve.limit:
        return None
    point = Point(slo.ttft, throughput, _BELOW * throughput)
    try:
        found = elasticities(
            ready.problem, curve, point, knobs_of(ready.problem, lambda name: name.startswith("costs."))
        )
    except (QueueError, NoLocalAnswer):
        return None
    return {one.name.removeprefix("costs."): one.throughput for one in found}


def _short_elasticities(ready: Prepared) -> dict[str, float] | None:
    """By `sample`, over the factor of `asapmodel.sensitivity` both ways."""
    scenario = ready.scenario
    names = [name for name, value in coefficients(scenario, ready.costing.costs).items() if value > 0]
    factor = Marginal("uniform", 1.0, 1 / STEP, STEP)
    sources = Sources(tuple(Source(f"costs.{name}", factor, 1.0, "") for name in names), np.eye(len(names)))
    values = np.vstack([np.where(np.eye(len(names)) > 0, end, 1.0) for end in (1 / STEP, STEP)])
    found = sample(scenario, ready.problem, sources, values, None).throughput
    if not np.all(found > 0):
        return None
    rise = np.log(found[len(names) :] / found[: len(names)]) / (2 * math.log(STEP))
    return dict(zip(names, rise.tolist(), strict=True))


def linear_std(scenario: Scenario, sources: Sources, known: dict[str, float]) -> float:
    """Standard deviation of the logarithm of the SLO throughput, to first order.

    Parameters
    ----------
    scenario : Scenario
        The system of the estimates.
    sources : Sources
        The constants.
    known : dict
        Result of `throughput_elasticities`.
    """
    gradient = np.zeros(len(sources.constants))
    for name, row in log_slopes(scenario, sources.constants).items():
        gradient += known.get(name, 0.0) * row
    spread = np.array([one.law.std for one in sources.constants])
    variance = float(gradient @ (sources.correlation * np.outer(spread, spread)) @ gradient)
    return math.sqrt(max(variance, 0.0))


def exact_constants(ready: Prepared, named: Collection[str], known: dict[str, float] | None) -> list[Exact]:
    """Constants that act on this system and whose error nobody states, the most influential first.

    Parameters
    ----------
    ready : Prepared
        The system of the estimates.
    named : collection of str
        Keys of those with a stated error.
    known : dict or None
        Result of `throughput_elasticities`.
    """
    scenario, costs = ready.scenario, ready.costing.costs
    whole = cost_names()
    stated = {part for key in named if key.startswith("costs.") for part in whole[key.removeprefix("costs.")]}
    out: list[Exact] = []
    for one in ready.costing.assumptions:
        table, _, name = one.name.partition(".")
        key = {"profile": f"cluster.profile.{name}", "device": f"cluster.{name}"}.get(table, one.name)
        if one.kind == "derived" or key in named or (table == "costs" and name in stated):
            continue
        if table in ("profile", "device"):
            slopes = _slopes_of(scenario, key, table) if quantity_type(key) else {}  # words have none
        else:
            slopes = {name: 1.0} if coefficients(scenario, costs).get(name, 0.0) > 0 and table == "costs" else {}
        if any(slopes.values()):
            moves = [known.get(coefficient, 0.0) * slope for coefficient, slope in slopes.items()] if known else []
            elasticity = float(sum(moves)) if moves else math.nan
            out.append(Exact(key, one.kind, elasticity))
    return sorted(out, key=lambda one: -abs(one.elasticity) if one.elasticity == one.elasticity else 0.0)


def _slopes_of(scenario: Scenario, key: str, table: str) -> dict[str, float]:
    """``d ln c / d ln x`` with respect to a number of the profile or the device."""
    record = scenario.profile.value if table == "profile" else scenario.device.value
    value = float(getattr(record, key.rpartition(".")[2]) or 0.0)
    if value <= 0:
        return {}
    lower = Source(key, Marginal("uniform", value, 0.99 * value, value), value, "")  # a share of 1 cannot rise
    return {name: float(row[0]) * value for name, row in log_slopes(scenario, (lower,)).items()}
