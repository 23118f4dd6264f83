"""Open and mixed networks of queues in product form: exact means."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.closed_multiclass import multiclass_mva
from asapmodel.solvers.flow_equivalent import rate_queue
from asapmodel.solvers.network_solution import Solution, array_of, server_array, speeds_of
from asapmodel.solvers.queue_errors import QueueError, UnstableError

__all__ = ["MixedSolution", "arrival_rates", "jackson", "mixed_network", "open_multiclass"]

Floats = NDArray[np.float64]


class MixedSolution(NamedTuple):
    """The open and the closed classes of a mixed network."""

    open: Solution
    closed: Solution


def arrival_rates(external: ArrayLike, routing: ArrayLike) -> Floats:
    """Arrivals per unit of time at each station: solve `x = external + x P`; exact.

    Parameters
    ----------
    external : array, shape (stations,)
        Arrivals from outside per unit of time.
    routing : array, shape (stations, stations)
        Probability to go from row to column; what a row lacks to 1 leaves.

    Raises
    ------
    QueueError
        If a value is negative, a row sums to more than 1, shapes disagree or customers never leave.

    Examples
    --------
    >>> routing = [[0, 0.5, 0.5, 0], [1, 0, 0, 0], [0.6, 0, 0, 0], [1, 0, 0, 0]]
    >>> arrival_rates([0, 0, 0, 4], routing).round(9).tolist()
    [20.0, 10.0, 10.0, 4.0]
    """
    flow, moves = array_of("external", external, 1), array_of("routing", routing, 2)
    if flow.ndim != 1 or moves.shape != (len(flow), len(flow)):
        raise QueueError(f"routing must have shape ({len(flow)}, {len(flow)}), not {moves.shape}")
    if np.any(moves.sum(axis=1) > 1 + 1e-12):
        raise QueueError(f"routing rows must sum to at most 1, not {moves.sum(axis=1).max()}")
    reached = flow > 0
    for _ in flow:
        reached = reached | (reached @ (moves > 0))
    part = moves[np.ix_(reached, reached)]
    leaving = part.sum(axis=1) < moves[reached].sum(axis=1) - 1e-12
    leaving = leaving | (moves[reached].sum(axis=1) < 1 - 1e-12)
    for _ in flow:
        leaving = leaving | ((part > 0) @ leaving)
    if not np.all(leaving):
        raise QueueError("routing keeps customers of some station inside for ever")
    total = np.zeros(len(flow))
    total[reached] = np.linalg.solve(np.eye(len(part)) - part.T, flow[reached])
    return total


def jackson(external: ArrayLike, routing: ArrayLike, service: ArrayLike, servers: ArrayLike | None = None) -> Solution:
    """Exact means of an open single-class network of exponential stations (Jackson).

    Each station is an M/M/c queue at its arrival rate. Poisson arrivals from outside, Markov routing.

    Parameters
    ----------
    external, routing
        As `arrival_rates`.
    service : array, shape (stations,)
        Mean service time per visit.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.

    Returns
    -------
    Solution
        `throughput` of shape (stations,) is visits per unit of time; `residence` is the response per visit.

    Raises
    ------
    UnstableError
        If a station cannot carry its load; carries the largest load.
    QueueError
        As `arrival_rates`.

    Notes
    -----
    Jackson, "Networks of waiting lines", Oper. Res. 5 (1957).

    Examples
    --------
    >>> routing = [[0, 0.5, 0.5, 0], [1, 0, 0, 0], [0.6, 0, 0, 0], [1, 0, 0, 0]]
    >>> solution = jackson([0, 0, 0, 4], routing, [0.04, 0.03, 0.06, 0.05])
    >>> solution.queue.round(3).tolist(), solution.residence.round(3).tolist()
    ([4.0, 0.429, 1.5, 0.25], [0.2, 0.043, 0.15, 0.062])
    """
    flow = arrival_rates(external, routing)
    times = array_of("service", service, 1)
    if times.shape != flow.shape:
        raise QueueError(f"service must have shape {flow.shape}, not {times.shape}")
    solution = open_multiclass([1.0], (flow * times)[None], servers)
    queue = solution.queue[0]
    residence = np.where(flow > 0, queue / np.where(flow > 0, flow, 1), times)
    return Solution(flow, residence, queue, solution.utilisation[0])


def open_multiclass(arrivals: ArrayLike, demands: ArrayLike, servers: ArrayLike | None = None) -> Solution:
    """Exact means of an open multi-class product-form network.

    Single server: `R_rk = D_rk / (1 - U_k)`; c servers: `D_rk` times the mean number of an M/M/c queue of the same load
    over that load; delay: `D_rk`. Exact under the conditions of `multiclass_mva`.

    Parameters
    ----------
    arrivals : array, shape (..., classes)
        Poisson arrivals per unit of time.
    demands : array, shape (..., classes, stations)
        Service a customer asks of a station in all its visits.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.

    Returns
    -------
    Solution
        With a class axis; `throughput` repeats the arrivals.

    Raises
    ------
    UnstableError
        If a station cannot carry its load; carries the largest load.
    QueueError
        If a quantity is negative or not finite or shapes disagree.

    Notes
    -----
    Baskett, Chandy, Muntz and Palacios, J. ACM 22 (1975); Lazowska et al. (1984), 7.4.1.

    Examples
    --------
    >>> solution = open_multiclass([3 / 19, 2 / 19], [[1, 3], [2, 4]])
    >>> print(f"{solution.queue[0, 0]:.9f} {solution.residence[0, 0]:.9f}")
    0.250000000 1.583333333
    """
    flow, times = array_of("arrivals", arrivals, 1), array_of("demands", demands, 2)
    if times.shape[-2] != flow.shape[-1]:
        raise QueueError(f"demands must have one row for each of {flow.shape[-1]} classes, not shape {times.shape}")
    counts = server_array(servers, times.shape[-1])
    work = flow[..., None] * times
    load = work.sum(axis=-2)
    stretch = np.ones(load.shape)
    for k, count in enumerate(counts):
        if np.isfinite(count):
            speeds = speeds_of(counts[k : k + 1], int(count))[0]
            if np.any(load[..., k] >= count):
                raise UnstableError(float((load / counts).max()))
            busy = load[..., k] > 0
            number = rate_queue(load[..., k], speeds).number
            stretch[..., k] = np.where(busy, number / np.where(busy, load[..., k], 1), 1.0)
    residence = times * stretch[..., None, :]
    used = work / np.where(np.isfinite(counts), counts, 1.0)
    return Solution(np.broadcast_to(flow, times.shape[:-1]), residence, flow[..., None] * residence, used)


def mixed_network(
    arrivals: ArrayLike,
    open_demands: ArrayLike,
    population: ArrayLike,
    closed_demands: ArrayLike,
    think_time: ArrayLike = 0.0,
    delays: ArrayLike | None = None,
) -> MixedSolution:
    """Exact means of a product-form network with open and closed classes, of single servers and delays.

    The open classes slow the closed ones to demands `D / (1 - U_open)`; the open classes then spend
    `D_rk (1 + Q_closed,k) / (1 - U_open,k)` at a station.

    Parameters
    ----------
    arrivals : array, shape (..., open classes)
        Poisson arrivals per unit of time.
    open_demands, closed_demands : array, shape (..., classes, stations)
        Service a customer asks of a station in all its visits (of a cycle).
    population : array, shape (closed classes,)
        Customers of the closed classes.
    think_time : array, shape (..., closed classes)
        Time the closed classes spend outside.
    delays : bool array, shape (stations,), optional
        Stations without queueing.

    Raises
    ------
    UnstableError
        If the open classes alone overload a station.
    QueueError
        As `multiclass_mva`.

    Notes
    -----
    Lazowska et al., "Quantitative System Performance" (1984), 7.4.3.

    Examples
    --------
    >>> solution = mixed_network([0.5, 0.25], [[0.8, 0.6], [2, 2.4]], [1, 1], [[0.3, 0.25], [0.5, 0.32]])
    >>> solution.open.queue.round(3).tolist(), solution.closed.throughput.round(3).tolist()
    ([[8.822, 5.383], [11.028, 10.767]], [0.12, 0.081])
    """
    flow, times = array_of("arrivals", arrivals, 1), array_of("open_demands", open_demands, 2)
    others = array_of("closed_demands", closed_demands, 2)
    if times.shape[-2] != flow.shape[-1] or others.shape[-1] != times.shape[-1]:
        raise QueueError(
            f"open_demands {times.shape} and closed_demands {others.shape} do not fit {flow.shape} arrivals"
        )
    still = np.zeros(times.shape[-1], dtype=bool) if delays is None else np.asarray(delays, dtype=bool)
    work = flow[..., None] * times
    load = np.where(still, 0.0, work.sum(axis=-2))
    if np.any(load >= 1):
        raise UnstableError(float(load.max()))
    left = (1 - load)[..., None, :]
    closed = multiclass_mva(others / left, population, think_time, np.where(still, np.inf, 1.0))
    used = closed.throughput[..., None] * others
    ahead = np.where(still, 0.0, closed.queue.sum(axis=-2))[..., None, :]
    residence = times * (1 + ahead) / left
    return MixedSolution(
        Solution(np.broadcast_to(flow, times.shape[:-1]), residence, flow[..., None] * residence, work),
        Solution(closed.throughput, closed.residence, closed.queue, used),
    )
