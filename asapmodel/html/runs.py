"""What a report needs of one system: a sweep over rates, and all requests of several runs where traffic is drawn.

The SLO throughput pools replications; curves from a single run would not pass through its mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import Costing
from asapmodel.result import Capacity, Records, Result
from asapmodel.scenario import Scenario
from asapmodel.scenario_tables import SloTable
from asapmodel.summary import statistic
from asapmodel.verbs.capacity import DEFAULT_REPLICATIONS
from asapmodel.verbs.evaluate import Prepared, evaluate, prepare
from asapmodel.verbs.sweep import sweep_results

__all__ = ["Point", "System", "pooled_runs", "run_system"]

_WORKERS = 2  # runs release the interpreter lock; results do not depend on the number of workers

Progress = Callable[[str], None] | None
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """TTFT at one rate over the pooled runs: the objective's statistic, and p99 or, beside a quantile, the mean."""

    rate_rps: float
    judged_s: float
    other_s: float


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """One scenario of a group. `look` is the place of its system in the palette; without `capacity`, `why` not.

    `curve` and `records`, those at the common rate, pool the runs; `results` and `detail`, the one of them at the
    common rate, are of the first run.
    """

    label: str
    look: int
    scenario: Scenario
    costing: Costing
    capacity: Capacity | None
    why: str
    curve: tuple[Point, ...]
    records: Records
    results: tuple[Result, ...]
    detail: Result

    @property
    def stability_limit(self) -> float:
        """Rate at which the backlogged system serves, requests/s."""
        return self.capacity.stability_limit_rps if self.capacity else self.results[-1].saturation_rps


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
    engine: str,
    progress: Progress = None,
) -> System:
    """Evaluate a scenario at all rates of its group.

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
    engine, progress
        See `asapmodel.html.data.collect`.
    """
    results = _sweep(scenario, rates, engine, progress)
    seeds = [scenario.workload.seed + k for k in range(1, pooled_runs(scenario))]
    others = [prepare(scenario, seed, costing) for seed in seeds]
    if others and progress is not None:
        progress(f"{scenario.name}: {len(others)} more runs at each rate")
    with ThreadPoolExecutor(_WORKERS) as pool:

        def ttft(ready: Prepared) -> list[Floats]:
            return [ready.ttft(rate) for rate in rates]

        def requests(ready: Prepared) -> Records:
            return _records(evaluate(scenario, detail, engine, ready))

        values = list(pool.map(ttft, others))
        kept = list(pool.map(requests, others))
    curve = tuple(
        _point(one.rate_rps, [_records(one).ttft_s, *(run[k] for run in values)], scenario.slo)
        for k, one in enumerate(results)
    )
    at = results[list(rates).index(detail)]
    records = _joined([_records(at), *kept])
    return System(*names, scenario, costing, *found, curve, records, results, at)


def _sweep(scenario: Scenario, rates: Sequence[float], engine: str, progress: Progress) -> tuple[Result, ...]:
    """The sweep, every other rate on its own thread."""

    def part(first: int) -> list[Result]:
        return sweep_results(scenario, rates[first::_WORKERS], engine, progress)

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
