"""Closed product-form networks with one class of customers, exactly, by mean value analysis (MVA)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.closed_multiclass import conditional_mva, multiclass_mva
from asapmodel.solvers.convolution_algorithm import log_constants
from asapmodel.solvers.network_solution import Solution, array_of, server_array, whole_numbers
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["load_dependent_mva", "mva", "throughput_curve"]

Floats = NDArray[np.float64]


def _first(solution: Solution) -> Solution:
    """The only class of a multi-class solution."""
    return Solution(
        solution.throughput[..., 0],
        solution.residence[..., 0, :],
        solution.queue[..., 0, :],
        solution.utilisation[..., 0, :],
    )


def _recursion(demands: Floats, population: int, think: Floats, queueing: Floats) -> tuple[list[Floats], Floats]:
    """Throughput for populations 0 ... `population`, and the queue lengths at the last."""
    queue = np.zeros(demands.shape)
    curve = [np.zeros(demands.shape[:-1])]
    for n in range(1, population + 1):
        residence = demands * (1 + queue * queueing)
        cycle = think + residence.sum(axis=-1)
        if np.any(cycle <= 0):
            raise QueueError("demands and think time are all 0: the throughput would be infinite")
        throughput = n / cycle
        queue = throughput[..., None] * residence
        curve.append(throughput)
    return curve, queue


def mva(demands: ArrayLike, population: int, think_time: ArrayLike = 0.0, servers: ArrayLike | None = None) -> Solution:
    """Exact means of a closed single-class network of queues and delays.

    `R_k(n) = D_k (1 + Q_k(n - 1))` at a queue, `D_k` at a delay; `X(n) = n / (Z + sum R_k)`; `Q_k = X R_k`.
    Stations with several servers go through `multiclass_mva`, whose work grows with the product of their servers (with
    many such stations use `convolution`). Exact for product-form stations: FCFS with
    exponential service, processor sharing or a delay with any service.

    Parameters
    ----------
    demands : array, shape (..., stations)
        Service a customer asks of a station in one cycle (visits times mean service time). Any unit of time.
    population : int
        Number of customers, 0 or more.
    think_time : array, shape (...)
        Time outside between cycles, in the same unit.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.

    Raises
    ------
    QueueError
        If a quantity is negative, not finite or not whole, shapes disagree, or all times are 0.

    Notes
    -----
    Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", J. ACM 27 (1980).

    Examples
    --------
    >>> solution = mva([2.0, 3.0, 1.5], 8)
    >>> print(f"{solution.throughput:.11f} {solution.response:.10f}")
    0.32489088425 24.6236517791
    """
    times = array_of("demands", demands, 1)
    size = int(whole_numbers("population", population))
    think = np.broadcast_to(array_of("think_time", think_time), times.shape[:-1])
    counts = server_array(servers, times.shape[-1])
    if np.any((counts > 1) & np.isfinite(counts)):
        return _first(multiclass_mva(times[..., None, :], [size], think[..., None], counts))
    curve, queue = _recursion(times, size, think, np.isfinite(counts).astype(np.float64))
    throughput = curve[-1]
    residence = times.copy() if size == 0 else queue / throughput[..., None]
    return Solution(throughput, residence, queue, throughput[..., None] * times)


def throughput_curve(
    demands: ArrayLike, population: int, think_time: ArrayLike = 0.0, servers: ArrayLike | None = None
) -> Floats:
    """Exact throughput for populations 1 ... `population`, shape (..., population); arguments as for `mva`.

    Examples
    --------
    >>> throughput_curve([1.0, 1.0, 1.0], 5).round(12).tolist()
    [0.333333333333, 0.5, 0.6, 0.666666666667, 0.714285714286]
    """
    times = array_of("demands", demands, 1)
    size = int(whole_numbers("population", population))
    think = np.broadcast_to(array_of("think_time", think_time), times.shape[:-1])
    counts = server_array(servers, times.shape[-1])
    if np.any((counts > 1) & np.isfinite(counts)):
        logs = log_constants(times, size, think, counts)
        return np.asarray(np.exp(logs[..., :-1] - logs[..., 1:]), dtype=np.float64)
    curve, _ = _recursion(times, size, think, np.isfinite(counts).astype(np.float64))
    return np.stack(curve[1:], axis=-1) if size else np.zeros((*times.shape[:-1], 0))


def load_dependent_mva(demands: ArrayLike, speeds: ArrayLike, population: int, think_time: ArrayLike = 0.0) -> Solution:
    """Exact means of a closed single-class network whose stations work faster or slower as their queues grow.

    Station k with j customers works at speed `a_k(j)`: it serves `a_k(j) / D_k` customers per unit of time. Conditional
    MVA (see `conditional_mva`): sums and products of positive numbers only, unlike the classical form, whose
    `p(0) = 1 - sum p(j)` loses all digits at high utilisation. Work grows with the product over the stations of the
    number of distinct speeds; with many load-dependent stations use `convolution`.

    Parameters
    ----------
    demands : array, shape (..., stations)
        Demand at speed 1.
    speeds : array, shape (stations, levels)
        Speed with 1 ... `levels` customers at the station, positive; the last holds for all longer queues.
    population : int
        Number of customers.
    think_time : array, shape (...)
        Time outside between cycles.

    Returns
    -------
    Solution
        Its `utilisation` is throughput times demand over the last speed.

    Raises
    ------
    QueueError
        As `mva`; or a speed is not positive.

    Notes
    -----
    Casale, "A note on stable flow-equivalent aggregation in closed networks", Queueing Systems 60 (2008).

    Examples
    --------
    >>> demands = [1, 0.5 * 0.6, 0.5 * 0.8, 1]
    >>> solution = load_dependent_mva(demands, [[2, 4, 4], [1, 1, 1], [1, 1, 1], [1, 2, 3]], 3)
    >>> solution.queue.round(3).tolist()
    [0.624, 0.473, 0.686, 1.217]
    """
    times = array_of("demands", demands, 1)
    think = np.broadcast_to(array_of("think_time", think_time), times.shape[:-1])
    table = array_of("speeds", speeds, 2)
    return _first(conditional_mva(times[..., None, :], [population], think[..., None], table))
