"""Jobs made of parallel tasks: fork-join queues, split-merge, and the largest of independent variables.

Fork-join: each task queues at its own server, the job ends with its last task. Split-merge: the next job starts when
all tasks of the last have ended, so that capacity falls by the mean of the maximum. Units: 1/rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.queue_errors import MomentError, QueueError, at_least_one, positive, stable
from asapmodel.solvers.single_server import mg1_wait

__all__ = [
    "DiscreteLaw",
    "fork_join_response",
    "fork_join_two",
    "harmonic",
    "max_of_exponentials",
    "max_of_independent",
    "split_merge_capacity",
    "split_merge_response",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaw:
    """Probabilities `weights[i]` of the increasing `values[i]`."""

    values: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """First moment."""
        return float(self.values @ self.weights)

    @property
    def variance(self) -> float:
        """Second central moment."""
        return float((self.values - self.mean) ** 2 @ self.weights)


def harmonic(count: int, power: int = 1) -> float:
    """Sum of `1/i^power`, i = 1 ... count.

    Examples
    --------
    >>> round(harmonic(4), 12)
    2.083333333333
    """
    return math.fsum(1 / i**power for i in range(1, at_least_one("count", count) + 1))


def max_of_exponentials(rate: float, count: int) -> tuple[float, float]:
    """Mean and variance of the largest of `count` independent exponentials: `H_K/mu`, `sum_i 1/i^2 / mu^2`; exact.

    Source: Rényi, "On the theory of order statistics", Acta Math. Hung. 4 (1953).

    Examples
    --------
    >>> round(max_of_exponentials(1.0, 8)[0], 11)
    2.71785714286
    """
    return harmonic(count) / positive("rate", rate), harmonic(count, 2) / rate**2


def fork_join_two(rate: float, service_rate: float) -> float:
    """Mean response of the 2-server M/M fork-join queue, `(12 - rho)/8 / (mu - lambda)`; exact.

    Domain: `rate < service_rate`, else `UnstableError`.
    Source: Flatto and Hahn, "Two parallel queues created by arrivals with two demands I", SIAM J. Appl. Math. 44
    (1984); Nelson and Tantawi (1988).

    Examples
    --------
    >>> round(fork_join_two(0.95, 1.0), 9)
    27.625
    """
    rho = stable(positive("rate", rate) / positive("service rate", service_rate))
    return (12 - rho) / 8 / (service_rate - rate)


def fork_join_response(rate: float, service_rate: float, servers: int) -> float:
    """Mean response of the K-server M/M fork-join queue by Nelson and Tantawi; approximate, exact for K = 1, 2.

    `(H_K/H_2 + 4/11 (1 - H_K/H_2) rho) R_2`. Known error: below 5 % for K up to 32 as published.
    Source: Nelson and Tantawi, "Approximate analysis of fork/join synchronization in parallel queues", IEEE Trans.
    Comp. 37 (1988). Raises as `fork_join_two`.

    Examples
    --------
    >>> round(fork_join_response(0.95, 1.0, 4), 10)
    34.6568181818
    """
    two = fork_join_two(rate, service_rate)
    if at_least_one("servers", servers) == 1:
        return 1 / (service_rate - rate)
    ratio = harmonic(servers) / harmonic(2)
    return (ratio + 4 / 11 * (1 - ratio) * rate / service_rate) * two


def split_merge_capacity(service_rate: float, servers: int) -> float:
    """Largest job rate of split-merge with exponential tasks, `mu / H_K`; exact.

    Examples
    --------
    >>> round(split_merge_capacity(1.0, 4), 12)
    0.48
    """
    return 1 / max_of_exponentials(service_rate, servers)[0]


def split_merge_response(rate: float, service_rate: float, servers: int) -> float:
    """Mean response of split-merge with exponential tasks: M/G/1 with the maximum as service; exact.

    Domain: `rate < split_merge_capacity`, else `UnstableError`.

    Examples
    --------
    >>> round(split_merge_response(0.8 * split_merge_capacity(1.0, 2), 1.0, 2), 11)
    6.16666666667
    """
    mean, variance = max_of_exponentials(service_rate, servers)
    return mg1_wait(rate, mean, variance / mean**2) + mean


def max_of_independent(
    values: Sequence[Floats], weights: Sequence[Floats] | None = None, copies: Sequence[int] | None = None
) -> DiscreteLaw:
    """Law of the largest of independent discrete variables, different or not; exact for the laws given.

    The product of the distribution functions on the union of the points. With a quantile grid of n midpoints in place
    of a continuous law F, the distribution function of a part is off by at most 1/(2n), that of the maximum of D by
    D/(2n).

    Parameters
    ----------
    values : sequence of float arrays
        Points of each variable, in any order.
    weights : sequence of float arrays, optional
        Their probabilities (made to sum to 1); without, all points of a variable are equally likely: a quantile grid.
    copies : sequence of int, optional
        How many independent variables have each law; 1 without.

    Returns
    -------
    DiscreteLaw
        Points whose probability is 0 are left out.

    Raises
    ------
    MomentError
        If points are missing or not finite, weights negative, or shapes differ.

    Examples
    --------
    >>> die = np.arange(1.0, 7.0)
    >>> round(max_of_independent([die], copies=[2]).mean * 36, 9)
    161.0
    """
    if len(values) == 0:
        raise QueueError("at least one variable is needed")
    shares = [np.ones(len(v)) for v in values] if weights is None else weights
    counts = [1] * len(values) if copies is None else copies
    points = np.unique(np.concatenate(values).astype(np.float64))
    product = np.ones(len(points))
    for v, share, count in zip(values, shares, counts, strict=True):
        if v.shape != share.shape or not np.isfinite(v).all() or not (share >= 0).all() or not share.any():
            raise MomentError("each variable needs finite points and as many weights, not negative and not all 0")
        order = np.argsort(v)
        reached = np.append(0.0, np.cumsum(share[order]) / share.sum())
        product *= reached[np.searchsorted(v[order], points, side="right")] ** at_least_one("copies", count)
    mass = np.diff(product, prepend=0.0)
    kept = mass > 0
    return DiscreteLaw(points[kept], mass[kept] / mass[kept].sum())
