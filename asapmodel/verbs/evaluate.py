"""`evaluate`: TTFT, utilisation and bottleneck of one scenario at one rate."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asapmodel import summary
from asapmodel.costing import Costing, layer_costs
from asapmodel.engines.graph import Run, run
from asapmodel.errors import InputError
from asapmodel.result import Result
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import Requests
from asapmodel.workload import Traffic

__all__ = ["ENGINES", "Prepared", "check_engine", "evaluate", "prepare", "saturation_throughput"]

ENGINES = ("graph",)
"""Engines this version has."""

_BACKLOG = {"sync": 50_000, "asap": 8_000}
"""Drawn requests in the saturated run: 1 to 3 % (standard deviation) on the throughput, in up to a quarter second."""


def check_engine(engine: str) -> None:
    """Refuse an engine that does not exist.

    Raises
    ------
    InputError
        Names the engines there are.
    """
    if engine not in ENGINES:
        raise InputError("--engine", "", f"no engine '{engine}'", f"give one of: {', '.join(ENGINES)}")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A scenario with everything that does not depend on the rate."""

    scenario: Scenario
    costing: Costing
    traffic: Traffic

    def requests(self, rate: float) -> Requests:
        """Requests at a rate."""
        return self.traffic.at(rate)

    def run(self, requests: Requests) -> Run:
        """Run a request sequence."""
        return run(self.scenario.layout, self.scenario.policy, self.costing.costs, requests)

    @cached_property
    def saturation_rps(self) -> float:
        """Rate at which the system serves when prompts of this traffic all wait from the start, requests/s."""
        return saturation_throughput(self, self.traffic.backlog(_BACKLOG[self.scenario.layout.kind]))

    def ttft(self, rate: float) -> NDArray[np.float64]:
        """TTFT of every request at a rate, seconds."""
        requests = self.requests(rate)
        return self.run(requests).outcome.end - requests.arrival + self.costing.costs.request_latency


def prepare(scenario: Scenario, seed: int | None = None, costing: Costing | None = None) -> Prepared:
    """Evaluate cost models and draw the traffic once for all rates."""
    return Prepared(scenario, costing or layer_costs(scenario), Traffic(scenario.workload, seed))


def evaluate(
    scenario: Scenario, rate: float | None = None, engine: str = "graph", prepared: Prepared | None = None
) -> Result:
    """Evaluate a scenario at one rate.

    Parameters
    ----------
    scenario : Scenario
        What to evaluate.
    rate : float, optional
        Requests per second; default the workload's rate, or the recorded rate of a replayed trace.
    engine : str
        ``"graph"``: the timed event graph of a concrete request sequence, drawn with the workload's seed.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it between rates.

    Returns
    -------
    Result
        `stable` says whether the rate is below the saturation throughput; a finite run above it is answered as it
        is, and its TTFT grows with its length.

    Raises
    ------
    InputError
        If there is no rate, the engine does not exist, or the layout does not fit the devices.
    """
    check_engine(engine)
    ready = prepared or prepare(scenario)
    speed = _rate(scenario, rate, ready.traffic)
    requests = ready.requests(speed)
    done = ready.run(requests)
    records = summary.make_records(done, requests, ready.costing.costs.request_latency)
    elapsed = max(done.makespan_s - float(requests.arrival[0]), np.finfo(float).tiny)
    return Result(
        engine=engine,
        scenario=scenario.name,
        system=scenario.layout.kind,
        rate_rps=speed,
        requests=len(requests.arrival),
        duration_s=float(done.makespan_s),
        stable=speed < ready.saturation_rps,
        saturation_rps=ready.saturation_rps,
        ttft=summary.ttft(records.ttft_s),
        slo=summary.slo(records.ttft_s, scenario.slo),
        parts=summary.parts(records),
        utilisation=summary.utilisation(done, elapsed),
        bottleneck=summary.bottleneck(scenario.layout, done),
        batches=done.batches,
        batch_tokens_mean=done.batch_tokens / done.batches,
        barrier_waste=done.barrier_waste,
        assumptions=ready.costing.assumptions,
        records=records,
    )


def _rate(scenario: Scenario, rate: float | None, traffic: Traffic) -> float:
    speed = rate if rate is not None else scenario.workload.rate
    if speed is None:
        speed = traffic.natural_rate
    if speed is None:
        raise InputError(scenario.source, "workload.rate", "is missing", "give it, or --rate")
    if not 0 < speed < float("inf"):
        raise InputError("--rate", "", f"is {speed:g}", "give a positive number of requests per second")
    return float(speed)


def saturation_throughput(ready: Prepared, waiting: Requests) -> float:
    """Rate at which the system serves prompts that all wait from the start, requests/s.

    Measured between the 10th and 90th percentile of completions, so that filling and emptying do not count; with
    fewer than 50 requests over the whole run.
    """
    count = len(waiting.arrival)
    ends = np.sort(ready.run(waiting).outcome.end)
    if count < 50:
        return count / float(ends[-1])
    first, last = int(0.1 * count), int(0.9 * count)
    return (last - first) / float(ends[last] - ends[first])
