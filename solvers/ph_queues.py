"""Single-server queues with Markovian arrivals and Markovian or class-dependent phase-type service; exact."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from asapmodel.solvers.ph_ages import age_law, fluid_return
from asapmodel.solvers.phase_arrivals import MarkovianArrivals
from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.phase_type import PhaseType
from asapmodel.solvers.qbd import Levels, solve_blocks
from asapmodel.solvers.qbd_blocks import Floor, product, stationary_vector
from asapmodel.solvers.queue_errors import QueueError, stable

__all__ = ["ClassTimes", "SingleServer", "map_map_1", "mmap_ph_1"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SingleServer:
    """Stationary law of one server: customers in the system, time before service, time in the system."""

    number: Levels
    wait: TailLaw
    sojourn: TailLaw


@dataclass(frozen=True, eq=False)
class ClassTimes:
    """Time before service and time in the system of the customers of one class."""

    wait: TailLaw
    sojourn: TailLaw


def map_map_1(arrivals: MarkovianArrivals, service: MarkovianArrivals) -> SingleServer:
    """MAP/MAP/1 first-come first-served; successive services depend on each other, their phase rests while idle. Exact.

    Number: a quasi-birth-death process with the phases (service x arrival) on every level. Sojourn: the age at
    departure of the customer in service; it starts at the rates `pi_0 (I x D1)`. Wait: the age at departure of its
    predecessor of the first customer waiting; it starts at `pi_1 (I x D1)`. Renewal services: `map_ph_c`.

    Parameters
    ----------
    arrivals, service : MarkovianArrivals
        Processes of arrivals, and of departures while the server is busy; 1 / time.

    Raises
    ------
    UnstableError
        If the arrival rate reaches the service rate.

    Notes
    -----
    Neuts (1981); Horvath, Van Houdt and Telek, Stoch. Models 30 (2014), whose numbers the tests reproduce.

    Examples
    --------
    >>> from asapmodel.solvers.phase_arrivals import poisson
    >>> q = map_map_1(poisson(1.0), poisson(2.0))
    >>> round(q.number.mean, 9), round(q.wait.mean, 9), round(q.sojourn.mean, 9)
    (1.0, 0.5, 1.0)
    """
    rest = product(np.eye(service.order), arrivals.d0)
    up = product(np.eye(service.order), arrivals.d1)
    down = product(service.d1, np.eye(arrivals.order))
    local = rest + product(service.d0, np.eye(arrivals.order))
    number = solve_blocks([Floor(rest, up, down)], up, local, down)
    passage = number.passage if arrivals.order == 1 else None
    sojourn = age_law(number.vector(0) @ up, service.d0, service.d1, arrivals, passage)
    wait = age_law(number.vector(1) @ up, service.d0, service.d1, arrivals, passage)
    return SingleServer(number, wait, sojourn)


def mmap_ph_1(d0: ArrayLike, marked: Sequence[ArrayLike], services: Sequence[PhaseType]) -> tuple[ClassTimes, ...]:
    """MMAP[K]/PH[K]/1 first-come first-served: wait and sojourn of each class, on one server. Exact.

    The age of the customer in service rises in the phases (class, service) x arrival with `S x I`, falls with `D0` and
    rises again with `F = [alpha_1 x D_1, ...]`. With `X` of `fluid_return`, `K = S x I + X F`, and the idle law
    `p (D0 + F X) = 0`, `p 1 = 1 - load`: a sojourn of class k has the density `p F exp(K t) (s_k x 1) / rate_k`, a wait
    above 0 the density `p F exp(K t) X D_k 1 / rate_k`. Order: the sum of the service orders times the arrival order.

    Parameters
    ----------
    d0 : array, shape (m, m)
        Rates of the arrival phases without arrivals, 1 / time.
    marked : sequence of arrays, shape (m, m)
        Rates with an arrival of each class.
    services : sequence of PhaseType
        Service law of each class.

    Raises
    ------
    QueueError
        If the numbers of classes differ, the rates are no generator or a class never arrives.
    UnstableError
        If the load `sum of rate_k E S_k` is not below 1.

    Notes
    -----
    He, "Analysis of a continuous time SM[K]/PH[K]/1/FCFS queue", J. Appl. Prob. 42 (2005).

    Examples
    --------
    Two exponential classes of one mean are an M/M/1 queue:

    >>> one = PhaseType([1.0], [[-2.0]])
    >>> a, b = mmap_ph_1([[-1.0]], [[[0.25]], [[0.75]]], [one, one])
    >>> round(a.sojourn.mean, 9), round(b.wait.mean, 9)
    (1.0, 0.5)
    """
    classes = [np.array(block, dtype=np.float64) for block in marked]
    if len(classes) != len(services) or not classes or any(block.min() < 0 for block in classes):
        raise QueueError(f"{len(classes)} classes of arrivals, {len(services)} of services, or a rate is negative")
    arrivals = MarkovianArrivals(d0, np.sum(classes, axis=0))
    rates = [float(arrivals.phases @ block.sum(axis=1)) for block in classes]
    if min(rates) <= 0:
        raise QueueError(f"a class never arrives: rates {rates}")
    load = stable(sum(rate * service.mean for rate, service in zip(rates, services, strict=True)))
    eye = np.eye(arrivals.order)
    blocks = block_diag(*(service.generator for service in services))
    rise = np.asarray(np.kron(blocks, eye), dtype=np.float64)
    ends = np.kron(np.concatenate([service.exits for service in services])[:, None], eye)
    starts = np.hstack([np.kron(x.initial[None, :], block) for x, block in zip(services, classes, strict=True)])
    back = fluid_return(rise, ends, arrivals.d0, starts)
    idle = (1 - load) * stationary_vector(arrivals.d0 + starts @ back)
    generator = rise + back @ starts
    edges = np.cumsum([0, *(service.order * arrivals.order for service in services)])
    out = []
    for k, rate in enumerate(rates):
        own = np.where(
            (np.arange(edges[-1]) >= edges[k]) & (np.arange(edges[-1]) < edges[k + 1]), ends.sum(axis=1), 0.0
        )
        targets = np.column_stack([back @ classes[k].sum(axis=1), own])
        right = np.linalg.solve(-generator, targets)
        laws = [TailLaw(idle @ starts / rate, generator, np.ascontiguousarray(right[:, j])) for j in range(2)]
        out.append(ClassTimes(*laws))
    return tuple(out)
