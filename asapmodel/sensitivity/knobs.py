"""What can be turned: every cost coefficient and every number of the policy, each by a factor."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from asapmodel.costs import LayerCosts
from asapmodel.engines.analysis import Problem
from asapmodel.policy import Policy
from asapmodel.policy_rules import batching_of

__all__ = ["TIMES", "Knob", "knobs_of", "scaled_costs", "scaled_times"]

_LAWS = ("attention", "dispatch_send", "dispatch_recv", "moe", "combine_send", "combine_recv", "dense")
_TIMES = ("host_dispatch", "step_overhead", "request_latency")
_SIZES = {
    "chunks": ("chunk_tokens",),
    "prompts": ("max_batch_tokens",),
    "min_tokens": ("min_batch_tokens", "exclusive_tokens", "max_batch_tokens"),
}
TIMES = "all times"
"""Name of the knob that scales every time at once: all costs and the window."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of a system.

    Attributes
    ----------
    name : str
        As in a scenario: ``"costs.attention.per_token2"``, ``"policy.batch_window"``.
    value : float
        In the problem it was made for; s, s/token, s/token^2 or tokens.
    """

    name: str
    value: float

    def scaled(self, problem: Problem, factor: float) -> Problem:
        """The problem with this number multiplied; sizes are rounded to whole tokens, at least 1."""
        table, _, key = self.name.partition(".")
        if table == "costs":
            return replace(problem, costs=scaled_costs(problem.costs, {key: factor}))
        value = self.value * factor
        kept: float = value if key == "batch_window" else max(round(value), 1)
        return replace(problem, policy=_with(problem.policy, key, kept))


def _with(policy: Policy, key: str, value: float) -> Policy:
    changed: Policy = replace(policy, **{key: value})  # type: ignore[arg-type]
    # The threshold and the limit of a batch meet: neither passes the other.
    if changed.min_batch_tokens > changed.max_batch_tokens:
        changed = replace(changed, min_batch_tokens=changed.max_batch_tokens)
    return changed


def scaled_costs(costs: LayerCosts, factors: dict[str, float]) -> LayerCosts:
    """Costs with some coefficients multiplied.

    Parameters
    ----------
    costs : LayerCosts
        Where from.
    factors : dict
        By name without the table: ``"moe.floor"``, ``"host_dispatch"``.

    Examples
    --------
    >>> from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
    >>> t = Affine(1e-5, 1e-8)
    >>> costs = LayerCosts(Quadratic(1e-3, 1e-7, 1e-11), t, t, Plateau(4e-4, 1e-7), t, t)
    >>> scaled_costs(costs, {"moe.floor": 2.0, "combine_send.per_token": 0.5}).moe.floor
    0.0008
    """
    for name, factor in factors.items():
        law, _, field = name.partition(".")
        own = getattr(costs, law)
        changed = replace(own, **{field: factor * getattr(own, field)}) if field else factor * own
        costs = replace(costs, **{law: changed})
    return costs


def knobs_of(problem: Problem, wanted: Callable[[str], bool] = lambda _: True) -> list[Knob]:
    """Every number of a problem that is not zero and has an effect on its kind of system.

    Parameters
    ----------
    problem : Problem
        A system and its traffic.
    wanted : callable, optional
        Which names to keep.
    """
    costs, policy = problem.costs, problem.policy
    values: dict[str, float] = {}
    for law in _LAWS:
        record = getattr(costs, law)
        for field in record.__slots__:
            values[f"costs.{law}.{field}"] = getattr(record, field)
    values |= {f"costs.{name}": getattr(costs, name) for name in _TIMES}
    if problem.layout.kind == "sync" or not policy.queue_per_group:  # groups that act alone do not wait
        values["policy.batch_window"] = policy.batch_window
    sizes = _SIZES[batching_of(problem.layout.kind, policy)]
    values |= {f"policy.{name}": float(getattr(policy, name)) for name in sizes}
    if costs.dense_layers == 0:
        values = {name: value for name, value in values.items() if not name.startswith("costs.dense.")}
    if problem.layout.kind == "sync" or policy.super_kernel:
        del values["costs.host_dispatch"]  # hidden
    return [Knob(name, value) for name, value in values.items() if value > 0 and wanted(name)]


def scaled_times(problem: Problem, factor: float) -> Problem:
    """The problem with every time multiplied: the same system by a slower or faster clock."""
    for knob in knobs_of(problem, lambda name: name.startswith("costs.") or name == "policy.batch_window"):
        problem = knob.scaled(problem, factor)
    return problem
