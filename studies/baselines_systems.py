"""Synchronous baselines beyond the paper's, ASAP as it could be tuned, and the best of each family.

*Two-batch overlap* is a bound and no system: every iteration is cut into two halves, and the transfers of one half
hide completely behind the other. A device still computes both halves of attention and of the experts, the slowest
group twice its share, so a layer takes at least ``max_g A_g + M``: the lockstep layer with transfers at 0. Each half
pays ``attention.fixed`` and loads the experts' weights, so that and the floor are doubled. What overlap costs besides
(contention, the first and last half) is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from asapmodel.costing import layer_costs
from asapmodel.errors import InputError, NoAnswer
from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = ["CHUNKS", "RATES", "SPLITS", "Best", "best", "families", "overlap_bound"]

CHUNKS = (1024, 2048, 4096, 8192, 16384, 32768)
SPLITS = (1, 2, 4, 8)  # devices of a group, T; D = 32 / T
RATES = (1.0, 4.0, 8.0)  # the paper's, requests/s

_DEVICES = 32
_PAIRINGS, _EXCLUSIVE, _BATCHES = ("locked", "rolling"), (8192, 16384, 24576, 32768), (2048, 4096, 8192, 16384)
_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")

Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Best:
    """The best of a family: its scenario, SLO throughput (requests/s), mean TTFT at `RATES` (s; NaN: no law)."""

    family: str
    scenario: Scenario
    slo_rps: float
    ttft_s: tuple[float, ...]
    tried: int
    bound: bool

    @property
    def layout(self) -> str:
        """Degrees, and the knobs that the search turned."""
        layout, policy = self.scenario.layout, self.scenario.policy
        if layout.kind == "asap":
            words = f"D{layout.D} T{layout.T} E{layout.E}, {policy.pairing}, batches from {policy.min_batch_tokens}"
            streams = ", attention streams" if policy.overlap_attention else ""
            return f"{words}, exclusive above {policy.exclusive_tokens}{streams}"
        budget = f"chunks {policy.chunk_tokens}" if policy.chunk_tokens else f"whole, up to {policy.max_batch_tokens}"
        return f"D{layout.D} T{layout.T}, {budget}, by {policy.balance}"


def best(family: str, scenarios: Iterable[Scenario], bound: bool = False) -> Best:
    """Search a family with the quick effort, and evaluate the best of it in full.

    Raises
    ------
    NoAnswer
        If no member fits its devices and meets the objective.
    """
    found: list[tuple[float, Scenario]] = []
    tried = 0
    for scenario in scenarios:
        tried += 1
        try:
            found.append((capacity(scenario, prepared=prepare(scenario, effort="quick")).slo_throughput_rps, scenario))
        except (InputError, NoAnswer):  # it does not fit the memory, or misses the objective at any rate
            continue
    if not found:
        raise NoAnswer(f"{family}: none of {tried} systems has an SLO throughput; give larger devices or objectives")
    scenario = max(found, key=lambda pair: pair[0])[1]
    ready = prepare(scenario)
    points = ready.points(RATES, None)
    ttft = tuple(float("nan") if point is None else point.ttft.mean for point in points)
    return Best(family, scenario, capacity(scenario, prepared=ready).slo_throughput_rps, ttft, tried, bound)


def overlap_bound(scenario: Scenario) -> Scenario:
    """The synchronous system with two-batch overlap at its best; see the module."""
    costs = layer_costs(scenario).costs
    changes: dict[str, Any] = {f"costs.{name}": {"fixed": 0.0, "per_token": 0.0} for name in _TRANSFERS}
    changes["costs.attention.fixed"] = 2 * costs.attention.fixed
    changes["costs.moe.floor"] = 2 * costs.moe.floor
    return scenario.replace(**changes)


def families(changes: Changes, everything: bool = True) -> dict[str, Best]:
    """Best of every family.

    Parameters
    ----------
    changes : mapping
        Made to every scenario, say ``{"cluster.profile.expert_load_cv": 0.0}``.
    everything : bool
        Whether the families that the paper's own baselines contain are told apart, too.
    """
    default = Scenario.load("paper-default").replace(**changes)
    chunked = Scenario.load("paper-chunked").replace(**changes)
    asap = Scenario.load("paper-asap").replace(**changes)
    own = [chunked.replace(chunk_tokens=chunk) for chunk in CHUNKS]
    splits = [_split(one, T) for one, T in product(own, SPLITS)]
    members: dict[str, list[Scenario]] = {"Default": [default], "ChunkedPrefill": [chunked]}
    if everything:
        members |= {
            "Default, by work": [default.replace(balance="work")],
            "Default, any budget": [default.replace(max_batch_tokens=budget) for budget in (8192, 16384, 32768)],
            "Default, any split": [_split(default, T) for T in SPLITS],
            "ChunkedPrefill, by work": [chunked.replace(balance="work")],
            "chunks of any size": own,
            "chunks of any size, by work": [one.replace(balance="work") for one in own],
        }
    members["chunks and split, best"] = [*splits, *(one.replace(balance="work") for one in splits if everything)]
    found = {name: best(name, some) for name, some in members.items()}
    name = "two-batch overlap, bound"
    found[name] = best(name, _overlapped(splits), bound=True)
    found["ASAP"] = best("ASAP", [asap])
    switches = [asap.replace(**_switches(*some)) for some in product(_PAIRINGS, _EXCLUSIVE, (False, True))]
    found["ASAP, switches tuned"] = best("ASAP, switches tuned", switches)
    tuned = found["ASAP, switches tuned"].scenario
    larger = [tuned.replace(min_batch_tokens=tokens) for tokens in _BATCHES]
    found["ASAP, batches too"] = best("ASAP, batches too", larger)
    plain = [one.replace(min_batch_tokens=tokens) for one in switches[::2] for tokens in _BATCHES]
    found["ASAP, tuned, one stream"] = best("ASAP, tuned, one stream", plain)
    return found


def _switches(pairing: str, exclusive: int, streams: bool) -> dict[str, Any]:
    return {"pairing": pairing, "overlap_attention": streams, "exclusive_tokens": exclusive}


def _split(scenario: Scenario, T: int) -> Scenario:
    return scenario.replace(D=_DEVICES // T, T=T, E=_DEVICES)


def _overlapped(scenarios: Iterable[Scenario]) -> Iterable[Scenario]:
    """Bounds of the systems that fit their devices: with costs given, memory would not be looked at."""
    for scenario in scenarios:
        try:
            yield overlap_bound(scenario)
        except InputError:
            continue
