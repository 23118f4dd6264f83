"""Open networks of general stations: how variable the flows are, and what that does to the waits (QNA)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.flow_equivalent import rate_queue
from asapmodel.solvers.network_solution import Solution, array_of, server_array, speeds_of
from asapmodel.solvers.open_network import arrival_rates
from asapmodel.solvers.queue_errors import QueueError, UnstableError

__all__ = ["departure_scv", "flow_scv", "qna", "split_scv", "superposition_scv"]

Floats = NDArray[np.float64]


def departure_scv(load: float, arrival_scv: float, service_scv: float, servers: int = 1) -> float:
    """Squared coefficient of variation of the times between departures (approximation).

    One server: `rho^2 cs2 + (1 - rho^2) ca2`, Marshall's formula with the wait `(ca2 + cs2) / 2` times that of M/M/1;
    exact for M/G/1. m servers: `1 + (1 - rho^2)(ca2 - 1) + rho^2 (max(cs2, 0.2) - 1) / sqrt(m)`; exact for M/M/m.

    Parameters
    ----------
    load : float
        Utilisation, 0 <= load < 1.
    arrival_scv, service_scv : float
        Squared coefficients of variation, not negative.
    servers : int
        1 or more.

    Raises
    ------
    UnstableError
        If the load is 1 or more.
    QueueError
        If a quantity is negative, not finite or not whole.

    Notes
    -----
    Marshall, "Some inequalities in queuing", Oper. Res. 16 (1968); Whitt, "The queueing network analyzer", Bell Syst.
    Tech. J. 62 (1983), equations 38 and 39. The floor 0.2 is applied only with several servers.

    Examples
    --------
    >>> print(f"{departure_scv(0.8, 1, 4):.2f} {departure_scv(0.9, 1, 2, 8):.11f}")
    2.92 1.28637824638
    """
    array_of("load and scv", [load, arrival_scv, service_scv])
    if load >= 1:
        raise UnstableError(load)
    if servers < 1 or servers != int(servers):
        raise QueueError(f"servers must be a whole number from 1 on, not {servers}")
    spread = service_scv if servers == 1 else max(service_scv, 0.2)
    return float(1 + (1 - load**2) * (arrival_scv - 1) + load**2 * (spread - 1) / np.sqrt(servers))


def split_scv(probability: float, scv: float) -> float:
    """Squared coefficient of variation of a flow of which each customer is kept with a probability: `p scv + 1 - p`.

    Exact for a renewal flow and independent choices.

    Raises
    ------
    QueueError
        If the probability is not in [0, 1] or the scv is negative.

    Examples
    --------
    >>> split_scv(0.25, 3.0)
    1.5
    """
    array_of("probability and scv", [probability, scv])
    if probability > 1:
        raise QueueError(f"probability must be in [0, 1], not {probability}")
    return probability * scv + 1 - probability


def superposition_scv(rates: ArrayLike, scvs: ArrayLike, load: float) -> float:
    """Squared coefficient of variation of merged flows before a queue of the given load (approximation).

    `w sum p_i c_i^2 + 1 - w`, p_i the shares of the rates, `w = 1 / (1 + 4 (1 - rho)^2 (1 / sum p_i^2 - 1))`: between
    the asymptotic method (w = 1, right at saturation) and a Poisson flow (many flows, low load). Exact for Poisson
    flows and for a single flow.

    Raises
    ------
    UnstableError
        If the load is 1 or more.
    QueueError
        If a quantity is negative or not finite, shapes disagree or all rates are 0.

    Notes
    -----
    Albin (1982, 1984); Whitt (1983), section 4.3.

    Examples
    --------
    >>> print(f"{superposition_scv([1.0, 1.0], [0.0, 0.0], 0.5):.3f}")
    0.500
    """
    flow, spread = array_of("rates", rates, 1), array_of("scvs", scvs, 1)
    array_of("load", load)
    if load >= 1:
        raise UnstableError(load)
    if flow.shape != spread.shape or flow.sum() <= 0:
        raise QueueError(f"rates {flow.shape} and scvs {spread.shape} must be as many, and a rate positive")
    share = flow / flow.sum()
    weight = 1 / (1 + 4 * (1 - load) ** 2 * (1 / (share @ share) - 1))
    return float(weight * (share @ spread) + 1 - weight)


def flow_scv(
    external: ArrayLike,
    external_scv: ArrayLike,
    routing: ArrayLike,
    load: ArrayLike,
    service_scv: ArrayLike,
    servers: ArrayLike,
) -> Floats:
    """Squared coefficients of variation of the arrivals at every station: merge, queue and split, all at once.

    The three rules of this module are linear in the unknowns, `ca2 = a + ca2 B` (Whitt 1983, equations 24 to 26); loads
    fix the weights. Approximation: each flow is taken as renewal. Domain: loads below 1. Arguments and errors as `qna`.

    Examples
    --------
    A station after an M/D/1 queue at load 0.8:

    >>> flow_scv([0.8, 0], [1, 1], [[0, 1], [0, 0]], [0.8, 0.8], [0, 0], [1, 1]).round(9).tolist()
    [1.0, 0.36]
    """
    outside, spread = array_of("external", external, 1), array_of("external_scv", external_scv, 1)
    moves, rho, service = (
        array_of("routing", routing, 2),
        array_of("load", load, 1),
        array_of("service_scv", service_scv),
    )
    total = arrival_rates(outside, moves)
    some = np.where(total > 0, total, 1)
    inner = moves * total[:, None] / some  # share of the arrivals at a column that come from a row
    outer = outside / some
    parts = outer**2 + (inner**2).sum(axis=0)
    weight = 1 / (1 + 4 * (1 - rho) ** 2 * (1 / np.where(parts > 0, parts, 1) - 1))
    counts = np.where(np.isfinite(np.asarray(servers, dtype=np.float64)), servers, 1e300)
    floor = np.where(counts > 1, np.maximum(service, 0.2), service)
    made = 1 + (floor - 1) / np.sqrt(counts)
    constant = (
        1
        - weight
        + weight
        * (outer * spread + (inner * (1 - moves)).sum(axis=0) + ((rho**2 * made)[:, None] * inner * moves).sum(axis=0))
    )
    matrix = weight * inner * moves * (1 - rho**2)[:, None]
    return np.asarray(np.linalg.solve(np.eye(len(total)) - matrix.T, constant), dtype=np.float64)


def qna(
    external: ArrayLike,
    external_scv: ArrayLike,
    routing: ArrayLike,
    service: ArrayLike,
    service_scv: ArrayLike,
    servers: ArrayLike | None = None,
) -> Solution:
    """Approximate means of an open single-class network of general FCFS stations, by decomposition.

    Rates are exact; arrivals at a station count as a renewal flow with the scv of `flow_scv`; the mean wait is
    `(ca2 + cs2) / 2` times the M/M/c wait, for one server and ca2 < 1 also times
    `exp(-2 (1 - rho) (1 - ca2)^2 / (3 rho (ca2 + cs2)))`.
    Exact for Jackson networks. Approximation otherwise: Whitt (1983) reports most errors below 10 % and single ones
    of 30 % and more (long chains of queues of low variability before a bottleneck).

    Parameters
    ----------
    external, routing
        As `arrival_rates`.
    external_scv, service_scv : array, shape (stations,)
        Squared coefficients of variation of the times between external arrivals and of the services.
    service : array, shape (stations,)
        Mean service time per visit.
    servers : array, shape (stations,), optional
        Servers per station, `inf` for a delay; 1 each by default.

    Returns
    -------
    Solution
        Per station and visit, as `jackson`.

    Raises
    ------
    UnstableError
        If a station cannot carry its load; carries the largest load.
    QueueError
        As `arrival_rates`.

    Notes
    -----
    Whitt, "The queueing network analyzer", Bell Syst. Tech. J. 62 (1983), equations 44, 45 and 70.

    Examples
    --------
    M/D/1 then D at loads 0.8: the first wait is exact, the second is 0 in truth.

    >>> solution = qna([0.8, 0], [1, 1], [[0, 1], [0, 0]], [1, 1], [0, 0])
    >>> (solution.residence - 1).round(4).tolist()
    [2.0, 0.5956]
    """
    times = array_of("service", service, 1)
    flow = arrival_rates(external, routing)
    counts = server_array(servers, len(times))
    if times.shape != flow.shape:
        raise QueueError(f"service must have shape {flow.shape}, not {times.shape}")
    load = np.where(np.isfinite(counts), flow * times / counts, 0.0)
    if np.any(load >= 1):
        raise UnstableError(float(load.max()))
    spread = np.broadcast_to(array_of("service_scv", service_scv), times.shape)
    arrivals = flow_scv(
        external, np.broadcast_to(array_of("external_scv", external_scv), times.shape), routing, load, spread, counts
    )
    wait = np.zeros(times.shape)
    for k, count in enumerate(counts):
        if np.isfinite(count) and load[k] > 0:
            plain = rate_queue(flow[k], speeds_of(counts[k : k + 1], int(count))[0] / times[k]).wait
            wait[k] = plain * (arrivals[k] + spread[k]) / 2
            if count == 1 and arrivals[k] < 1 and arrivals[k] + spread[k] > 0:
                gap = 2 * (1 - load[k]) * (1 - arrivals[k]) ** 2 / (3 * load[k] * (arrivals[k] + spread[k]))
                wait[k] *= np.exp(-gap)
    residence = times + wait
    used = flow * times / np.where(np.isfinite(counts), counts, 1.0)
    return Solution(flow, residence, flow * residence, used)
