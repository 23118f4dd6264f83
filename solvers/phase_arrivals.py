"""Markovian arrival processes: Poisson, renewal with phase-type times, Markov-modulated Poisson."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.phase_type import PhaseType
from asapmodel.solvers.qbd_blocks import check_rows, stationary_vector
from asapmodel.solvers.queue_errors import MomentError, QueueError, positive

__all__ = ["MarkovianArrivals", "mmpp2_from", "poisson", "renewal"]

Floats = NDArray[np.float64]


@dataclass(init=False, frozen=True, eq=False)
class MarkovianArrivals:
    """Arrival process in which transitions of a Markov chain carry arrivals. Exact.

    Parameters
    ----------
    d0 : array, shape (m, m)
        Rates between phases without an arrival, 1 / time; the diagonal makes the rows of `d0 + d1` sum to 0.
    d1 : array, shape (m, m)
        Rates with an arrival.

    Raises
    ------
    QueueError
        If the two are no generator, have several closed classes, or arrivals never come.

    Notes
    -----
    Neuts, J. Appl. Prob. 16 (1979); Fischer and Meier-Hellstern, "The Markov-modulated Poisson process (MMPP)
    cookbook", Perf. Eval. 18 (1993).

    Examples
    --------
    >>> p = MarkovianArrivals([[-3.0, 1.0], [1.0, -2.0]], [[2.0, 0.0], [0.0, 1.0]])
    >>> p.rate, round(p.scv, 6), round(p.lag_correlation(1), 6), round(p.index_of_dispersion(), 6)
    (1.5, 1.1, 0.018182, 1.166667)
    """

    d0: Floats
    d1: Floats

    def __init__(self, d0: ArrayLike, d1: ArrayLike) -> None:
        first, second = np.array(d0, dtype=np.float64), np.array(d1, dtype=np.float64)
        if first.ndim != 2 or first.shape != second.shape or first.size == 0:
            raise QueueError(f"D0 {first.shape} and D1 {second.shape} must be square and equal in shape")
        check_rows("arrival process", first, second)
        for array in (first, second):
            array.flags.writeable = False
        object.__setattr__(self, "d0", first)
        object.__setattr__(self, "d1", second)
        if not self.rate > 0:
            raise QueueError("no arrivals: D1 has no rate where the phases stay")

    @property
    def order(self) -> int:
        """Number of phases."""
        return len(self.d0)

    @cached_property
    def phases(self) -> Floats:
        """Stationary probabilities of the phases at any time."""
        return stationary_vector(self.d0 + self.d1)

    @cached_property
    def rate(self) -> float:
        """Mean arrivals per unit of time, `phases D1 1`."""
        return float(self.phases @ self.d1.sum(axis=1))

    @cached_property
    def interval(self) -> PhaseType:
        """Stationary law of one interarrival time; the sequence of them is in general dependent."""
        return PhaseType(self.phases @ self.d1 / self.rate, self.d0)

    @property
    def scv(self) -> float:
        """Variance of an interarrival time over its squared mean."""
        return self.interval.scv

    def lag_correlation(self, lag: int) -> float:
        """Correlation of two interarrival times `lag` arrivals apart.

        `(f M P^lag M 1 - m1^2) / (m2 - m1^2)`, `M = (-D0)^-1`, `P = M D1`, f the phases after an arrival.
        """
        first, second = self.interval.moments(2)
        inverse = np.linalg.inv(-self.d0)
        start = self.interval.initial @ inverse @ np.linalg.matrix_power(inverse @ self.d1, lag)
        return float((start @ inverse.sum(axis=1) - first**2) / (second - first**2))

    def index_of_dispersion(self, t: float = math.inf) -> float:
        """Variance of the number of arrivals in time `t` over its mean, time 0 arbitrary; at infinity the limit.

        `1 - 2 rate + (2 / rate) p D1 Z D1 1 - (2 / (rate t)) p D1 (I - exp(D t)) Z^2 D1 1`, with p the phases,
        `D = D0 + D1` and `Z = (1 p - D)^-1`; at the limit of a renewal process its scv; 1 for Poisson arrivals.

        Raises
        ------
        MomentError
            Unless `t > 0`.
        """
        from scipy.linalg import expm

        if not t > 0:
            raise MomentError(f"dispersion needs a time above 0, not {t}")
        sums = self.d0 + self.d1
        z = np.linalg.inv(np.ones((self.order, 1)) * self.phases - sums)
        v, arrivals = self.phases @ self.d1, self.d1.sum(axis=1)
        limit = float(1 - 2 * self.rate + 2 / self.rate * (v @ z @ arrivals))
        if math.isinf(t):
            return limit
        fading = np.eye(self.order) - expm(sums * t)
        return limit - float(2 / (self.rate * t) * (v @ fading @ z @ z @ arrivals))


def poisson(rate: float) -> MarkovianArrivals:
    """Poisson arrivals; MomentError unless the rate is positive and finite."""
    positive("arrival rate", rate)
    return MarkovianArrivals([[-rate]], [[rate]])


def renewal(interval: PhaseType) -> MarkovianArrivals:
    """Arrivals with independent interarrival times: `D0 = T`, `D1 = t0 alpha`.

    Examples
    --------
    >>> p = renewal(PhaseType([1.0, 0.0], [[-2.0, 2.0], [0.0, -2.0]]))
    >>> p.rate, p.scv, round(p.index_of_dispersion(), 12), round(p.lag_correlation(1), 12) + 0.0
    (1.0, 0.5, 0.5, 0.0)
    """
    generator = interval.generator.copy()
    np.fill_diagonal(generator, 0.0)
    np.fill_diagonal(generator, -generator.sum(axis=1) - interval.exits)
    return MarkovianArrivals(generator, np.outer(interval.exits, interval.initial))


def mmpp2_from(rate: float, scv: float, idc: float) -> MarkovianArrivals:
    """Poisson arrivals whose rate switches between two values, half of the time each: rate, interval scv, dispersion.

    With the switching rate `r = (scv - 1) rate / (2 (idc - 1) + (scv - 1) (idc - 3))` and rates `rate -+ d`,
    `d^2 = (idc - 1) r rate`, all three are matched exactly. At `idc = scv` the lower rate is 0: an interrupted Poisson
    process, which is the hyperexponential renewal process. That both states are equally frequent is our convention;
    a process of two states has a fourth parameter.

    Parameters
    ----------
    rate : float
        Mean arrivals per unit of time.
    scv : float
        Squared coefficient of variation of an interarrival time.
    idc : float
        Limit of the index of dispersion for counts.

    Raises
    ------
    MomentError
        Unless `rate > 0` and `1 < scv <= idc`, or both are 1 (Poisson).

    Examples
    --------
    >>> p = mmpp2_from(5.0, 1.5, 4.0)
    >>> round(p.rate, 9), round(p.scv, 9), round(p.index_of_dispersion(), 9)
    (5.0, 1.5, 4.0)
    """
    positive("arrival rate", rate)
    if scv == idc == 1:
        return poisson(rate)
    if not 1 < scv <= idc < math.inf:
        raise MomentError(f"switching between two rates needs 1 < scv <= idc, not {scv} and {idc}")
    switch = (scv - 1) * rate / (2 * (idc - 1) + (scv - 1) * (idc - 3))
    swing = min(rate, math.sqrt((idc - 1) * switch * rate))
    high, low = rate + swing, rate - swing
    return MarkovianArrivals([[-high - switch, switch], [switch, -low - switch]], [[high, 0.0], [0.0, low]])
