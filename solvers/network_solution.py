"""What a solved network of queues looks like, and the checks on the arrays that describe a network."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.queue_errors import QueueError

__all__ = ["Solution", "array_of", "server_array", "speeds_of", "whole_numbers"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Solution(NamedTuple):
    """Mean values of a network; `...` are leading batch axes, and in multi-class networks a class axis behind them.

    Attributes
    ----------
    throughput : float array, shape (...)
        Cycles (closed) or arrivals (open) per unit of time.
    residence : float array, shape (..., stations)
        Time a customer spends at a station in one cycle: all visits, waiting included, in the unit of the demands.
    queue : float array, shape (..., stations)
        Mean number at a station, in service included: throughput times residence (Little).
    utilisation : float array, shape (..., stations)
        Throughput times demand over servers; at a delay station (infinitely many servers) the mean number there.
    """

    throughput: Floats
    residence: Floats
    queue: Floats
    utilisation: Floats

    @property
    def response(self) -> Floats:
        """Time in the network per cycle, think time left out: the residence times summed, shape (...)."""
        return np.asarray(self.residence.sum(axis=-1), dtype=np.float64)


def array_of(name: str, value: ArrayLike, axes: int = 0) -> Floats:
    """Return a float array with at least `axes` non-empty axes, every value finite and not negative.

    Raises
    ------
    QueueError
        If a value is negative or not finite, or axes are missing or empty.

    Examples
    --------
    >>> array_of("demands", [2, 3], 1)
    array([2., 3.])
    >>> array_of("demands", [2, -3], 1)
    Traceback (most recent call last):
        ...
    asapmodel.solvers.queue_errors.QueueError: demands must be finite and not negative, not -3.0
    """
    array = np.asarray(value, dtype=np.float64)
    if array.ndim < axes or 0 in array.shape[array.ndim - axes :]:
        raise QueueError(f"{name} must have at least {axes} non-empty axes, not shape {array.shape}")
    wrong = array[~(np.isfinite(array) & (array >= 0))]
    if wrong.size:
        raise QueueError(f"{name} must be finite and not negative, not {wrong.flat[0]}")
    return array


def whole_numbers(name: str, value: ArrayLike) -> Ints:
    """Return an integer array of whole numbers from 0 on, else raise `QueueError`.

    Examples
    --------
    >>> int(whole_numbers("population", 3.0))
    3
    """
    array = array_of(name, value)
    if np.any(array != np.rint(array)):
        raise QueueError(f"{name} must be whole numbers, not {array[array != np.rint(array)].flat[0]}")
    return np.rint(array).astype(np.int64)


def server_array(servers: ArrayLike | None, stations: int) -> Floats:
    """Return servers per station, shape (stations,): whole numbers from 1 on, `inf` for a delay; None is 1 everywhere.

    Raises
    ------
    QueueError
        If the length is not `stations` or a value is not a whole number from 1 on.
    """
    counts = np.ones(stations) if servers is None else np.asarray(servers, dtype=np.float64)
    if counts.shape != (stations,):
        raise QueueError(f"servers must have shape ({stations},), one per station, not {counts.shape}")
    finite = counts[np.isfinite(counts)]
    if np.any(np.isnan(counts)) or np.any(counts < 1) or np.any(finite != np.rint(finite)):
        raise QueueError(f"servers must be whole numbers from 1 on, or inf for a delay, not {counts.tolist()}")
    return counts


def speeds_of(servers: Floats, length: int) -> Floats:
    """Relative speed of each station with 1 ... `length` customers there: min(n, servers), shape (stations, length)."""
    return np.asarray(np.minimum(np.arange(1.0, length + 1), servers[:, None]), dtype=np.float64)
