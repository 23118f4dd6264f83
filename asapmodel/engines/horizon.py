"""Runs of finite length, from the stationary law: the paper's last 300 s and start empty.

Near saturation such a run has not built up the stationary delay by its end, and above saturation, where nothing is
stationary, it still has an answer. Both follow from the stationary law at two rates below saturation: see
`docs/background/finite_runs.md` for the argument and `asapmodel.solvers.transient_queue` for the mathematics.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Analysis, ByLength, Point, TtftLaw
from asapmodel.solvers.distinct import distinct
from asapmodel.solvers.queue_errors import QueueError, positive
from asapmodel.solvers.transient_queue import ArrivingWork, average_share, backlog_mean, fit_tail, work_from_decays

__all__ = ["HorizonLaw"]

Floats = NDArray[np.float64]

_LOWER_LOAD = 0.75  # of the two at which the decay of the tail is read
_NEAREST = 2.0  # the other: so many standard deviations of the work of a run, relative to its length, below saturation
_LOADS = (0.85, 0.995)  # bounds of the other
_RARE = 0.01  # share of the requests beyond which the shape of the tail at the nearest load is not carried over
_POINTS = 100  # added to a grid, within it and beyond


@dataclass(frozen=True, eq=False)
class HorizonLaw:
    """TTFT over all requests that arrive in `[0, horizon]` of runs that start empty and are finished, at any rate.

    Means and quantiles are those of the requests of many runs pooled. An `Analysis` itself, but that `at` has an answer
    at and above saturation too. A run that is long against the relaxation time `variance / (1 - load)^2` of its load
    has the stationary answer.

    Parameters
    ----------
    analysis : Analysis
        The stationary law; asked at two rates for all and at the rate of each point below the nearer of the two.
    horizon : float
        Length of the runs, seconds.

    Notes
    -----
    An approximation: the time a wait takes to build up is that of a Brownian motion with the arriving work's mean and
    second and third cumulants, read off the decay rates of the stationary TTFT; kernel, inside part, batches and
    barriers above the nearer rate are those at that rate. The last requests are served as if arrivals went on. Error
    beyond that of the stationary law: 1 to 3 %, see `docs/background/finite_runs.md`.
    """

    analysis: Analysis
    horizon: float

    def __post_init__(self) -> None:
        positive("horizon", self.horizon)

    @property
    def saturation_rps(self) -> float:
        """Stability limit of the stationary law, requests/s; a finite run has answers beyond."""
        return self.analysis.saturation_rps

    def at(self, rate: float) -> Point:
        """Answer at a rate, below or above saturation; MomentError (`solvers.queue_errors`) if it is not positive."""
        if positive("rate", rate) <= self._nearest.rate_rps:
            point = self.analysis.at(rate)
            law = point.ttft
            tail = np.append(1 - law.cdf[:-1], 0.0)
            shift = self._fit(law)[1]
            return self._point(rate, point, law.time, tail, tail * self._share(rate, law.time + shift))
        point = self._nearest
        time = self._longer_grid(rate)
        tail = 1 - np.interp(time, point.ttft.time, point.ttft.cdf, left=0.0, right=1.0)
        return self._point(rate, point, time, tail, self._beyond(rate, time, tail))

    @cached_property
    def _anchors(self) -> tuple[Point, Point]:
        """Stationary answers at two loads, the nearer the closer to saturation the longer the run is."""
        lower = self.analysis.at(_LOWER_LOAD * self.saturation_rps)
        rough = 2 * (1 / _LOWER_LOAD - 1) / self._fit(lower.ttft)[0]
        load = float(np.clip(1 - _NEAREST * np.sqrt(rough / self.horizon), *_LOADS))
        return lower, self.analysis.at(load * self.saturation_rps)

    @property
    def _nearest(self) -> Point:
        return self._anchors[1]

    @cached_property
    def _tail(self) -> tuple[float, float]:
        return self._fit(self._nearest.ttft)

    @cached_property
    def work(self) -> ArrivingWork:
        """Cumulants of the work that a request brings, in seconds of the saturated system's time."""
        lower, nearest = self._anchors
        decays = self._fit(lower.ttft)[0], self._tail[0]
        return work_from_decays(self.saturation_rps, (lower.rate_rps, nearest.rate_rps), decays)

    def _fit(self, law: TtftLaw) -> tuple[float, float]:
        try:
            return fit_tail(law.time, 1 - law.cdf)
        except QueueError:  # nothing varies: a wait that hardly moves takes the place of none
            return 1e6 / self.horizon, -float(law.time[-1])

    def _share(self, rate: float, level: Floats) -> Floats:
        return average_share(self.work, rate, level, self.horizon)

    def _longer_grid(self, rate: float) -> Floats:
        """The nearest law's times, refined, and beyond them as far as the backlog of a run gets."""
        time = self._nearest.ttft.time
        backlog = max(rate / self.saturation_rps - 1, 0.0) * self.horizon
        far = time[-1] + backlog + 6 * np.sqrt(max(rate / self.saturation_rps, 1.0) * self.work.variance * self.horizon)
        inside = np.linspace(time[0], time[-1], _POINTS)
        return distinct(np.concatenate([time, inside, np.linspace(time[-1], far, _POINTS)]))

    def _beyond(self, rate: float, time: Floats, tail: Floats) -> Floats:
        """Tail in a run above the nearest rate.

        The stationary tail there is `c(y) exp(-eta (y + shift))`; `c` and the shift are carried over, `eta` is
        continued (0 from saturation on). `c` fades out beyond the quantiles in which anyone is interested, since far
        above saturation its last value would stand for all requests.
        """
        eta, shift = self._tail
        level = np.maximum(time + shift, 0.0)
        last = self._nearest.ttft.quantile(1 - _RARE)
        near = np.minimum(time, last)
        shape = np.interp(near, time, tail) * np.exp(eta * np.maximum(near + shift, 0.0))
        shape = 1 + (shape - 1) * np.exp(-eta * (time - near))
        growth = np.exp(-max(self.work.decay(rate), 0.0) * level)
        return np.asarray(np.minimum(shape * growth, 1.0) * self._share(rate, level), dtype=np.float64)

    def _point(self, rate: float, point: Point, time: Floats, tail: Floats, built_up: Floats) -> Point:
        """The point with its law replaced by the run's, and its means moved by as much as the law's."""
        built_up = np.maximum.accumulate(built_up[::-1])[::-1]
        lost = tail - built_up
        less = float(np.trapezoid(lost, time))
        mean = point.ttft.mean - less
        square = point.ttft.mean**2 + point.ttft.std**2 - float(np.trapezoid(2 * time * lost, time))
        law = TtftLaw(time, 1 - built_up, mean, float(np.sqrt(max(square - mean**2, 0.0))))
        later = law.quantile(0.95) - point.ttft.quantile(0.95)
        classes = point.by_length
        return replace(
            point,
            rate_rps=rate,
            ttft=law,
            queueing_s=max(point.queueing_s - less, 0.0),
            utilisation=self._utilisation(rate, point),
            by_length=ByLength(
                classes.tokens,
                classes.weight,
                np.maximum(classes.mean_s - less, 0.0),
                np.maximum(classes.p95_s + later, 0.0),
            ),
        )

    def _utilisation(self, rate: float, point: Point) -> dict[str, float]:
        """Busy time that came in, over arrivals and the time to drain what is left at their end.

        What a request costs falls with the rate where batches share fixed costs: beyond the nearer of the two rates its
        inverse is continued in a straight line up to saturation, where batches are full.
        """
        lower, nearest = self._anchors
        beyond = max(min(rate, self.saturation_rps) - nearest.rate_rps, 0.0) / (nearest.rate_rps - lower.rate_rps)
        drained = self.horizon + backlog_mean(self.work, rate, self.horizon)
        busy = {}
        for name, share in point.utilisation.items():
            each = share / point.rate_rps
            before = lower.utilisation.get(name, 0.0) / lower.rate_rps
            if beyond > 0 and before > 0:
                each /= max(1 + beyond * (1 - each / before), 0.5)
            busy[name] = float(np.clip(each * rate * self.horizon / drained, 0.0, 1.0))
        return busy
