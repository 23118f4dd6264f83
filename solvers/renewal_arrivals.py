"""GI/M/1 and GI/M/c: any renewal arrivals, exponential service, first come first served.

The number that an arrival finds waiting is geometric with ratio sigma, the root in (0, 1) of
`sigma = A*(c mu (1 - sigma))`, A* the transform of the interarrival time; so the wait is 0 or exponential.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from asapmodel.solvers.queue_errors import (
    NoConvergence,
    QueueError,
    at_least_one,
    bisect,
    positive,
    probability,
    stable,
)

__all__ = ["AtomExponential", "gimc_wait", "gimc_wait_root"]


@dataclass(frozen=True, slots=True)
class AtomExponential:
    """A wait that is 0 with probability `1 - waits` and else exponential with rate `decay`."""

    waits: float
    decay: float

    @property
    def mean(self) -> float:
        """Mean of the wait, zeros included."""
        return self.waits / self.decay

    def quantile(self, p: float) -> float:
        """Smallest t with P(W <= t) >= p, for 0 <= p < 1; 0 where the atom covers p."""
        left = 1 - probability("p", p)
        return math.log(self.waits / left) / self.decay if self.waits > left else 0.0


def gimc_wait_root(
    interarrival: Callable[[float], float], mean_interarrival: float, service_rate: float, servers: int = 1
) -> float:
    """Root sigma of `sigma = A*(c mu (1 - sigma))`; exact, `1 - sigma` to about `1e-16 / (1-rho)^2` relative.

    For one server sigma is also the probability that an arrival must wait. For Poisson arrivals sigma = rho.

    Parameters
    ----------
    interarrival : callable
        Transform E[exp(-s A)], s > 0 (see `laws`).
    mean_interarrival : float
        E[A]; it must be the mean that the transform has, since it decides whether the queue is stable.
    service_rate : float
        mu, of each server.
    servers : int
        c.

    Raises
    ------
    UnstableError
        If `mean_interarrival * servers * service_rate <= 1`.
    QueueError
        If the transform does not have that mean (checked to 1 %).
    NoConvergence
        If no root is found: the load is within about 1e-6 of 1.

    Examples
    --------
    >>> from asapmodel.solvers.laws import deterministic_transform
    >>> round(gimc_wait_root(deterministic_transform(2.0), 2.0, 1.0), 11)
    0.20318786998
    """
    speed = at_least_one("servers", servers) * positive("service rate", service_rate)
    rho = stable(1 / (speed * positive("mean interarrival", mean_interarrival)))
    small = 1e-5 / mean_interarrival
    slope = (1 - interarrival(small)) / small
    if not mean_interarrival * 0.99 < slope < mean_interarrival * 1.001:
        raise QueueError(f"the transform has mean {slope:.6g}, not {mean_interarrival:.6g}")

    def excess(u: float) -> float:  # convex, 0 at 0, negative up to the root u = 1 - sigma, positive at 1
        return interarrival(speed * u) - (1 - u)

    low = 1 - rho
    while not excess(low) < -1e-14:  # below what rounding leaves of 0
        low /= 2
        if low < 1e-14:
            raise NoConvergence(f"no root at load {rho}: too near 1 for floats")
    return interarrival(speed * bisect(excess, low, 1.0))  # a contraction: keeps the digits of a small sigma


def gimc_wait(
    interarrival: Callable[[float], float], mean_interarrival: float, service_rate: float, servers: int = 1
) -> AtomExponential:
    """Wait of GI/M/c: atom and exponential; exact.

    `decay = c mu (1 - sigma)`; `P(W > 0) = K / (1 - sigma)` with `1/K = 1/(1-sigma) + sum_j binom(c,j) / (C_j (1-a_j))
    (c (1-a_j) - j) / (c (1-sigma) - j)`, `a_j = A*(j mu)`, `C_j = prod_i a_i/(1-a_i)`; all terms are positive, so
    nothing cancels (the ratio's removable zero over zero is taken by its derivative); relative error 1e-10.
    A chance below 1e-300 is 0. Up to 1000 servers.
    Source: Takács, "Introduction to the theory of queues" (1962), chapter 2, theorem 3.

    Parameters and errors as `gimc_wait_root`.

    Examples
    --------
    >>> from asapmodel.solvers.laws import erlang_transform
    >>> wait = gimc_wait(erlang_transform(1 / 0.9, 2), 1 / 0.9, 1.0)
    >>> round(wait.mean, 11), round(wait.quantile(0.99), 10)
    (6.58828362869, 33.8730176967)
    """
    sigma = gimc_wait_root(interarrival, mean_interarrival, service_rate, servers)
    if servers == 1:
        return AtomExponential(sigma, service_rate * (1 - sigma))
    total, product = 1 / (1 - sigma), 1.0
    for j in range(1, servers + 1):
        a = interarrival(j * service_rate)
        if a < 1e-300:
            return AtomExponential(0.0, servers * service_rate * (1 - sigma))
        product *= (1 - a) / a
        total += math.comb(servers, j) * product / (1 - a) * _ratio(interarrival, service_rate, servers, sigma, j)
    return AtomExponential(1 / (total * (1 - sigma)), servers * service_rate * (1 - sigma))


def _ratio(interarrival: Callable[[float], float], mu: float, c: int, sigma: float, j: int) -> float:
    """`(c (1 - a_j) - j) / (c (1 - sigma) - j)`."""
    below = c * (1 - sigma) - j
    if abs(below) > 1e-7 * c:
        return (c * (1 - interarrival(j * mu)) - j) / below
    step = 1e-5 * j  # derivative of the numerator in j over that of the denominator, -1
    return 1 + c * (interarrival((j + step) * mu) - interarrival((j - step) * mu)) / (2 * step)
