"""From a scenario to the coefficients of its layer: symbolic models, then the scenario's own `[costs]`.

The attention law is reduced to `a0 + a1 n + a2 w` on the prompt lengths of the scenario's own workload, so that the
mean cost of a prompt is exact; the reduction's error is one of the assumptions that come with the costs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.errors import InputError
from asapmodel.models import attention, link, memory, moe
from asapmodel.models.parameters import Split
from asapmodel.result import Assumption
from asapmodel.scenario import Scenario
from asapmodel.typical import backlog_batches
from asapmodel.workload import length_law

__all__ = ["Costing", "check_degrees", "check_memory", "layer_costs", "memory_budget"]

_GRID = (
    200  # quantiles that stand for the length law in the reduction; the coefficients move by < 0.1 % from 100 to 400
)
_ROLES = {"attention": "an attention device", "moe": "an expert device", "device": "a device"}
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")


@dataclass(frozen=True, slots=True)
class Costing:
    """Coefficients and what they rest on."""

    costs: LayerCosts
    assumptions: tuple[Assumption, ...]


def length_grid(scenario: Scenario) -> NDArray[np.float64]:
    """Equally likely prompt lengths that stand for the workload's law, tokens."""
    return length_law(scenario.workload).quantile((np.arange(_GRID) + 0.5) / _GRID)


def layer_costs(scenario: Scenario) -> Costing:
    """Evaluate the cost models for a scenario.

    Raises
    ------
    InputError
        If the layout does not fit the memory of the devices, or a trace cannot be read.
    """
    override = scenario.costs_override
    given = override.given()
    own = override.assumptions(scenario.source)
    if _complete(given):
        return Costing(override.apply(_ZERO), own)
    check_degrees(scenario)
    check_memory(scenario)
    layout = scenario.layout
    split = Split(layout.D, layout.T, layout.E)
    parts = (scenario.architecture.value, scenario.device.value, scenario.profile.value, split)
    profile = scenario.profile.value
    lengths = length_grid(scenario)
    law = attention.reduce(*parts, lengths=lengths)
    averaged = 1 if layout.kind == "sync" else scenario.architecture.value.layers
    batches = backlog_batches(layout, scenario.policy, lengths)
    transfers = (link.synchronous if layout.kind == "sync" else link.asynchronous)(*parts)
    costs = LayerCosts(
        attention=Quadratic(law.fixed, law.per_token, law.per_token2),
        dispatch_send=Affine(*transfers["dispatch_send"]),
        dispatch_recv=Affine(*transfers["dispatch_recv"]),
        moe=Plateau(*moe.reduce(*parts, batches, averaged)),
        combine_send=Affine(*transfers["combine_send"]),
        combine_recv=Affine(*transfers["combine_recv"]),
        host_dispatch=profile.host_dispatch,
        layers=scenario.architecture.value.layers,
        step_overhead=profile.step_overhead,
        request_latency=profile.request_latency,
    )
    origin = scenario.architecture.assumptions + scenario.device.assumptions + scenario.profile.assumptions
    reduction = Assumption(
        "attention reduced to a0 + a1 n + a2 w",
        f"{law.mean_relative_error:.1%} of the work misplaced, largest error of a prompt {law.max_relative_error:.0%}",
        "",
        "derived",
        "asapmodel.models.attention.reduce on this workload's lengths",
    )
    return Costing(override.apply(costs), (*origin, reduction, *_derived(override.apply(costs)), *own))


_NOTHING = Affine(0.0, 0.0)
_ZERO = LayerCosts(Quadratic(0.0, 0.0, 0.0), _NOTHING, _NOTHING, Plateau(0.0, 0.0), _NOTHING, _NOTHING)


def _complete(given: dict[str, object]) -> bool:
    """Whether `[costs]` says everything, so that neither model nor cluster is needed."""
    needed = {"attention": 3, "moe": 2, **dict.fromkeys(_TRANSFERS, 2)}
    if not {"layers", "host_dispatch", *needed} <= given.keys():
        return False
    return all(len(given[name].given()) == count for name, count in needed.items())  # type: ignore[attr-defined]


def _derived(costs: LayerCosts) -> tuple[Assumption, ...]:
    """The coefficients themselves, for the report."""
    source = "cost models"
    a, m = costs.attention, costs.moe
    rows = [
        ("attention.fixed", a.fixed, "s"),
        ("attention.per_token", a.per_token, "s/token"),
        ("attention.per_token2", a.per_token2, "s/token^2"),
        ("moe.floor", m.floor, "s"),
        ("moe.per_token", m.per_token, "s/token"),
    ]
    for name in _TRANSFERS:
        transfer = getattr(costs, name)
        rows += [(f"{name}.fixed", transfer.fixed, "s"), (f"{name}.per_token", transfer.per_token, "s/token")]
    return tuple(Assumption(f"costs.{name}", f"{value:.4g}", unit, "derived", source) for name, value, unit in rows)


def check_degrees(scenario: Scenario) -> None:
    """Refuse degrees that the model cannot be split by.

    Raises
    ------
    InputError
        If T does not divide the heads, or there are more expert devices than experts.
    """
    layout, model = scenario.layout, scenario.architecture.value
    if model.heads % layout.T:
        remedy = "give a divisor: attention is split over heads"
        raise InputError(scenario.source, "system.T", f"is {layout.T}, the model has {model.heads} heads", remedy)
    if layout.E > model.routed_experts:
        key = "system.E" if layout.kind == "asap" else "system.D"
        problem = f"{layout.E} expert devices for {model.routed_experts} experts"
        raise InputError(scenario.source, key, problem, "lower it: every device holds at least one expert")


def memory_budget(scenario: Scenario) -> memory.MemoryBudget:
    """Bytes per device and role for the scenario's layout and largest batch."""
    layout, policy = scenario.layout, scenario.policy
    largest = max(policy.max_batch_tokens, scenario.workload.max_prompt_tokens)
    if layout.kind == "sync" and policy.chunk_tokens:
        largest = policy.chunk_tokens + scenario.workload.max_prompt_tokens
    slots = policy.slots if layout.kind == "asap" else 1
    split = Split(layout.D, layout.T, layout.E)
    return memory.fits(scenario.architecture.value, scenario.device.value, split, layout.kind, largest, slots)


def check_memory(scenario: Scenario) -> None:
    """Refuse a layout that does not fit its devices.

    Raises
    ------
    InputError
        Names the role, what it needs and the largest item.
    """
    budget = memory_budget(scenario)
    if budget.fits:
        return
    role = min(budget.headroom, key=lambda name: budget.headroom[name])
    items = budget.items[role]
    largest = max(items, key=lambda name: items[name])
    layout = scenario.layout
    raise InputError(
        scenario.source,
        "system",
        f"D{layout.D} T{layout.T} E{layout.E} needs {budget.used[role] / 1e9:.1f} GB on {_ROLES[role]}, "
        f"it has {budget.memory_bytes / 1e9:.1f} GB (largest item: {largest}, {items[largest] / 1e9:.1f} GB)",
        "raise E or T, or lower max_batch_tokens or max_prompt_tokens",
    )
