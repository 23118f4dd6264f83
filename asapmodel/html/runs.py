"""A system of a report by the graph engine: a sweep over rates, and several runs where traffic is drawn.

The SLO throughput pools replications; curves from a single run would not pass through its mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import Costing
from asapmodel.html.system import Measured, Point, System
from asapmodel.result import Capacity, Records, Result
from asapmodel.scenario import Scenario
from asapmodel.scenario_tables import SloTable
from asapmodel.solvers.sample import mean_interval
from asapmodel.summary import empirical_law, statistic
from asapmodel.verbs.capacity import DEFAULT_REPLICATIONS
from asapmodel.verbs.evaluate import Prepared, evaluate, prepare
from asapmodel.verbs.sweep import sweep_results

__all__ = ["measured", "pooled_runs", "run_system"]

_WORKERS = 2  # runs release the interpreter lock; results do not depend on the number of workers

Progress = Callable[[str], None] | None
Floats = NDArray[np.float64]


def pooled_runs(scenario: Scenario) -> int:
    """How many runs the curves pool: a replayed trace is the same every time but for its ticks."""
    return 1 if scenario.workload.trace is not None else DEFAULT_REPLICATIONS


def run_system(
    scenario: Scenario,
    costing: Costing,
    found: tuple[Capacity | None, str],
    names: tuple[str, int],
    rates: Sequence[float],
    detail: float,
    progress: Progress = None,
) -> System:
    """Run a scenario at all rates of its group.

    Parameters
    ----------
    scenario, costing
        The scenario and its coefficients.
    found : (Capacity or None, str)
        Its SLO throughput, or why there is none.
    names : (str, int)
        Its label and look.
    rates, detail
        Rates of the group, requests/s, and the one of them to keep all requests of.
    progress
        See `asapmodel.html.data.collect`.
    """
    results = _sweep(scenario, rates, progress)
    others = _prepared(scenario, costing)[1:]
    if others and progress is not None:
        progress(f"{scenario.name}: {len(others)} more runs at each rate")
    with ThreadPoolExecutor(_WORKERS) as pool:

        def ttft(ready: Prepared) -> list[Floats]:
            return [ready.ttft(rate) for rate in rates]

        def requests(ready: Prepared) -> Records:
            return _records(evaluate(scenario, detail, "graph", ready))

        values = list(pool.map(ttft, others))
        kept = list(pool.map(requests, others))
    curve = tuple(
        _point(one.rate_rps, [_records(one).ttft_s, *(run[k] for run in values)], scenario.slo)
        for k, one in enumerate(results)
    )
    at = results[list(rates).index(detail)]
    records = _joined([_records(at), *kept])
    law, tokens = empirical_law(records.ttft_s), float(records.prompt_tokens.mean())
    return System(*names, scenario, costing, *found, curve, results, at, law, tokens, records)


def measured(
    scenario: Scenario, costing: Costing, rates: Sequence[float], progress: Progress = None
) -> tuple[Measured, ...]:
    """The objective's statistic at some rates, over as many runs as a curve pools.

    The interval is Student's over the runs' own statistics, moved to the pooled one.
    """
    ready = _prepared(scenario, costing)
    out = []
    with ThreadPoolExecutor(_WORKERS) as pool:
        for rate in rates:
            if progress is not None:
                progress(f"{scenario.name}: {len(ready)} runs at {rate:.3g} requests/s")
            runs = list(pool.map(lambda one, rate=rate: one.ttft(rate), ready))
            own = np.array([statistic(one, scenario.slo) for one in runs])
            value = statistic(np.concatenate(runs), scenario.slo)
            low, high = mean_interval(own)
            off = value - float(own.mean())
            interval = (max(low + off, 0.0), high + off) if len(runs) > 1 else None
            out.append(Measured(float(rate), value, interval))
    return tuple(out)


def _prepared(scenario: Scenario, costing: Costing) -> list[Prepared]:
    return [prepare(scenario, scenario.workload.seed + k, costing) for k in range(pooled_runs(scenario))]


def _sweep(scenario: Scenario, rates: Sequence[float], progress: Progress) -> tuple[Result, ...]:
    """The sweep, every other rate on its own thread."""

    def part(first: int) -> list[Result]:
        return sweep_results(scenario, rates[first::_WORKERS], "graph", progress)

    with ThreadPoolExecutor(_WORKERS) as pool:
        results = [one for strand in pool.map(part, range(_WORKERS)) for one in strand]
    return tuple(sorted(results, key=lambda one: one.rate_rps))


def _records(result: Result) -> Records:
    assert result.records is not None  # `evaluate` always keeps them
    return result.records


def _point(rate: float, runs: Sequence[Floats], objective: SloTable) -> Point:
    values = np.concatenate(runs)
    other = np.quantile(values, 0.99) if objective.quantile is None else values.mean()
    return Point(rate, statistic(values, objective), float(other))


def _joined(runs: Sequence[Records]) -> Records:
    return Records(*(np.concatenate([getattr(one, field.name) for one in runs]) for field in fields(Records)))
