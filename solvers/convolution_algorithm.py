"""Closed product-form networks with one class of customers, exactly, through their normalisation constants."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.network_solution import Solution, array_of, server_array, speeds_of, whole_numbers
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["convolution", "log_constants", "marginal_distribution"]

Floats = NDArray[np.float64]


def log_constants(
    demands: ArrayLike,
    population: int,
    think_time: ArrayLike = 0.0,
    servers: ArrayLike | None = None,
    speeds: ArrayLike | None = None,
) -> Floats:
    """Natural logarithm of the normalisation constants G(0) ... G(population), shape (..., population + 1).

    `G(n) = sum over n_1 + ... + n_K = n of prod_k F_k(n_k)`, `F_k(j) = D_k^j / (a_k(1) ... a_k(j))`. The convolution
    runs on logarithms of positive numbers: nothing cancels, overflows or underflows. Exact (Buzen).

    Parameters
    ----------
    demands : array, shape (..., stations)
        Demand per cycle at speed 1.
    population : int
        Number of customers.
    think_time : array, shape (...)
        Time outside between cycles: one more delay station.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.
    speeds : array, shape (stations, levels), optional
        Speeds a_k(j) instead of servers, positive; the last holds for all longer queues.

    Raises
    ------
    QueueError
        If a quantity is negative, not finite or not whole, or shapes disagree.

    Notes
    -----
    Buzen, "Computational algorithms for closed queueing networks with exponential servers", Comm. ACM 16 (1973).

    Examples
    --------
    >>> demands = [1 / 0.8, 2 / 3 / 0.6, 0.2 / 0.4]
    >>> np.exp(log_constants(demands, 3, servers=[2, 3, 1])).round(3).tolist()
    [1.0, 2.861, 4.218, 4.466]
    """
    factors = _factors(demands, population, think_time, servers, speeds)
    total = factors[0]
    for factor in factors[1:]:
        total = _log_convolve(total, factor)
    return total


def convolution(
    demands: ArrayLike,
    population: int,
    think_time: ArrayLike = 0.0,
    servers: ArrayLike | None = None,
    speeds: ArrayLike | None = None,
) -> Solution:
    """Exact means of a closed single-class network from its normalisation constants; arguments as `log_constants`.

    `X = G(N - 1) / G(N)`; queue lengths from `marginal_distribution`. Work: stations times population squared, whatever
    the speeds.

    Raises
    ------
    QueueError
        As `log_constants`; or all times are 0.

    Examples
    --------
    >>> print(f"{convolution([0.605, 2.1, 1.35], 3, 15.0).throughput:.12f}")
    0.151516492347
    """
    times = array_of("demands", demands, 1)
    size = int(whole_numbers("population", population))
    marginals = marginal_distribution(times, size, think_time, servers, speeds)
    queue = np.asarray(marginals @ np.arange(size + 1.0), dtype=np.float64)
    if size == 0:
        return Solution(np.zeros(times.shape[:-1]), times.copy(), queue, np.zeros(times.shape))
    logs = log_constants(times, size, think_time, servers, speeds)
    throughput = np.exp(logs[..., -2] - logs[..., -1])
    last = _speeds(times.shape[-1], size, servers, speeds)[:, -1]
    if speeds is None:
        counts = server_array(servers, times.shape[-1])
        last = np.where(np.isfinite(counts), counts, 1.0)
    used = throughput[..., None] * times / last
    return Solution(throughput, queue / throughput[..., None], queue, used)


def marginal_distribution(
    demands: ArrayLike,
    population: int,
    think_time: ArrayLike = 0.0,
    servers: ArrayLike | None = None,
    speeds: ArrayLike | None = None,
) -> Floats:
    """Exact law of the number of customers at each station, shape (..., stations, population + 1).

    `p_k(j) = F_k(j) G_without_k(N - j) / G(N)`, where the network without a station comes from products over the
    stations before and after it, never by taking a factor out again (which cancels). Arguments as `log_constants`.

    Raises
    ------
    QueueError
        As `log_constants`; or all times are 0.

    Examples
    --------
    Two equal stations share two customers: all three divisions are as likely.

    >>> marginal_distribution([1.0, 1.0], 2)[0].round(12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """
    factors = _factors(demands, population, think_time, servers, speeds)
    nothing = np.full(factors[0].shape, -np.inf)
    nothing[..., 0] = 0.0
    before = [nothing]
    for factor in factors[:-1]:
        before.append(_log_convolve(before[-1], factor))
    after = nothing
    found = []
    for k in range(len(factors) - 1, -1, -1):
        found.append(factors[k] + _log_convolve(before[k], after)[..., ::-1])
        after = _log_convolve(after, factors[k])
    if np.any(np.isneginf(after[..., -1])):
        raise QueueError("demands and think time are all 0: the throughput would be infinite")
    logs = np.stack(found[:0:-1], axis=-2) - after[..., None, -1:]  # the last factor is the think time
    return np.asarray(np.exp(logs), dtype=np.float64)


def _speeds(stations: int, size: int, servers: ArrayLike | None, speeds: ArrayLike | None) -> Floats:
    """Speeds with 1 ... size customers, shape (stations, size) (size at least 1)."""
    if speeds is None:
        return speeds_of(server_array(servers, stations), max(size, 1))
    table = array_of("speeds", speeds, 2)
    if table.shape[0] != stations or np.any(table <= 0) or servers is not None:
        raise QueueError(f"speeds must be positive, one row for each of {stations} stations, and stand without servers")
    columns = np.minimum(np.arange(max(size, 1)), table.shape[1] - 1)
    return np.asarray(table[:, columns], dtype=np.float64)


def _factors(
    demands: ArrayLike, population: int, think_time: ArrayLike, servers: ArrayLike | None, speeds: ArrayLike | None
) -> list[Floats]:
    """Logarithms of the station factors F_k(0 ... population), the think time last, each of shape (..., size + 1)."""
    times = array_of("demands", demands, 1)
    size = int(whole_numbers("population", population))
    think = np.broadcast_to(array_of("think_time", think_time), times.shape[:-1])
    table = _speeds(times.shape[-1], size, servers, speeds)
    all_times = np.concatenate([times, think[..., None]], axis=-1)
    all_speeds = np.concatenate([table, np.arange(1.0, max(size, 1) + 1)[None]])
    with np.errstate(divide="ignore"):  # a demand of 0: the station is always empty
        steps = np.log(all_times[..., None]) - np.log(all_speeds)
    logs = np.concatenate([np.zeros((*all_times.shape, 1)), np.cumsum(steps[..., :size], axis=-1)], axis=-1)
    return [logs[..., k, :] for k in range(logs.shape[-2])]


def _log_convolve(left: Floats, right: Floats) -> Floats:
    """Logarithm of the convolution of two sequences given by their logarithms, cut to their length."""
    result = np.empty(left.shape)
    for n in range(left.shape[-1]):
        result[..., n] = np.logaddexp.reduce(left[..., : n + 1] + right[..., n::-1], axis=-1)
    return result
