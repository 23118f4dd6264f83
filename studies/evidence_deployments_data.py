"""The two measured deployments: cells of the summary, logs of runs, and replays of their scenarios."""

import csv
import functools
from importlib.resources import as_file, files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.request_log import RequestLog, read_log
from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import run
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import make_requests

__all__ = [
    "ASYNC",
    "BUDGETS",
    "CALIBRATED_RATES",
    "RATES",
    "SYNC",
    "Cell",
    "Statistics",
    "calibrated",
    "cells",
    "disturbed",
    "log_of",
    "replays",
    "statistics",
]

Array = NDArray[np.float64]

ASYNC, SYNC = "afd_dp3_tp8_ep8", "dp4_tp8_sp"
SCENARIOS = {ASYNC: "afd-async", SYNC: "afd-sync"}
BUDGETS, RATES, CALIBRATED_RATES = (16384, 65536), (4, 6, 8, 10, 12), (4, 6)
COPIES = {ASYNC: 1, SYNC: 8}  # replays that are averaged: lockstep is sensitive to milliseconds
SHIFT = 0.01  # seconds by which their arrivals differ


class Cell(NamedTuple):
    """A measured run: mean and 99th percentile of TTFT, seconds."""

    system: str
    budget: int
    rate: int
    prefix: float
    mean_s: float
    p99_s: float


class Statistics(NamedTuple):
    """Mean and 99th percentile of TTFT, seconds."""

    mean_s: float
    p99_s: float


def calibrated(cell: Cell) -> bool:
    """Whether a cell was calibrated on."""
    return cell.rate in CALIBRATED_RATES and cell.prefix == 0.0


@functools.cache
def cells() -> tuple[Cell, ...]:
    """The cells of the summary."""
    text = files("asapmodel.studies").joinpath("data/afd/summary.csv").read_text(encoding="utf-8")
    return tuple(
        Cell(
            row["system"],
            int(row["token_budget"]),
            int(row["rate_rps"]),
            float(row["prefix_ratio"]),
            float(row["ttft_mean_s"]),
            float(row["ttft_p99_s"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


@functools.cache
def log_of(system: str, rate: int, budget: int = 65536, repeat: int = 0) -> RequestLog:
    """The log of a run, or of a repeat."""
    folder, end = ("repeats", f"-rep{repeat}") if repeat else ("requests", "")
    name = f"data/afd/{folder}/{system}-b{budget}-r{rate}-p0{end}.csv.gz"
    with as_file(files("asapmodel.studies").joinpath(name)) as path:
        return read_log(str(path))


def replays(
    system: str, budget: int, rate: float, costs: LayerCosts | None = None, prefix: float = 0.0, **policy: object
) -> list[Array]:
    """TTFT of every request, seconds, in a replay or, in lockstep, in several whose arrivals differ by milliseconds.

    Parameters
    ----------
    system, budget, rate
        The cell.
    costs : LayerCosts, optional
        Default those of the shipped scenario.
    prefix : float
        Share of every prompt that is cached, in blocks of 128.
    **policy
        Keys that differ from the scenario's.
    """
    scenario = Scenario.load(SCENARIOS[system]).replace(chunk_tokens=budget, **policy)
    costs = costs or layer_costs(scenario).costs
    base = log_of(ASYNC, 4).requests
    cached = (128 * np.floor(prefix * base.prompt / 128)).astype(np.int64)
    out, rng = [], np.random.default_rng(0)
    for _ in range(COPIES[system]):
        shift = SHIFT * rng.random(len(base.arrival)) if COPIES[system] > 1 else 0.0
        requests = make_requests(np.sort(base.arrival * 4.0 / rate + shift), base.prompt, cached)
        done = run(scenario.layout, scenario.policy, costs, requests).outcome
        out.append(done.end - requests.arrival + costs.request_latency)
    return out


def disturbed(system: str, rate: float, seconds: float, copies: int = 4) -> list[Array]:
    """TTFT of every request, seconds, in replays at budget 65536 whose requests enter earlier or later.

    By normal variates of standard deviation `seconds`, drawn for every request; TTFT counts from the entry.
    """
    scenario = Scenario.load(SCENARIOS[system])
    costs, base = layer_costs(scenario).costs, log_of(ASYNC, 4).requests
    out, rng = [], np.random.default_rng(1)
    for _ in range(copies):
        entry = base.arrival * 4.0 / rate + seconds * rng.standard_normal(len(base.arrival))
        order = np.argsort(entry)
        requests = make_requests(entry[order] - entry.min(), base.prompt[order], base.cached[order])
        ttft = np.empty(len(order))
        ttft[order] = run(scenario.layout, scenario.policy, costs, requests).outcome.end - requests.arrival
        out.append(ttft + costs.request_latency)
    return out


def statistics(ttft: list[Array]) -> Statistics:
    """Means over replays."""
    return Statistics(
        float(np.mean([one.mean() for one in ttft])), float(np.mean([np.quantile(one, 0.99) for one in ttft]))
    )
