"""The six systems of the paper for given constants, and under assumptions that the paper leaves open.

Five constants are fitted beside the three of point-to-point transfers, which touch no system. An `Assumption` is what
the paper does not say, or says in two ways: how large a batch of Default may be, who waits for more prompts, which
group a batch goes to. Runs are those of the graph engine, their random numbers shared by all constants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from asapmodel import summary
from asapmodel.costing import Costing, layer_costs
from asapmodel.models.collectives import busiest
from asapmodel.models.distributions import TruncatedLognormal
from asapmodel.models.parameters import Split
from asapmodel.scenario import Scenario
from asapmodel.solvers.roots import find_crossing
from asapmodel.studies.evidence_paper_lengths import scaled_lengths
from asapmodel.studies.evidence_paper_packing import PackedPrepared
from asapmodel.studies.paper_model import Paper
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import Prepared, prepare

__all__ = ["CONSTANTS", "SHORT", "SYSTEMS", "Assumption", "Constant", "Systems", "mu_of"]

Array = NDArray[np.float64]

SYSTEMS = ("default", "chunked", "asap", "no-super", "no-overlap", "no-dual")
SHORT = 512  # tokens; "requests under 512 tokens", section 5.3

EXPERT_LOAD_CV = 2.0  # geometric middle of the 1.3 to 3.2 that measurements allow; not fitted
_SEED = 6  # the shipped scenarios'
_SHORTEST, _CUT = 31.0, 32768.0  # tokens, sections 2.3 and 5.1


@dataclass(frozen=True, slots=True)
class Constant:
    """A fitted constant; `centre` and `spread` (of its logarithm) are what is known without the fit."""

    name: str
    centre: float
    spread: float
    low: float
    high: float
    why: str


CONSTANTS = (
    Constant("core", 0.75, 0.2, 0.3, 1.0, "share of peak of core and indexer; MLA measured at 0.65"),
    Constant("attention_overhead", 4e-4, 1.0, 5e-5, 3e-3, "s a layer; 0.1 ms launched ahead, 1.4 ms eager"),
    Constant("sigma", 1.3, 0.3, 0.6, 2.2, "of the log-normal lengths up to 32k tokens"),
    Constant("mean_tokens", 3900.0, 0.15, 2500.0, 5000.0, "mean length up to 32k tokens"),
    Constant("batch_window", 0.1, 0.7, 1e-3, 0.5, "s that a prompt waits for others"),
)
"""What is fitted beside `send_latency`, `p2p_handshake` and `p2p_link`, which follow from three rows by algebra."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the paper leaves open, decided one way.

    Attributes
    ----------
    name, why : str
        In words, and the sentence of the paper or the measurement that suggests it.
    changes : mapping
        Changes of scenarios by system, ``"all"`` for every one.
    waits : tuple of str
        Systems whose scheduler waits `batch_window`.
    collectives : str
        What paces the blocking transfers: ``"senders"``, the largest group at the share of whole collectives, as
        shipped; ``"contention"``, the law of `asapmodel.models.collectives`; ``"hot receivers"``, the same law with
        senders at the share of whole collectives.
    packed : bool
        Whether a batch goes to the group that has one already, see `asapmodel.studies.evidence_paper_packing`.
    lengths : str
        ``"log-normal"`` up to the cut, with a mean of their own; ``"one law"``, log-normal to 100k tokens with mean
        5k, `mean_tokens` unused; ``"Weibull"`` and ``"traces"``, see `asapmodel.studies.evidence_paper_lengths`,
        scaled to `mean_tokens`, `sigma` unused.
    fitted_as : str
        Name under which the fit of its constants is stored; empty for those of the chosen assumption.
    """

    name: str
    why: str = ""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waits: tuple[str, ...] = ("asap",)
    collectives: Literal["senders", "hot receivers", "contention"] = "senders"
    packed: bool = False
    lengths: Literal["log-normal", "one law", "Weibull", "traces"] = "log-normal"
    fitted_as: str = ""


@cache
def mu_of(sigma: float, mean: float = 5000.0, longest: float = 100_000.0) -> float:
    """The `mu` with which log-normal lengths from 31 tokens to the longest have a given mean.

    Examples
    --------
    >>> round(mu_of(1.445), 4)
    7.5733
    """
    from scipy.optimize import brentq

    def excess(mu: float) -> float:
        return TruncatedLognormal(mu, sigma, _SHORTEST, longest).mean - mean

    return float(brentq(excess, 2.0, 9.5, xtol=1e-10))


class Systems:
    """The paper's systems with constants and an assumption; what is computed is kept.

    Parameters
    ----------
    values : mapping of str to float
        The `CONSTANTS` by name.
    assumption : Assumption
        As shipped by default.
    replications : int
        Runs for an SLO throughput; four times as many for a mean TTFT.
    """

    def __init__(
        self, values: Mapping[str, float], assumption: Assumption | None = None, replications: int = 8
    ) -> None:
        self.values = dict(values)
        self.assumption = assumption or Assumption("as shipped")
        self.replications = replications
        self._costing: dict[str, Costing] = {}
        self._scenario: dict[str, Scenario] = {}
        self._ttft: dict[tuple[str, float], Array] = {}

    @cached_property
    def laws(self) -> Paper:
        """Same costs, for the rows of the paper that need no run."""
        return Paper(self.replications, self._shared())

    def seeds(self, each: int = 1) -> range:
        """Seeds of the runs, `each` for every replication."""
        return range(_SEED, _SEED + each * self.replications)

    def _shared(self) -> dict[str, Any]:
        core = self.values["core"]
        return {
            "cluster.profile.core": core,
            "cluster.profile.indexer": core,
            "cluster.profile.attention_overhead": self.values["attention_overhead"],
            "cluster.profile.expert_load_cv": EXPERT_LOAD_CV,
            "cluster.profile.collectives": "senders" if self.assumption.collectives == "senders" else "contention",
            "lengths": self._lengths(),
        }

    def _lengths(self) -> dict[str, Any]:
        sigma, mean, law = self.values["sigma"], self.values["mean_tokens"], self.assumption.lengths
        if law in ("Weibull", "traces"):
            return {"values": scaled_lengths(law, mean)}
        mu = mu_of(sigma) if law == "one law" else mu_of(sigma, mean, _CUT)
        return {"family": "lognormal", "mu": mu, "sigma": sigma}

    def scenario(self, name: str) -> Scenario:
        """One of `SYSTEMS`."""
        if name not in self._scenario:
            base = "asap" if name.startswith("no-") else name
            known = self.assumption.changes
            changes = self._shared() | dict(known.get("all", {})) | dict(known.get(base, {}))
            window = self.values["batch_window"] if base in self.assumption.waits else 0.0
            changes["batch_window"] = window
            off = {"no-dual": "dual_batch", "no-overlap": "overlap_moe", "no-super": "super_kernel"}.get(name)
            if off is not None:
                changes[off] = False
            if self.assumption.collectives == "hot receivers" and base != "asap":
                changes["cluster.profile.link"] = self.laws.parts[2].collective_link
            self._scenario[name] = Scenario.load(f"paper-{base}").replace(**changes)
        return self._scenario[name]

    def costing(self, name: str) -> Costing:
        """Costs of a layer."""
        if name not in self._costing:
            self._costing[name] = layer_costs(self.scenario(name))
        return self._costing[name]

    def receiving(self, name: str) -> float:
        """What the busiest device of blocking transfers adds to the experts' time of a token, s; else 0."""
        scenario = self.scenario(name)
        profile, layout = scenario.profile.value, scenario.layout
        if profile.collectives == "senders" or layout.kind != "sync":
            return 0.0
        split = Split(layout.D, layout.T, layout.E)
        return busiest(scenario.architecture.value, scenario.device.value, profile, split)

    def ready(self, name: str, seed: int | None = None) -> Prepared:
        """A system with its traffic."""
        scenario = self.scenario(name)
        if self.assumption.packed and scenario.layout.kind == "asap" and scenario.policy.slots > 1:
            return PackedPrepared(scenario, self.costing(name), seed)
        return prepare(scenario, seed, self.costing(name))

    def ttfts(self, name: str, rate: float) -> Array:
        """TTFT of all requests of all runs, seconds."""
        if (name, rate) not in self._ttft:
            self._ttft[name, rate] = np.concatenate([self.ready(name, seed).ttft(rate) for seed in self.seeds(4)])
        return self._ttft[name, rate]

    def ttft(self, name: str, rate: float) -> float:
        """Mean TTFT, seconds."""
        return float(self.ttfts(name, rate).mean())

    def parts(self, name: str, rate: float, edges: Array) -> Array:
        """Mean queueing, kernel and waiting inside of prompts in classes of length; shape (3, classes), seconds."""
        rows, tokens = [], []
        for seed in self.seeds(4):
            ready = self.ready(name, seed)
            requests = ready.requests(rate)
            done = ready.run(requests).outcome
            inside = done.end - done.start - done.kernel
            rows.append(np.stack([done.start - requests.arrival, done.kernel, inside]))
            tokens.append(requests.prompt)
        values, place = np.concatenate(rows, axis=1), np.digitize(np.concatenate(tokens), edges) - 1
        return np.stack([values[:, place == k].mean(axis=1) for k in range(len(edges) - 1)], axis=1)

    def slo_rate(self, name: str, engine: Literal["queueing", "graph"] = "graph") -> float:
        """SLO throughput, requests/s.

        The queueing engine has neither queues per group nor a limit on prompts: such systems are always run. Packing
        moves no batch to another time than rolling pairs under load; that engine takes them for the same.
        """
        scenario = self.scenario(name)
        known = scenario.policy.queue_per_group or scenario.policy.max_seqs > 0
        if engine == "queueing" and not known:
            ready = prepare(scenario, None, self.costing(name))
            found = capacity(scenario, "queueing", horizon="300 s", tolerance=1e-3, prepared=ready)
            return found.slo_throughput_rps
        runs = [self.ready(name, seed) for seed in self.seeds()]

        def pooled(rate: float) -> float:
            return summary.statistic(np.concatenate([one.ttft(rate) for one in runs]), scenario.slo)

        limit = runs[0].saturation_rps
        return find_crossing(pooled, scenario.slo.ttft, 0.6 * limit, 1.1 * limit, 5e-3, limit=50 * limit).estimate
