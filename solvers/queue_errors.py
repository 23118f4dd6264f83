"""What a queueing formula refuses, and the checks that the formulas share."""

import math
from collections.abc import Callable, Sequence

__all__ = [
    "MomentError",
    "NoConvergence",
    "QueueError",
    "UnstableError",
    "at_least_one",
    "bisect",
    "check_moments",
    "nonnegative",
    "positive",
    "probability",
    "stable",
]


class QueueError(ValueError):
    """A formula was asked for something outside its domain, or could not be evaluated."""


class UnstableError(QueueError):
    """The offered load `rho` reaches or passes what the servers can do: nothing stationary exists."""

    def __init__(self, rho: float) -> None:
        self.rho = rho
        super().__init__(f"load {rho:.6g} is not below 1: no stationary queue")


class MomentError(QueueError):
    """Moments that no distribution has, a rate that is not positive, or not a number."""


class NoConvergence(QueueError):
    """An iteration or a truncation did not reach its tolerance."""


def positive(name: str, value: float) -> float:
    """Return `value` if it is finite and above 0, else raise `MomentError`.

    Examples
    --------
    >>> positive("rate", 2)
    2.0
    """
    if not (math.isfinite(value) and value > 0):
        raise MomentError(f"{name} must be positive and finite, not {value}")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """Return `value` if it is finite and not below 0, else raise `MomentError`."""
    if not (math.isfinite(value) and value >= 0):
        raise MomentError(f"{name} must be finite and not negative, not {value}")
    return float(value)


def at_least_one(name: str, value: int) -> int:
    """Return `value` if it is a whole number from 1 on, else raise `MomentError`."""
    if value != int(value) or value < 1:
        raise MomentError(f"{name} must be a whole number from 1 on, not {value}")
    return int(value)


def probability(name: str, value: float) -> float:
    """Return `value` if 0 <= value < 1, else raise `QueueError`."""
    if not 0 <= value < 1:
        raise QueueError(f"{name} must be in [0, 1), not {value}")
    return float(value)


def stable(rho: float) -> float:
    """Return the load if it is below 1.

    Raises
    ------
    UnstableError
        If `rho >= 1`; the error carries `rho`.
    MomentError
        If `rho` is negative or not a number.

    Examples
    --------
    >>> stable(0.8)
    0.8
    """
    if math.isnan(rho) or rho < 0:
        raise MomentError(f"load must not be negative, not {rho}")
    if rho >= 1:
        raise UnstableError(rho)
    return float(rho)


def check_moments(moments: Sequence[float]) -> None:
    """Refuse raw moments E[X], E[X^2], ... that no variable on [0, inf) has (necessary conditions, to 1e-9 relative).

    Lyapunov: `m[k]^2 <= m[k-1] m[k+1]` with `m[0] = 1`, an equality for a constant.

    Raises
    ------
    MomentError
        If a moment is not positive and finite, or an inequality fails.

    Examples
    --------
    >>> check_moments([1.0, 2.0, 6.0])
    >>> check_moments([1.0, 0.5])
    Traceback (most recent call last):
        ...
    asapmodel.solvers.queue_errors.MomentError: no distribution has moments 1, 2 = 1, 0.5
    """
    if not moments:
        raise MomentError("at least the first moment is needed")
    full = [1.0, *(positive(f"moment {k}", m) for k, m in enumerate(moments, 1))]
    for k in range(1, len(full) - 1):
        if full[k] * full[k] > full[k - 1] * full[k + 1] * (1 + 1e-9):
            raise MomentError(f"no distribution has moments {k}, {k + 1} = {full[k]:.6g}, {full[k + 1]:.6g}")


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a cheap function whose signs differ at `low` and `high`, to the resolution of floats.

    Raises
    ------
    NoConvergence
        If the signs do not differ, or the function is not a number inside.

    Examples
    --------
    >>> round(bisect(lambda x: x * x - 2, 0, 2), 12)
    1.414213562373
    """
    rising = function(high) > 0
    if (function(low) > 0) == rising:
        raise NoConvergence(f"no change of sign between {low:.6g} and {high:.6g}")
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        value = function(middle)
        if math.isnan(value):
            raise NoConvergence(f"function is not a number at {middle:.6g}")
        if (value > 0) == rising:
            high = middle
        else:
            low = middle
