"""One server, Poisson arrivals, first come first served: moments of the wait, and vacations.

Waits exclude the service. Units: rates in 1/unit of the service moments; waits in that unit.
"""

import math
from collections.abc import Sequence

from asapmodel.solvers.queue_errors import (
    MomentError,
    QueueError,
    check_moments,
    nonnegative,
    positive,
    probability,
    stable,
)

__all__ = [
    "mg1_wait",
    "mg1_wait_moments",
    "mm1_wait",
    "mm1_wait_quantile",
    "n_policy_wait",
    "vacation_wait",
]


def mm1_wait(rate: float, service_rate: float) -> float:
    """Mean wait of the M/M/1 queue, `rho / (mu - lambda)`; exact.

    Domain: `rate < service_rate`, else `UnstableError`. Source: Kleinrock, "Queueing systems" I (1975), 3.2.

    Examples
    --------
    >>> round(mm1_wait(0.7, 1.0), 11)
    2.33333333333
    """
    rho = stable(positive("rate", rate) / positive("service rate", service_rate))
    return rho / (service_rate - rate)


def mm1_wait_quantile(rate: float, service_rate: float, p: float) -> float:
    """Quantile of the M/M/1 wait, from `P(W > t) = rho exp(-(mu - lambda) t)`; exact; 0 where the atom at 0 covers p.

    Domain and source as `mm1_wait`; `0 <= p < 1`, else `QueueError`.

    Examples
    --------
    >>> round(mm1_wait_quantile(0.5, 1.0, 0.99), 11)
    7.82404601086
    """
    rho = stable(positive("rate", rate) / positive("service rate", service_rate))
    return max(0.0, math.log(rho / (1 - probability("p", p)))) / (service_rate - rate)


def mg1_wait_moments(rate: float, service_moments: Sequence[float]) -> list[float]:
    """Raw moments of the M/G/1 wait, one fewer than the service moments given; exact.

    Pollaczek-Khinchine and Takács: `E[W^k] = lambda/(1-rho) sum_i C(k,i) E[S^(i+1)]/(i+1) E[W^(k-i)]`, all terms
    positive. Source: Takács, "A single-server queue with Poisson input", Oper. Res. 10 (1962).

    Parameters
    ----------
    rate : float
        Arrivals per unit of time.
    service_moments : sequence of float
        E[S], E[S^2], ... E[S^(n+1)].

    Returns
    -------
    list of float
        E[W], ... E[W^n].

    Raises
    ------
    UnstableError
        If `rate * E[S] >= 1`.
    MomentError
        If the rate is not positive or no distribution has these moments.

    Examples
    --------
    >>> [round(m, 10) for m in mg1_wait_moments(0.3, [1.0, 1.0, 1.0])]
    [0.2142857143, 0.2346938776]
    """
    check_moments(service_moments)
    if len(service_moments) < 2:
        raise MomentError("the mean wait needs two moments of the service")
    rho = stable(positive("rate", rate) * service_moments[0])
    moments = [1.0]
    for k in range(1, len(service_moments)):
        terms = (math.comb(k, i) * service_moments[i] / (i + 1) * moments[k - i] for i in range(1, k + 1))
        moments.append(rate / (1 - rho) * math.fsum(terms))
    return moments[1:]


def mg1_wait(rate: float, mean: float, scv: float) -> float:
    """Mean wait of the M/G/1 queue, `rho/(1-rho) mean (1+scv)/2` (Pollaczek-Khinchine); exact.

    Raises as `mg1_wait_moments`.

    Examples
    --------
    >>> round(mg1_wait(0.9, 1.0, 2.0), 9)
    13.5
    """
    return mg1_wait_moments(rate, [mean, mean * mean * (1 + nonnegative("scv", scv))])[0]


def vacation_wait(rate: float, mean: float, scv: float, vacation_mean: float, vacation_scv: float) -> float:
    """Mean wait of the M/G/1 queue with multiple vacations, `P-K + E[V^2]/(2 E[V])`; exact.

    The server leaves for a time V whenever it finds nobody, again and again; V is independent of the arrivals.
    Source: Fuhrmann and Cooper, "Stochastic decompositions in the M/G/1 queue with generalized vacations",
    Oper. Res. 33 (1985). Raises as `mg1_wait_moments`.

    Examples
    --------
    >>> round(vacation_wait(0.8, 1.0, 1.0, 2.0, 0.0), 12)
    5.0
    """
    residual = positive("vacation mean", vacation_mean) * (1 + nonnegative("vacation scv", vacation_scv)) / 2
    return mg1_wait(rate, mean, scv) + residual


def n_policy_wait(rate: float, mean: float, scv: float, threshold: int) -> float:
    """Mean wait of the M/G/1 queue whose server waits, once idle, for N customers: `P-K + (N-1)/(2 lambda)`; exact.

    Source: Yadin and Naor (1963); Fuhrmann and Cooper (1985). `threshold` from 1 on (1 is the plain queue). Raises as
    `mg1_wait_moments`.

    Examples
    --------
    >>> round(n_policy_wait(0.8, 1.0, 1.0, 5), 12)
    6.5
    """
    if threshold != int(threshold) or threshold < 1:
        raise QueueError(f"threshold must be a whole number from 1 on, not {threshold}")
    return mg1_wait(rate, mean, scv) + (threshold - 1) / (2 * rate)
