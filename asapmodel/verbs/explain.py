"""`explain`: what limits a system, what would help most, and what the answers depend on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asapmodel.circuits.batches import form_batches, form_iterations
from asapmodel.circuits.bounds import JOINT, REGIMES, Bounds, Regime, regime_of, throughput_bounds
from asapmodel.circuits.queue_bounds import queue_bounds
from asapmodel.costing import length_grid
from asapmodel.errors import NoAnswer
from asapmodel.policy_rules import is_vllm_like
from asapmodel.result import Assumption, Result
from asapmodel.scenario import Scenario
from asapmodel.sensitivity.elasticities import (
    Elasticity,
    Point,
    elasticities,
    objective_elasticity,
    rate_elasticity,
)
from asapmodel.sensitivity.improvements import Improvement, improvements
from asapmodel.sensitivity.knobs import knobs_of
from asapmodel.sensitivity.local import LAST_LOAD, Curve, NoLocalAnswer
from asapmodel.sensitivity.options import Option, options
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import law_statistic
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.evaluate import Prepared, check_rate, evaluate, prepare

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Explanation", "explain"]

_WINDOW = "policy.batch_window"  # the one time of a policy
_BELOW = 0.8  # of the SLO throughput: where TTFT is looked at if nobody says


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a system answers as it does.

    Attributes
    ----------
    slo_throughput_rps, stability_limit_rps : float
        Largest rate that meets the objective, and that at which queues grow without end.
    result : Result
        TTFT at the rate that was asked for.
    regime : Regime
        The tightest constraint on throughput, whatever the order of service, and the next; rates are batches/s, with
        queues per group prompts/s.
    bounds_rps : dict
        Upper bounds of the stability limit by constraint, requests/s, the tightest first.
    lower_rps : float or None
        What the system reaches at least, requests/s; None where no such bound is known: with queues per group or a
        limit on the prompts of a step.
    elasticities : tuple of Elasticity
        With respect to every number of costs and policy.
    objective_elasticity, rate_elasticity : float
        Of the SLO throughput with respect to the objective, of the TTFT with respect to the rate.
    improvements : tuple of Improvement
        By a tenth, the most valuable first.
    options : tuple of Option
        Other choices, if asked for.
    advice : dict
        Numbers of the closed forms, if asked for; with queues per group or a limit on the prompts of a step only
        ``left_out``, which says why there are none.
    """

    scenario: str
    system: str
    slo_ttft_s: float
    statistic: str
    slo_throughput_rps: float
    stability_limit_rps: float
    result: Result
    regime: Regime
    bounds_rps: dict[str, float]
    lower_rps: float | None
    elasticities: tuple[Elasticity, ...]
    objective_elasticity: float
    rate_elasticity: float
    improvements: tuple[Improvement, ...]
    options: tuple[Option, ...]
    advice: dict[str, float | str]
    assumptions: tuple[Assumption, ...] = ()

    @property
    def sums(self) -> tuple[float, float]:
        """What elasticities of SLO throughput and TTFT with respect to all times add up to; exactly -1 and 1.

        With that of the objective, and less that of the rate: the error of the digits that stand beside them.
        """
        times = [one for one in self.elasticities if one.name.startswith("costs.") or one.name == _WINDOW]
        throughput, ttft = (math.fsum(getattr(one, name) for one in times) for name in ("throughput", "ttft"))
        return throughput + self.objective_elasticity, ttft - self.rate_elasticity

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        from dataclasses import asdict, replace

        out = asdict(replace(self, result=None))  # type: ignore[arg-type]
        out["sums"] = dict(zip(("throughput", "ttft"), self.sums, strict=True))
        result = self.result.to_dict()
        del result["assumptions"]
        return out | {"result": result}

    def table(self) -> "pd.DataFrame":
        """Return the elasticities as a table."""
        import pandas as pd

        return pd.DataFrame([{name: getattr(one, name) for name in Elasticity.__slots__} for one in self.elasticities])


def explain(
    scenario: Scenario,
    rate: float | None = None,
    *,
    walks: int = 1,
    choices: bool = False,
    formulas: bool = False,
    prepared: Prepared | None = None,
) -> Explanation:
    """Explain a system: its limits, elasticities, and what a tenth better would be worth.

    Parameters
    ----------
    scenario : Scenario
        What to explain.
    rate : float, optional
        Where to look at TTFT, requests/s; default the scenario's rate, or else 80 % of the SLO throughput.
    walks : int
        Fixed walks by which changes are judged: more take longer, and give the elasticities standard errors.
    choices : bool
        Whether to judge other choices too: switches of the policy, devices more or less.
    formulas : bool
        Whether to evaluate the closed forms, too: building them symbolically takes a second or two once a process.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it.

    Raises
    ------
    NoAnswer
        If the objective is missed at every rate, or the rate is not below the stability limit.
    InputError
        If the rate is no positive number, or the scenario cannot be evaluated.
    """
    ready = prepared or prepare(scenario)
    curve = Curve(ready.analysis, lambda law: law_statistic(law, scenario.slo))
    point = _point(scenario, ready, curve, rate)
    knobs = knobs_of(ready.problem)
    try:
        found = elasticities(ready.problem, curve, point, knobs, range(walks))
    except (QueueError, NoLocalAnswer) as error:
        raise NoAnswer(f"{scenario.source}: a system a tenth off has no answer ({error})") from None
    bounds = _bounds(ready)
    upper = {name: bounds.prompts * value for name, value in sorted(bounds.upper.items(), key=lambda item: item[1])}
    return Explanation(
        scenario=scenario.name,
        system=scenario.layout.kind,
        slo_ttft_s=scenario.slo.ttft,
        statistic=scenario.slo.statistic,
        slo_throughput_rps=point.throughput_rps,
        stability_limit_rps=curve.limit,
        result=evaluate(scenario, point.rate_rps, prepared=ready),
        regime=regime_of(bounds),
        bounds_rps=upper,
        lower_rps=bounds.prompt_rates[0] or None,
        elasticities=tuple(found),
        objective_elasticity=objective_elasticity(curve, point),
        rate_elasticity=rate_elasticity(curve, point.rate_rps),
        improvements=tuple(improvements(scenario, ready.costing.costs, found)),
        options=tuple(options(scenario)) if choices else (),
        advice=_advice(ready) if formulas else {},
        assumptions=ready.law_assumptions,
    )


def _point(scenario: Scenario, ready: Prepared, curve: Curve, rate: float | None) -> Point:
    objective, limit = scenario.slo.ttft, curve.limit
    try:
        throughput = limit * curve.load_at(objective)
    except NoLocalAnswer:
        least = curve.at(0.0)
        statistic = scenario.slo.statistic
        raise NoAnswer(
            f"{scenario.source}: {statistic} TTFT <= {objective:g} s is missed at every rate: {least:.3g} s even of "
            "lone prompts; raise slo.ttft"
        ) from None
    wanted = scenario.workload.rate if rate is None else check_rate(rate)
    if wanted is None:
        wanted = _BELOW * throughput
    if wanted >= LAST_LOAD * limit:
        raise NoAnswer(
            f"{scenario.source}: {wanted:g} requests/s is not below the stability limit of {limit:.4g}: "
            "give a lower --rate"
        )
    return Point(objective, throughput, wanted)


def _advice(ready: Prepared) -> dict[str, float | str]:
    scenario = ready.scenario
    if is_vllm_like(scenario.policy):
        return {"left_out": "they are of one queue for all groups, without a limit on the prompts of a step"}
    from asapmodel.closed_forms.advice import of_scenario  # SymPy builds fifty formulas

    return of_scenario(ready.costing.costs, scenario.layout, scenario.policy, length_grid(scenario))


def _bounds(ready: Prepared) -> Bounds:
    """Of what a backlog of the engine's own prompts is cut into, or, where that depends on times, of the prompts."""
    from asapmodel.engines.walk_sequences import even_deck

    layout, policy, prompts = ready.scenario.layout, ready.scenario.policy, ready.problem.prompts
    costs = ready.costing.costs
    if is_vllm_like(policy):
        return queue_bounds(layout, policy, costs, prompts.prompt, prompts.cached)
    order = even_deck(len(prompts.prompt), 2)
    waiting = make_requests(np.zeros(len(order)), prompts.prompt[order], prompts.cached[order])
    iterations = layout.kind == "sync"
    batches = form_iterations(layout, policy, costs, waiting) if iterations else form_batches(layout, policy, waiting)
    return throughput_bounds(layout, policy, costs, batches)


def regimes_of(bounds: dict[str, float]) -> Sequence[tuple[str, str, float]]:
    """Constraint, regime and rate of each bound that names a regime, the tightest first."""
    return [(name, REGIMES[name], rate) for name, rate in bounds.items() if name not in JOINT.values()]
