"""What a changed system does near operating points of the unchanged one, at a fraction of an analysis.

Let `C` be the stability limit and `T(u)` a statistic of the TTFT at load `u`, the rate over the limit. A change is
described by ratios to the unchanged system, from the same fixed walks (common random numbers): `r = C' / C`, and
`k = T'(u0) / T(u0)` at the load `u0` of an operating point. Near that point

    T'(rate) = k T(rate / (r C)),        SLO throughput: r C u  with  k T(u) = objective

with `T` of the full analysis, which is known at every load. Exact where the change is one of the clock (all times by
the same factor: `r = 1/x`, `k = x`), and to first order where `T'(u) / T(u)` hardly varies with `u` around `u0`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Analysis, Problem, TtftLaw
from asapmodel.engines.effort import at_loads
from asapmodel.engines.queueing import analyse, operating_points

__all__ = ["LAST_LOAD", "Change", "Curve", "NoLocalAnswer", "Walked", "changed"]

Floats = NDArray[np.float64]

LAST_LOAD = 0.999
"""Load up to which an objective is looked for."""

_LOADS = (0.02, 0.96)  # within which a walk is made
_SEGMENTS, _SEGMENT = 60, 25  # points of a curve: so many that a straight line between them is as good as exact


class NoLocalAnswer(ValueError):
    """The operating point does not exist: the objective is missed at every rate, or the rate is not stable."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A statistic of the TTFT over the load, of the unchanged system; `statistic` is of a law, in seconds."""

    analysis: Analysis
    statistic: Callable[[TtftLaw], float]

    @property
    def limit(self) -> float:
        """Stability limit, requests/s."""
        return self.analysis.saturation_rps

    @cached_property
    def _loads(self) -> Floats:
        loads: Floats = -np.expm1(-np.linspace(1e-6, -math.log1p(-LAST_LOAD), _SEGMENTS * _SEGMENT + 1))
        return loads

    @cached_property
    def _known(self) -> dict[int, Floats]:
        return {}

    def _times(self, places: slice) -> Floats:
        points = operating_points(self.analysis, (self._loads[places] * self.limit).tolist())
        return np.array([math.inf if one is None else self.statistic(one.ttft) for one in points])

    @cached_property
    def _ends(self) -> Floats:
        """Seconds at the ends of the segments."""
        return self._times(slice(None, None, _SEGMENT))

    def _segment(self, number: int) -> tuple[Floats, Floats]:
        """Loads of a segment with both its ends, and the seconds there; computed when it is asked for."""
        start = number * _SEGMENT
        if number not in self._known:
            inside = self._times(slice(start + 1, start + _SEGMENT))
            self._known[number] = np.concatenate([[self._ends[number]], inside, [self._ends[number + 1]]])
        return self._loads[start : start + _SEGMENT + 1], self._known[number]

    def at(self, load: float) -> float:
        """Seconds at a load; infinite beyond `LAST_LOAD`."""
        if load > self._loads[-1]:
            return math.inf
        after = int(np.searchsorted(self._loads[::_SEGMENT], load))
        return float(np.interp(load, *self._segment(max(after - 1, 0))))

    def load_at(self, objective: float) -> float:
        """Largest load at which an objective (seconds) is met; `LAST_LOAD` where it is met beyond.

        Raises
        ------
        NoLocalAnswer
            If it is missed at every load.
        """
        met = np.flatnonzero(self._ends <= objective)
        if len(met) == 0:
            raise NoLocalAnswer(f"a TTFT of {objective:g} s is missed at every rate")
        if met[-1] == _SEGMENTS:
            return float(self._loads[-1])
        loads, times = self._segment(int(met[-1]))
        last = int(np.flatnonzero(times <= objective)[-1])
        return float(np.interp(objective, times[last : last + 2], loads[last : last + 2]))


@dataclass(frozen=True, slots=True)
class Walked:
    """Stability limit, and the statistic at each of the loads that were walked."""

    limit: float
    ttft: tuple[float, ...]

    @classmethod
    def of(cls, problem: Problem, curve: Curve, loads: tuple[float, ...], walk: int = 0) -> "Walked":
        """Walk through a system at given loads.

        Parameters
        ----------
        problem : Problem
            Changed or unchanged.
        curve : Curve
            Says which statistic.
        loads : tuple of float
            Loads of operating points; those too near 0 or 1 are replaced by the nearest that can be walked.
        walk : int
            Which of many fixed walks.

        Raises
        ------
        QueueError
            If the system is beyond the queueing engine.
        """
        wanted = [min(max(load, _LOADS[0]), _LOADS[1]) for load in loads]
        found = analyse(problem, walk, at_loads(tuple(sorted(set(wanted)))))
        limit = found.saturation_rps
        return cls(limit, tuple(curve.statistic(found.at(load * limit).ttft) for load in wanted))


@dataclass(frozen=True, slots=True)
class Change:
    """A changed system against the unchanged one: ratio of the limits, and of the statistic at one equal load."""

    curve: Curve
    limit: float
    ttft: float

    def ttft_at(self, rate: float) -> float:
        """Statistic of the changed system at a rate, seconds; infinite from its stability limit on."""
        return self.ttft * self.curve.at(rate / (self.limit * self.curve.limit))

    def throughput(self, objective: float) -> float:
        """Rate at which the changed system just meets an objective (seconds), requests/s.

        Raises
        ------
        NoLocalAnswer
            If it is missed at every rate.
        """
        return self.limit * self.curve.limit * self.curve.load_at(objective / self.ttft)


def changed(curve: Curve, before: Walked, after: Walked, which: int) -> Change:
    """The change from one walked system to another around the operating point `which`."""
    return Change(curve, after.limit / before.limit, after.ttft[which] / before.ttft[which])
