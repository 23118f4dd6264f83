"""Poisson arrivals and exponential service at several servers: Erlang's formulas, a finite room, unequal servers.

Exact unless a function says otherwise. Units: rates in 1/unit, times in that unit; `load` = rate / service rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from asapmodel.solvers.queue_errors import MomentError, QueueError, at_least_one, nonnegative, positive, stable
from asapmodel.solvers.renewal_arrivals import AtomExponential

__all__ = [
    "FiniteQueue",
    "ServerPool",
    "erlang_b",
    "erlang_c",
    "mmc_wait",
    "mmck_queue",
    "pooled_number",
    "unequal_servers",
]


def erlang_b(servers: int, load: float) -> float:
    """Fraction of arrivals lost by M/G/c/c; exact, relative error about `1e-16 c`.

    `B(n) = a B(n-1) / (n + a B(n-1))`, `B(0) = 1`: positive terms, no factorials. Source: Erlang (1917); Jagerman
    (1974).

    Parameters
    ----------
    servers : int
        c, from 0 on.
    load : float
        a = rate / service rate, from 0 on; it may exceed c.

    Raises
    ------
    MomentError
        If an argument is negative or not a number.

    Examples
    --------
    >>> round(erlang_b(10, 9.0), 12)
    0.167963226292
    """
    if servers != int(servers) or servers < 0:
        raise MomentError(f"servers must be a whole number from 0 on, not {servers}")
    load = nonnegative("load", load)
    blocked = 1.0
    for n in range(1, int(servers) + 1):
        blocked = load * blocked / (n + load * blocked)
    return blocked


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival at M/M/c must wait, `B / (1 - rho (1 - B))`; exact.

    Domain: `load < servers`, else `UnstableError`. Source: Erlang (1917).

    Examples
    --------
    >>> round(erlang_c(20, 18.0), 12)
    0.550769004816
    """
    rho = stable(nonnegative("load", load) / at_least_one("servers", servers))
    blocked = erlang_b(servers, load)
    return blocked / (1 - rho * (1 - blocked))


def mmc_wait(rate: float, service_rate: float, servers: int) -> AtomExponential:
    """Wait of M/M/c: `P(W > t) = C exp(-(c mu - lambda) t)`; exact. Its `mean` is `C / (c mu - lambda)`.

    Domain: `rate < servers * service_rate`, else `UnstableError`. Source: Kleinrock, "Queueing systems" I (1975), 3.5.

    Examples
    --------
    >>> round(mmc_wait(10.0, 4.0, 3).mean, 12)
    0.351123595506
    """
    load = positive("rate", rate) / positive("service rate", service_rate)
    return AtomExponential(erlang_c(servers, load), servers * service_rate - rate)


@dataclass(frozen=True, slots=True)
class FiniteQueue:
    """M/M/c/K: chances of an empty and a full system, mean number in it, and times of those who are let in."""

    empty: float
    full: float
    mean_number: float
    mean_wait: float
    mean_response: float
    throughput: float


def mmck_queue(rate: float, service_rate: float, servers: int, room: int) -> FiniteQueue:
    """M/M/c/K with room for K including those in service; exact for every load, above 1 too.

    `p[n] = p[n-1] rate / (mu min(n, c))`, scaled by the largest. Source: Gross and Harris, "Fundamentals of queueing
    theory" (1998), 2.5. Means by Little's law with the admitted rate.

    Raises
    ------
    MomentError
        If a rate is not positive, or the room is less than the servers.

    Examples
    --------
    >>> round(mmck_queue(40.0, 30.0, 3, 7).empty, 6)
    0.255037
    """
    load = positive("rate", rate) / positive("service rate", service_rate)
    c = at_least_one("servers", servers)
    if at_least_one("room", room) < c:
        raise MomentError(f"room for {room} is less than {c} servers")
    logs = [0.0]
    for n in range(1, room + 1):
        logs.append(logs[-1] + math.log(load / min(n, c)))
    peak = max(logs)
    weights = [math.exp(x - peak) for x in logs]
    total = math.fsum(weights)
    number = math.fsum(n * w for n, w in enumerate(weights)) / total
    queue = math.fsum((n - c) * w for n, w in enumerate(weights) if n > c) / total
    admitted = rate * math.fsum(weights[:-1]) / total
    return FiniteQueue(weights[0] / total, weights[-1] / total, number, queue / admitted, number / admitted, admitted)


@dataclass(frozen=True, slots=True)
class ServerPool:
    """Unequal servers with one queue: chance of waiting, mean wait, mean number in the system."""

    waits: float
    mean_wait: float
    mean_number: float


def unequal_servers(rate: float, service_rates: Sequence[float]) -> ServerPool:
    """M/M/c with unequal servers, an arrival going to an idle one at random; exact.

    Reversible: `P(k busy)` is proportional to `lambda^k (c-k)!/c! e_k(1/mu)`, e_k the elementary symmetric polynomials;
    all terms positive. Source: Gumbel, "Waiting lines with heterogeneous servers", Oper. Res. 8 (1960).

    Raises
    ------
    UnstableError
        If `rate >= sum(service_rates)`.

    Examples
    --------
    >>> round(unequal_servers(1.8, [1.0, 1.0]).mean_wait, 10) == round(mmc_wait(1.8, 1.0, 2).mean, 10)
    True
    """
    rho = stable(positive("rate", rate) / _speed(service_rates))
    symmetric = [1.0]
    for mu in service_rates:
        terms = zip([*symmetric, 0.0], [0.0, *symmetric], strict=True)
        symmetric = [same + rate / mu * less for same, less in terms]
    c = len(service_rates)
    weights = [e / math.perm(c, k) for k, e in enumerate(symmetric)]
    total = math.fsum(weights[:-1]) + weights[-1] / (1 - rho)
    waits = weights[-1] / (1 - rho) / total
    busy = math.fsum(k * w for k, w in enumerate(weights[:-1])) / total + c * waits
    queue = waits * rho / (1 - rho)
    return ServerPool(waits, queue / rate, busy + queue)


def pooled_number(rate: float, service_rates: Sequence[float]) -> float:
    """Mean number in M/M/c with unequal servers, each taken to have the mean rate; an approximation.

    Known error: 1.3 % too low against `unequal_servers` in the example (rates 10 to 25, rho 0.81), more at light load.
    Source: Bolch, Greiner, de Meer and Trivedi, "Queueing networks and Markov chains" (1998), asymmetric M/M/m.
    Domain: `rate < sum(service_rates)`, else `UnstableError`.

    Examples
    --------
    >>> round(pooled_number(73.0, [10.0, 15.0, 20.0, 20.0, 25.0]), 4)
    6.5278
    """
    c = len(service_rates)
    mu = _speed(service_rates) / c
    return rate / mu + rate * mmc_wait(rate, mu, c).mean


def _speed(service_rates: Sequence[float]) -> float:
    if not service_rates:
        raise QueueError("at least one server is needed")
    return math.fsum(positive("service rate", mu) for mu in service_rates)
