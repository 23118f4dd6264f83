"""Arrivals in batches and service in batches, closed forms. Waits exclude service; unit 1/rate."""

from dataclasses import dataclass

from asapmodel.solvers.queue_errors import MomentError, QueueError, at_least_one, bisect, nonnegative, positive, stable
from asapmodel.solvers.single_server import mg1_wait

__all__ = ["BulkQueue", "batch_arrival_wait", "bulk_service_queue"]


def batch_arrival_wait(
    batch_rate: float, batch_mean: float, batch_second: float, service_mean: float, service_scv: float
) -> float:
    """Mean wait of a customer at M^X/G/1; exact.

    The batch waits as a customer of M/G/1 whose service is the sum over the batch; within it
    `E[X(X-1)] / (2 E[X]) E[S]` is added. Source: Burke, "Delays in single-server queues with batch input", Oper. Res.
    23 (1975).

    Parameters
    ----------
    batch_rate : float
        Batches per unit of time.
    batch_mean, batch_second : float
        E[X] and E[X^2] of the customers in a batch.
    service_mean, service_scv : float
        Of one customer's service.

    Raises
    ------
    UnstableError
        If `batch_rate * batch_mean * service_mean >= 1`.
    MomentError
        If no batch law on 1, 2, ... has these moments.

    Examples
    --------
    >>> round(batch_arrival_wait(0.3, 3.0, 9.0, 1.0, 0.0), 9)
    14.5
    """
    if not batch_mean >= 1 or not batch_second >= batch_mean**2 * (1 - 1e-12):
        raise MomentError(f"no batch of at least 1 has moments {batch_mean:.6g}, {batch_second:.6g}")
    variance = max(0.0, batch_second - batch_mean**2)
    scv = nonnegative("service scv", service_scv) / batch_mean + variance / batch_mean**2
    within = (batch_second - batch_mean) / (2 * batch_mean) * positive("service mean", service_mean)
    return mg1_wait(batch_rate, batch_mean * service_mean, scv) + within


@dataclass(frozen=True, slots=True)
class BulkQueue:
    """M/M[a,b]/1: geometric ratio of the queue while busy, mean number waiting, mean wait, chance of an idle server."""

    ratio: float
    mean_queue: float
    mean_wait: float
    idle: float


def bulk_service_queue(rate: float, service_rate: float, least: int, most: int) -> BulkQueue:
    """M/M[a,b]/1: an idle server starts when `least` wait, and takes at most `most`; exact.

    Service of a batch is exponential whatever its size. While busy, n wait with probability proportional to `r^n`, r
    the root in (0, 1) of `mu r^(b+1) - (lambda+mu) r + lambda = 0`, that is of `mu (r + ... + r^b) = lambda`; while
    idle, to `mu/lambda (1 + ... + r^n)`, n < a. Source: Neuts, "A general class of bulk queues with Poisson input",
    Ann. Math. Stat. 38 (1967); Medhi, "Stochastic models in queueing theory" (2003), 4.6.

    Parameters
    ----------
    rate, service_rate : float
        lambda of customers, mu of batches.
    least, most : int
        a and b, `1 <= a <= b`.

    Raises
    ------
    UnstableError
        If `rate >= most * service_rate`.
    QueueError
        If `least > most`.

    Examples
    --------
    >>> q = bulk_service_queue(4.0, 1.0, 3, 5)
    >>> round(q.ratio, 12), round(q.mean_queue, 10), round(q.mean_wait, 11), round(q.idle, 12)
    (0.926519360581, 11.5363366125, 2.88408415311, 0.094957709298)
    """
    a, b = at_least_one("least", least), at_least_one("most", most)
    if a > b:
        raise QueueError(f"least batch {a} is above the largest, {b}")
    load = positive("rate", rate) / positive("service rate", service_rate)
    stable(load / b)

    def excess(gap: float) -> float:
        total = 0.0
        for _ in range(b):  # Horner
            total = (1 + total) * (1 - gap)
        return total - load

    gap = bisect(excess, 0.0, 1.0)
    ratio = 1 - gap
    busy, queue = 1 / gap, ratio / gap**2
    idle, power = 0.0, 1.0
    for n in range(a):
        power *= ratio
        weight = (1 - power) / gap / load
        idle += weight
        queue += n * weight
    total = idle + busy
    return BulkQueue(ratio, queue / total, queue / total / rate, idle / total)
