"""What the devices of the two systems do while there is work, in one vocabulary for both."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from asapmodel.attribution.blame import blame_of
from asapmodel.costs import PHASES
from asapmodel.scenario import Scenario
from asapmodel.studies.dp_imbalance_runs import LOAD, law
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = ["SYSTEMS", "Shares", "device_shares", "scenarios", "shares_of"]

SYSTEMS = {"Default": "paper-default", "ChunkedPrefill": "paper-chunked", "ASAP": "paper-asap"}

_WAITING = 2000  # prompts of a backlog
_States = dict[Hashable, dict[Hashable, Any]]
_TRANSFERS = [name for name in PHASES if name not in ("attention", "moe")]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the time of all devices while the system is not empty; they add up to 1.

    `compute` is attention and experts, `transfers` those that keep a device from computing. `idle` is the rest: waits
    at barriers (synchronous), or a stream without a task (asynchronous), blocked senders included.
    """

    system: str
    place: str
    compute: float
    transfers: float
    idle: float


def shares_of(scenario: Scenario) -> list[Shares]:
    """At `LOAD` of the system's own SLO throughput, and with every prompt waiting from the beginning."""
    ready = prepare(scenario)
    rate = LOAD * capacity(scenario, prepared=ready).slo_throughput_rps
    return [
        device_shares(ready, f"{LOAD:.0%} of its SLO throughput", rate),
        device_shares(ready, "all prompts waiting", None),
    ]


def device_shares(ready: Prepared, place: str, rate: float | None) -> Shares:
    """Account for the devices of a run at a rate; without one, of a backlog."""
    scenario = ready.scenario
    requests = ready.traffic.backlog(_WAITING) if rate is None else ready.requests(rate)
    devices = blame_of(scenario.layout, scenario.policy, ready.costing.costs, requests).devices
    seconds = devices.sum(axis=1) - devices["empty"]  # one row a stream, of the same length
    shares: _States = devices.drop(columns="empty").div(seconds, axis=0).to_dict("index")
    if scenario.layout.kind == "sync":
        own = shares["devices"]
        compute, transfers = own["attention"] + own["experts"], own["transfers"]
    else:
        compute, transfers = _of_streams(shares, scenario)
    return Shares(scenario.name, place, compute, transfers, 1.0 - compute - transfers)


def _of_streams(shares: _States, scenario: Scenario) -> tuple[float, float]:
    """Mean over attention and expert devices of what their computing streams do.

    With `overlap_moe` expert devices transfer on streams of their own, which keeps nobody from computing.
    """
    layout = scenario.layout
    groups = layout.D * layout.T / layout.devices
    attention, experts = shares["attention"], shares["moe"]
    compute = groups * attention["attention"] + (1 - groups) * experts["moe"]
    transfers = sum(groups * attention[name] + (1 - groups) * experts[name] for name in _TRANSFERS)
    return compute, transfers


def scenarios(name: float | str) -> dict[str, Scenario]:
    """The paper's three systems with a law of length."""
    return {word: Scenario.load(shipped).replace(**law(name), name=word) for word, shipped in SYSTEMS.items()}
