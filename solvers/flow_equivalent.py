"""A network seen from outside as one server whose rate depends on the number of customers in it, and its queue."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.network_solution import array_of
from asapmodel.solvers.queue_errors import MomentError, QueueError, UnstableError

__all__ = ["RateQueue", "rate_queue", "two_moment_wait"]

Floats = NDArray[np.float64]


class RateQueue(NamedTuple):
    """Stationary queue with Poisson arrivals before a server whose rate depends on the number there.

    Attributes
    ----------
    probabilities : float array, shape (..., levels + 1)
        Probability of 0 ... levels customers; from `levels` on each is `tail` times the one before.
    tail : float array, shape (...)
        Arrival rate over the last rate.
    number, inside, response, wait : float array, shape (...)
        Mean number of customers, of those among the first `levels` (in the inner network), mean time in all, and mean
        time before a place inside is free.
    """

    probabilities: Floats
    tail: Floats
    number: Floats
    inside: Floats
    response: Floats
    wait: Floats


def rate_queue(arrival_rate: ArrayLike, rates: ArrayLike) -> RateQueue:
    """Queue M/M(n): n customers are served at rate `rates[n - 1]`, more than `levels` at the last rate.

    `p(n) = p(0) prod_{j <= n} lambda / mu(j)`: birth and death, exact for exponential service. With
    `throughput_curve(demands, levels)` as rates this is the flow-equivalent server of an inner network that holds at
    most `levels` customers (Chandy, Herzog, Woo 1975; Courtois 1977): exact for an inner product-form network that
    holds all its customers, otherwise an approximation, good where the inner network makes many moves per arrival.

    Parameters
    ----------
    arrival_rate : array, shape (...)
        Poisson arrivals per unit of time.
    rates : array, shape (..., levels)
        Service rate with 1 ... `levels` customers, positive.

    Raises
    ------
    UnstableError
        If the arrival rate is not below the last rate; carries the largest load.
    QueueError
        If a rate is negative, not finite or 0, or shapes disagree.

    Examples
    --------
    M/M/3 with 10 arrivals and services of 1/4: the wait of Erlang's C formula.

    >>> print(f"{rate_queue(10.0, [4.0, 8.0, 12.0]).wait:.15f}")
    0.351123595505618
    """
    flow, speed = array_of("arrival_rate", arrival_rate), array_of("rates", rates, 1)
    if np.any(speed <= 0):
        raise QueueError("rates must be positive: a server at rate 0 never empties")
    flow, last = np.broadcast_arrays(flow, speed[..., -1])
    tail = flow / last
    if np.any(tail >= 1):
        raise UnstableError(float(tail.max()))
    levels = speed.shape[-1]
    with np.errstate(divide="ignore"):  # no arrivals: the logarithm of 0
        steps = np.log(flow)[..., None] - np.log(speed)
    logs = np.concatenate([np.zeros((*flow.shape, 1)), np.cumsum(steps, axis=-1)], axis=-1)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    beyond = weights[..., -1] * tail / (1 - tail)
    total = weights.sum(axis=-1) + beyond
    inside = (weights @ np.arange(levels + 1.0) + levels * beyond) / total
    queued = beyond / (1 - tail) / total
    rate = np.where(flow > 0, flow, 1)
    wait = np.where(flow > 0, queued / rate, 0.0)
    response = np.where(flow > 0, (inside + queued) / rate, 1 / speed[..., 0])
    return RateQueue(weights / total[..., None], tail, inside + queued, inside, response, wait)


def two_moment_wait(wait: ArrayLike, arrival_scv: ArrayLike, service_scv: ArrayLike) -> Floats:
    """`(ca2 + cs2) / 2 * wait`: approximate mean wait for other than exponential arrivals and services.

    Approximation (Allen-Cunneen, the rule of Kingman's heavy-traffic limit); `wait` is the exponential one, of
    `rate_queue` for a rate that depends on the number. Exact for M/G/1 with a constant rate. Error for M/D/c: -0.7 %
    with 2 servers at load 0.9, tens of per cent with many servers at low loads, where waits are small; a multiple of
    the wait where ca2 is near 0 and the load low.

    Parameters
    ----------
    wait : array, shape (...)
        Mean wait with Poisson arrivals and exponential service.
    arrival_scv, service_scv : array, shape (...)
        Squared coefficients of variation of times between arrivals and of service.

    Raises
    ------
    MomentError
        If a quantity is negative or not finite.

    Examples
    --------
    M/D/2 at load 0.9, exactly 2.1469:

    >>> print(f"{two_moment_wait(rate_queue(1.8, [1.0, 2.0]).wait, 1.0, 0.0):.4f}")
    2.1316
    """
    values = [np.asarray(value, dtype=np.float64) for value in (wait, arrival_scv, service_scv)]
    if not all(np.all(np.isfinite(value) & (value >= 0)) for value in values):
        raise MomentError("wait and squared coefficients of variation must be finite and not negative")
    return np.asarray(values[0] * (values[1] + values[2]) / 2, dtype=np.float64)
