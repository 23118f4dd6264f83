"""How fast the queueing engine is, next to the graph engine in the same process: CPU time of one thread, compiled."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from asapmodel.engines.analysis import Analysis, Problem
from asapmodel.engines.queueing import analyse
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.studies.engines_cases import Case
from asapmodel.studies.pages import markdown_table, plain
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import prepare
from asapmodel.verbs.grid import grid
from asapmodel.verbs.prepared import Prepared

__all__ = ["Speed", "measure_speed", "speed_table"]

_SHIPPED = {"sync": "paper-chunked", "asap": "paper-asap"}
_NAMES = {"sync": "synchronous", "asap": "asynchronous"}
_GRID_CASES = 40  # of a system
_GRID_LOADS = [0.05 * k for k in range(1, 20)]
_ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one thread: medians, and the largest of the points and preparations."""

    system: str
    prepare_s: float
    prepare_most_s: float
    point_s: float
    point_most_s: float
    capacity_s: float
    grid_points_per_s: float
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
    preparations, points = [], []
    for case in cases[:_GRID_CASES]:
        problem, made = case.problem, []  # type: ignore[var-annotated]
        preparations.append(_seconds(partial(_analyse, problem, made)))
        points += [_seconds(partial(_answer, made[0], load * made[0].saturation_rps)) for load in (0.3, 0.8, 0.95)]
    scenario = Scenario.load(_SHIPPED[system])
    ready = prepare(scenario)
    rate = 0.8 * ready.analysis.saturation_rps
    requests = ready.requests(rate)
    ready.run(requests)
    return Speed(
        system,
        statistics.median(preparations),
        max(preparations),
        statistics.median(points),
        max(points),
        statistics.median(_seconds(lambda: capacity(scenario, prepared=ready)) for _ in range(_ROUNDS)),
        _grid_speed([prepare(case.scenario) for case in cases[:_GRID_CASES]]),
        statistics.median(_seconds(lambda: ready.run(requests)) for _ in range(_ROUNDS)),
    )


def _analyse(problem: Problem, made: list[Analysis]) -> None:
    """Append the analysis, with all that is computed when first asked for a point."""
    made.append(analyse(problem))
    _answer(made[0], 0.5 * made[0].saturation_rps)


def _answer(analysis: Analysis, rate: float) -> None:
    analysis.at(rate).ttft.quantile(0.99)


def _grid_speed(ready: Sequence[Prepared]) -> float:
    """Points per second over scenarios and rates, with what depends on the scenario only (but its cost models)."""
    usable = []
    for one in ready:
        try:
            usable.append(Prepared(one.scenario, one.costing))
            assert one.problem is not None
        except QueueError:  # beyond the engine: counted among the errors, not here
            continue
    seconds = _seconds(lambda: grid(usable, utilisations=_GRID_LOADS))
    return len(usable) * len(_GRID_LOADS) / seconds


def speed_table(speeds: Sequence[Speed]) -> str:
    """Markdown table of the speeds against their targets."""
    names: dict[str, tuple[str, Callable[[Speed], str]]] = {
        "what depends on the scenario only, ms": ("10", lambda s: plain(1e3 * s.prepare_s)),
        "largest of 40 scenarios, ms": ("30", lambda s: plain(1e3 * s.prepare_most_s)),
        "an operating point, ms": ("1", lambda s: plain(1e3 * s.point_s)),
        "largest of 120 points, ms": ("", lambda s: plain(1e3 * s.point_most_s)),
        "capacity search, ms": ("15", lambda s: plain(1e3 * s.capacity_s)),
        "grid of 40 scenarios x 19 rates, points/s": ("5000", lambda s: f"{s.grid_points_per_s:.0f}"),
        "graph engine, a run of 300 s, ms": ("", lambda s: plain(1e3 * s.graph_s)),
        "graph engine / operating point": ("", lambda s: f"{s.graph_s / s.point_s:.0f}"),
    }
    rows = [[name, target, *(show(speed) for speed in speeds)] for name, (target, show) in names.items()]
    return markdown_table(["", "target", *(_NAMES[speed.system] for speed in speeds)], rows, (1, 2, 3))
