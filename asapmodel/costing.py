"""From a scenario to the coefficients of its layer: symbolic models, then the scenario's own `[costs]`.

The attention law is reduced to `a0 + a1 n + a2 w` on the prompt lengths of the scenario's own workload, so that the
mean cost of a prompt is exact; the reduction's error is one of the assumptions that come with the costs.

Each law depends on a part of the scenario only, and is kept for others that share the part: thousands of variants of
one scenario take little longer than one.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.errors import InputError
from asapmodel.models import attention, collectives, elementwise, link, memory, moe
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.reduction import Reduction
from asapmodel.models.replication import with_copies
from asapmodel.policy import Layout, Policy
from asapmodel.result import Assumption
from asapmodel.scenario import Scenario
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.typical import backlog_batches
from asapmodel.workload import length_law

__all__ = ["Costing", "check_degrees", "check_memory", "is_modelled", "layer_costs", "length_grid", "memory_budget"]

_GRID = (
    200  # quantiles that stand for the length law in the reduction; the coefficients move by < 0.1 % from 100 to 400
)
_ROLES = {"attention": "an attention device", "moe": "an expert device", "device": "a device"}
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_KEPT = 4096  # laws of each kind: some megabytes

Hardware = tuple[Architecture, Device, Profile]


@dataclass(frozen=True, slots=True)
class Costing:
    """Coefficients and what they rest on."""

    costs: LayerCosts
    assumptions: tuple[Assumption, ...]


def length_grid(scenario: Scenario) -> NDArray[np.float64]:
    """Equally likely prompt lengths that stand for the workload's law, tokens."""
    return _quantiles(scenario.workload).copy()


@lru_cache(maxsize=64)
def _quantiles(workload: WorkloadTable) -> NDArray[np.float64]:
    return length_law(workload).quantile((np.arange(_GRID) + 0.5) / _GRID)


@lru_cache(maxsize=_KEPT)
def _attention(hardware: Hardware, T: int, workload: WorkloadTable) -> Reduction:
    return attention.reduce(*hardware, Split(1, T, 1), lengths=_quantiles(workload))


@lru_cache(maxsize=_KEPT)
def _transfers(kind: str, hardware: Hardware, split: Split) -> dict[str, tuple[float, float]]:
    blocking = collectives.contended if _contended(kind, hardware[2]) else link.synchronous
    laws = (blocking if kind == "sync" else link.asynchronous)(*hardware, split)
    return {name: (law.fixed, law.per_token) for name, law in laws.items()}


def _contended(kind: str, profile: Profile) -> bool:
    return kind == "sync" and profile.collectives == "contention"


_busiest = lru_cache(maxsize=_KEPT)(collectives.busiest)
_between = lru_cache(maxsize=_KEPT)(elementwise.per_token)


@lru_cache(maxsize=_KEPT)
def _experts(hardware: Hardware, E: int, layout: Layout, policy: Policy, workload: WorkloadTable) -> Plateau:
    """Law of the experts; `layout` and `policy` as far as they decide the batches."""
    averaged = 1 if layout.kind == "sync" else hardware[0].layers
    return Plateau(*moe.reduce(*hardware, Split(1, 1, E), _batches(layout, policy, workload), averaged))


@lru_cache(maxsize=512)
def _batches(layout: Layout, policy: Policy, workload: WorkloadTable) -> NDArray[np.float64]:
    return backlog_batches(layout, policy, _quantiles(workload))


def _batching(layout: Layout, policy: Policy) -> tuple[Layout, Policy]:
    """The parts of layout and policy that decide which batches form under a backlog."""
    if layout.kind == "sync":
        most = Policy(max_batch_tokens=policy.max_batch_tokens, chunk_tokens=policy.chunk_tokens)
        return Layout("sync", layout.D, 1, layout.D), most
    sizes = (policy.min_batch_tokens, policy.max_batch_tokens, policy.exclusive_tokens)
    if not policy.queue_per_group:
        return Layout("asap", 1, 1, 1), Policy(*sizes)
    batching = replace(policy, batch_window=0.0, pairing="locked", routing="round_robin", counts="exact", max_seqs=0)
    return Layout("asap", 1, 1, 1), batching


def layer_costs(scenario: Scenario) -> Costing:
    """Evaluate the cost models for a scenario.

    Raises
    ------
    InputError
        If the layout does not fit the memory of the devices, or a trace cannot be read.
    """
    override = scenario.costs_override
    own = override.assumptions(scenario.source)
    if not is_modelled(scenario):
        return Costing(override.apply(_ZERO), own)
    check_degrees(scenario)
    check_memory(scenario)
    layout, profile, workload = scenario.layout, scenario.profile.value, scenario.workload
    hardware = (_architecture(scenario), scenario.device.value, profile)
    law = _attention(hardware, layout.T, workload)
    split = Split(layout.D, layout.T, layout.E)
    transfers = _transfers(layout.kind, hardware, split)
    experts = _experts(hardware, layout.E, *_batching(layout, scenario.policy), workload)
    origin = scenario.architecture.assumptions + scenario.device.assumptions + scenario.profile.assumptions
    if _contended(layout.kind, profile):
        added = _busiest(*hardware, split)
        experts = replace(experts, per_token=experts.per_token + added)
        source = "collectives.busiest, since profile.collectives is contention"
        origin += (_part("contention in costs.moe", added, source),)
    between = _between(*hardware, split, layout.kind == "sync")
    if profile.elementwise:
        experts = replace(experts, per_token=experts.per_token + between[1])
        parts = zip(("attention", "moe"), between, strict=True)
        source = "elementwise.per_token, by profile.elementwise"
        origin += tuple(_part(f"element-wise traffic in costs.{name}", x, source) for name, x in parts)
    costs = LayerCosts(
        attention=Quadratic(law.fixed, law.per_token + between[0], law.per_token2),
        dispatch_send=Affine(*transfers["dispatch_send"]),
        dispatch_recv=Affine(*transfers["dispatch_recv"]),
        moe=experts,
        combine_send=Affine(*transfers["combine_send"]),
        combine_recv=Affine(*transfers["combine_recv"]),
        host_dispatch=profile.host_dispatch,
        layers=scenario.architecture.value.layers,
        step_overhead=profile.step_overhead,
        request_latency=profile.request_latency,
    )
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


def _architecture(scenario: Scenario) -> Architecture:
    """The model as the devices see it."""
    return with_copies(scenario.architecture.value, scenario.system.replication)


def is_modelled(scenario: Scenario) -> bool:
    """Whether cost models are needed: not where `[costs]` says everything, and memory and degrees do not count."""
    given = scenario.costs_override.given()
    needed = {"attention": 3, "moe": 2, **dict.fromkeys(_TRANSFERS, 2)}
    if not {"layers", "host_dispatch", *needed} <= given.keys():
        return True
    return any(len(given[name].given()) < count for name, count in needed.items())


def _part(name: str, per_token: float, source: str) -> Assumption:
    """What a coefficient holds besides its own law, for the report."""
    return Assumption(f"{name}.per_token", f"{per_token:.4g}", "s/token", "derived", f"asapmodel.models.{source}")


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
    layout, model = scenario.layout, _architecture(scenario)
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
    largest = computed = max(policy.max_batch_tokens, scenario.workload.max_prompt_tokens)
    if policy.chunk_tokens:
        computed = policy.chunk_tokens
        largest = computed + scenario.workload.max_prompt_tokens
    # The halves of a step hold together what it holds in one piece.
    slots = policy.slots if layout.kind == "asap" and policy.micro == "pair" else 1
    split = Split(layout.D, layout.T, layout.E)
    sizes = (layout.kind, largest, slots, computed, scenario.profile.value.expert_load_cv)
    return _memory(_architecture(scenario), scenario.device.value, split, *sizes)


_memory = lru_cache(maxsize=_KEPT)(memory.fits)


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
