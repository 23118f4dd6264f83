"""How fast the queueing engine is, next to the graph engine in the same process: CPU time of one thread, compiled."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from asapmodel.engines.analysis import Analysis, Problem
from asapmodel.engines.effort import EFFORTS, EffortName
from asapmodel.engines.queueing import analyse
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.studies.engines_cases import Case
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import prepare
from asapmodel.verbs.grid import grid
from asapmodel.verbs.prepared import Prepared

__all__ = ["Speed", "judged", "measure_speed", "speed_table"]

_SHIPPED = {"sync": "paper-chunked", "asap": "paper-asap"}
_NAMES = {"sync": "synchronous", "asap": "asynchronous"}
_GRID_CASES = 40  # of a system
_GRID_LOADS = {count: [0.95 * (k + 1) / count for k in range(count)] for count in (19, 200)}
_ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one thread: medians, and the largest of the points and preparations; points per second."""

    system: str
    prepare_s: dict[EffortName, float]
    prepare_most_s: dict[EffortName, float]
    point_s: float
    point_most_s: float
    capacity_s: float
    grid_points_per_s: dict[tuple[EffortName, int], float]  # by effort and rates a scenario, from nothing
    prepared_points_per_s: float
    graph_s: float  # one run of 300 s at utilisation 0.8


def _seconds(call: Callable[[], Any]) -> float:
    start = time.thread_time()
    call()
    return time.thread_time() - start


def measure_speed(system: str, cases: Sequence[Case]) -> Speed:
    """Time preparation, points, a capacity search, a grid and the graph engine.

    Parameters
    ----------
    system : str
        ``"sync"`` or ``"asap"``: capacity search and the graph engine's run are of the shipped scenario.
    cases : sequence of Case
        Of this system.
    """
    analyse(cases[0].problem).at(0.01)  # compiles
    preparations: dict[EffortName, list[float]] = {name: [] for name in EFFORTS}
    points = []
    for case in cases[:_GRID_CASES]:
        for name, times in preparations.items():
            made: list[Analysis] = []
            times.append(_seconds(partial(_analyse, case.problem, name, made)))
        points += [_seconds(partial(_answer, made[0], load * made[0].saturation_rps)) for load in (0.3, 0.8, 0.95)]
    grids, prepared = _grid_speeds(cases[:_GRID_CASES])
    scenario = Scenario.load(_SHIPPED[system])
    ready = prepare(scenario)
    rate = 0.8 * ready.analysis.saturation_rps
    requests = ready.requests(rate)
    ready.run(requests)
    return Speed(
        system,
        {name: statistics.median(times) for name, times in preparations.items()},
        {name: max(times) for name, times in preparations.items()},
        statistics.median(points),
        max(points),
        statistics.median(_seconds(lambda: capacity(scenario, prepared=ready)) for _ in range(_ROUNDS)),
        grids,
        prepared,
        statistics.median(_seconds(lambda: ready.run(requests)) for _ in range(_ROUNDS)),
    )


def _analyse(problem: Problem, effort: EffortName, made: list[Analysis]) -> None:
    """Append the analysis, with all that is computed when first asked for a point."""
    made.append(analyse(problem, effort=EFFORTS[effort]))
    _answer(made[0], 0.5 * made[0].saturation_rps)


def _answer(analysis: Analysis, rate: float) -> None:
    analysis.at(rate).ttft.quantile(0.99)


def _grid_speeds(cases: Sequence[Case]) -> tuple[dict[tuple[EffortName, int], float], float]:
    """Points per second over scenarios and rates, from nothing but the costs, and of prepared scenarios."""
    usable = []
    for one in (prepare(case.scenario) for case in cases):
        try:
            assert one.problem is not None
        except QueueError:  # beyond the engine: counted among the errors, not here
            continue
        usable.append(one)
    found = {}
    for effort in EFFORTS:
        for count, loads in _GRID_LOADS.items():
            fresh = [_unprepared(one, effort) for one in usable]
            found[effort, count] = len(usable) * count / _seconds(partial(grid, fresh, utilisations=loads))
    again = _seconds(partial(grid, fresh, utilisations=loads))
    return found, len(usable) * count / again


def _unprepared(ready: Prepared, effort: EffortName) -> Prepared:
    fresh = Prepared(ready.scenario, ready.costing, effort=effort)
    assert fresh.problem is not None  # reading a law of lengths is not the engine's time
    return fresh


def _grid_points(effort: EffortName, count: int) -> Callable[[Speed], str]:
    return lambda speed: f"{speed.grid_points_per_s[effort, count]:.0f}"


def judged(shown: str, target: str, more: bool = False) -> str:
    """A number that is to be at most its target, or at least (`more`), and whether it misses it."""
    if not target:
        return shown
    value, wanted = float(shown), float(target)
    return f"{shown}, missed" if (value < wanted if more else value > wanted) else shown


def speed_table(speeds: Sequence[Speed]) -> str:
    """Markdown table of the speeds against their targets."""
    names: dict[str, tuple[str, Callable[[Speed], str]]] = {
        "what depends on the scenario only, ms": ("10", lambda s: plain(1e3 * s.prepare_s["full"])),
        "largest of 40 scenarios, ms": ("30", lambda s: plain(1e3 * s.prepare_most_s["full"])),
        "the same, quick effort, ms": ("10", lambda s: plain(1e3 * s.prepare_s["quick"])),
        "largest, quick effort, ms": ("30", lambda s: plain(1e3 * s.prepare_most_s["quick"])),
        "an operating point, ms": ("1", lambda s: plain(1e3 * s.point_s)),
        "largest of 120 points, ms": ("", lambda s: plain(1e3 * s.point_most_s)),
        "capacity search, ms": ("15", lambda s: plain(1e3 * s.capacity_s)),
        **{
            f"grid of 40 scenarios x {count} rates, {effort} effort, points/s": ("5000", _grid_points(effort, count))
            for count in _GRID_LOADS
            for effort in EFFORTS
        },
        "the last, scenarios prepared, points/s": ("5000", lambda s: f"{s.prepared_points_per_s:.0f}"),
        "graph engine, a run of 300 s, ms": ("", lambda s: plain(1e3 * s.graph_s)),
        "graph engine / operating point": ("", lambda s: f"{s.graph_s / s.point_s:.0f}"),
    }
    rows = [
        [name, target, *(judged(show(speed), target, name.endswith("/s")) for speed in speeds)]
        for name, (target, show) in names.items()
    ]
    return markdown_table(["", "target", *(_NAMES[speed.system] for speed in speeds)], rows, (1, 2, 3))
