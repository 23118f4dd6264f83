"""Instances that grow from 32 devices on: candidates of every size, and the best of them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from asapmodel.circuits.bounds import throughput_bounds
from asapmodel.costing import layer_costs
from asapmodel.errors import InputError, NoAnswer
from asapmodel.models.imbalance import imbalance
from asapmodel.models.parameters import Split
from asapmodel.models.replication import with_copies
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = [
    "OPEN",
    "SIZES",
    "Best",
    "asynchronous",
    "best_of",
    "busiest",
    "fleet_member",
    "synchronous",
    "transfer_margin",
]

SIZES = (32, 48, 64, 96, 128, 192, 256, 384)
OPEN = 1e13
"""Bytes of a device that are no limit."""

_EXPERTS = 256
_SHARES = (0.4, 0.45, 0.5, 0.55, 0.6)  # of all devices, for attention: around the closed form's best
_GROUPS = 64
_CHUNKS = (4096, 8192, 16384)
_BATCHES = (4096, 8192, 16384)
_ROLLING = {"pairing": "rolling", "exclusive_tokens": 32768}


@dataclass(frozen=True, slots=True)
class Best:
    """The best of a size: its scenario, SLO throughput in requests/s and per device, what limits it there."""

    devices: int
    scenario: Scenario
    slo_rps: float
    limited_by: str

    @property
    def each(self) -> float:
        """Requests/s and device."""
        return self.slo_rps / self.devices

    @property
    def layout(self) -> str:
        """Degrees, and copies of experts where there are any."""
        one, copies = self.scenario.layout, self.scenario.system.replication
        words = f"D{one.D} T{one.T}" + (f" E{one.E}" if one.kind == "asap" else "")
        return words + (f", {copies} copies" if copies > 1 else "")

    @property
    def unit(self) -> str:
        """Batch or chunk size."""
        policy = self.scenario.policy
        if self.scenario.layout.kind == "asap":
            return f"batches from {policy.min_batch_tokens}"
        return f"chunks of {policy.chunk_tokens}"


def asynchronous(
    devices: int, memory: float = 64e9, batches: Sequence[int] = _BATCHES, sizes: Sequence[int] = (2, 4, 8)
) -> Iterator[Scenario]:
    """Splits of a size: with a limit of memory every D that could fit, without one those around balance."""
    base = Scenario.load("paper-asap").replace(**{"cluster.memory_bytes": memory}, **_ROLLING)
    for T in sizes:
        most = devices // T
        if memory < OPEN:
            groups = [D for D in range(1, min(most, 17)) if 0.25 * devices <= D * T <= 0.7 * devices or D >= 12]
        else:
            groups = sorted({round(share * most) for share in _SHARES})
        for D in groups:
            E = devices - D * T
            if E > 0:
                degrees = {"D": D, "T": T, "E": E, "replication": math.ceil(E / _EXPERTS)}
                yield from (base.replace(**degrees, min_batch_tokens=size) for size in batches)


def synchronous(devices: int, sizes: Sequence[int] = (2, 4, 8)) -> Iterator[Scenario]:
    """Chunked prefill on all devices, chunks of three sizes; experts are copied where there are more devices.

    At most 64 groups: the queueing engine's memory grows steeply with their number.
    """
    base = Scenario.load("paper-chunked")
    for T in (T for T in sizes if devices <= _GROUPS * T):
        degrees = {"D": devices // T, "T": T, "replication": math.ceil(devices / _EXPERTS)}
        yield from (base.replace(**degrees, chunk_tokens=chunk) for chunk in _CHUNKS)


def best_of(devices: int, scenarios: Iterable[Scenario]) -> Best | None:
    """The best by the quick effort, evaluated in full; None if none fits."""
    found: list[tuple[float, Scenario]] = []
    for scenario in scenarios:
        try:
            layer_costs(scenario)
            ready = prepare(scenario, effort="quick")
            found.append((capacity(scenario, prepared=ready).slo_throughput_rps, scenario))
        except (InputError, NoAnswer):  # it does not fit the memory, or misses the objective at any rate
            continue
    if not found:
        return None
    scenario = max(found, key=lambda pair: pair[0])[1]
    one = capacity(scenario)
    return Best(devices, scenario, one.slo_throughput_rps, one.limited_by)


def fleet_member(best: Best, count: int) -> float:
    """SLO throughput in requests/s of one of `count` equal instances that are served in turn.

    Every instance gets each `count`-th request of a Poisson stream, so its gaps are gamma with a coefficient of
    variation of ``1 / sqrt(count)``.
    """
    if count == 1:
        return best.slo_rps
    return capacity(best.scenario.replace(arrivals="gamma", cv=1 / math.sqrt(count))).slo_throughput_rps


def busiest(scenario: Scenario) -> float:
    """Load of the busiest expert device over the mean, as far as it counts: in a layer, or over all layers."""
    layout, model = scenario.layout, with_copies(scenario.architecture.value, scenario.system.replication)
    layers = 1 if layout.kind == "sync" else model.layers
    return imbalance(model, scenario.device.value, scenario.profile.value, Split(1, 1, layout.E), layers)


def transfer_margin(best: Best) -> float:
    """Tightest bound by a stream of the pool that only transfers, over the SLO throughput."""
    ready = prepare(best.scenario, effort="quick")
    batches = backlog(ready)
    found = throughput_bounds(best.scenario.layout, best.scenario.policy, ready.costing.costs, batches)
    streams = ("sending stream of the MoE devices", "receiving stream of the MoE devices")
    return found.prompts * min(found.upper[name] for name in streams) / best.slo_rps
