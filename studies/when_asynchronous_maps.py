"""The maps: gains of the best asynchronous over the best synchronous system, along two things at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asapmodel.costing import length_grid
from asapmodel.scenario import Scenario
from asapmodel.studies.dp_imbalance_runs import law
from asapmodel.studies.when_asynchronous_search import (
    CHUNKS,
    DEVICES,
    POLICIES,
    WHOLE,
    Changes,
    Pair,
    best,
    measured,
    policy_changes,
    search,
    tuned,
)

__all__ = [
    "BANDWIDTHS",
    "LATENCIES",
    "LAWS",
    "LOADS",
    "SHARES",
    "SIZES",
    "SPREADS",
    "Cell",
    "budgets",
    "length_cv",
    "lengths_and_load",
    "lengths_and_spread",
    "networks",
    "of_lengths",
    "sizes",
    "splits",
]

LAWS: tuple[float | str, ...] = (0.0, 0.5, 0.75, 1.0, 1.5, "the paper's", "azure2023_conv", "mooncake_conversation")
"""Laws of length: constant and log-normal of mean 5000 tokens by their sigma, then others by name."""

LOADS = (0.1, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0)
"""Shares of the SLO throughput of the best synchronous system."""

SPREADS = (0.0, 0.65, 1.3, 2.3, 3.0)
"""`expert_load_cv`: 2.3 is shipped."""

SIZES = (16, 24, 32, 48, 64, 96)
"""Devices."""

SHARES = (0.25, 0.375, 0.5, 0.625, 0.75)
"""Of the devices that do attention."""

LATENCIES, BANDWIDTHS = (52.0, 200.0, 500.0, 1000.0), (196.0, 50.0, 25.0)
"""Of a send or a collective in microseconds, of a device's link in GB/s; 52 and 196 are the supernode's."""

SPREAD = "cluster.profile.expert_load_cv"
_SPREAD_LAWS: tuple[float | str, ...] = (0.0, 0.5, 1.0, "the paper's")


@dataclass(frozen=True, slots=True)
class Cell:
    """A place on a map: the ratio there, above 1 where the asynchronous system is better, and the winner's words."""

    x: float | str
    y: float | str
    ratio: float
    fits: bool = True


def length_cv(name: float | str) -> float:
    """Coefficient of variation of the prompts of a law of lengths."""
    lengths = length_grid(Scenario.load("paper-chunked").replace(**law(name)))
    return float(np.std(lengths) / np.mean(lengths))


def of_lengths(names: Sequence[float | str] = LAWS) -> dict[float | str, Pair]:
    """The best systems for each law of lengths, costs as shipped."""
    return {name: search(law(name)) for name in names}


def lengths_and_load(pairs: Mapping[float | str, Pair]) -> list[Cell]:
    """TTFT against load for each law of lengths."""
    return [
        Cell(load, name, float(ratio))
        for name, pair in pairs.items()
        for load, ratio in zip(LOADS, pair.ttft_ratios(LOADS), strict=True)
    ]


def lengths_and_spread(known: Mapping[float | str, Pair]) -> dict[tuple[float, float | str], Pair]:
    """The best systems by spread of expert loads and law of lengths; `known` are those of the shipped spread."""
    found = {(2.3, name): known[name] for name in _SPREAD_LAWS if name in known}
    for spread in SPREADS:
        for name in _SPREAD_LAWS:
            if (spread, name) not in found:
                found[spread, name] = search({SPREAD: spread, **law(name)})
    return found


def budgets() -> list[Cell]:
    """SLO throughput by tokens of a synchronous iteration and of an asynchronous batch, both in the paper's layout."""
    rows: dict[str, Scenario] = {f"chunks {x}": Scenario.load("paper-chunked").replace(chunk_tokens=x) for x in CHUNKS}
    rows |= {f"whole {x}": Scenario.load("paper-default").replace(max_batch_tokens=x) for x in WHOLE}
    sync = {name: best(measured([one])).slo_rps for name, one in rows.items()}
    base = Scenario.load("paper-asap")
    columns = {"the paper's": base} | {
        str(policy[1]): base.replace(**policy_changes(*policy)) for policy in POLICIES if policy[0] == "rolling"
    }
    asap = {name: best(measured([one])).slo_rps for name, one in columns.items()}
    return [Cell(x, y, asap[x] / sync[y]) for y in sync for x in asap]


def sizes(known: Pair) -> dict[int, Pair]:
    """The best systems by number of devices; `known` are those of 32."""
    return {devices: known if devices == DEVICES else search({}, devices) for devices in SIZES}


def splits(pairs: Mapping[int, Pair]) -> list[Cell]:
    """One instance with groups of four: SLO throughput by share of attention devices, over the best synchronous system.

    What does not fit the memory is computed as if it did, and marked.
    """
    cells = []
    for devices, pair in pairs.items():
        for share in SHARES:
            D = round(share * devices / 4)
            split = Scenario.load("paper-asap").replace(D=D, E=devices - 4 * D)
            fits = bool(measured([split]))
            one = split if fits else split.replace(**{"cluster.memory_bytes": 1e13})
            cells.append(Cell(share, devices, tuned(one).slo_rps / pair.best_sync.slo_rps, fits))
    return cells


def networks() -> dict[tuple[float, float], Pair]:
    """The best systems by latency of a send or collective and bandwidth of a link; receiving as shipped."""
    found = {}
    for bandwidth in BANDWIDTHS:
        for latency in LATENCIES:
            changes: Changes = {
                "cluster.link_bandwidth": 1e9 * bandwidth,
                "cluster.profile.send_latency": 1e-6 * latency,
                "cluster.profile.collective_latency": 1e-6 * latency,
            }
            found[latency, bandwidth] = search(changes)
    return found
