"""`evaluate`: TTFT, utilisation and bottleneck of one scenario at one rate."""

import math

import numpy as np

from asapmodel import summary
from asapmodel.engines.analysis import ByLength, Point, TtftLaw
from asapmodel.errors import InputError, NoAnswer
from asapmodel.result import Result
from asapmodel.scenario import Scenario
from asapmodel.verbs.prepared import (
    DEFAULT_ENGINE,
    ENGINES,
    Prepared,
    check_engine,
    check_horizon,
    prepare,
    saturation_throughput,
)

__all__ = [
    "ENGINES",
    "Prepared",
    "answer",
    "check_engine",
    "check_rate",
    "evaluate",
    "law_name",
    "prepare",
    "rate_of",
    "saturation_throughput",
]

_NAN = np.full(2, np.nan)
_NOTHING = Point(
    math.nan, TtftLaw(_NAN, np.array([0.0, 1.0]), math.nan, math.nan), math.nan, math.nan, math.nan, {}, math.nan,
    math.nan, ByLength(_NAN, _NAN, _NAN, _NAN),
)  # fmt: skip
"""Stands for the operating point that does not exist."""


def evaluate(
    scenario: Scenario,
    rate: float | None = None,
    engine: str = DEFAULT_ENGINE,
    prepared: Prepared | None = None,
    horizon: float | str | None = None,
) -> Result:
    """Evaluate a scenario at one rate.

    Parameters
    ----------
    scenario : Scenario
        What to evaluate.
    rate : float, optional
        Requests per second; default the workload's rate, or the recorded rate of a replayed trace.
    engine : str
        ``"queueing"``: the stationary law of TTFT, without random numbers; an approximation (errors in
        `docs/engines.md`). ``"graph"``: the timed event graph of a concrete request sequence, drawn with the
        workload's seed, exactly; it has the noise of one run.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it between rates.
    horizon : float or str, optional
        Queueing engine: the law of a run of that length that starts empty, in place of the stationary one; seconds, or
        text with a unit. Default the workload's.

    Returns
    -------
    Result
        `law` says what the numbers are of, `stable` whether the rate is below the stability limit. Above it a finite
        run (`horizon`, or the graph engine) is answered as it is, and its TTFT grows with its length.

    Raises
    ------
    NoAnswer
        If no stationary law exists: the rate is not below the stability limit.
    InputError
        If there is no rate, the engine does not exist, or the layout does not fit the devices.
    """
    check_engine(engine)
    length = check_horizon(scenario, horizon, engine)
    if rate is not None:  # a mistake is found before the work
        check_rate(rate)
    ready = prepared or prepare(scenario)
    speed = rate_of(scenario, rate, ready)
    result = answer(scenario, speed, engine, ready, length)
    if engine == "queueing" and length is None and not result.stable:
        raise NoAnswer(
            f"{scenario.source}: {speed:g} requests/s is not below the stability limit, "
            f"{result.saturation_rps:.3g} requests/s, set by {result.bottleneck.replace('_', ' ')}: queues would grow "
            "without end; give a lower rate, or --horizon 300s for the TTFT of a run of that length"
        )
    return result


def answer(scenario: Scenario, rate: float, engine: str, ready: Prepared, horizon: float | None) -> Result:
    """Evaluate at a rate, with NaN for every time where there is no stationary law."""
    if engine == "graph":
        return _run(scenario, rate, ready)
    found = ready.point(rate, horizon)
    point = found or _NOTHING
    return Result(
        engine=engine,
        scenario=scenario.name,
        system=scenario.layout.kind,
        rate_rps=rate,
        law=law_name(horizon),
        requests=None,
        duration_s=None,
        stable=found is not None and rate < ready.limit_rps,
        saturation_rps=ready.limit_rps,
        ttft=summary.law_ttft(point.ttft),
        slo=summary.law_slo(point.ttft, scenario.slo),
        parts=summary.law_parts(point),
        utilisation=dict(point.utilisation),
        bottleneck=summary.bottleneck(scenario.layout, point.utilisation) if found else ready.limit_bottleneck,
        batches=None,
        batch_tokens_mean=point.batch_tokens_mean,
        barrier_waste=point.barrier_waste,
        assumptions=ready.law_assumptions,
        by_length=point.by_length if found else None,
        distribution=point.ttft if found else None,
    )


def law_name(seconds: float | None) -> str:
    """``"stationary"``, or the length of the run that a law is of."""
    return "stationary" if seconds is None else f"run of {seconds:g} s"


def _run(scenario: Scenario, rate: float, ready: Prepared) -> Result:
    """One run of the graph engine."""
    requests = ready.requests(rate)
    done = ready.run(requests)
    records = summary.make_records(done, requests, ready.costing.costs.request_latency)
    elapsed = max(done.makespan_s - float(requests.arrival[0]), np.finfo(float).tiny)
    duration = scenario.workload.duration
    return Result(
        engine="graph",
        scenario=scenario.name,
        system=scenario.layout.kind,
        rate_rps=rate,
        law="run of the whole trace" if duration is None else law_name(duration),
        requests=len(requests.arrival),
        duration_s=float(done.makespan_s),
        stable=rate < ready.saturation_rps,
        saturation_rps=ready.saturation_rps,
        ttft=summary.ttft(records.ttft_s),
        slo=summary.slo(records.ttft_s, scenario.slo),
        parts=summary.parts(records),
        utilisation=summary.utilisation(done, elapsed),
        bottleneck=summary.bottleneck(scenario.layout, done.busy_s),
        batches=done.batches,
        batch_tokens_mean=done.batch_tokens / done.batches,
        barrier_waste=done.barrier_waste,
        assumptions=ready.costing.assumptions,
        by_length=summary.by_length(records),
        distribution=summary.empirical_law(records.ttft_s),
        records=records,
    )


def check_rate(rate: float) -> float:
    """Return a rate, requests/s, if it is a positive number.

    Raises
    ------
    InputError
        If not.
    """
    if not 0 < rate < math.inf:
        raise InputError("--rate", "", f"is {rate:g}", "give a positive number of requests per second")
    return float(rate)


def rate_of(scenario: Scenario, rate: float | None, ready: Prepared) -> float:
    """Return the rate to run at: the one asked for, else the workload's, else the recorded one of a replayed trace.

    Raises
    ------
    InputError
        If there is none, or it is no positive number.
    """
    speed = rate if rate is not None else scenario.workload.rate
    if speed is None:
        speed = ready.traffic.natural_rate
    if speed is None:
        raise InputError(scenario.source, "workload.rate", "is missing", "give it, or --rate")
    return check_rate(speed)
