"""Models of the catalogue, variants of DeepSeek-V3.2, and the three systems that serve each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from asapmodel import catalog
from asapmodel.errors import InputError, NoAnswer
from asapmodel.models.imbalance import imbalance
from asapmodel.models.parameters import Split
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = ["OPEN", "Model", "cases", "measure", "variants", "with_model"]

OPEN = 1e13
"""Bytes of a device that are no limit."""

_DEVICES = 32
_CHUNKS = (2048, 4096, 8192, 16384, 32768)
_SPLITS = ((3, 20), (4, 16), (5, 12), (6, 8))  # D, E of 32 devices with T = 4
_BATCHES = (2048, 4096, 8192, 16384)

Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A model served by three systems.

    Attributes
    ----------
    name : str
        Of the model or the variant.
    chunked, asap, tuned : Scenario
        Best chunks; the paper's split and policy; best split and batches.
    rps : tuple of float
        Their SLO throughputs.
    shares : tuple of float
        Of attention, experts and transfers in a layer of the mean batch of `asap`.
    busiest : float
        Expert device over the mean in a layer of `chunked`.
    """

    name: str
    chunked: Scenario
    asap: Scenario
    tuned: Scenario
    rps: tuple[float, float, float]
    shares: tuple[float, float, float]
    busiest: float

    @property
    def gain(self) -> float:
        """Of the paper's split and policy over the best chunks."""
        return self.rps[1] / self.rps[0] - 1

    @property
    def tuned_gain(self) -> float:
        """Of the best split and batches over the best chunks."""
        return self.rps[2] / self.rps[0] - 1


def variants() -> dict[str, Changes]:
    """Changes of DeepSeek-V3.2, one thing each; total expert width is kept where the number of experts changes."""
    few = {"model.routed_experts": 32, "model.moe_intermediate": 16384, "model.experts_per_token": 1}
    many = {"model.routed_experts": 512, "model.moe_intermediate": 1024, "model.experts_per_token": 16}
    return {
        "1 expert a token": {"model.experts_per_token": 1},
        "16 experts a token": {"model.experts_per_token": 16},
        "32 experts, 8 times as wide, 1 a token": few,
        "512 experts, half as wide, 16 a token": many,
        "experts half as wide": {"model.moe_intermediate": 1024},
        "experts twice as wide": {"model.moe_intermediate": 4096},
        "64 heads": {"model.heads": 64},
        "index_topk 1024": {"model.index_topk": 1024},
        "index_topk 8192": {"model.index_topk": 8192},
        "half the layers": {"model.layers": 31},
        "equally busy experts": {"cluster.profile.expert_load_cv": 0.0},
    }


def cases() -> dict[str, Changes]:
    """Every model of the catalogue with at least as many experts as devices, then the variants."""
    models: dict[str, Changes] = {
        name: {"model.use": name}
        for name in catalog.names("models")
        if catalog.load_architecture(name).value.routed_experts >= _DEVICES
    }
    return models | variants()


def _best(scenarios: Iterable[Scenario]) -> Scenario:
    """The scenario with the largest SLO throughput, by the quick effort."""
    found = []
    for scenario in scenarios:
        try:
            rps = capacity(scenario, prepared=prepare(scenario, effort="quick")).slo_throughput_rps
        except (InputError, NoAnswer):  # misses the objective at any rate, or degrees are not possible
            continue
        found.append((rps, scenario))
    if not found:
        raise NoAnswer("no system of the model meets the objective: raise slo.ttft, or give faster devices")
    return max(found, key=lambda pair: pair[0])[1]


def with_model(shipped: str, changes: Changes) -> Scenario:
    """A shipped scenario with another model."""
    return Scenario.load(shipped).replace(**{"cluster.memory_bytes": OPEN, **changes})


def measure(name: str, changes: Changes) -> Model:
    """Search and solve the three systems of one model.

    Raises
    ------
    NoAnswer
        If one of them misses the objective at every rate.
    """
    chunked, asap = (with_model(one, changes) for one in ("paper-chunked", "paper-asap"))
    best_chunked = _best(chunked.replace(chunk_tokens=chunk) for chunk in _CHUNKS)
    rolling = asap.replace(pairing="rolling", exclusive_tokens=32768)
    tuned = _best(rolling.replace(D=D, E=E, min_batch_tokens=n) for D, E in _SPLITS for n in _BATCHES)
    systems = (best_chunked, asap, tuned)
    rps = tuple(capacity(one).slo_throughput_rps for one in systems)
    return Model(name, *systems, (rps[0], rps[1], rps[2]), _shares(asap), _busiest(best_chunked))


def _shares(asap: Scenario) -> tuple[float, float, float]:
    ready = prepare(asap, effort="quick")
    batches = backlog(ready)
    phases = np.stack(ready.costing.costs.phases(batches.n, batches.w)).mean(axis=1)
    total = phases.sum()
    transfers = phases[[1, 2, 4, 5]].sum()
    return float(phases[0] / total), float(phases[3] / total), float(transfers / total)


def _busiest(scenario: Scenario) -> float:
    device, profile = scenario.device.value, scenario.profile.value
    return imbalance(scenario.architecture.value, device, profile, Split(1, 1, scenario.layout.E))
