"""Published gains that state enough of their workload to be placed on a map, and the measured deployment's in full.

The paper's are ratios of its own text; the deployment's are mean TTFTs of the same requests on 32 dies, synchronous
(DP4 TP8 EP32) and asynchronous (DP3 TP8 + EP8), experts balanced by force (`studies/data/afd`).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_summary import Point
from asapmodel.studies.when_asynchronous_maps import LOADS, Cell
from asapmodel.studies.when_asynchronous_search import measured
from asapmodel.verbs.evaluate import evaluate

__all__ = [
    "BUDGETS",
    "PAPER_RPS",
    "PAPER_TTFT",
    "RATES",
    "best_ratio",
    "deployment",
    "deployment_cells",
    "deployment_slo",
    "like_for_like",
    "measured_ttft",
    "modelled_ttft",
    "nearest",
    "paper_loads",
]

PAPER_RPS: Mapping[str, float] = {"asap": 20.0, "chunked": 10.5, "default": 6.8}
"""SLO throughputs, section 5.2."""

PAPER_TTFT: Mapping[float, float] = {1.0: 0.388 / 0.350, 4.0: 1 / 0.582, 8.0: 1 / 0.317}
"""TTFT of ChunkedPrefill over that of ASAP by rate, section 5.2."""

RATES = (4.0, 6.0, 8.0, 10.0, 12.0)
BUDGETS = (4096, 8192, 16384, 32768, 65536, 131072)
"""Of the deployment: rates measured, and tokens of a group's step, of which 16384 and 65536 were measured."""

_SLO = 5.0
_SYNC, _ASYNC = "dp4_tp8_sp", "afd_dp3_tp8_ep8"
_SHIPPED = {_SYNC: "afd-sync", _ASYNC: "afd-async"}

Means = Mapping[tuple[str, int, float], float]


@cache
def measured_ttft() -> Means:
    """Mean TTFT of the deployment by system, budget and rate, seconds, without prefix caching."""
    import pandas as pd

    path = files("asapmodel.studies").joinpath("data/afd/summary.csv")
    table = pd.read_csv(str(path))
    table = table[table["prefix_ratio"] == 0]
    keys = zip(table["system"], table["token_budget"].astype(int), table["rate_rps"].astype(float), strict=True)
    return dict(zip(keys, table["ttft_mean_s"].astype(float), strict=True))


def modelled_ttft(budgets: Sequence[int] = BUDGETS, rates: Sequence[float] = RATES) -> Means:
    """The same by the graph engine, on the shipped scenarios `afd-sync` and `afd-async`."""
    found = {}
    for system, name in _SHIPPED.items():
        for budget in budgets:
            scenario = Scenario.load(name).replace(chunk_tokens=budget)
            for rate in rates:
                found[system, budget, rate] = float(evaluate(scenario, rate, engine="graph").ttft.mean_s)
    return found


def best_ratio(means: Means, rate: float) -> float:
    """Least synchronous over least asynchronous TTFT at a rate, each with the better of its measured budgets."""
    budgets = sorted({budget for _, budget, _ in measured_ttft()})
    least = [min(means[system, budget, rate] for budget in budgets) for system in (_SYNC, _ASYNC)]
    return least[0] / least[1]


def deployment_slo(means: Means, system: str) -> float:
    """Largest rate at which the mean TTFT is 5 s with the better budget, interpolated in the logarithm."""
    budgets = sorted({budget for name, budget, _ in measured_ttft() if name == system})
    found = []
    for budget in budgets:
        heights = np.log([means[system, budget, rate] for rate in RATES])
        found.append(float(np.interp(np.log(_SLO), heights, RATES)))
    return max(found)


def deployment() -> dict[str, float]:
    """SLO throughputs of the deployment, requests/s: ``"sync"`` and ``"async"``, with the better budget each."""
    means = measured_ttft()
    return {"sync": deployment_slo(means, _SYNC), "async": deployment_slo(means, _ASYNC)}


def deployment_cells(means: Means) -> list[Cell]:
    """TTFT ratio, synchronous over asynchronous, by rate and budget, the same budget on both sides."""
    budgets, rates = {budget for _, budget, _ in means}, {rate for _, _, rate in means}
    return [
        Cell(rate, budget, means[_SYNC, budget, rate] / means[_ASYNC, budget, rate])
        for budget in sorted(budgets)
        for rate in sorted(rates)
    ]


def paper_loads() -> dict[float, tuple[float, float]]:
    """Of the paper's TTFT ratios: load (share of ChunkedPrefill's SLO throughput) and ratio, by rate."""
    return {rate: (rate / PAPER_RPS["chunked"], ratio) for rate, ratio in PAPER_TTFT.items()}


def like_for_like() -> dict[str, Point]:
    """The paper's gains and the model's of the same configurations: TTFT at the same *load*, and SLO throughput."""
    systems = {name: measured([Scenario.load(f"paper-{name}").replace(**{"slo.ttft": _SLO})])[0] for name in PAPER_RPS}
    sync, asap = systems["chunked"], systems["asap"]
    found = {}
    for rate, (load, ratio) in paper_loads().items():
        at = [load * sync.slo_rps]
        words = f"TTFT, ChunkedPrefill over ASAP at {rate:g} requests/s"
        found[f"ttft_{rate:g}"] = Point(words, ratio, float(sync.ttft(at)[0] / asap.ttft(at)[0]), "ratio")
    for name in ("chunked", "default"):
        words = f"SLO throughput, ASAP over {name}"
        found[name] = Point(words, PAPER_RPS["asap"] / PAPER_RPS[name], asap.slo_rps / systems[name].slo_rps, "ratio")
    return found


def nearest(load: float) -> float:
    """The column of the map for a load."""
    return min(LOADS, key=lambda one: abs(one - load))
