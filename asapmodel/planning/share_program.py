"""How many instances the pools of a plan must have so that they carry the demand in a share of draws.

A low quantile of each pool is something else: draws that are hard on one pool may be easy on another, and prompts can
be divided anew. Draw `d` counts as carried (`z_d` = 1) if all its cuts hold (`asapmodel.planning.dividing`)::

    minimise    sum_p w_p n_p,      n_p = m_p + k
    such that   sum_p c_p m_p >= f z_d            every cut (c, f) of draw d that is known
                sum_d z_d >= share * draws
                m_p >= what the plan has,         n_p within the limits of types and supernodes

Its solution is divided in every draw that it counts; where it does not carry, the cut that says so is added, and it is
solved again. When it carries everywhere no numbers are less: exact over these draws. `k` are the instances that may
fail.
"""

import math
from collections.abc import Sequence

import numpy as np
import pulp
from numpy.typing import NDArray

from asapmodel.planning.dividing import Divided, Division
from asapmodel.planning.program import FleetProblem, fill_supernodes
from asapmodel.solvers.integer_program import Infeasible, NotSolved, minimise

__all__ = ["FULL", "counts_for_share"]

Ints = NDArray[np.int64]
Cut = tuple[int, tuple[float, ...], float]

FULL = 1.0 + 1e-6
"""How full pools may be and still carry: what solvers are exact to."""

_SLACK = 1e-9  # a share of the draws, as a number of them
_ROUNDS = 100
_SECONDS = 20.0  # for one program


def counts_for_share(
    problem: FleetProblem, kinds: Sequence[str], least: Sequence[int], division: Division, share: float
) -> Ints:
    """Instances of every pool, reserve included.

    Parameters
    ----------
    problem : FleetProblem
        Weights, sizes, limits, reserve.
    kinds : sequence of str
        Types of the pools.
    least : sequence of int
        Instances that each has at least, reserve included and more than that.
    division : Division
        What the pools need in the draws.
    share : float
        Of the draws in which the demand is to be carried.

    Raises
    ------
    Infeasible
        If no numbers are enough within the limits.
    NotSolved
        If none were found in time.
    """
    low = np.array(least, dtype=np.int64) - problem.reserve
    draws = len(division.need)
    needed = math.ceil(share * draws - _SLACK)
    found, cuts, able = low, list[Cut](), np.ones(draws, dtype=np.bool_)
    for _ in range(_ROUNDS):
        divided = division.divided(found)
        able &= np.isfinite(divided.full).all(axis=1)
        if np.sum(divided.full.max(axis=1) <= FULL) >= needed:
            return found + problem.reserve
        if able.sum() < needed:
            raise Infeasible("in too many draws no number of instances is enough")
        cuts += _cuts(divided, able)
        found = _solved(problem, kinds, low, np.flatnonzero(able).tolist(), cuts, needed)
    raise NotSolved(f"not carried in the share of the draws after {_ROUNDS} programs")


def _cuts(divided: Divided, able: NDArray[np.bool_]) -> list[Cut]:
    """Of every draw and hour in which the pools are too full."""
    return [
        (int(d), tuple(divided.duals[d, h].tolist()), float(divided.full[d, h]))
        for d, h in np.argwhere((divided.full > FULL) & able[:, None])
    ]


def _solved(
    problem: FleetProblem, kinds: Sequence[str], low: Ints, able: Sequence[int], cuts: Sequence[Cut], needed: int
) -> Ints:
    """The least numbers by the cuts that are known."""
    program = pulp.LpProblem("share", pulp.LpMinimize)
    carrying = [program.add_variable(f"m{p}", int(n), cat=pulp.LpInteger) for p, n in enumerate(low)]
    count = [one + problem.reserve for one in carrying]
    carried = {d: program.add_variable(f"z{d}", 0, 1, cat=pulp.LpInteger) for d in able}
    for d, weights, full in cuts:
        program += pulp.lpSum([w * m for w, m in zip(weights, carrying, strict=True) if w]) >= full * carried[d] / FULL
    program += pulp.lpSum(list(carried.values())) >= needed
    for kind, limit in problem.available.items():
        program += pulp.lpSum([n for n, name in zip(count, kinds, strict=True) if name == kind]) <= limit
    filled = fill_supernodes(program, problem, kinds, count)
    total = pulp.lpSum([problem.weights[name] * n for name, n in zip(kinds, count, strict=True)])
    program.setObjective(total + problem.supernode_weight * pulp.lpSum(filled))
    minimise(program, gap=0.0, time_limit=_SECONDS)
    return np.array([round(one.value()) for one in carrying], dtype=np.int64)
