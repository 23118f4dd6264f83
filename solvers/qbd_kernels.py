"""Linear algebra of M-matrices without subtractions, compiled.

The matrices of Markov chains that lose mass, `M = diag(excess + row sums of off) - off` with `off >= 0` off the
diagonal and `excess >= 0`, are kept as the pair (`off`, `excess`): the diagonal is never stored, each pivot is summed
anew from non-negative numbers. Every entry of the results then has a small relative error, however nearly singular `M`
is (Grassmann, Taksar and Heyman, Oper. Res. 33 (1985); Alfa, Xue and Ye, Math. Comp. 71 (2002)).

The diagonal of `off` is ignored everywhere. Arrays are C-contiguous floats of shape (n, n), (n,) and (n, m).
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import njit

__all__ = ["factor", "fold", "logarithmic_reduction", "null_vector", "solve", "solve_left"]

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def factor(off: Floats, excess: Floats) -> Floats:
    """Factors of `M = L U` in one array: multipliers of `L` (non-negative) below, pivots on, `-U` above the diagonal.

    A pivot of 0 (the chain loses no mass from there) is stored as 0; `solve` then divides by zero.
    """
    n = len(off)
    lu = off.copy()
    rest = excess.copy()
    for k in range(n):
        pivot = rest[k]
        for j in range(k + 1, n):
            pivot += lu[k, j]
        lu[k, k] = pivot
        if pivot == 0.0:
            continue
        for i in range(k + 1, n):
            if lu[i, k] != 0.0:
                f = lu[i, k] / pivot
                lu[i, k] = f
                rest[i] += f * rest[k]
                for j in range(k + 1, n):
                    lu[i, j] += f * lu[k, j]
    return lu


@njit(cache=True, nogil=True)
def solve(lu: Floats, right: Floats) -> Floats:
    """X of `M X = right`, from `factor(M)`; `right` of shape (n, m)."""
    n, m = right.shape
    x = right.copy()
    for i in range(n):
        for k in range(i):
            f = lu[i, k]
            if f != 0.0:
                for j in range(m):
                    x[i, j] += f * x[k, j]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            f = lu[i, k]
            if f != 0.0:
                for j in range(m):
                    x[i, j] += f * x[k, j]
        for j in range(m):
            x[i, j] /= lu[i, i]
    return x


@njit(cache=True, nogil=True)
def solve_left(lu: Floats, left: Floats) -> Floats:
    """X of `X M = left`, from `factor(M)`; `left` of shape (m, n)."""
    m, n = left.shape
    x = left.copy()
    for r in range(m):
        for k in range(n):
            x[r, k] /= lu[k, k]
            f = x[r, k]
            for j in range(k + 1, n):
                x[r, j] += f * lu[k, j]
        for k in range(n - 1, -1, -1):
            f = x[r, k]
            for j in range(k):
                x[r, j] += f * lu[k, j]
    return x


@njit(cache=True, nogil=True)
def fold(off: Floats, up: Floats, down_above: Floats, lu_above: Floats, down: Floats) -> tuple[Floats, Floats]:
    """Rates within a level when the levels above it are watched only through their returns, and their factors.

    `off + up M^-1 down_above` with `M` of the level above, given as `lu_above`; the rates that leave are the row sums
    of `down`.
    """
    inside = off + up @ solve(lu_above, down_above)
    return inside, factor(inside, down.sum(axis=1))


@njit(cache=True, nogil=True)
def null_vector(off: Floats) -> Floats:
    """Stationary vector of the chain with the rates `off`, by elimination from the last state; sums to 1.

    NaN unless there is one closed class and state 0 is in it.
    """
    n = len(off)
    a = off.copy()
    for k in range(n - 1, 0, -1):
        pivot = 0.0
        for j in range(k):
            pivot += a[k, j]
        if pivot == 0.0:
            return np.full(n, np.nan)
        for i in range(k):
            if a[i, k] != 0.0:
                f = a[i, k] / pivot
                a[i, k] = f
                for j in range(k):
                    a[i, j] += f * a[k, j]
    x = np.zeros(n)
    x[0] = 1.0
    for k in range(1, n):
        for i in range(k):
            x[k] += x[i] * a[i, k]
    x /= x.sum()
    return x


@njit(cache=True, nogil=True)
def logarithmic_reduction(
    up: Floats, off: Floats, down: Floats, tolerance: float, limit: int
) -> tuple[Floats, int, float]:
    """G of a quasi-birth-death process; steps made; largest probability of `2^steps` levels not yet accounted for.

    Each step doubles the number of levels that count as reached (Latouche and Ramaswami, J. Appl. Prob. 30 (1993)).
    """
    n = len(up)
    lu = factor(off, up.sum(axis=1) + down.sum(axis=1))
    rise = solve(lu, up)
    fall = solve(lu, down)
    g = fall.copy()
    climb = rise.copy()
    missing = 1.0
    for step in range(limit):
        through = rise @ fall + fall @ rise
        rise2 = rise @ rise
        fall2 = fall @ fall
        lu = factor(through, rise2.sum(axis=1) + fall2.sum(axis=1))
        both = np.empty((n, 2 * n))
        both[:, :n] = rise2
        both[:, n:] = fall2
        both = solve(lu, both)
        rise = both[:, :n].copy()
        fall = both[:, n:].copy()
        change = climb @ fall
        g += change
        climb = climb @ rise
        missing = min(change.max(), climb.sum(axis=1).max())
        if missing < tolerance:
            return g, step + 1, missing
    return g, limit, missing
