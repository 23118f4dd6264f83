"""What the pools of a plan need in drawn systems: instances, hour by hour, with the same constants in all pools.

With the constants at their estimates a pool needs `N_h` instances for all it serves at an hour, as the plan has found.
In draw `d` an instance carries `t_dh` times what it carried of the hour's mix, and the pool needs `N_h / t_dh`.

What drawn instances carry is found by short walks around the load at which the instance is full. These are rough by
half a per cent, which is as much as a plan leaves room for, and the estimates are as rough as the draws. So a quadratic
in the constants is put through the logarithm, and `t` is its rise from the estimates: the roughness averages out of
both. Where the quadratic leaves more than walks are rough by, the draws are taken as they are.

An hour that is less full than the fullest one matters only if its need grows by more. It is left out if it would have
to grow by more, relative to that of the fullest, than that one itself moves in any draw; then it is taken to move as
that one does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import layer_costs
from asapmodel.engines.effort import STEADY, Effort
from asapmodel.engines.side_by_side import side_by_side
from asapmodel.errors import InputError
from asapmodel.planning.dividing import Division
from asapmodel.planning.instance import Instance, scenario_of
from asapmodel.planning.search import Search
from asapmodel.planning.settling import Settled
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.uncertainties.drawing import Shared, shared_draws
from asapmodel.uncertainties.learning import surface_of
from asapmodel.uncertainties.sampling import Look, costs_with
from asapmodel.uncertainties.sources import Source

__all__ = ["DrawnNeeds", "DrawnPool", "drawn_needs"]

Array = NDArray[np.float64]

_TOLERANCE = 3e-4  # of a capacity: ratios are to be smooth
_ROUGH = 0.01  # of walks: deviation of a logarithm
_WALKS, _LOCKSTEP = (1400, 1400), ((2500, 1), (4000, 2))  # prompts of the two walks, and every how many are kept


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPool:
    """A pool of the plan.

    Attributes
    ----------
    pool, hour : int
        Its number among the candidates, and the place of its fullest among the busy hours.
    carries : float
        What an instance carries at that hour, requests/s.
    times : array (draws,)
        What it carries in each draw over that; 0 where prompts that meet no other miss an objective, NaN where the
        model has no answer.
    full : float
        Instances that its share needs at that hour.
    needs : array (draws,)
        Instances that the shares of the plan need in each draw, at the worst hour.
    """

    pool: int
    hour: int
    carries: float
    times: Array
    full: float
    needs: Array


@dataclass(frozen=True, slots=True, eq=False)
class DrawnNeeds:
    """The pools of a plan in the draws that they share.

    `middle` and `division` say what they need by the estimates and in every draw that has an answer, at all hours, to
    serve all of what they could; `known` are the draws that have one.
    """

    pools: tuple[DrawnPool, ...]
    shared: Shared
    middle: Division
    division: Division
    known: NDArray[np.bool_]


def drawn_needs(
    search: Search, settled: Settled, samples: int, seed: int, progress: Callable[[str], None] | None = None
) -> DrawnNeeds:
    """Draw the constants of the types of a plan, and see what each of its pools needs.

    Raises
    ------
    InputError
        If what is stated of a constant is not valid, or hardly any draw is possible.
    """
    pools = [_pool(search, settled, int(p)) for p in np.flatnonzero(settled.fleet.instances)]
    shared = shared_draws([(one.scenario, layer_costs(one.scenario).costs) for one in pools], samples, seed)
    found, drawn = [], []
    for k, one in enumerate(pools):
        if progress is not None:
            progress(f"{samples} draws of pool {k + 1} of {len(pools)}")
        ask = partial(_times, one, shared.own[k].constants, shared.values_of(k))
        times = ask([0])
        others = _also(one.filled, times[0])
        every = np.vstack([times, ask(others)]) if others else times
        whole = np.broadcast_to(times[0], (len(search.busy), samples)).copy()
        whole[[one.hours[other] for other in others]] = every[1:]
        with np.errstate(divide="ignore"):
            needs = np.max(one.filled[[0, *others], None] / every, axis=0)
            drawn.append(_needs(search, one.pool)[:, None] / whole)
        found.append(DrawnPool(one.pool, one.hours[0], one.carries, times[0], float(one.filled[0]), needs))
    return DrawnNeeds(tuple(found), shared, *_divisions(search, pools, np.array(drawn)))


def _needs(search: Search, p: int) -> Array:
    """Instances to serve all arrivals of a pool's segments, by busy hour; infinite where nobody has looked."""
    known = {h: entry for (q, h), entry in search.entries.items() if q == p and entry.level != "guess"}
    return np.array([known[h].need if h in known else np.inf for h in range(len(search.busy))])


def _divisions(search: Search, pools: Sequence["_Pool"], drawn: Array) -> tuple[Division, Division, NDArray[np.bool_]]:
    """By the estimates, and in the draws that have an answer; `drawn` is (pools, hours, draws)."""
    serves = np.zeros((len(pools), len(search.segments)), dtype=np.bool_)
    for place, one in enumerate(pools):
        serves[place, list(search.pools[one.pool].segments)] = True
    active: NDArray[np.bool_] = np.asarray(search.rates > 0)
    middle = np.array([[_needs(search, one.pool) for one in pools]])
    need = np.moveaxis(drawn, 2, 0)
    known: NDArray[np.bool_] = np.asarray(~np.isnan(need).any(axis=(1, 2)))
    return Division(middle, serves, active), Division(need[known], serves, active), known


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """A pool of the plan by hour, the fullest first: instances that its share fills, and one of them.

    `carries` is what that one carries at the first of them, requests/s.
    """

    pool: int
    scenario: Scenario
    hours: list[int]
    filled: Array
    instances: list[Instance]
    carries: float


def _pool(search: Search, settled: Settled, p: int) -> _Pool:
    share = settled.fleet.share[p]
    filled = {int(h): float(share[h]) * search.entries[p, int(h)].need for h in np.flatnonzero(share)}
    hours = sorted(filled, key=lambda h: -filled[h])
    instances = []
    for h in hours:
        instance = search.entries[p, h].instance
        assert instance is not None  # what a plan uses has been looked at
        instances.append(instance)
    carries = float(search.rates_of(p, hours[0]).sum()) / search.entries[p, hours[0]].need
    scenario = scenario_of(instances[0].kind, instances[0].mix)
    return _Pool(p, scenario, hours, np.array([filled[h] for h in hours]), instances, carries)


def _also(filled: Array, times: Array) -> list[int]:
    """Further hours, by place, that could be the worst in some draw."""
    known = times[np.isfinite(times) & (times > 0)]
    reach = float(np.abs(np.log(known)).max()) if len(known) else 0.0
    return [k for k in range(1, len(filled)) if math.log(filled[0] / filled[k]) <= reach]


def _times(pool: _Pool, constants: Sequence[Source], values: Array, hours: Sequence[int]) -> Array:
    """How many times what it carries by the estimates an instance carries in each draw; shape (hours, draws)."""
    if not constants:
        return np.ones((len(hours), len(values)))
    chosen = [pool.instances[h] for h in hours]
    instances = [replace(one, effort=_effort(one), tolerance=_TOLERANCE) for one in chosen]
    ask = partial(_carried, pool.scenario, constants, instances)
    middle = np.array([one.law.value for one in constants])
    rows = np.array(side_by_side(ask, [middle.tolist(), *values.tolist()]))
    return np.array([_smooth(row[1:], float(row[0]), values, middle) for row in rows.T])


def _smooth(carried: Array, base: float, values: Array, middle: Array) -> Array:
    """Capacities over that of the estimates; by a quadratic where what that leaves is within the roughness of walks."""
    times = carried / (base if base > 0 else math.nan)
    surface = surface_of(values, times)
    usable = np.isfinite(times) & (times > 0)
    if surface is None or (1.0 - surface.explained) * np.log(times[usable]).var() > _ROUGH**2:
        return times
    return np.where(usable, np.exp(surface(values) - surface(middle[None, :])), times)


def _effort(instance: Instance) -> Effort:
    """Two walks around the load at which it is full: the same loads in every draw, as errors change with the load."""
    loads = Look.around(instance.capacity, instance.limit).loads
    walks = tuple(zip(loads, _WALKS, strict=True))
    lockstep = tuple((load, *length) for load, length in zip(loads, _LOCKSTEP, strict=True))
    return replace(STEADY, step=_WALKS[0], walks=walks, lockstep_light=(0, 1), lockstep_walks=lockstep)


def _carried(
    scenario: Scenario, constants: Sequence[Source], instances: Sequence[Instance], row: Sequence[float]
) -> list[float]:
    """What instances carry if the constants are so, requests/s; NaN where there is no answer."""
    try:
        costs = costs_with(scenario, constants, row)
        return [replace(one, costs=costs).capacity for one in instances]
    except (InputError, QueueError):
        return [math.nan] * len(instances)
