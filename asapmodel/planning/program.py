"""The integer program: instances of every candidate pool and the share of its prompts it serves at every hour.

Pool `p` is of type `t(p)` and serves the segments `S(p)`. It has `m_p` instances that carry, an integer, and if it is
open (`y_p` = 1) `k` more that may fail; it serves the share `x_ph` of each of its segments at hour `h`. It needs `N_ph`
instances to serve all of them::

    minimise    sum_p w_t(p) n_p,   n_p = m_p + k y_p
    such that   sum_{p: s in S(p)} x_ph  = 1                 every segment with arrivals at every hour
                N_ph x_ph               <= m_p
                x_ph                    <= y_p <= m_p        only with k > 0
                sum_{p: t(p) = t} n_p   <= available_t
                sum_j a_ij z_j          >= sum_{p: size i} n_p    z_j supernodes filled in the j-th way
                sum_j z_j               <= max_supernodes

`N_ph` is proportional to the traffic for a given mix, so `N_ph x_ph` is what the share needs: the program is exact for
pools of this form. With `x_ph = y_p` no segment is divided among pools: a smaller program, and where it is as good as
the other its answer is taken, for there is less to route. Else pools are closed one by one as long as that costs
nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pulp
from numpy.typing import NDArray

from asapmodel.planning.candidates import Pool
from asapmodel.solvers.integer_program import Infeasible, NotSolved, Solved, maximal_patterns, minimise

__all__ = ["Fleet", "FleetProblem", "fill_supernodes", "pack", "solve", "undominated", "with_fewer_pools"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEGLIGIBLE = 1e-6  # share
_SAME = 1e-7  # relative difference of objectives that is none


@dataclass(frozen=True, slots=True, eq=False)
class FleetProblem:
    """Everything the program is made of.

    Attributes
    ----------
    pools : sequence of Pool
        Candidates.
    need : array (pools, hours)
        Instances to serve all arrivals of the pool's segments; infinite where it cannot.
    active : array of bool (segments, hours)
        Whether there are arrivals.
    weights, sizes : mapping
        By type: what an instance adds to the objective, and its devices.
    available : mapping
        Limits by type; types without limit are left out.
    reserve : int
        Instances of a pool that may fail.
    supernode, max_supernodes : int, optional
        Devices of a supernode, and how many there are.
    supernode_weight : float
        What a supernode adds to the objective.
    whole : bool
        Whether every segment goes to one pool, at all hours.
    """

    pools: Sequence[Pool]
    need: Floats
    active: NDArray[np.bool_]
    weights: Mapping[str, float]
    sizes: Mapping[str, int]
    available: Mapping[str, int] = field(default_factory=dict)
    reserve: int = 0
    supernode: int | None = None
    max_supernodes: int | None = None
    supernode_weight: float = 0.0
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """A solution: instances by pool, reserve included, shares by pool and hour, objective and its lower bound."""

    instances: Ints
    share: Floats
    solved: Solved

    def used(self) -> list[tuple[int, int]]:
        """Pool and hour of every share that is not 0."""
        return [(int(p), int(h)) for p, h in np.argwhere(self.share > 0)]


def solve(problem: FleetProblem, gap: float = 1e-4, time_limit: float = 60.0) -> Fleet:
    """Find the best fleet.

    Raises
    ------
    Infeasible, NotSolved
        See `asapmodel.solvers.integer_program.minimise`.
    """
    program = pulp.LpProblem("fleet", pulp.LpMinimize)
    names = _names(program, problem)
    count = [m + problem.reserve * names.is_open[p] if names.is_open else m for p, m in enumerate(names.carrying)]
    _serve(program, problem, names)
    for kind, limit in problem.available.items():
        program += pulp.lpSum([n for n, pool in zip(count, problem.pools, strict=True) if pool.kind == kind]) <= limit
    filled = fill_supernodes(program, problem, [pool.kind for pool in problem.pools], count)
    total = pulp.lpSum([problem.weights[pool.kind] * n for pool, n in zip(problem.pools, count, strict=True)])
    program.setObjective(total + problem.supernode_weight * pulp.lpSum(filled))
    return _fleet(names, problem, minimise(program, gap, time_limit))


def undominated(problem: FleetProblem) -> set[int]:
    """Pools without those for which another type of the same size serves the same segments with less at every hour.

    That type has to be no dearer and without limit; then every fleet with the former is as good with the latter.
    """
    kept = set(range(len(problem.pools)))
    for p, one in enumerate(problem.pools):
        for q, other in enumerate(problem.pools):
            same = one.segments == other.segments and problem.sizes[one.kind] == problem.sizes[other.kind]
            if q not in kept or p == q or not same or other.kind in problem.available:
                continue
            cheaper = problem.weights[other.kind] <= problem.weights[one.kind]
            if cheaper and bool(np.all(problem.need[q] <= problem.need[p])):
                kept.discard(p)
    return kept


def with_fewer_pools(problem: FleetProblem, fleet: Fleet) -> Fleet:
    """A fleet that is as good with fewer pools, if one is found: undivided segments, else by closing pools in turn."""
    try:
        found = solve(replace(problem, whole=True))
        if found.solved.value <= fleet.solved.value * (1.0 + _SAME):
            fleet = replace(found, solved=fleet.solved)
    except (Infeasible, NotSolved):
        pass
    for p in sorted(np.flatnonzero(fleet.instances), key=lambda p: int(fleet.instances[p])):
        kept = np.array([count > 0 and q != p for q, count in enumerate(fleet.instances)])
        try:
            found = solve(replace(problem, need=np.where(kept[:, None], problem.need, np.inf)))
        except (Infeasible, NotSolved):
            continue
        if found.solved.value <= fleet.solved.value * (1.0 + _SAME):
            fleet = replace(found, solved=fleet.solved)
    return fleet


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """The variables of a program."""

    carrying: list[pulp.LpVariable]
    is_open: list[pulp.LpVariable]
    share: dict[tuple[int, int], pulp.LpVariable]


def _names(program: pulp.LpProblem, problem: FleetProblem) -> _Names:
    """Variables; with `whole` a share is the variable that says whether the pool is open."""
    pools, hours = range(len(problem.pools)), range(problem.need.shape[1])
    carrying = [program.add_variable(f"m{p}", 0, cat=pulp.LpInteger) for p in pools]
    opens = problem.whole or problem.reserve > 0
    is_open = [program.add_variable(f"y{p}", 0, 1, cat=pulp.LpInteger) for p in pools] if opens else []
    served = [(p, h) for p in pools for h in hours if 0 < problem.need[p, h] < np.inf]
    if problem.whole:
        able = {p for p in pools if np.isfinite(problem.need[p]).all()}
        return _Names(carrying, is_open, {(p, h): is_open[p] for p, h in served if p in able})
    return _Names(carrying, is_open, {(p, h): program.add_variable(f"x{p}_{h}", 0, 1) for p, h in served})


def _fleet(names: _Names, problem: FleetProblem, solved: Solved) -> Fleet:
    """The values of the variables."""
    share = np.zeros(problem.need.shape)
    for place, one in names.share.items():
        value = float(one.value() or 0.0)
        share[place] = value if value > _NEGLIGIBLE else 0.0
    counts = np.array([round(one.value() or 0.0) for one in names.carrying], dtype=np.int64)
    if names.is_open:
        counts += problem.reserve * np.array([round(one.value() or 0.0) for one in names.is_open], dtype=np.int64)
    return Fleet(counts, share, solved)


def _serve(program: pulp.LpProblem, problem: FleetProblem, names: _Names) -> None:
    """All arrivals are served, by instances that are there."""
    for (p, h), share in names.share.items():
        program += problem.need[p, h] * share <= names.carrying[p]
        if names.is_open and not problem.whole:
            program += share <= names.is_open[p]
    for is_open, carrying in zip(names.is_open, names.carrying, strict=False):
        program += is_open <= carrying
    for s, h in np.argwhere(problem.active):
        serving = [one for (p, hour), one in names.share.items() if hour == h and s in problem.pools[p].segments]
        program += pulp.lpSum(serving) == 1


def fill_supernodes(
    program: pulp.LpProblem, problem: FleetProblem, kinds: Sequence[str], count: Sequence[pulp.LpAffineExpression]
) -> list[pulp.LpVariable]:
    """Supernodes by the way they are filled with instances of these types, where their number matters."""
    if problem.supernode is None or (problem.max_supernodes is None and not problem.supernode_weight):
        return []
    sizes = sorted({problem.sizes[kind] for kind in kinds}, reverse=True)
    patterns = maximal_patterns(sizes, problem.supernode)
    filled = [program.add_variable(f"z{j}", 0, cat=pulp.LpInteger) for j in range(len(patterns))]
    for i, size in enumerate(sizes):
        wanted = [n for n, kind in zip(count, kinds, strict=True) if problem.sizes[kind] == size]
        room = pulp.lpSum(pattern[i] * z for pattern, z in zip(patterns, filled, strict=True))
        program += room >= pulp.lpSum(wanted)
    if problem.max_supernodes is not None:
        program += pulp.lpSum(filled) <= problem.max_supernodes
    return filled


def pack(counts: Mapping[int, int], supernode: int) -> list[tuple[dict[int, int], int]]:
    """The fewest supernodes that hold instances of these sizes, none of which spans two.

    Parameters
    ----------
    counts : mapping
        Instances by size, devices.
    supernode : int
        Devices of a supernode.

    Returns
    -------
    list of (dict, int)
        How a supernode is filled (instances by size, room to spare not taken off), and how many are.

    Examples
    --------
    >>> pack({32: 13}, 384)
    [({32: 12}, 2)]
    """
    sizes = sorted((size for size, count in counts.items() if count), reverse=True)
    if not sizes:
        return []
    patterns = maximal_patterns(sizes, supernode)
    program = pulp.LpProblem("packing", pulp.LpMinimize)
    filled = [program.add_variable(f"z{j}", 0, cat=pulp.LpInteger) for j in range(len(patterns))]
    program.setObjective(pulp.lpSum(filled))
    for i, size in enumerate(sizes):
        program += pulp.lpSum(pattern[i] * z for pattern, z in zip(patterns, filled, strict=True)) >= counts[size]
    minimise(program, gap=0.0)
    return [
        (dict(zip(sizes, pattern, strict=True)), round(z.value()))
        for pattern, z in zip(patterns, filled, strict=True)
        if round(z.value())
    ]
