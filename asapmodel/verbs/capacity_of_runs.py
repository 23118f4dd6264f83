"""The SLO throughput by runs of the graph engine, with its bracket and its noise.

All rates of one search share their random numbers: replication `k` has the same unit-rate arrivals and the same lengths
at every rate. The bracket is of the statistic pooled over the replications; the interval is over the replications'
own crossings, read off the evaluated rates.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from asapmodel import summary
from asapmodel.costing import layer_costs
from asapmodel.errors import InputError, NoAnswer
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.solvers.roots import Crossing, NoCrossing, find_crossing
from asapmodel.solvers.sample import mean_interval
from asapmodel.verbs.evaluate import Prepared, evaluate, prepare

__all__ = ["DEFAULT_REPLICATIONS", "capacity_of_runs"]

DEFAULT_REPLICATIONS = 8
_SPREAD_REPLICATIONS = 3  # of a replayed trace: only the spreading within ticks is random, and matters little
_WORKERS = 2  # runs release the interpreter lock; results do not depend on the number of workers

Floats = NDArray[np.float64]
Progress = Callable[[str], None] | None


def capacity_of_runs(scenario: Scenario, replications: int | None, tolerance: float, progress: Progress) -> Capacity:
    """SLO throughput over pooled runs; see `asapmodel.verbs.capacity.capacity`."""
    workload = scenario.workload
    count = _replications(scenario) if replications is None else replications
    costing = layer_costs(scenario)
    runs = [prepare(scenario, workload.seed + k, costing) for k in range(count)]
    found, samples = _crossing(scenario, runs, tolerance, progress)
    own = _own_crossings(samples, scenario.slo.ttft)
    spread = count > 1 and workload.trace is None  # one recorded trace says nothing of another day's
    highest = evaluate(scenario, found.high, "graph", runs[0])
    return Capacity(
        engine="graph",
        scenario=scenario.name,
        system=scenario.layout.kind,
        law=highest.law,
        slo_throughput_rps=found.estimate,
        bracket_rps=(found.low, found.high),
        interval_rps=_shifted(mean_interval(own), found.estimate - float(own.mean())) if spread else None,
        run_std_rps=float(np.std(own, ddof=1)) if spread else None,
        replications=count,
        stability_limit_rps=runs[0].saturation_rps,
        limited_by=highest.bottleneck,
        bottleneck=highest.bottleneck,
        slo_ttft_s=scenario.slo.ttft,
        statistic=scenario.slo.statistic,
        devices=scenario.layout.devices,
        points=found.points,
        assumptions=costing.assumptions,
    )


def _crossing(
    scenario: Scenario, runs: Sequence[Prepared], tolerance: float, progress: Progress
) -> tuple[Crossing, dict[float, list[float]]]:
    """Where the pooled statistic crosses the objective, and by rate the statistic of each run."""
    limit = runs[0].saturation_rps
    samples: dict[float, list[float]] = {}

    with ThreadPoolExecutor(_WORKERS) as pool:

        def pooled(rate: float) -> float:
            values = list(pool.map(lambda ready: ready.ttft(rate), runs))
            samples[rate] = [summary.statistic(one, scenario.slo) for one in values]
            result = summary.statistic(np.concatenate(values), scenario.slo)
            if progress is not None:
                progress(f"{rate:.2f} requests/s: {scenario.slo.statistic} TTFT {result:.3g} s")
            return result

        try:
            found = find_crossing(pooled, scenario.slo.ttft, 0.6 * limit, 1.1 * limit, tolerance, limit=50 * limit)
        except NoCrossing as error:
            raise NoAnswer(_explain(scenario, error.points)) from None
        except InputError:
            if not samples:
                raise
            # searching downwards ran out of requests: the objective was missed at every rate that has any
            points = tuple((rate, float(np.mean(samples[rate]))) for rate in sorted(samples))
            raise NoAnswer(_explain(scenario, points)) from None
    return found, samples


def _replications(scenario: Scenario) -> int:
    workload = scenario.workload
    if workload.trace is None:
        return DEFAULT_REPLICATIONS
    return 1 if workload.spread is None else _SPREAD_REPLICATIONS


def _own_crossings(samples: dict[float, list[float]], level: float) -> Floats:
    """Rate at which each replication's statistic crosses the level, by interpolation of its logarithm."""
    rates = np.array(sorted(samples))
    logs = np.log(np.array([samples[rate] for rate in rates]))
    own = []
    for column in np.maximum.accumulate(logs, axis=0).T:
        own.append(float(np.interp(np.log(level), column, rates)))
    return np.array(own)


def _shifted(interval: tuple[float, float], by: float) -> tuple[float, float]:
    """The interval around the pooled estimate; the replications' mean differs a little for quantiles."""
    return (interval[0] + by, interval[1] + by)


def _explain(scenario: Scenario, points: tuple[tuple[float, float], ...]) -> str:
    objective = f"{scenario.slo.statistic} TTFT <= {scenario.slo.ttft:g} s"
    rate, value = points[0]
    if value > scenario.slo.ttft:
        return f"{scenario.source}: {objective} is missed at every rate: {value:.3g} s even at {rate:.3g} requests/s"
    rate, value = points[-1]
    return (
        f"{scenario.source}: {objective} is met at every rate looked at, up to {rate:.4g} requests/s ({value:.3g} s): "
        "the run is too short to saturate; raise workload.duration"
    )
