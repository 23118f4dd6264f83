"""Symmetric cyclic polling: one server visits Q equal queues with Poisson arrivals, switching in between; mean waits.

Arguments throughout: `queues` Q; `load` rho of all queues together; `mean` and `scv` of the service; `switch_mean` and
`switch_scv` of one switchover (Q of them make a cycle). Waits exclude service, in the unit of `mean`. Exact.
Source: Takagi, "Analysis of polling systems" (1986), and "Queuing analysis of polling models", ACM Comp. Surveys 20
(1988), equations (15) and (20).
"""

from asapmodel.solvers.queue_errors import at_least_one, nonnegative, positive, stable

__all__ = ["exhaustive_wait", "gated_wait", "limited_wait"]


def _check(
    queues: int, load: float, mean: float, scv: float, switch_mean: float, switch_scv: float
) -> tuple[float, float, float]:
    """Return arrival rate of all queues, its product with E[S^2], and the residual of the switchover's variance."""
    at_least_one("queues", queues)
    rate = stable(positive("load", load)) / positive("mean", mean)
    switch = nonnegative("switchover", switch_mean)
    spread = nonnegative("switchover scv", switch_scv) * switch / 2  # variance / (2 mean)
    return rate, rate * mean * mean * (1 + nonnegative("scv", scv)), spread


def exhaustive_wait(
    queues: int, load: float, mean: float, scv: float, switch_mean: float, switch_scv: float = 0.0
) -> float:
    """Mean wait if the server stays until a queue is empty.

    `var r/(2 r) + (lambda E[S^2] + r (Q - rho)) / (2 (1 - rho))`, lambda the total rate, r the mean switchover. Without
    switchover it is the M/G/1 wait.

    Raises
    ------
    UnstableError
        If `load >= 1`.
    MomentError
        If a mean is not positive or an scv negative.

    Examples
    --------
    >>> round(exhaustive_wait(4, 0.6, 1.0, 1.0, 0.5), 9)
    3.625
    """
    _, service, spread = _check(queues, load, mean, scv, switch_mean, switch_scv)
    return spread + (service + switch_mean * (queues - load)) / (2 * (1 - load))


def gated_wait(queues: int, load: float, mean: float, scv: float, switch_mean: float, switch_scv: float = 0.0) -> float:
    """Mean wait if the server takes those who wait when it comes.

    `var r/(2 r) + (lambda E[S^2] + r (Q + rho)) / (2 (1 - rho))`. Raises as `exhaustive_wait`.

    Examples
    --------
    >>> round(gated_wait(4, 0.6, 1.0, 1.0, 0.5), 9)
    4.375
    """
    _, service, spread = _check(queues, load, mean, scv, switch_mean, switch_scv)
    return spread + (service + switch_mean * (queues + load)) / (2 * (1 - load))


def limited_wait(
    queues: int, load: float, mean: float, scv: float, switch_mean: float, switch_scv: float = 0.0
) -> float:
    """Mean wait if the server takes one customer at a queue (1-limited).

    `var r/(2 r) + (lambda E[S^2] + r (Q + rho) + lambda var r) / (2 (1 - rho - lambda r))`.

    Raises
    ------
    UnstableError
        If `rho + lambda r >= 1`: each customer costs a switchover too.
    MomentError
        As `exhaustive_wait`.

    Examples
    --------
    >>> round(limited_wait(4, 0.6, 1.0, 1.0, 0.5), 9)
    17.5
    """
    rate, service, spread = _check(queues, load, mean, scv, switch_mean, switch_scv)
    full = stable(load + rate * switch_mean)
    variance = 2 * spread * switch_mean
    return spread + (service + switch_mean * (queues + load) + rate * variance) / (2 * (1 - full))
