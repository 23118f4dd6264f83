"""Closed networks by approximate mean value analysis: Schweitzer's closure, Seidmann's servers, and blocking."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.network_solution import Solution, array_of, server_array, whole_numbers
from asapmodel.solvers.queue_errors import NoConvergence, QueueError

__all__ = ["blocking_mva", "schweitzer", "schweitzer_multiclass", "seidmann"]

Floats = NDArray[np.float64]


def schweitzer(
    demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0, tolerance: float = 1e-13
) -> Solution:
    """Approximate means of a closed single-class network of single servers (Bard-Schweitzer fixed point).

    `R_k = D_k (1 + (N - 1) / N Q_k)`, `X = N / (Z + sum R_k)`, `Q_k = X R_k`: MVA with the queue of the network of one
    customer less taken as a share of the queue. Approximation to product form: exact for N = 1, for many customers and,
    without think time, for equal demands; otherwise mostly too low in throughput (1.2 % in the rows of the table).

    Parameters
    ----------
    demands : array, shape (..., stations)
        Service asked of a station per cycle.
    population : array, shape (...)
        Customers, whole, 0 or more.
    think_time : array, shape (...)
        Time outside between cycles, in the unit of the demands.
    tolerance : float
        Largest relative change of the throughput at which the iteration stops.

    Raises
    ------
    QueueError
        If a quantity is negative, not finite or not whole, shapes disagree, or all times are 0.
    NoConvergence
        If the iteration does not settle.

    Notes
    -----
    Schweitzer (1979); Bard (1979); Lazowska et al., "Quantitative System Performance" (1984), 6.4.2.

    Examples
    --------
    >>> solution = schweitzer([0.605, 2.1, 1.35], 3, 15.0)
    >>> print(f"{solution.throughput:.9f} {solution.response:.8f}")
    0.150985873 4.86940862
    """
    times = array_of("demands", demands, 1)
    many = whole_numbers("population", population)[..., None]
    think = array_of("think_time", think_time)[..., None]
    full = schweitzer_multiclass(times[..., None, :], many, think, tolerance)
    return Solution(
        full.throughput[..., 0], full.residence[..., 0, :], full.queue[..., 0, :], full.utilisation[..., 0, :]
    )


def schweitzer_multiclass(
    demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0, tolerance: float = 1e-13
) -> Solution:
    """Approximate means of a closed multi-class network of single servers (Bard-Schweitzer fixed point).

    `R_rk = D_rk (1 + sum_s Q_sk - Q_rk / N_r)`. The product-form rule: a customer at a station delays another by the
    other's service time (processor sharing, or FCFS with equal service times); see `approximate_mva` for FCFS with
    unequal ones. Approximation, errors as `schweitzer`.

    Parameters
    ----------
    demands : array, shape (..., classes, stations)
        Service asked of a station per cycle.
    population : array, shape (..., classes)
        Customers of each class, whole, 0 or more.
    think_time : array, shape (..., classes)
        Time outside between cycles, in the unit of the demands.
    tolerance : float
        Largest relative change of a throughput at which the iteration stops.

    Raises
    ------
    QueueError, NoConvergence
        As `schweitzer`.

    Examples
    --------
    >>> schweitzer_multiclass([[1, 3], [2, 4]], [1, 1]).throughput.round(3).tolist()
    [0.154, 0.104]
    """
    times = array_of("demands", demands, 2)
    many = whole_numbers("population", population).astype(np.float64)
    think = array_of("think_time", think_time)
    shape = np.broadcast_shapes(times.shape[:-1], many.shape, think.shape)
    times, many = np.broadcast_to(times, (*shape, times.shape[-1])), np.broadcast_to(many, shape)
    if np.any((think + times.sum(axis=-1) <= 0) & (many > 0)):
        raise QueueError("demands and think time are all 0: the throughput would be infinite")
    asks = (times > 0) & (many > 0)[..., None]
    queue = asks * (many / np.maximum(asks.sum(axis=-1), 1))[..., None]
    own = np.maximum(many, 1)[..., None]
    last = np.zeros(shape)
    for _ in range(100_000):
        residence = times * (1 + queue.sum(axis=-2, keepdims=True) - queue / own)
        cycle = think + residence.sum(axis=-1)
        throughput = many / np.where(cycle > 0, cycle, 1)
        queue = throughput[..., None] * residence
        if np.all(np.abs(throughput - last) <= tolerance * throughput):
            return Solution(throughput, residence, queue, throughput[..., None] * times)
        last = throughput
    raise NoConvergence(f"Schweitzer's fixed point not reached to {tolerance:.3g} in 100000 steps")


def seidmann(demands: ArrayLike, servers: ArrayLike) -> tuple[Floats, Floats]:
    """Replace stations of m servers by a single server m times as fast and a delay (approximation).

    `D / m` at the single server and `D (m - 1) / m` of delay. Exact with one customer and in the saturation limit;
    between them the throughput is too low, by 2 to 3 % in the two rows of the table.

    Parameters
    ----------
    demands : array, shape (..., stations)
        Service asked of a station per cycle.
    servers : array, shape (stations,)
        Servers per station, `inf` for a delay.

    Returns
    -------
    (demands, delay) : array, shape (..., stations), and array, shape (...)
        For the network of single servers; add the delay to the think time.

    Raises
    ------
    QueueError
        If a demand is negative or not finite, or servers are not whole numbers from 1 on.

    Notes
    -----
    Seidmann, Schweitzer and Shalev-Oren, "Computerized closed queueing network models of flexible manufacturing
    systems" (1987).

    Examples
    --------
    >>> single, delay = seidmann([1.0], [4])
    >>> print(single, delay)
    [0.25] 0.75
    """
    times = array_of("demands", demands, 1)
    single = times / server_array(servers, times.shape[-1])
    return single, np.asarray((times - single).sum(axis=-1), dtype=np.float64)


def blocking_mva(
    service: ArrayLike, routing: ArrayLike, visits: ArrayLike, capacity: ArrayLike, population: int
) -> Solution:
    """Approximate means of a closed network of finite single-server stations, blocking after service (MVABLO).

    `R_k = S_k (z_k + Q_k(n - 1)) + B_k` per visit. Where a queue would pass its capacity, its station takes no new
    arrival (`z_k = 0`) and every station that feeds it is blocked for a service longer, `B_j += S_k v_j p_jk / v_k`.
    Approximation; against simulation its author reports errors of a few per cent. Networks that deadlock are refused.

    Parameters
    ----------
    service : array, shape (stations,)
        Mean service time per visit, positive, exponential.
    routing : array, shape (stations, stations)
        Probability to go from row to column; rows sum to 1.
    visits : array, shape (stations,)
        Visits per cycle, positive (a left eigenvector of the routing).
    capacity : array, shape (stations,)
        Customers that fit in a station, in service included; whole, 1 or more.
    population : int
        Customers, below the summed capacity.

    Returns
    -------
    Solution
        Residence per cycle, that is visits times the response per visit.

    Raises
    ------
    QueueError
        If a quantity is out of its range, shapes disagree or the network is full.
    NoConvergence
        If the capacities cannot be met.

    Notes
    -----
    Akyildiz, "Mean value analysis for blocking queueing networks", IEEE Trans. Software Eng. 14 (1988).

    Examples
    --------
    >>> ring = np.roll(np.eye(3), 1, axis=1)
    >>> blocking_mva([1.5, 2, 1], ring, [1, 1, 1], [4, 5, 5], 10).residence.round(3).tolist()
    [6.926, 8.061, 4.186]
    """
    times, places, size = array_of("service", service, 1), whole_numbers("capacity", capacity), int(population)
    flow, per_cycle = array_of("routing", routing, 2), array_of("visits", visits, 1)
    stations = len(times)
    if flow.shape != (stations, stations) or per_cycle.shape != times.shape or places.shape != times.shape:
        raise QueueError(f"service, visits and capacity must have one value, routing one row, for {stations} stations")
    if not 0 < size < places.sum() or np.any(times <= 0) or np.any(per_cycle <= 0):
        raise QueueError(f"population {population} must be from 1 to below the capacity; times and visits positive")
    if np.any(np.abs(flow.sum(axis=1) - 1) > 1e-9) or np.any(np.abs(per_cycle @ flow - per_cycle) > 1e-6 * per_cycle):
        raise QueueError("routing rows must sum to 1 and visits be balanced by the routing")
    queue, blocked, takes = np.zeros(stations), np.zeros(stations), np.ones(stations)
    for n in range(1, size + 1):
        before = queue
        for _ in range(10_000):
            response = times * (takes + before) + blocked
            throughput = n / float(per_cycle @ response)
            queue = throughput * per_cycle * response
            over = np.flatnonzero(queue > places)
            if not over.size:
                break
            k = over[0]
            takes[k] = 0
            blocked = blocked + times[k] * per_cycle * flow[:, k] / per_cycle[k]
        else:
            raise NoConvergence(f"queues {queue.tolist()} do not fit the capacities {places.tolist()}")
    used = throughput * per_cycle * times
    return Solution(np.float64(throughput) * np.ones(()), per_cycle * response, queue, used)
