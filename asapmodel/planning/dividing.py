"""How full pools are if prompts are divided among them as well as can be: a linear program for every draw and hour.

Pool p would need `N_p` instances to serve all prompts of its segments, and has `m_p`. With shares `x_p` it is
`N_p x_p / m_p` full. The least that the fullest pool can be is::

    minimise    f
    such that   N_p x_p / m_p <= f                     every pool        dual u_p >= 0,  sum_p u_p = 1
                sum_{p serves s} x_p = 1,  x_p >= 0    every segment     dual v_s,       sum_s v_s = f

and the pools carry everything exactly if `f <= 1`. The duals say what it takes with other numbers `m'`: for any shares
that serve all,

    f = sum_s v_s = sum_p x_p sum_{s in p} v_s <= sum_p x_p N_p u_p / m_p <= sum_p u_p m'_p / m_p

if they carry, so `sum_p (u_p / m_p) m'_p >= f` is necessary: a cut for the program that looks for numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Divided", "Division"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """How full the fullest pool is at least, by draw and hour, and the duals over `m`, by draw, hour and pool.

    Infinite, with duals of 0, where some segment is served by no pool.
    """

    full: Array
    duals: Array


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """Pools among which prompts are divided.

    Attributes
    ----------
    need : array (draws, pools, hours)
        Instances to serve all prompts of a pool's segments; infinite where it cannot.
    serves : array of bool (pools, segments)
        Which segments a pool serves.
    active : array of bool (segments, hours)
        Whether there are arrivals.
    """

    need: Array
    serves: Bools
    active: Bools

    def divided(self, carrying: NDArray[np.int64]) -> Divided:
        """Divide as well as can be among so many instances, the same in all draws.

        Examples
        --------
        >>> need = np.array([[[2.0], [3.0]]])
        >>> both = Division(need, np.array([[True], [True]]), np.array([[True]]))
        >>> float(both.divided(np.array([1, 1])).full.round(9)[0, 0])  # 2 x = 3 (1 - x) at x = 0.6
        1.2
        """
        draws, pools, hours = self.need.shape
        full, duals = np.zeros((draws, hours)), np.zeros((draws, hours, pools))
        for h in range(hours):
            there = self.serves & self.active[None, :, h]
            able = np.isfinite(self.need[:, :, h]) & there.any(axis=1)
            for pattern in np.unique(able, axis=0):  # draws in which the same pools can serve
                alike = np.flatnonzero((able == pattern).all(axis=1))
                own = np.flatnonzero(pattern)
                segments = there[own][:, self.active[:, h]]
                if not segments.any(axis=0).all():
                    full[alike, h] = np.inf
                    continue
                ratio = self.need[:, :, h][np.ix_(alike, own)] / carrying[own]
                single = (segments.sum(axis=0) == 1).all()
                found, weights = _alone(ratio) if single else _shared(ratio, segments)
                full[alike, h] = found
                duals[alike[:, None], h, own[None, :]] = weights / carrying[own]
        return Divided(full, duals)


def _alone(ratio: Array) -> tuple[Array, Array]:
    """Every segment has one pool: nothing to divide."""
    weights = np.zeros(ratio.shape)
    weights[np.arange(len(ratio)), ratio.argmax(axis=1)] = 1.0
    return ratio.max(axis=1), weights


def _shared(ratio: Array, segments: Bools) -> tuple[Array, Array]:
    """One program with a block a draw; `ratio` is (draws, pools), `segments` (pools, segments)."""
    from scipy import sparse
    from scipy.optimize import linprog

    draws, pools = ratio.shape
    eye = sparse.identity(draws, format="csr")
    block = sparse.hstack([sparse.csr_matrix(segments.T.astype(np.float64)), sparse.csr_matrix((segments.shape[1], 1))])
    served = sparse.kron(eye, block, format="csr")
    rows = np.arange(draws * pools)
    x = (np.arange(draws)[:, None] * (pools + 1) + np.arange(pools)).ravel()
    f = np.repeat(np.arange(draws) * (pools + 1) + pools, pools)
    data, columns = np.concatenate([ratio.ravel(), -np.ones(draws * pools)]), np.concatenate([x, f])
    within = sparse.csr_matrix((data, (np.tile(rows, 2), columns)), shape=(draws * pools, draws * (pools + 1)))
    cost = np.tile([*[0.0] * pools, 1.0], draws)
    limits, ones = np.zeros(draws * pools), np.ones(served.shape[0])
    found = linprog(cost, within, limits, served, ones, bounds=(0, None), method="highs")  # type: ignore[call-overload]
    full = found.x[pools :: pools + 1]
    return full, np.maximum(-found.ineqlin.marginals.reshape(draws, pools), 0.0)
