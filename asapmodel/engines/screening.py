"""The SLO throughput of one system among thousands: no more walks than the question needs.

An analysis walks at several loads and answers any question. Here the question is known: where a statistic of the TTFT
meets its objective. Walks are made from the highest load down until one meets it. Through them and the lone prompt goes
the curve of `walk_nodes`: monotone cubic pieces of `log` of the statistic over `-log(1 - load)`, of slope 1 beyond the
last. One or two walks do for most systems.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from asapmodel.engines.analysis import Point, Problem, TtftLaw
from asapmodel.engines.effort import QUICK, Effort
from asapmodel.engines.queueing import analyse
from asapmodel.engines.walk_analysis import WalkAnalysis
from asapmodel.engines.walk_nodes import Node
from asapmodel.solvers.monotone_cubic import MonotoneCubic

__all__ = ["LAST_LOAD", "Screened", "screen"]

_LOADS = (0.93, 0.8, 0.5, 0.2, 0.05)
_LEAST = 1e-6  # load that stands for 0, which is no rate
_POINTS = 400  # of the curve

LAST_LOAD = 0.999
"""Load up to which an objective is looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """What screening finds of a system.

    Attributes
    ----------
    limit_rps : float
        Stability limit.
    throughput_rps : float
        Largest rate that meets the objective; NaN where it is missed at every rate.
    most_rps : float
        What it may be with the full effort, by the margins of the effort; NaN where it is missed even then.
    point : Point
        At the walk nearest to the SLO throughput: utilisation, batches, laws.
    at_rate : Point or None
        At the rate asked for; None where there is none, or it is not below the stability limit.
    """

    limit_rps: float
    throughput_rps: float
    most_rps: float
    point: Point
    at_rate: Point | None


def screen(
    problem: Problem,
    statistic: Callable[[TtftLaw], float],
    objective: float,
    rate: float | None = None,
    effort: Effort = QUICK,
) -> Screened:
    """Find the SLO throughput of a system, and its answer at a rate.

    Parameters
    ----------
    problem : Problem
        The system and its traffic.
    statistic : callable
        Of a law of TTFT, seconds.
    objective : float
        What the statistic is to stay within, seconds.
    rate : float, optional
        A rate to answer at, too, requests/s: one walk more.
    effort : Effort, optional
        Lengths of the walks; their loads are chosen here.

    Raises
    ------
    QueueError
        If the system is beyond the queueing engine.

    Notes
    -----
    An approximation; `docs/engines.md` has its errors.
    """
    analysis = analyse(problem, effort=effort)
    assert isinstance(analysis, WalkAnalysis)
    limit = analysis.saturation_rps

    def value(load: float, node: Node) -> float:
        return statistic(analysis.point_of(max(load, _LEAST) * limit, node).ttft)

    nodes = {0.0: analysis.lone}
    values = {0.0: value(0.0, analysis.lone)}
    for load in _LOADS:
        nodes[load] = analysis.node(load)
        values[load] = value(load, nodes[load])
        if values[load] <= objective:
            break
    found = _crossing(values, objective)
    most = _crossing(values, objective * effort.time_margin) * limit * effort.limit_margin
    nearest = min(nodes, key=lambda load: abs(load - (found if found == found else 0.0)))
    at_rate = None
    if rate is not None and rate < LAST_LOAD * limit:
        at_rate = analysis.point_of(rate, analysis.node(rate / limit))
    point = analysis.point_of(max(nearest, _LEAST) * limit, nodes[nearest])
    return Screened(limit, found * limit, most, point, at_rate)


def _crossing(values: Mapping[float, float], objective: float) -> float:
    """Largest load at which the curve through a statistic's values at some loads meets an objective; NaN if at none."""
    loads = np.array(sorted(values))
    places = -np.log1p(-loads)
    heights = np.log([values[load] for load in loads.tolist()])
    level = math.log(objective)
    if heights[-1] <= level:
        return min(-math.expm1(-(places[-1] + level - heights[-1])), LAST_LOAD)
    fine = np.linspace(0.0, places[-1], _POINTS)
    curve = MonotoneCubic(places, heights)(fine)
    met = np.flatnonzero(curve <= level)
    if len(met) == 0:
        return math.nan
    last = int(met[-1])
    return -math.expm1(-float(np.interp(level, curve[last : last + 2], fine[last : last + 2])))
