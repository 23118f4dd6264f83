"""Arrival processes: independent gaps of unit mean, scaled to a rate.

Keeping the process at unit rate and scaling time is what lets two rates in one capacity search share their
random numbers (docs/background/semantics.md): arrival i at rate r is the same unit-rate arrival divided by r.
Times are in seconds, rates in requests per second; the first arrival comes one gap after time 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from asapmodel.models.distribution_base import Distribution, FloatArray
from asapmodel.models.distributions import Exponential, Gamma

__all__ = ["Renewal", "counts_index_of_dispersion", "gamma", "poisson", "renewal_times"]

_UNIT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Renewal:
    """Renewal process at unit rate: arrivals are partial sums of independent, equally distributed gaps.

    An ordinary one: time 0 is an arrival that is not counted. For gaps with a coefficient of variation c
    the number of arrivals by time t has mean t + (c^2 - 1)/2 + o(1) and variance c^2 t + O(1), so a bursty
    process shows slightly more arrivals than its rate in a short run (Cox, Renewal Theory, 1962, chapter
    4).

    Parameters
    ----------
    gaps : Distribution
        Law of the gaps, non-negative, of mean 1.

    Raises
    ------
    ValueError
        If the gaps can be negative or their mean is not 1.
    """

    gaps: Distribution

    def __post_init__(self) -> None:
        if self.gaps.support[0] < 0:
            raise ValueError("gaps between arrivals cannot be negative")
        if not math.isclose(self.gaps.mean, 1.0, rel_tol=_UNIT_TOLERANCE):
            raise ValueError(f"gaps must have mean 1, not {self.gaps.mean}; the rate is applied by scaling time")

    def unit_times(self, rng: np.random.Generator, count: int) -> FloatArray:
        """First `count` arrival times at unit rate, ascending; a longer draw extends a shorter one."""
        return np.cumsum(self.gaps.sample(rng, count))


def poisson() -> Renewal:
    """Poisson process: exponential gaps.

    Examples
    --------
    >>> poisson().gaps.scv
    1.0
    """
    return Renewal(Exponential(1.0))


def gamma(cv: float) -> Renewal:
    """Renewal process with gamma gaps of coefficient of variation `cv`; 1 is Poisson, above 1 bursty.

    Raises
    ------
    ValueError
        If `cv` is not positive.

    Examples
    --------
    >>> gamma(2.0).gaps.scv
    4.0
    """
    return Renewal(Gamma(1.0, cv))


def renewal_times(gaps: Distribution, rng: np.random.Generator, rate: float, duration: float) -> FloatArray:
    """All arrivals in (0, duration] at a rate.

    Arrival i is u_i / rate, with u_i the i-th value of `Renewal.unit_times` for a generator in the same
    state. So two rates from the same seed share their random numbers, and the higher one's arrivals extend
    the lower one's.

    Parameters
    ----------
    gaps : Distribution
        Law of the gaps at unit rate: mean 1.
    rng : numpy.random.Generator
        Source of randomness. How much is taken from it depends on rate and duration: draw lengths from
        another generator (`rng.spawn`), or two rates will not share theirs.
    rate : float
        Requests per second.
    duration : float
        Seconds.

    Returns
    -------
    ndarray of float64
        Ascending times in seconds, possibly none.

    Raises
    ------
    ValueError
        If the rate or the duration is not positive and finite, or `gaps` does not fit `Renewal`.

    Examples
    --------
    >>> from asapmodel.models.distributions import Constant
    >>> renewal_times(Constant(1.0), np.random.default_rng(1), rate=2.0, duration=2.0).tolist()
    [0.5, 1.0, 1.5, 2.0]
    """
    for name, value in (("rate", rate), ("duration", duration)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, not {value}")
    gaps = Renewal(gaps).gaps
    expected = rate * duration
    block = math.ceil(expected + 4 * math.sqrt(expected) + 16)
    drawn = gaps.sample(rng, block)
    times = np.cumsum(drawn) / rate
    while times[-1] <= duration:
        # Summing from the start again, not from the last time, keeps arrival i the same float for every rate.
        drawn = np.concatenate([drawn, gaps.sample(rng, drawn.size)])
        times = np.cumsum(drawn) / rate
    return times[: np.searchsorted(times, duration, side="right")]


def counts_index_of_dispersion(times: ArrayLike, window: float) -> float:
    """Index of dispersion for counts: variance over mean of the number of arrivals per window.

    Parameters
    ----------
    times : array_like
        Ascending arrival times, seconds from 0.
    window : float
        Length of a window, seconds. The windows are [0, w), [w, 2w), ...; a last incomplete one is left out.

    Returns
    -------
    float
        1 for a Poisson process; in a renewal process it tends to the squared coefficient of variation of
        the gaps for long windows (Cox and Lewis, The Statistical Analysis of Series of Events, 1966,
        chapter 4). The variance is the population one; the relative standard error is about sqrt(2 / number
        of windows).

    Raises
    ------
    ValueError
        If there are fewer than two whole windows, no arrival in them, or a time is negative or NaN.

    Examples
    --------
    >>> counts_index_of_dispersion([0.1, 0.2, 0.3, 1.5, 2.5], window=1.0)
    0.5
    """
    arrivals = np.asarray(times, dtype=np.float64)
    if not (arrivals >= 0).all() or not window > 0:
        raise ValueError("needs times of at least 0 and a positive window")
    windows = int(arrivals.max(initial=0.0) // window)
    if windows < 2:
        raise ValueError(f"needs at least two whole windows of {window} s; use a shorter one")
    counts = np.bincount((arrivals // window).astype(np.int64), minlength=windows)[:windows]
    if not counts.any():
        raise ValueError("needs at least one arrival inside the whole windows")
    return float(counts.var() / counts.mean())
