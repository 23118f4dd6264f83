"""Attention on one kind of device, experts on another: costs, splits, and what a device may cost.

A scenario names one device, so the laws of the two stages are taken from two costings and given as `[costs]`:
attention and what is received there from one, experts and what is received there from the other. Sends have the link
of both, which is the same for all kinds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asapmodel.costing import check_memory, layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = ["KINDS", "Kind", "Point", "best_value", "break_even", "measure", "mixed", "paying", "speeds", "splits"]

OPEN = 1e13
_ATTENTION, _EXPERTS = ("attention", "combine_recv"), ("moe", "dispatch_recv")
_FIELDS = {"attention": ("fixed", "per_token", "per_token2"), "moe": ("floor", "per_token")}
_LINES = ("fixed", "per_token")


@dataclass(frozen=True, slots=True)
class Kind:
    """A device: arithmetic and memory bandwidth as multiples of the catalogue's die; memory and link are the die's."""

    name: str
    compute: float
    bandwidth: float


KINDS = (Kind("plain", 1.0, 1.0), Kind("compute-rich", 2.0, 1.0), Kind("bandwidth-rich", 0.5, 2.0))
"""The catalogue's die, one with twice the arithmetic, and one with half of it and twice the memory bandwidth."""


@dataclass(frozen=True, slots=True)
class Point:
    """A split with its policy: attention devices, expert devices, SLO throughput in requests/s, whether it fits."""

    scenario: Scenario
    attention: int
    experts: int
    slo_rps: float
    fits: bool

    def value(self, attention_price: float, expert_price: float) -> float:
        """Requests/s per price."""
        return self.slo_rps / (attention_price * self.attention + expert_price * self.experts)


def _on(scenario: Scenario, kind: Kind) -> Scenario:
    device = scenario.device.value
    changes: dict[str, Any] = {"cluster.memory_bandwidth": kind.bandwidth * device.memory_bandwidth}
    for key in ("bf16_flops", "int8_flops", "vector_flops"):
        changes[f"cluster.{key}"] = kind.compute * getattr(device, key)
    return scenario.replace(**changes)


def mixed(scenario: Scenario, attention: Kind, experts: Kind) -> Scenario:
    """The scenario with attention and experts on their own kinds of devices, as costs.

    Raises
    ------
    InputError
        If the layout does not fit the scenario's memory.
    """
    first, second = (layer_costs(_on(scenario, kind)).costs for kind in (attention, experts))
    changes: dict[str, Any] = {"costs.layers": first.layers, "costs.host_dispatch": first.host_dispatch}
    for names, costs in ((_ATTENTION, first), (_EXPERTS, second), (("dispatch_send", "combine_send"), first)):
        changes |= {f"costs.{name}": _coefficients(costs, name) for name in names}
    return scenario.replace(**changes)


def _coefficients(costs: LayerCosts, name: str) -> dict[str, float]:
    law = getattr(costs, name)
    return {field: getattr(law, field) for field in _FIELDS.get(name, _LINES)}


def splits(
    groups: Iterable[int] = range(2, 9),
    experts: Sequence[int] = range(8, 33, 4),
    batches: Sequence[int] = (2048, 16384),
) -> Iterator[Scenario]:
    """Rolling pairs, T = 4, D groups and E expert devices of any number, memory that is no limit."""
    base = Scenario.load("paper-asap").replace(**{"cluster.memory_bytes": OPEN})
    base = base.replace(pairing="rolling", exclusive_tokens=32768)
    for D in groups:
        for E in experts:
            yield from (base.replace(D=D, E=E, min_batch_tokens=size) for size in batches)


def measure(attention: Kind, experts: Kind, scenarios: Iterable[Scenario]) -> list[Point]:
    """Every split on two kinds of devices, by the quick effort; without those that miss the objective."""
    found = []
    for scenario in scenarios:
        try:
            check_memory(scenario.replace(**{"cluster.memory_bytes": 64e9}))
            fits = True
        except InputError:
            fits = False
        one = mixed(scenario, attention, experts)
        try:
            rps = capacity(one, prepared=prepare(one, effort="quick")).slo_throughput_rps
        except NoAnswer:
            continue
        found.append(Point(one, one.layout.D * one.layout.T, one.layout.E, rps, fits))
    return found


def best_value(points: Sequence[Point], attention_price: float, expert_price: float) -> Point:
    """The split with the most requests/s per price."""
    return max(points, key=lambda one: one.value(attention_price, expert_price))


def break_even(points: Sequence[Point], plain: float, special: str) -> float:
    """The price, in plain devices, up to which a special device pays in one stage, the other being plain.

    Parameters
    ----------
    points : sequence of Point
        Splits with the special device in the stage.
    plain : float
        Requests/s per plain device of the best system without it.
    special : str
        ``"attention"`` or ``"experts"``.

    Notes
    -----
    A split of throughput X with a special and b plain devices is worth ``X / (a p + b)``. That equals V at
    ``p = (X / V - b) / a``, and the largest over the splits is the answer.
    """
    ends = []
    for one in points:
        a, b = (one.attention, one.experts) if special == "attention" else (one.experts, one.attention)
        ends.append((one.slo_rps / plain - b) / a)
    return max(ends)


def paying(found: Mapping[tuple[str, str], Sequence[Point]], kind: str, stage: str) -> tuple[float, float] | None:
    """Prices of the kind, least and largest on a grid, at which a mix with it in one stage beats all alike; or None."""
    pair = (kind, "plain") if stage == "attention" else ("plain", kind)
    prices = []
    for price in np.round(np.arange(0.2, 3.0, 0.01), 2):
        mix = best_value(found[pair], *((price, 1.0) if stage == "attention" else (1.0, price)))
        value = mix.value(*((price, 1.0) if stage == "attention" else (1.0, price)))
        alike = best_value(found[kind, kind], price, price).value(price, price)
        plain = best_value(found["plain", "plain"], 1.0, 1.0).value(1.0, 1.0)
        if value > max(alike, plain):
            prices.append(float(price))
    return (prices[0], prices[-1]) if prices else None


def speeds(kind: Kind, batch: int) -> tuple[float, float]:
    """How much faster than the plain kind a group's stream and the experts are, over the batches of a backlog."""
    base = next(splits((4,), (16,), (batch,)))
    times = []
    for one in (KINDS[0], kind):
        ready = prepare(mixed(base, one, one), effort="quick")
        batches = backlog(ready)
        phases = np.stack(ready.costing.costs.phases(batches.n, batches.w)).mean(axis=1)
        times.append((phases[0] + phases[1] + phases[5], phases[3]))
    (group, experts), (fast_group, fast_experts) = times
    return float(group / fast_group), float(experts / fast_experts)
