"""How sure a plan is: whether it carries the demand in systems whose constants are a little different, and what would.

The demand is the one that was planned for: forecast exceeded, reserve failed. In a draw the plan carries it if its
prompts can be divided among its pools, at every hour, so that each has instances enough: what goes where is decided
when it comes, and by then it shows what instances carry. Arrivals at an instance stay as irregular as behind the plan's
router: those behind more instances are less so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.planning.answer import letters
from asapmodel.planning.dividing import Division
from asapmodel.planning.drawn_needs import DrawnNeeds, drawn_needs
from asapmodel.planning.search import Search
from asapmodel.planning.settling import Settled
from asapmodel.planning.share_program import FULL, counts_for_share
from asapmodel.solvers.integer_program import Infeasible, NotSolved
from asapmodel.uncertainties.answer import Drawn, Interval, interval_of
from asapmodel.uncertainties.deciding import Decider, decider_of

__all__ = ["ENOUGH", "DrawnFleetPool", "DrawnPlan", "Enough", "drawn_plan"]

Array = NDArray[np.float64]

ENOUGH = 0.9
"""Share of the draws for which instances are added."""


@dataclass(frozen=True, slots=True)
class DrawnFleetPool:
    """A pool of the plan.

    Attributes
    ----------
    name, type : str
        As in the plan.
    hour : int
        Of the day, at which it is fullest.
    carries : Interval
        What an instance carries of that hour's mix, requests/s.
    needs : Interval
        Instances that the shares of the plan need, at the worst hour of each draw; not rounded.
    carrying : int
        Instances that carry: there are as many more as are in reserve.
    """

    name: str
    type: str
    hour: int
    carries: Interval
    needs: Interval
    carrying: int


@dataclass(frozen=True, slots=True)
class Enough:
    """What carries the demand in a share of the draws: instances by pool, what is added, and in which share it does.

    `added` is in units of `minimise`.
    """

    counts: tuple[int, ...]
    instances: int
    devices: int
    added: float
    carried: float


@dataclass(frozen=True, slots=True)
class DrawnPlan(Drawn):
    """How sure a plan is.

    Attributes
    ----------
    failed : int
        Draws that the model has no answer for.
    carried : float
        Share of the draws in which the plan carries the demand.
    full : Interval
        Needed over carrying instances of the fullest pool at the fullest hour, prompts divided as well as can be: the
        plan carries up to 1.
    pools : tuple of DrawnFleetPool
        As in the plan.
    share : float
        That `enough` was asked for.
    enough : Enough or None
        The least addition to the plan that carries in that share; None if there is none within the limits.
    measure : Decider or None
        What would narrow `full` most.
    """

    failed: int
    carried: float
    full: Interval
    pools: tuple[DrawnFleetPool, ...]
    share: float
    enough: Enough | None
    measure: Decider | None


def drawn_plan(
    search: Search,
    settled: Settled,
    *,
    samples: int,
    seed: int,
    level: float,
    progress: Callable[[str], None] | None = None,
) -> DrawnPlan:
    """Draw the constants of the types that a plan uses; see `asapmodel.verbs.plan.plan`."""
    drawn = drawn_needs(search, settled, samples, seed, progress)
    counts = [int(settled.fleet.instances[one.pool]) for one in drawn.pools]
    carrying = np.array(counts, dtype=np.int64) - search.demand.fleet.reserve
    full = _full(drawn.division, carrying)
    values = drawn.shared.values[drawn.known]
    return DrawnPlan(
        level=level,
        samples=samples,
        seed=seed,
        constants=tuple(one.key for one in drawn.shared.sources.constants),
        outside=drawn.shared.outside,
        failed=samples - len(full),
        carried=_carried(full),
        full=interval_of(float(_full(drawn.middle, carrying)[0]), full, level),
        pools=_pools(search, drawn, carrying.tolist(), level),
        share=ENOUGH,
        enough=_enough(search, drawn, counts),
        measure=decider_of(drawn.shared.sources, values, full, level, seed),
    )


def _full(division: Division, carrying: NDArray[np.int64]) -> Array:
    """How full the fullest pool is at the fullest hour of every draw."""
    return np.asarray(division.divided(carrying).full.max(axis=1))


def _carried(full: Array) -> float:
    return float(np.mean(full <= FULL)) if len(full) else float("nan")


def _pools(search: Search, drawn: DrawnNeeds, carrying: list[int], level: float) -> tuple[DrawnFleetPool, ...]:
    return tuple(
        DrawnFleetPool(
            name=letters(place),
            type=search.pools[one.pool].kind,
            hour=search.busy[one.hour],
            carries=interval_of(one.carries, one.carries * one.times, level),
            needs=interval_of(one.full, one.needs, level),
            carrying=count,
        )
        for place, (one, count) in enumerate(zip(drawn.pools, carrying, strict=True))
    )


def _enough(search: Search, drawn: DrawnNeeds, counts: list[int]) -> Enough | None:
    """The least addition that is enough in the share of the draws."""
    problem = search.problem()
    kinds = [search.pools[one.pool].kind for one in drawn.pools]
    if not len(drawn.division.need):
        return None
    try:
        found = counts_for_share(problem, kinds, counts, drawn.division, ENOUGH)
    except (Infeasible, NotSolved):
        return None
    devices = np.array([problem.sizes[kind] for kind in kinds])
    weights = np.array([problem.weights[kind] for kind in kinds])
    return Enough(
        counts=tuple(found.tolist()),
        instances=int(found.sum()),
        devices=int(found @ devices),
        added=float((found - np.array(counts)) @ weights),
        carried=_carried(_full(drawn.division, found - search.demand.fleet.reserve)),
    )
