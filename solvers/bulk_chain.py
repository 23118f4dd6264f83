"""M/G^[1,B]/1: at each start the server takes all that wait, up to B; the service time depends on how many it takes.

Customers come singly in a Poisson stream; a server that finds nobody waits for the next arrival and takes it alone.
The numbers left behind at the ends of services form a Markov chain, which is solved here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.queue_errors import MomentError, NoConvergence, at_least_one, nonnegative, positive, stable

__all__ = ["BulkService", "BulkStationary", "bulk_service_chain", "gamma_services", "point_services"]

Floats = NDArray[np.float64]

_LARGEST = 4096  # states: 134 MB


@dataclass(frozen=True, slots=True, eq=False)
class BulkService:
    """Service by number taken m = 1 ... B at one arrival rate: E[S], E[S^2], and the law of the arrivals during S.

    `arrivals[m-1, k]` is the chance of k arrivals during a service of m; `mean` and `second` have shape (B,).
    """

    rate: float
    mean: Floats
    second: Floats
    arrivals: Floats


@dataclass(frozen=True, slots=True, eq=False)
class BulkStationary:
    """Stationary quantities.

    `left[n]`: chance that an ended service leaves n waiting. `taken[m]`: chance that a service takes m (0 never).
    `mean_wait` before service, `mean_response` with it, `mean_queue` those waiting, `idle` the share of idle time,
    `truncated` the chance of the last states kept, beyond which nothing is known.
    """

    left: Floats
    taken: Floats
    mean_queue: float
    mean_wait: float
    mean_response: float
    idle: float
    truncated: float


def point_services(rate: float, values: Sequence[Floats], weights: Sequence[Floats], size: int) -> BulkService:
    """Services with discrete laws; arrivals during them are mixed Poisson; exact.

    Parameters
    ----------
    rate : float
        Arrivals per unit of time.
    values, weights : sequences of B float arrays
        Service times of a batch of 1, 2, ... B and their probabilities (made to sum to 1).
    size : int
        Numbers of arrivals kept, 0 ... size - 1; what is beyond counts as size - 1.

    Raises
    ------
    MomentError
        If a time is not positive, a weight negative, or the shapes differ.
    """
    from scipy.special import gammaln, pdtrc

    k = np.arange(size, dtype=np.float64)
    rows, beyond, first, second = [], [], [], []
    for v, w in zip(values, weights, strict=True):
        if v.shape != w.shape or not (np.isfinite(v) & (v > 0)).all() or not (w >= 0).all() or not w.sum() > 0:
            raise MomentError("each batch size needs positive times and as many weights, not negative and not all 0")
        share = w / w.sum()
        mean = positive("rate", rate) * v[:, None]
        rows.append(share @ np.exp(k * np.log(mean) - mean - gammaln(k + 1)))
        beyond.append(share @ pdtrc(size - 2, mean[:, 0]))
        first.append(float(share @ v))
        second.append(float(share @ v**2))
    return BulkService(rate, np.array(first), np.array(second), _closed(np.array(rows), np.array(beyond)))


def gamma_services(rate: float, means: Floats, scvs: Floats, size: int) -> BulkService:
    """Services with gamma laws of given mean and scv; arrivals during them are negative binomial (Poisson at scv 0).

    Exact for constant, exponential and Erlang services; for others a two-moment approximation of unknown error.
    Parameters `means`, `scvs` of shape (B,); the rest as `point_services`.
    """
    from scipy.special import betainc, gammaln, pdtrc

    k = np.arange(size, dtype=np.float64)
    rows, beyond = [], []
    for mean, scv in zip(means, scvs, strict=True):
        load = positive("rate", rate) * positive("mean", float(mean))
        if nonnegative("scv", float(scv)) == 0:
            rows.append(np.exp(k * np.log(load) - load - gammaln(k + 1)))
            beyond.append(pdtrc(size - 2, load))
        else:
            shape, odds = 1 / float(scv), load * float(scv)
            power = k * np.log(odds / (1 + odds)) - shape * np.log1p(odds)
            rows.append(np.exp(gammaln(k + shape) - gammaln(shape) - gammaln(k + 1) + power))
            beyond.append(betainc(size - 1, shape, odds / (1 + odds)))
    return BulkService(
        rate, np.asarray(means), np.asarray(means**2 * (1 + scvs)), _closed(np.array(rows), np.array(beyond))
    )


def _closed(rows: Floats, beyond: Floats) -> Floats:
    """Put what lies beyond into the last column; the rest differs from 1 by rounding only and is scaled to it."""
    rows[:, -1] = beyond
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def bulk_service_chain(service: BulkService, tolerance: float = 1e-12) -> BulkStationary:
    """Stationary vector and mean times of M/G^[1,B]/1; exact up to truncation.

    The chain of the numbers left behind: from x to `max(x - B, 0)` plus the arrivals during a service of
    `min(max(x, 1), B)`. Solved by state reduction (Grassmann, Taksar and Heyman 1985), which subtracts nothing and here
    costs states^2 B; `mean_queue` by renewal reward, `sum_x left[x] ((x-B)^+ E[S] + lambda E[S^2]/2) / E[time between
    ends]`, `mean_wait` by Little's law. `service.arrivals` has as many columns as there are states.

    Parameters
    ----------
    service : BulkService
        See `point_services` and `gamma_services`.
    tolerance : float
        Largest chance of the last B states that is accepted.

    Raises
    ------
    UnstableError
        If `rate * E[S(B)] >= B`.
    NoConvergence
        If more than `tolerance` sits in the last B states: give more columns (at most 4096).

    Notes
    -----
    Source: Bailey, "On queueing processes with bulk service", J. R. Stat. Soc. B 16 (1954); Neuts (1967).

    Examples
    --------
    >>> s = gamma_services(2.5, np.ones(3), np.ones(3), 512)
    >>> solved = bulk_service_chain(s)
    >>> round(solved.mean_wait, 10), round(solved.idle, 10)
    (3.9824072282, 0.0341641243)
    """
    most, size = service.arrivals.shape
    stable(service.rate * float(service.mean[-1]) / at_least_one("batch", most))
    if size > _LARGEST or size <= 2 * most:
        raise NoConvergence(f"{size} states: between {2 * most + 1} and {_LARGEST} are possible")
    left = _stationary(_transitions(service.arrivals), most)
    truncated = float(left[-most:].sum())
    if not truncated <= tolerance:
        raise NoConvergence(
            f"{truncated:.3g} of the chance sits in the last of {size} states, allowed is {tolerance:.3g}"
        )
    x = np.arange(size)
    taken = np.clip(x, 1, most)
    mean, second = service.mean[taken - 1], service.second[taken - 1]
    cycle = float(left @ mean) + float(left[0]) / service.rate
    behind = np.maximum(x - most, 0) * mean + service.rate * second / 2
    queue = float(left @ behind) / cycle
    in_service = float(left @ (taken * mean)) / cycle
    return BulkStationary(
        left=left,
        taken=np.bincount(taken, left, most + 1).astype(np.float64),
        mean_queue=queue,
        mean_wait=queue / service.rate,
        mean_response=(queue + in_service) / service.rate,
        idle=float(left[0]) / service.rate / cycle,
        truncated=truncated,
    )


def _transitions(arrivals: Floats) -> Floats:
    most, size = arrivals.shape
    matrix = np.zeros((size, size))
    for x in range(size):
        row = arrivals[min(max(x, 1), most) - 1]
        stay = max(x - most, 0)
        matrix[x, stay:] = row[: size - stay]
        matrix[x, -1] += row[size - stay :].sum()
    return matrix


def _stationary(matrix: Floats, most: int) -> Floats:
    """Reduce the states from the last to the first; a state's way down spans at most `most` states."""
    size = len(matrix)
    for n in range(size - 1, 0, -1):
        low = max(0, n - most)
        down = matrix[n, low:n]
        matrix[:n, n] /= down.sum()
        matrix[:n, low:n] += np.outer(matrix[:n, n], down)
    vector = np.zeros(size)
    vector[0] = 1.0
    for n in range(1, size):
        vector[n] = vector[:n] @ matrix[:n, n]
    return np.asarray(vector / vector.sum())
