"""Queues with several equal servers, phase-type service and Markovian arrivals: exact, by levels of customers.

The phases of a level are the numbers of busy servers in each service phase: `C(n + k - 1, k - 1)` for n busy servers
and k phases, times those of the arrival process. Order 2 gives n + 1 (16 servers: 17), order 3 with 16 servers 153.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.ph_ages import add_service, age_law
from asapmodel.solvers.phase_arrivals import MarkovianArrivals
from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.phase_type import PhaseType
from asapmodel.solvers.qbd import Levels, solve_blocks
from asapmodel.solvers.qbd_blocks import Floor, product
from asapmodel.solvers.queue_errors import MomentError, at_least_one

__all__ = ["Queue", "ServerLevel", "map_ph_c", "server_levels", "server_states"]

Floats = NDArray[np.float64]


class ServerLevel(NamedTuple):
    """Rates of n busy servers: between their phases, with a departure; probabilities of the phases after a start.

    Shapes (s_n, s_n), (s_n, s_(n-1)) and (s_(n-1), s_n).
    """

    local: Floats
    leave: Floats
    start: Floats


@dataclass(frozen=True, eq=False)
class Queue:
    """Stationary law of a first-come first-served queue with `servers` servers.

    Parameters
    ----------
    number : Levels
        Customers in the system.
    wait : TailLaw
        Time before service; its atom is the probability of none.
    service : PhaseType
        Service law at speed 1.
    constant_speed : bool
        Whether a service is independent of the number of customers, so that a sojourn is a wait plus a service.
    """

    number: Levels
    wait: TailLaw
    service: PhaseType
    constant_speed: bool

    @property
    def sojourn(self) -> TailLaw:
        """Time in system; MomentError if the speed of service depends on the number of customers."""
        if not self.constant_speed:
            raise MomentError("the speed varies during a service: its length is not known from the wait")
        return add_service(self.wait, self.service)


@lru_cache(maxsize=64)
def server_states(order: int, busy: int) -> NDArray[np.int64]:
    """Numbers of `busy` servers in each of `order` phases, one row a state.

    Examples
    --------
    >>> server_states(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    bars = list(combinations(range(busy + order - 1), order - 1))[::-1]
    edges = np.array([(-1, *bar, busy + order - 1) for bar in bars], dtype=np.int64)
    return np.diff(edges, axis=1) - 1


@lru_cache(maxsize=64)
def _moves(order: int, busy: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Columns (row, column, phase, phase, servers) of moves, (row, column, phase, servers) of departures, of starts."""
    here, below = server_states(order, busy), server_states(order, busy - 1)
    index = {tuple(state): k for k, state in enumerate(here.tolist())}
    moves, leaves, starts = [], [], []
    for low, state in enumerate(below.tolist()):
        above = [index[tuple(n + (j == i) for j, n in enumerate(state))] for i in range(order)]
        for i in range(order):
            leaves.append((above[i], low, i, state[i] + 1))
            starts.append((low, above[i], i))
            moves += [(above[i], above[j], i, j, state[i] + 1) for j in range(order) if j != i]
    return np.array(moves, dtype=np.int64).reshape(-1, 5).T, np.array(leaves).T, np.array(starts).T


def server_levels(service: PhaseType, servers: int, speeds: Sequence[float] | None = None) -> list[ServerLevel]:
    """Blocks of 1 ... `servers` busy servers; `local` has the diagonal that makes rows with `leave` sum to 0.

    Parameters
    ----------
    service : PhaseType
        Law of one service at speed 1.
    servers : int
        Number of servers.
    speeds : sequence of float, optional
        Factor on all service rates when n = 1 ... `servers` are busy; 1 throughout if not given.

    Raises
    ------
    MomentError
        If a speed is not positive and finite, or their number is not that of the servers.

    Examples
    --------
    >>> levels = server_levels(PhaseType([1.0], [[-2.0]]), 2, [1.0, 0.75])
    >>> [float(level.leave[0, 0]) for level in levels]
    [2.0, 3.0]
    """
    at_least_one("servers", servers)
    factors = np.ones(servers) if speeds is None else np.array(speeds, dtype=np.float64)
    if factors.shape != (servers,) or not np.all((factors > 0) & np.isfinite(factors)):
        raise MomentError(f"{servers} servers need as many positive speeds, not {speeds}")
    out = []
    for n in range(1, servers + 1):
        states, below = len(server_states(service.order, n)), len(server_states(service.order, n - 1))
        (r, c, i, j, m), (lr, lc, li, lm), (sr, sc, si) = _moves(service.order, n)
        local, leave, start = np.zeros((states, states)), np.zeros((states, below)), np.zeros((below, states))
        local[r, c] = factors[n - 1] * m * service.generator[i, j]
        leave[lr, lc] = factors[n - 1] * lm * service.exits[li]
        start[sr, sc] = service.initial[si]
        np.fill_diagonal(local, -local.sum(axis=1) - leave.sum(axis=1))
        out.append(ServerLevel(local, leave, start))
    return out


def map_ph_c(
    arrivals: MarkovianArrivals, service: PhaseType, servers: int, speeds: Sequence[float] | None = None
) -> Queue:
    """MAP/PH/c first-come first-served: number in system, wait, sojourn. Exact.

    With `poisson(rate)` this is M/PH/c, with `renewal(law)` PH/PH/c. The number is a quasi-birth-death process whose
    levels 0 ... c - 1 differ; a wait above 0 has the density `pi_c D1 exp(K t) leave 1 / rate` (see `ph_ages`), of the
    order of level c. Levels are ordered (server phases) x (arrival phases).

    Parameters
    ----------
    arrivals : MarkovianArrivals
        Arrival process, 1 / time.
    service : PhaseType
        Law of a service, time, at speed 1.
    servers : int
        Servers, c.
    speeds : sequence of float, optional
        Factor on the service rates of every busy server when 1 ... c are busy (flow-equivalent servers).

    Raises
    ------
    UnstableError
        If the arrivals reach what c busy servers can do.
    MomentError
        If `servers` or `speeds` are none.

    Notes
    -----
    Number: Neuts (1981), chapter 4. Wait: Asmussen and O'Cinneide, "Representations for matrix-geometric and
    matrix-exponential steady-state distributions", Adv. Appl. Prob. 30 (1998).

    Examples
    --------
    M/M/2 at load 0.5 waits with probability 1/3 and 1/3 of a service on average:

    >>> from asapmodel.solvers.phase_arrivals import poisson
    >>> q = map_ph_c(poisson(1.0), PhaseType([1.0], [[-1.0]]), 2)
    >>> round(1 - q.wait.atom, 9), round(q.wait.mean, 9), round(q.number.mean, 9), round(q.sojourn.mean, 9)
    (0.333333333, 0.333333333, 1.333333333, 1.333333333)
    """
    levels = server_levels(service, servers, speeds)
    d0, d1, eye = arrivals.d0, arrivals.d1, np.eye(arrivals.order)
    floors, local = [], d0
    for level in levels:
        floors.append(Floor(local, product(level.start, d1), product(level.leave, eye)))
        local = product(level.local, eye) + product(np.eye(len(level.local)), d0)
    busy = levels[-1]
    restart = busy.leave @ busy.start
    up = product(np.eye(len(restart)), d1)
    number = solve_blocks(floors, up, local, product(restart, eye))
    passage = number.passage if arrivals.order == 1 else None
    wait = age_law(number.first @ up, busy.local, restart, arrivals, passage)
    return Queue(number, wait, service, speeds is None or all(speed == 1 for speed in speeds))
