"""Bounds on the throughput of closed single-class networks of single servers, without iteration."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.network_solution import array_of, whole_numbers
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["Bounds", "asymptotic_bounds", "balanced_bounds", "geometric_bounds", "proportional_bounds"]

Floats = NDArray[np.float64]


class Bounds(NamedTuple):
    """Of the throughput, shape (...): `lower <= X <= upper`; the response time is `population / X - think_time`."""

    lower: Floats
    upper: Floats


class _Given(NamedTuple):
    """Checked arguments: demands (..., stations), the rest (...)."""

    demands: Floats
    population: Floats
    think: Floats
    total: Floats
    largest: Floats


def _check(demands: ArrayLike, population: ArrayLike, think_time: ArrayLike) -> _Given:
    times = array_of("demands", demands, 1)
    size = whole_numbers("population", population)
    think = array_of("think_time", think_time)
    shape = np.broadcast_shapes(times.shape[:-1], size.shape, think.shape)
    if np.any(times.max(axis=-1) <= 0):
        raise QueueError("demands are all 0: nothing bounds the throughput")
    times = np.broadcast_to(times, (*shape, times.shape[-1]))
    many = np.broadcast_to(size.astype(np.float64), shape)
    return _Given(times, many, np.broadcast_to(think, shape), times.sum(axis=-1), times.max(axis=-1))


def asymptotic_bounds(demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0) -> Bounds:
    """`N / (N D + Z) <= X <= min(1 / D_max, N / (D + Z))`, D the sum of demands.

    Bounds for any FCFS single-server network, whatever the laws of service: the lower has everybody wait for
    everybody at every station, the upper nobody wait.

    Parameters
    ----------
    demands : array, shape (..., stations)
        Service asked of a station per cycle; not all 0.
    population : array, shape (...)
        Customers, whole, 0 or more.
    think_time : array, shape (...)
        Time outside between cycles, in the unit of the demands.

    Raises
    ------
    QueueError
        If a quantity is negative, not finite or not whole, or all demands are 0.

    Notes
    -----
    Muntz and Wong (1974); Lazowska et al., "Quantitative System Performance" (1984), 5.2.

    Examples
    --------
    >>> bounds = asymptotic_bounds([9.2, 8], 20, 120)
    >>> print(f"{bounds.upper:.3f}, response at least {20 / bounds.upper - 120:.1f}")
    0.109, response at least 64.0
    """
    _, n, z, total, largest = _check(demands, population, think_time)
    lower = n / np.where(n > 0, n * total + z, 1)
    return Bounds(lower, np.minimum(1 / largest, n / (total + z)) * (n > 0))


def balanced_bounds(demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0) -> Bounds:
    """Balanced system bounds: between networks whose demands are all equal; arguments as `asymptotic_bounds`.

    `N / (D + Z + (N - 1) D_max / (1 + Z / (N D))) <= X <= N / (D + Z + (N - 1) D_mean / (1 + Z / D))`, and `1 / D_max`.
    Bounds of the exact product-form throughput, inside the asymptotic ones.

    Notes
    -----
    Zahorjan, Sevcik, Eager and Galler, "Balanced job bound analysis of queueing networks", Comm. ACM 25 (1982);
    Lazowska et al. (1984), 5.4.

    Examples
    --------
    >>> bounds = balanced_bounds([1.0, 1.0, 1.0], 5)  # a balanced network: both are exact
    >>> print(f"{bounds.lower:.12f} {bounds.upper:.12f}")
    0.714285714286 0.714285714286
    """
    times, n, z, total, largest = _check(demands, population, think_time)
    some = np.maximum(n, 1)
    lower = n / (total + z + (some - 1) * largest / (1 + z / (some * total)))
    upper = n / (total + z + (some - 1) * times.mean(axis=-1) / (1 + z / total))
    return Bounds(lower, np.minimum(1 / largest, upper))


def proportional_bounds(demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0) -> Bounds:
    """Proportional bounds of Hsieh and Lam, in their form without iteration; arguments as `asymptotic_bounds`.

    The throughput is at most `N / (Z + D + w (N - 1 - Z X'))`, `w = sum D_k^2 / D`, X' the upper asymptotic bound for
    N - 1 customers (and at most `1 / D_max`); at least that with `w = sum D_k^N / sum D_k^(N-1)` and the lower bound.
    Bounds of the exact product-form throughput, inside the balanced ones without think time.

    Notes
    -----
    Hsieh and Lam, "Two classes of performance bounds for closed queueing networks", Perf. Eval. 7 (1987).

    Examples
    --------
    >>> bounds = proportional_bounds([0.1, 0.1, 0.09, 0.08], 10)
    >>> print(f"{bounds.lower:.4f} {bounds.upper:.4f}")
    8.0219 8.2700
    """
    times, n, z, total, largest = _check(demands, population, think_time)
    fewer = np.maximum(n - 1, 0)
    outer = asymptotic_bounds(times, fewer, z)
    scaled = times / largest[..., None]
    weight = largest * (scaled ** (fewer + 1)[..., None]).sum(axis=-1) / (scaled ** fewer[..., None]).sum(axis=-1)
    lower = n / (total + z + weight * (fewer - z * outer.lower))
    upper = n / (total + z + (times**2).sum(axis=-1) / total * (fewer - z * outer.upper))
    return Bounds(lower, np.minimum(1 / largest, upper))


def geometric_bounds(demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0) -> Bounds:
    """Geometric bounds of Casale, Muntz and Serazzi; the square-root form where there is think time.

    The queue lengths of all stations but the largest are bounded by geometric sums; what is left of the customers is at
    the largest. Bounds of the exact product-form throughput, mostly tighter than the others and exact in the limit of
    many customers; with think time and few customers the asymptotic upper bound can be below this one (both hold).
    Arguments and errors as `asymptotic_bounds`.

    Notes
    -----
    Casale, Muntz and Serazzi, "Geometric bounds: a noniterative analysis technique for closed queueing networks",
    IEEE Trans. Computers 57 (2008); the outer bound it starts from is the proportional one for one customer less, which
    reproduces its tables IV and V.

    Examples
    --------
    >>> bounds = geometric_bounds([0.1, 0.1, 0.09, 0.08], 10, 1.0)
    >>> print(f"{bounds.lower:.4f} {bounds.upper:.4f}")
    5.7569 6.1410
    """
    times, n, z, total, largest = _check(demands, population, think_time)
    outer = asymptotic_bounds(times, n, z)
    top = largest[..., None]
    fewer = np.maximum(n - 1, 0)
    low = times * (fewer / (z + total + largest * fewer))[..., None]
    high = times * proportional_bounds(times, fewer, z).upper[..., None]
    few_queue = ((top - times) * _geometric_sum(low, fewer)).sum(axis=-1)
    many_queue = ((top - times) * _geometric_sum(high, fewer)).sum(axis=-1)
    base = z + total + largest * fewer
    lower = 2 * n / _larger_root(base - few_queue, z * largest * fewer)
    upper = 2 * n / _larger_root(base - many_queue, z * largest * np.maximum(n, 1))
    lower = np.where(z > 0, lower, n / (base - few_queue))
    upper = np.where(z > 0, upper, n / (base - many_queue))
    return Bounds(np.where(np.isnan(lower), outer.lower, lower), np.where(np.isnan(upper), outer.upper, upper))


def _geometric_sum(ratio: Floats, count: Floats) -> Floats:
    """`ratio + ... + ratio^count` with count (...) and ratio (..., stations) at most 1."""
    below = np.minimum(ratio, 1 - 1e-15)
    return np.asarray(below * (1 - below ** count[..., None]) / (1 - below), dtype=np.float64)


def _larger_root(b: Floats, c: Floats) -> Floats:
    """`b + sqrt(b^2 - 4 c)`; where the root is complex the inequality says nothing (nan)."""
    square = b * b - 4 * c
    return np.where(square >= 0, b + np.sqrt(np.maximum(square, 0)), np.nan)
