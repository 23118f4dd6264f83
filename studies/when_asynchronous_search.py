"""The best synchronous and the best asynchronous system on the same devices, for one workload and one machine.

*Best* is searched anew at every point of a map, with the quick effort of the queueing engine: of all candidates that
fit the memory the one with the largest SLO throughput, or the one with the least TTFT at a rate. Devices may also be
two or four equal instances, each with its share of the traffic: fewer groups then wait for one another, and fewer
expert devices for the busiest of them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.closed_forms.advice import of_scenario
from asapmodel.costing import layer_costs, length_grid
from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = [
    "CHUNKS",
    "DEVICES",
    "POLICIES",
    "WHOLE",
    "WINDOW",
    "Pair",
    "System",
    "asynchronous",
    "best",
    "label",
    "measured",
    "policy_changes",
    "search",
    "synchronous",
    "tuned",
]

DEVICES = 32
CHUNKS = (2048, 4096, 8192, 16384, 32768)
WHOLE = (8192, 32768)
"""Tokens of a group and iteration: of chunks, and of whole prompts."""

WINDOW = 0.1
"""Seconds that a prompt waits for company in `paper-asap`, where it is fitted."""

POLICIES = (("locked", 2048, 16384, WINDOW), *(("rolling", n, 32768, 0.0) for n in (512, 2048, 8192, 16384)))
"""Pairing, tokens of a batch, exclusive above so many, window: as shipped, then four that take what is there."""

_SYNC_WIDTHS, _ASYNC_WIDTHS = (2, 4, 8), (1, 2, 4, 8)  # T
_INSTANCES, _SMALLEST = (1, 2, 4), 16  # devices of an instance at least: fewer do not hold the experts
_OPEN = {"cluster.memory_bytes": 1e13}  # bytes of a device that are no limit

Changes = Mapping[str, Any]
Policy = tuple[str, int, int, float]


@dataclass(frozen=True)
class System:
    """A scenario that has been analysed; rates in requests/s, times in s."""

    scenario: Scenario
    ready: Prepared
    instances: int = 1

    @cached_property
    def slo_rps(self) -> float:
        """SLO throughput of all instances; 0 where the objective is missed at any rate."""
        try:
            return self.instances * capacity(self.scenario, prepared=self.ready).slo_throughput_rps
        except NoAnswer:
            return 0.0

    @property
    def limit_rps(self) -> float:
        """Stability limit of all instances."""
        return self.instances * self.ready.analysis.saturation_rps

    def ttft(self, rates: Sequence[float]) -> NDArray[np.float64]:
        """Mean TTFT at some rates, infinite where there is no stationary law."""
        points = self.ready.points([rate / self.instances for rate in rates], None)
        return np.array([math.inf if one is None else one.ttft.mean for one in points])


@dataclass(frozen=True)
class Pair:
    """All systems of both kinds that fit, analysed."""

    sync: tuple[System, ...]
    asap: tuple[System, ...]

    @property
    def best_sync(self) -> System:
        """The synchronous system with the largest SLO throughput."""
        return best(self.sync)

    @property
    def best_asap(self) -> System:
        """The asynchronous one."""
        return best(self.asap)

    @property
    def single_sync(self) -> System:
        """The synchronous system with the largest SLO throughput of those that are one instance."""
        return best(one for one in self.sync if one.instances == 1)

    @property
    def gain(self) -> float:
        """SLO throughput of the best asynchronous over that of the best synchronous system, minus 1."""
        return self.best_asap.slo_rps / self.best_sync.slo_rps - 1

    def ttft_ratios(self, loads: Sequence[float]) -> NDArray[np.float64]:
        """Least synchronous over least asynchronous TTFT, at shares of the best synchronous SLO throughput."""
        rates = [load * self.best_sync.slo_rps for load in loads]
        least = [np.min([one.ttft(rates) for one in side], axis=0) for side in (self.sync, self.asap)]
        return np.asarray(least[0] / least[1])


def best(systems: Iterable[System]) -> System:
    """The system with the largest SLO throughput.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = list(systems)
    if not found:
        raise ValueError("no system fits: give more or larger devices")
    return max(found, key=lambda one: one.slo_rps)


def synchronous(changes: Changes, devices: int) -> Iterator[Scenario]:
    """Whole prompts and chunks of all sizes, groups of two to eight devices, by tokens."""
    for T in _SYNC_WIDTHS:
        degrees = {"D": devices // T, "T": T, "E": devices // T * T}
        for chunk in CHUNKS:
            yield Scenario.load("paper-chunked").replace(chunk_tokens=chunk, **degrees, **changes)
        for budget in WHOLE:
            yield Scenario.load("paper-default").replace(max_batch_tokens=budget, **degrees, **changes)


def policy_changes(pairing: str, tokens: int, exclusive: int, window: float) -> dict[str, Any]:
    """One of `POLICIES` as changes to a scenario."""
    changes = {"pairing": pairing, "min_batch_tokens": tokens, "exclusive_tokens": exclusive}
    return {**changes, "batch_window": window}


def asynchronous(changes: Changes, devices: int, policies: Sequence[Policy] = POLICIES) -> Iterator[Scenario]:
    """For each width T the groups at which groups and experts limit alike, or fewer if they do not fit."""
    for T in _ASYNC_WIDTHS:
        for D in _groups(changes, devices, T):
            split = Scenario.load("paper-asap").replace(D=D, T=T, E=devices - D * T, **changes)
            for policy in policies:
                yield split.replace(**policy_changes(*policy))


def _groups(changes: Changes, devices: int, T: int) -> list[int]:
    """Numbers of groups next to the closed form's best one, cut to what fits; none if one group does not."""
    base = Scenario.load("paper-asap").replace(**changes)
    most = (devices - 1) // T
    some = max(1, min(most, devices // (2 * T)))
    open_memory = {} if "cluster.memory_bytes" in changes else _OPEN
    trial = base.replace(D=some, T=T, E=devices - some * T, **policy_changes(*POLICIES[-1]), **open_memory)
    costs = layer_costs(trial).costs
    wanted = float(of_scenario(costs, trial.layout, trial.policy, length_grid(trial))["best_groups"])
    last = most
    while last > 0 and not _fits(base.replace(D=last, T=T, E=devices - last * T)):
        last -= 1
    near = {max(1, min(D, last)) for D in (math.floor(wanted), math.ceil(wanted))}
    return sorted(near) if last > 0 else []


def _fits(scenario: Scenario) -> bool:
    try:
        layer_costs(scenario)
    except InputError:
        return False
    return True


def measured(scenarios: Iterable[Scenario], instances: int = 1) -> tuple[System, ...]:
    """Analyse those that fit their devices."""
    found = []
    for scenario in scenarios:
        try:
            found.append(System(scenario, prepare(scenario, effort="quick"), instances))
        except InputError:
            continue
    return tuple(found)


def search(changes: Changes, devices: int = DEVICES) -> Pair:
    """All candidates of both kinds, as one, two or four instances; of the best synchronous one also that by work."""
    sync: list[System] = []
    asap: list[System] = []
    for instances in _INSTANCES:
        share, rest = divmod(devices, instances)
        if rest or share < _SMALLEST:
            continue
        sync += measured(synchronous(changes, share), instances)
        policies = POLICIES if instances == 1 else POLICIES[-1:]  # for throughput; TTFT is best of one instance
        asap += measured(asynchronous(changes, share, policies), instances)
    top = best(sync)
    sync += measured([top.scenario.replace(balance="work")], top.instances)
    return Pair(tuple(sync), tuple(asap))


def tuned(split: Scenario) -> System:
    """The best policy of one split."""
    return best(measured(split.replace(**policy_changes(*policy)) for policy in POLICIES))


def label(scenario: Scenario, instances: int = 1) -> str:
    """Degrees and knobs in a few words."""
    layout, policy = scenario.layout, scenario.policy
    several = f"{instances} x " if instances > 1 else ""
    if layout.kind == "asap":
        words = f"{several}D{layout.D} T{layout.T} E{layout.E}, {policy.pairing}, batches of {policy.min_batch_tokens}"
        return words if policy.exclusive_tokens >= 32768 else f"{words}, exclusive above {policy.exclusive_tokens}"
    budget = f"chunks of {policy.chunk_tokens}" if policy.chunk_tokens else f"whole, up to {policy.max_batch_tokens}"
    return f"{several}D{layout.D} T{layout.T}, {budget}" + (", by work" if policy.balance == "work" else "")
