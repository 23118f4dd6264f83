"""Traffic of several kinds through chunked prefill and asynchronous execution: traces, bursts, cached prefixes."""

import csv
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asapmodel.costing import length_grid
from asapmodel.scenario import Scenario
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = [
    "CACHED",
    "CVS",
    "TRACES",
    "Row",
    "burst",
    "cached",
    "cached_lengths",
    "lengths_of",
    "limited",
    "replayed",
    "solve",
]

TRACES: Mapping[str, str | None] = {"mooncake_conversation": "3 s", "azure2023_conv": None, "afd_prefill": None}
"""Shipped traces, and the ticks of their clocks."""

CVS = (0.5, 1.0, 2.0, 3.0, 4.0)
CACHED = (0.0, 0.25, 0.5, 0.75, 0.9)

_TUNED = {"pairing": "rolling", "exclusive_tokens": 32768, "min_batch_tokens": 16384}


@dataclass(frozen=True, slots=True)
class Row:
    """SLO throughput in requests/s: chunks of 8k, the paper's asap, asap with rolling pairs and batches from 16k."""

    chunked: float
    asap: float
    tuned: float

    @property
    def gain(self) -> float:
        """Of the paper's asap over chunks."""
        return self.asap / self.chunked - 1

    @property
    def tuned_gain(self) -> float:
        """Of the tuned one over chunks."""
        return self.tuned / self.chunked - 1


def solve(changes: Mapping[str, Any]) -> Row:
    """The three systems on one traffic, by the queueing engine."""
    chunked, asap = (Scenario.load(name).replace(**changes) for name in ("paper-chunked", "paper-asap"))
    return Row(*(capacity(one).slo_throughput_rps for one in (chunked, asap, asap.replace(**_TUNED))))


def lengths_of(trace: str) -> dict[str, Any]:
    """Prompts of a trace in no order, cached prefixes included, Poisson arrivals."""
    return {"lengths": {"trace": trace}}


def burst(cv: float) -> dict[str, Any]:
    """The paper's prompts with gamma gaps."""
    return {"arrivals": "gamma", "cv": cv}


def replayed(trace: str) -> Row:
    """The trace itself, once by the graph engine: order and arrivals as recorded, scaled to the rate searched for."""
    found = []
    for name in ("trace-chunked", "trace-asap"):
        lines = Scenario.load(name).to_toml().splitlines()
        kept = [line for line in lines if not line.startswith(("trace =", "spread ="))]
        ticks = TRACES[trace]
        own = [f'trace = "{trace}"'] + ([] if ticks is None else [f'spread = "{ticks}"'])
        place = kept.index("[workload]") + 1
        found.append(Scenario.parse("\n".join([*kept[:place], *own, *kept[place:]])))
    systems = (*found, found[1].replace(**_TUNED))
    return Row(*(capacity(one, "graph", 1).slo_throughput_rps for one in systems))


def cached_lengths(share: float, folder: Path) -> dict[str, Any]:
    """The paper's prompts, of each of which a share is cached: written as a trace of equally likely rows."""
    path = folder / f"cached-{share:g}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["arrival_s", "prompt_tokens", "cached_tokens"])
        for k, length in enumerate(length_grid(Scenario.load("paper-asap"))):
            tokens = max(round(float(length)), 1)
            rows.writerow([k, tokens, min(int(share * tokens), tokens - 1)])
    return {"lengths": {"trace": str(path)}}


def cached(share: float) -> Row:
    """The three systems if a share of every prompt is cached."""
    with tempfile.TemporaryDirectory() as folder:
        return solve(cached_lengths(share, Path(folder)))


def limited(share: float) -> str:
    """What limits the paper's ASAP at saturation if a share of every prompt is cached."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario.load("paper-asap").replace(**cached_lengths(share, Path(folder)))
        return prepare(scenario).limit_bottleneck
