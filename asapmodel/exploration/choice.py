"""Whether the choice of a point would survive the errors of constants: records, and shares of draws.

All points are drawn with the same constants, so a draw is a world in which one of them is best. Shares are of the draws
in which any of the points has an answer.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.pareto import pareto_front
from asapmodel.uncertainties.answer import Drawn, Interval
from asapmodel.uncertainties.deciding import Decider

__all__ = ["CLOSE_BY", "Choice", "Contender", "Lead", "Standing", "best_shares", "close_shares", "front_shares"]

Array = NDArray[np.float64]

CLOSE_BY = 0.02
"""How far behind the best a point still counts as close, relative."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A point by one objective: its interval, and the shares of draws in which it is the best, or close to the best."""

    objective: str
    interval: Interval
    best: float
    close: float


@dataclass(frozen=True, slots=True)
class Contender:
    """A point that was drawn.

    Attributes
    ----------
    point : int
        Its number.
    standings : tuple of Standing
        One an objective that constants move; of the number of devices they move nothing.
    front : float
        Share of the draws in which none of the drawn points dominates it.
    failed : int
        Draws in which the model has no answer for it.
    """

    point: int
    standings: tuple[Standing, ...]
    front: float
    failed: int


@dataclass(frozen=True, slots=True)
class Lead:
    """The best point over its strongest rival: the one that is best in most of the draws it is not best in.

    `ratio` is how many times better, by `objective`; `better` the share of draws in which it is; `measure` what would
    narrow the ratio most.
    """

    objective: str
    point: int
    rival: int
    ratio: Interval
    better: float
    measure: Decider | None


@dataclass(frozen=True, slots=True)
class Choice(Drawn):
    """How sure the best points of a space are.

    Attributes
    ----------
    without : int
        Points that were to be drawn and have no answer, or none around their own.
    contenders : tuple of Contender
        The best by the estimates first.
    lead : Lead or None
        None of a single point.
    """

    without: int
    contenders: tuple[Contender, ...]
    lead: Lead | None


def _known(costs: Array) -> Array:
    """Costs of the draws in which any point has one, infinite where a point has none; shape (points, draws)."""
    finite = np.where(np.isnan(costs), np.inf, costs)
    return finite[:, np.isfinite(finite).any(axis=0)]


def best_shares(costs: Array) -> Array:
    """Share of draws in which each point is the best; equal ones divide the draw, so that shares add up to 1.

    Parameters
    ----------
    costs : float64 array, shape (points, draws)
        To be small; NaN or infinite where a point has no answer.

    Examples
    --------
    >>> best_shares(np.array([[1.0, 3.0, 2.0, np.nan], [2.0, 2.0, 2.0, 5.0]])).tolist()
    [0.375, 0.625]
    """
    known = _known(costs)
    first = known == known.min(axis=0)
    return np.asarray((first / first.sum(axis=0)).mean(axis=1)) if known.size else np.full(len(costs), np.nan)


def close_shares(costs: Array, by: float = CLOSE_BY) -> Array:
    """Share of draws in which each point is the best or less than `by` of the best's value behind it.

    Examples
    --------
    >>> close_shares(np.array([[-100.0, -100.0], [-99.0, -97.0]])).tolist()
    [1.0, 0.5]
    """
    known = _known(costs)
    least = known.min(axis=0)
    return np.asarray((known <= least + by * np.abs(least)).mean(axis=1)) if known.size else np.full(len(costs), np.nan)


def front_shares(costs: Array) -> Array:
    """Share of draws in which each point is in the Pareto front of them.

    Parameters
    ----------
    costs : float64 array, shape (points, draws, objectives)
        NaN or infinite where a point has no answer: then it is in no front.
    """
    known: NDArray[np.bool_] = np.asarray(np.isfinite(costs).all(axis=2))
    found = np.zeros(known.shape, dtype=np.bool_)
    for draw in range(costs.shape[1]):
        rows = np.flatnonzero(known[:, draw])
        if len(rows):
            found[rows, draw] = pareto_front(costs[rows, draw])
    some: NDArray[np.bool_] = np.asarray(known.any(axis=0))
    return np.asarray(found[:, some].mean(axis=1)) if some.any() else np.full(len(costs), np.nan)
