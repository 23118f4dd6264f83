"""The model's value for every row of `data/paper_claims.csv`: one small function a row, by the row's id.

`Paper` holds the three shipped scenarios and caches what several rows need (capacities, TTFTs over replications).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import layer_costs, length_grid
from asapmodel.models import attention, link, memory, moe
from asapmodel.models.distributions import TruncatedLognormal
from asapmodel.models.evaluation import evaluate as number
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.result import Capacity, Result
from asapmodel.scenario import Scenario
from asapmodel.typical import backlog_batches
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import evaluate, prepare

__all__ = ["ROWS", "Paper"]

SYNC, ASAP = Split(8, 4, 32), Split(4, 4, 16)
SHORT = 512  # tokens; "requests under 512 tokens", section 5.3


@dataclass
class Paper:
    """The paper's systems by the graph engine; `replications` runs stand for each of its measurements."""

    replications: int = 8
    changes: dict[str, Any] = field(default_factory=dict)
    _capacity: dict[str, Capacity] = field(default_factory=dict)
    _ttft: dict[tuple[str, float], float] = field(default_factory=dict)

    @cached_property
    def scenarios(self) -> dict[str, Scenario]:
        """Default, chunked, asap and the three ablations."""
        named = {
            name: Scenario.load(f"paper-{name}").replace(**self.changes) for name in ("default", "chunked", "asap")
        }
        full = named["asap"]
        return named | {
            "no-dual": full.replace(dual_batch=False, name="asap without dual batch"),
            "no-overlap": full.replace(overlap_moe=False, name="asap without overlap"),
            "no-super": full.replace(super_kernel=False, name="asap without super kernel"),
        }

    def seeds(self, scenario: Scenario) -> range:
        """Seeds for mean TTFTs: those of `capacity` and more, since runs at low rates are short and scatter."""
        return range(scenario.workload.seed, scenario.workload.seed + 4 * self.replications)

    def rps(self, name: str) -> Capacity:
        """SLO throughput."""
        if name not in self._capacity:
            self._capacity[name] = capacity(self.scenarios[name], "graph", self.replications)
        return self._capacity[name]

    def ttft(self, name: str, rate: float) -> float:
        """Mean TTFT over all requests of four times as many runs, seconds."""
        if (name, rate) not in self._ttft:
            scenario = self.scenarios[name]
            costing = layer_costs(scenario)
            runs = [prepare(scenario, seed, costing).ttft(rate) for seed in self.seeds(scenario)]
            self._ttft[name, rate] = float(np.concatenate(runs).mean())
        return self._ttft[name, rate]

    def run(self, name: str, rate: float) -> Result:
        """One run with records."""
        return evaluate(self.scenarios[name], rate, "graph")

    def short_parts(self, name: str, rate: float = 4.0) -> tuple[float, float, float]:
        """Mean queueing, kernel and waiting of prompts under 512 tokens, over the replications."""
        rows = []
        for seed in self.seeds(self.scenarios[name]):
            records = evaluate(self.scenarios[name].replace(seed=seed), rate, "graph").records
            assert records is not None
            few = records.prompt_tokens < SHORT
            queueing = records.start_s[few] - records.arrival_s[few]
            kernel = records.kernel_s[few]
            rows.append(np.stack([queueing, kernel, records.end_s[few] - records.start_s[few] - kernel]))
        queueing, kernel, waiting = np.concatenate(rows, axis=1).mean(axis=1)
        return float(queueing), float(kernel), float(waiting)

    @cached_property
    def parts(self) -> tuple[Architecture, Device, Profile]:
        """Architecture, device and profile."""
        scenario = self.scenarios["asap"]
        return scenario.architecture.value, scenario.device.value, scenario.profile.value

    @cached_property
    def batches(self) -> NDArray[np.float64]:
        """Batches that length-aware batching forms under a backlog, tokens."""
        scenario = self.scenarios["asap"]
        return backlog_batches(scenario.layout, scenario.policy, length_grid(scenario))


def _attention(paper: Paper, lengths: list[float]) -> float:
    return attention.batch_time(*paper.parts, SYNC, lengths)


def _buffer(paper: Paper, name: str, of: str) -> float:
    expressions = memory.attention_buffers() if of == "attention" else memory.moe_buffers()
    return float(number(expressions[name], *paper.parts, ASAP, S=32768))


def _moe(paper: Paper, split: Split, n: float) -> float:
    balanced = number(moe.time_expression(), *paper.parts, split, n=n, chi=1)
    return float(balanced)


def _reduction(paper: Paper, against: str, rate: float) -> float:
    return paper.ttft("asap", rate) / paper.ttft(against, rate)


def _async(paper: Paper, tokens: float) -> float:
    return float(link.async_dispatch_time(*paper.parts, ASAP, tokens))


def _p2p(paper: Paper, tokens: float) -> float:
    blocking = float(link.p2p_time(*paper.parts, ASAP, tokens))
    return blocking / _async(paper, tokens)


def _order(paper: Paper) -> float:
    one, two = (_attention(paper, [s]) for s in (131072.0, 262144.0))
    return float(np.log2(two / one))


def _communication(paper: Paper) -> float:
    busy = paper.run("chunked", 8.0).utilisation
    return busy["transfers"] / busy["engine"]


def _law() -> TruncatedLognormal:
    return TruncatedLognormal(7.5733, 1.445, 31.0, 100_000.0)


def _non_kernel(paper: Paper, name: str) -> float:
    queueing, _, waiting = paper.short_parts(name)
    return queueing + waiting


def _share(paper: Paper, which: int) -> float:
    parts = paper.short_parts("default")
    return parts[which] / sum(parts)


def _inflection(paper: Paper) -> float:
    return float(number(moe.inflection_expression(), *paper.parts, SYNC, chi=1))


def _attention_at_batch(paper: Paper) -> float:
    costs = layer_costs(paper.scenarios["asap"]).costs
    lengths = length_grid(paper.scenarios["asap"])
    per_token = float((lengths**2).mean() / lengths.mean())  # work per token of the prompts in a batch
    n = float(paper.batches.mean())
    return costs.attention(n, n * per_token)


def _moe_range(paper: Paper) -> tuple[float, float]:
    law = layer_costs(paper.scenarios["asap"]).costs.moe
    low, high = np.quantile(paper.batches, [0.01, 0.99])
    return law(float(low)), law(float(high))


ROWS: dict[str, Callable[[Paper], float | tuple[float, float]]] = {
    "attn-quadratic": _order,
    "attn-batch-ratio": lambda p: _attention(p, [32768.0]) / _attention(p, [1024.0] * 32),
    "moe-inflection": _inflection,
    "moe-share-long": lambda p: _moe(p, SYNC, 16385.0) / _attention(p, [16385.0]),
    "moe-kernel-range": _moe_range,
    "attn-len-aware": _attention_at_batch,
    "comm-share": _communication,
    "host-dispatch": lambda p: p.scenarios["asap"].profile.value.host_dispatch,
    "host-dispatch-ttft": lambda p: p.ttft("no-super", 1.0) - p.ttft("asap", 1.0),
    "buf-attn-ids": lambda p: _buffer(p, "expert ids", "attention") / 1024,
    "buf-attn-results": lambda p: _buffer(p, "expert results", "attention") / 1e9,
    "buf-attn-flags": lambda p: _buffer(p, "arrival flags", "attention") / 1024,
    "buf-moe-meta": lambda p: _buffer(p, "token metadata", "moe") / 1024,
    "buf-moe-tokens": lambda p: _buffer(p, "tokens", "moe") / 2**30,
    "buf-moe-flags": lambda p: _buffer(p, "arrival flags", "moe") / 1024,
    "dispatch-bytes": lambda p: float(link.dispatch_bytes(1024, p.parts[0], p.parts[2])) / 1e6,
    "p2p-ratio-1k": lambda p: _p2p(p, 1024.0),
    "p2p-ratio-8k": lambda p: _p2p(p, 8192.0),
    "async-512": lambda p: _async(p, 512.0),
    "trace-mean": lambda p: _law().mean,
    "trace-min": lambda p: _law().support[0],
    "trace-max": lambda p: _law().support[1],
    "trace-cut": lambda p: float(p.scenarios["asap"].workload.max_prompt_tokens),
    "slo": lambda p: p.scenarios["asap"].slo.ttft,
    "run-length": lambda p: p.scenarios["asap"].workload.duration or 0.0,
    "ttft-1-default": lambda p: p.ttft("default", 1.0),
    "ttft-1-chunked": lambda p: p.ttft("chunked", 1.0),
    "ttft-1-asap": lambda p: p.ttft("asap", 1.0),
    "ttft-4-asap-default": lambda p: _reduction(p, "default", 4.0),
    "ttft-4-asap-chunked": lambda p: _reduction(p, "chunked", 4.0),
    "ttft-8-asap-chunked": lambda p: _reduction(p, "chunked", 8.0),
    "ttft-8-default": lambda p: p.ttft("default", 8.0),
    "rps-default": lambda p: p.rps("default").slo_throughput_rps,
    "rps-chunked": lambda p: p.rps("chunked").slo_throughput_rps,
    "rps-asap": lambda p: p.rps("asap").slo_throughput_rps,
    "decomp-sync-short": lambda p: _share(p, 2),
    "decomp-queue-short": lambda p: _share(p, 0),
    "decomp-asap-short": lambda p: 1 - _non_kernel(p, "asap") / _non_kernel(p, "default"),
    "rps-no-dual": lambda p: p.rps("no-dual").slo_throughput_rps,
    "ttft-1-dual": lambda p: p.ttft("asap", 1.0) / p.ttft("no-dual", 1.0),
    "rps-no-overlap": lambda p: p.rps("no-overlap").slo_throughput_rps,
    "ttft-1-overlap": lambda p: p.ttft("asap", 1.0) / p.ttft("no-overlap", 1.0),
    "rps-no-super": lambda p: p.rps("no-super").slo_throughput_rps,
}
"""Rows without an entry are about systems that are not modelled (`eaas-512`)."""
