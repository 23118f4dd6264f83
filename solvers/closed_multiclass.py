"""Closed product-form networks with several classes of customers, exactly, by conditional mean value analysis."""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.network_solution import Solution, array_of, server_array, whole_numbers
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["conditional_mva", "multiclass_mva"]

Floats = NDArray[np.float64]
Shift = tuple[int, ...]


class _Means(NamedTuple):
    """At one population, for one shift of the speeds; `ratio[k]` is G of the network shifted once more at k over G."""

    throughput: Floats
    residence: Floats
    total: Floats
    ratio: dict[int, Floats]


def multiclass_mva(
    demands: ArrayLike, population: ArrayLike, think_time: ArrayLike = 0.0, servers: ArrayLike | None = None
) -> Solution:
    """Exact means of a closed multi-class network of queues, multi-server queues and delays.

    At a single server `R_rk(n) = D_rk (1 + Q_k(n - e_r))`, at a delay `D_rk`; `X_r(n) = n_r / (Z_r + sum_k R_rk)`.
    Stations with several servers: see `conditional_mva`. Exact for product form: FCFS stations must serve all classes
    with the same exponential mean per visit; processor sharing and delays may serve each class its own way.

    Parameters
    ----------
    demands : array, shape (..., classes, stations)
        Service a customer of a class asks of a station in one cycle. Any unit of time.
    population : array, shape (classes,)
        Customers of each class, 0 or more. Work grows with the product of (population + 1).
    think_time : array, shape (..., classes)
        Time outside between cycles, in the same unit.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.

    Returns
    -------
    Solution
        Arrays with a class axis: throughput (..., classes), the others (..., classes, stations).

    Raises
    ------
    QueueError
        If a quantity is negative, not finite or not whole, shapes disagree, or all times of a class are 0.

    Notes
    -----
    Reiser and Lavenberg, J. ACM 27 (1980).

    Examples
    --------
    >>> solution = multiclass_mva([[1, 3], [2, 4]], [1, 1])
    >>> print(f"{solution.throughput[0]:.12f} {solution.queue[0, 0]:.12f}")
    0.157894736842 0.210526315789
    """
    times = array_of("demands", demands, 2)
    counts = server_array(servers, times.shape[-1])
    finite = counts[np.isfinite(counts)]
    levels = int(finite.max(initial=1))
    speeds = np.minimum(np.arange(1.0, levels + 1), np.where(np.isfinite(counts), counts, 1)[:, None])
    return conditional_mva(times, population, think_time, speeds, ~np.isfinite(counts))


def conditional_mva(
    demands: ArrayLike,
    population: ArrayLike,
    think_time: ArrayLike,
    speeds: ArrayLike,
    delay: ArrayLike | None = None,
) -> Solution:
    """Exact means of a closed multi-class network whose stations' speeds depend on the number of customers there.

    With j customers station k works at speed `a_k(j)`. Let `t` shift the speeds, `a_k(j + t_k)`, and let `G^t(n)` be
    the normalisation constant. The state weights give `R_rk^t(n) = D_rk / a_k(1 + t_k) * g_k^t(n - e_r) *
    (1 + Q_k^{t + e_k}(n - e_r))` with the ratio `g_k^t(n) = G^{t + e_k}(n) / G^t(n) = g_k^t(n - e_r) X_r^t(n) /
    X_r^{t + e_k}(n)`. Every term is positive: no digits cancel. Exact for product form (see `multiclass_mva`).

    Parameters
    ----------
    demands : array, shape (..., classes, stations)
        Demand at speed 1.
    population : array, shape (classes,)
        Customers of each class.
    think_time : array, shape (..., classes)
        Time outside between cycles.
    speeds : array, shape (stations, levels)
        Speed with 1 ... `levels` customers, positive; the last holds for all longer queues. Work grows with the
        product over the stations of the levels that differ.
    delay : bool array, shape (stations,), optional
        Stations without queueing.

    Returns
    -------
    Solution
        With a class axis; `utilisation` is throughput times demand over the last speed.

    Raises
    ------
    QueueError
        As `multiclass_mva`; or a speed is not positive.

    Notes
    -----
    Casale, "A note on stable flow-equivalent aggregation in closed networks", Queueing Systems 60 (2008), carried
    over to several classes and stations.

    Examples
    --------
    >>> demands = [[0.2, 0.24, 0.4], [0.2, 0.18, 1.4]]
    >>> solution = conditional_mva(demands, [2, 1], 0.0, [[1, 2], [1, 1], [1, 1]], [False, False, True])
    >>> solution.throughput.round(3).tolist()
    [2.113, 0.524]
    """
    times = array_of("demands", demands, 2)
    classes, stations = times.shape[-2:]
    sizes = whole_numbers("population", population)
    if sizes.shape != (classes,):
        raise QueueError(f"population must have shape ({classes},), one per class, not {sizes.shape}")
    think = np.broadcast_to(array_of("think_time", think_time), times.shape[:-1])
    table = array_of("speeds", speeds, 2)
    if table.shape[0] != stations or np.any(table <= 0):
        raise QueueError(f"speeds must be positive, one row for each of {stations} stations")
    still = np.zeros(stations, dtype=bool) if delay is None else np.asarray(delay, dtype=bool)
    means = _recursion(times, sizes.tolist(), think, table, still)
    throughput = means.throughput[..., None]
    used = throughput * times / np.where(still, 1.0, table[:, -1])
    return Solution(means.throughput, means.residence, throughput * means.residence, used)


def _recursion(times: Floats, sizes: list[int], think: Floats, speeds: Floats, still: NDArray[np.bool_]) -> _Means:
    """Means at the full population and shift 0; layer by layer of the total population, two layers held."""
    # from its top shift on a station's speeds are constant, so shifting it further changes nothing; nor does a shift
    # past the population
    tops = [0 if still[k] else min(_constant_from(row), sum(sizes)) for k, row in enumerate(speeds)]
    layer: dict[tuple[int, ...], dict[Shift, _Means]] = {}
    for total in range(sum(sizes) + 1):
        previous, layer = layer, {}
        for n in product(*(range(min(size, total) + 1) for size in sizes)):
            if sum(n) == total:
                layer[n] = _one_population(n, previous, times, think, speeds, still, tops)
    return layer[tuple(sizes)][(0,) * len(tops)]


def _constant_from(row: Floats) -> int:
    """First index from which the speeds stay the same."""
    changes = np.flatnonzero(row[1:] != row[:-1])
    return int(changes[-1]) + 1 if changes.size else 0


def _one_population(
    n: tuple[int, ...],
    previous: dict[tuple[int, ...], dict[Shift, _Means]],
    times: Floats,
    think: Floats,
    speeds: Floats,
    still: NDArray[np.bool_],
    tops: list[int],
) -> dict[Shift, _Means]:
    """Means at population `n` for every shift, from those at one customer less."""
    less = {r: previous[(*n[:r], count - 1, *n[r + 1 :])] for r, count in enumerate(n) if count}
    found: dict[Shift, _Means] = {}
    for shift in product(*(range(top + 1) for top in tops)):
        residence = times.copy()
        for r, before in less.items():
            residence[..., r, :] = _residence(times[..., r, :], before, shift, speeds, still, tops)
        cycle = think + residence.sum(axis=-1)
        present = np.array(n) > 0
        if np.any(cycle[..., present] <= 0):
            raise QueueError("demands and think time of a class are all 0: its throughput would be infinite")
        throughput = np.where(present, np.array(n) / np.where(cycle > 0, cycle, 1), 0.0)
        total = (throughput[..., None] * residence).sum(axis=-2)
        found[shift] = _Means(throughput, residence, total, {})
    _fill_ratios(found, less, tops)
    return found


def _fill_ratios(found: dict[Shift, _Means], less: dict[int, dict[Shift, _Means]], tops: list[int]) -> None:
    """Ratios of normalisation constants, from those at one customer less (of any class that has one)."""
    for shift, means in found.items():
        for k, top in enumerate(tops):
            if shift[k] >= top:
                continue
            means.ratio[k] = np.ones(means.throughput.shape[:-1])
            for r, before in list(less.items())[:1]:
                other = found[_shifted(shift, k)]
                means.ratio[k] = before[shift].ratio[k] * means.throughput[..., r] / other.throughput[..., r]


def _shifted(shift: Shift, k: int) -> Shift:
    return (*shift[:k], shift[k] + 1, *shift[k + 1 :])


def _residence(
    times: Floats, before: dict[Shift, _Means], shift: Shift, speeds: Floats, still: NDArray[np.bool_], tops: list[int]
) -> Floats:
    """Residence times of one class, shape (..., stations), from the network with one of its customers less."""
    here = before[shift]
    result = times.copy()
    for k, top in enumerate(tops):
        if still[k]:
            continue
        speed = speeds[k, min(shift[k], speeds.shape[1] - 1)]
        if shift[k] < top:
            seen = here.ratio[k] * (1 + before[_shifted(shift, k)].total[..., k])
        else:
            seen = 1 + here.total[..., k]
        result[..., k] = times[..., k] / speed * seen
    return result
