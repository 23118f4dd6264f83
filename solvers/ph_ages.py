"""Waits and stays of first-come first-served queues from the age of the customer at the head of the line.

While a customer waits at the head (or is served alone) its age grows at rate 1; when it leaves, the age falls by the
interarrival time to the next one. Seen only while it grows, the age is a fluid queue whose density is a matrix
exponential: no sum over queue lengths is needed. Sources: Sengupta, Adv. Appl. Prob. 21 (1989); Asmussen, Comm. Stat.
Stoch. Models 11 (1995); He, J. Appl. Prob. 42 (2005).
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.phase_arrivals import MarkovianArrivals
from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.phase_type import PhaseType
from asapmodel.solvers.qbd import Levels
from asapmodel.solvers.qbd_blocks import off_diagonal, product
from asapmodel.solvers.qbd_kernels import factor, logarithmic_reduction, solve
from asapmodel.solvers.queue_errors import NoConvergence, QueueError

__all__ = ["add_service", "age_law", "fluid_return", "qbd_sojourn"]

Floats = NDArray[np.float64]

_STEPS = 64
_TOLERANCE = 1e-15


def fluid_return(rise: Floats, rise_to_fall: Floats, fall: Floats, fall_to_rise: Floats) -> Floats:
    """Phase in which a fluid that rises and falls at rate 1 first comes back to where it started to rise.

    Minimal non-negative solution of `rise_to_fall + rise X + X fall + X fall_to_rise X = 0`. With c the largest rate of
    `fall` and `W = I + (fall + fall_to_rise X) / c` the equation reads `(c - rise) X = rise_to_fall + c X W`: then
    `G = [[0, X], [0, W]]` is the first passage matrix of a quasi-birth-death process on the n + m phases, found by
    logarithmic reduction with sums of non-negative numbers only. Exact to rounding, small relative errors.

    Parameters
    ----------
    rise, rise_to_fall : arrays, shape (n, n), (n, m)
        Rates from rising phases, 1 / time.
    fall, fall_to_rise : arrays, shape (m, m), (m, n)
        Rates from falling phases.

    Returns
    -------
    array, shape (n, m)
        Row sums 1 if the mean drift is downwards.

    Raises
    ------
    NoConvergence
        After 64 doublings.

    Notes
    -----
    Ramaswami, "Matrix analytic methods for stochastic fluid flows", ITC 16 (1999); Bean, O'Reilly and Taylor,
    Stoch. Proc. Appl. 115 (2005).

    Examples
    --------
    >>> one = np.ones((1, 1))  # rises end at rate 4, falls at rate 3
    >>> fluid_return(-4 * one, 4 * one, -3 * one, 3 * one).round(12)
    array([[1.]])
    """
    n, m = rise_to_fall.shape
    c = float(np.max(-np.diag(fall)))
    lu = factor(off_diagonal(rise), c + rise_to_fall.sum(axis=1))
    up, local, down = np.zeros((3, n + m, n + m))
    up[:n, :n] = c * solve(lu, np.eye(n))
    local[n:, :n] = fall_to_rise / c
    down[:n, n:] = solve(lu, np.ascontiguousarray(rise_to_fall))
    down[n:, n:] = np.maximum(0.0, np.eye(m) + fall / c)
    g, steps, missing = logarithmic_reduction(up, local, down, _TOLERANCE, _STEPS)
    if not missing < _TOLERANCE:
        raise NoConvergence(f"fluid: {missing:.2g} missing after {steps} doublings")
    return np.ascontiguousarray(g[:n, n:])


def age_law(
    start: Floats, quiet: Floats, leave: Floats, arrivals: MarkovianArrivals, passage: Floats | None = None
) -> TailLaw:
    """Age at departure of the customers at the head of a line, where departures follow the process (`quiet`, `leave`).

    Density `start exp(K t) (leave x I) 1` over the arrival rate, `K = quiet x I + X (I x D1)` with `X` of
    `fluid_return`; the missing mass (customers that never stand at the head) is the atom at 0. Exact.

    Parameters
    ----------
    start : array, shape (s m,)
        Rates, per time, at which a customer arrives and is at once at the head, by phase (departures x arrivals).
    quiet, leave : arrays, shape (s, s)
        Rates of the departure process without and with a departure, 1 / time.
    arrivals : MarkovianArrivals
        Arrival process of m phases.
    passage : array, shape (s m, s m), optional
        `X` where it is known: for Poisson arrivals it is G of the queue's levels.

    Raises
    ------
    NoConvergence
        See `fluid_return`.
    """
    s, m = len(quiet), arrivals.order
    rise, rise_to_fall = product(quiet, np.eye(m)), product(leave, np.eye(m))
    fall_to_rise = product(np.eye(s), arrivals.d1)
    if passage is None:
        passage = fluid_return(rise, rise_to_fall, product(np.eye(s), arrivals.d0), fall_to_rise)
    generator = rise + passage @ fall_to_rise
    ahead = np.linalg.solve(-generator, rise_to_fall.sum(axis=1))
    return TailLaw(start / arrivals.rate, generator, ahead)


def add_service(wait: TailLaw, service: PhaseType) -> TailLaw:
    """Law of a wait plus an independent service time; exact, order the sum of both.

    Examples
    --------
    >>> wait = TailLaw(np.array([0.5]), np.array([[-2.0]]), np.array([1.0]))
    >>> round(add_service(wait, PhaseType([1.0], [[-4.0]])).mean, 12)
    0.5
    """
    n, m = len(wait.left), service.order
    generator = np.zeros((n + m, n + m))
    generator[:n, :n] = wait.generator
    generator[:n, n:] = np.outer(np.maximum(0.0, -wait.generator @ wait.right), service.initial)
    generator[n:, n:] = service.generator
    left = np.concatenate([wait.left, wait.atom * service.initial])
    return TailLaw(left, generator, np.concatenate([wait.right, np.ones(m)]))


def qbd_sojourn(law: Levels, up: Floats, local: Floats, down: Floats) -> TailLaw:
    """Time in system of a first-come first-served queue whose arrivals are all rises and departures all falls. Exact.

    One floor only, with the same phases and the same `up`. With `H = (-local - up G)^-1 up` and the vector
    `a = pi_0 up (I - H)^-1 / rate`, `P(T > t) = a Y(t) 1`, `Y' = Y (local + up) + H Y down`, `Y(0) = I`: order n^2.
    Source: Ozawa, "Sojourn time distributions in the queue defined by a general QBD process", QUESTA 53 (2006).

    Raises
    ------
    QueueError
        If the law has more than one floor or none.
    """
    if len(law.floors) != 1 or len(law.floors[0]) != len(up):
        raise QueueError("the sojourn time needs one floor with the phases of the repeating levels")
    eye = np.eye(len(up))
    climb = solve(factor(off_diagonal(local) + up @ law.passage, down.sum(axis=1)), up)
    seen = np.linalg.solve((eye - climb).T, law.floors[0] @ up)
    generator = np.kron(eye, local + up) + np.kron(climb.T, down)
    return TailLaw(eye.ravel(), generator, np.kron(seen / seen.sum(), np.ones(len(up))))
