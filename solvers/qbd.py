"""Quasi-birth-death processes: chains on levels 0, 1, 2, ... that move by one level at a time, in continuous time.

Finitely many lowest levels may differ from each other, in their rates and in their number of phases; above them the
rates repeat. A chain in discrete time is solved by passing `local - I`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.qbd_blocks import Floor, check_floors, check_rows, off_diagonal, stationary_vector
from asapmodel.solvers.qbd_kernels import factor, fold, logarithmic_reduction, solve, solve_left
from asapmodel.solvers.queue_errors import NoConvergence, QueueError, UnstableError

__all__ = ["Floor", "Levels", "first_passage", "solve_blocks", "solve_qbd"]

Floats = NDArray[np.float64]

_TOLERANCE = 1e-15
_STEPS = 64  # 2^64 levels


@dataclass(frozen=True, eq=False)
class Levels:
    """Stationary law of a quasi-birth-death process with `len(floors)` lowest levels of their own.

    Parameters
    ----------
    floors : tuple of arrays
        Probabilities of the phases of levels 0 ... L - 1.
    first : array, shape (n,)
        Those of level L; level L + j has `first ratio^j`.
    ratio, passage : arrays, shape (n, n)
        R of the levels above, and G: the phase in which the next lower level is entered first.
    rho : float
        Load: mean rate up over mean rate down in the repeating part, below 1.
    """

    floors: tuple[Floats, ...]
    first: Floats
    ratio: Floats
    passage: Floats
    rho: float

    def vector(self, level: int) -> Floats:
        """Probabilities of the phases of one level."""
        if level < len(self.floors):
            return self.floors[level]
        return np.asarray(self.first @ np.linalg.matrix_power(self.ratio, level - len(self.floors)))

    def probabilities(self, count: int) -> Floats:
        """P(level = n) for n = 0 ... `count` - 1."""
        out = [float(v.sum()) for v in self.floors[:count]]
        v = self.first
        while len(out) < count:
            out.append(float(v.sum()))
            v = v @ self.ratio
        return np.array(out)

    @property
    def above(self) -> Floats:
        """Sum of the vectors of all levels from L on, shape (n,)."""
        rest = np.eye(len(self.first)) - self.ratio
        return np.asarray(np.linalg.solve(rest.T, self.first), dtype=np.float64)

    @property
    def mean(self) -> float:
        """Mean level."""
        return float(self.moments(1)[0])

    def moments(self, count: int) -> Floats:
        """E level^k for k = 1 ... `count`, from the binomial moments `first R^i (I - R)^-(i + 1) 1`."""
        lowest = len(self.floors)
        masses = np.array([float(v.sum()) for v in self.floors])
        rest = np.eye(len(self.first)) - self.ratio
        binomial, v = [], np.linalg.solve(rest, np.ones(len(self.first)))
        for _ in range(count + 1):
            binomial.append(float(self.first @ v))
            v = self.ratio @ np.linalg.solve(rest, v)
        powers = [
            sum(_stirling(k, i) * math.factorial(i) * binomial[i] for i in range(k + 1)) for k in range(count + 1)
        ]
        out = np.empty(count)
        for k in range(1, count + 1):
            out[k - 1] = masses @ np.arange(lowest, dtype=float) ** k
            out[k - 1] += sum(math.comb(k, j) * float(lowest) ** (k - j) * powers[j] for j in range(k + 1))
        return out


def _stirling(k: int, i: int) -> int:
    """Ways to split k things into i heaps."""
    if k == i:
        return 1
    return 0 if i in (0, k + 1) else i * _stirling(k - 1, i) + _stirling(k - 1, i - 1)


def first_passage(up: Floats, local: Floats, down: Floats) -> tuple[Floats, float]:
    """G, minimal non-negative solution of `down + local G + up G^2 = 0`, by logarithmic reduction; and the load.

    Exact to about 1e-15 a step. Source: Latouche and Ramaswami, J. Appl. Prob. 30 (1993) 650-674.

    Raises
    ------
    QueueError, UnstableError, NoConvergence
        If the blocks are not those of a generator; if the drift is not downwards; if 64 doublings do not suffice.

    Examples
    --------
    >>> g, rho = first_passage(np.array([[3.0]]), np.array([[-7.0]]), np.array([[4.0]]))
    >>> round(float(g[0, 0]), 12), rho
    (1.0, 0.75)
    """
    check_rows("repeating level", local, up, down)
    return _first_passage(*_floats(up, local, down))


def _floats(*blocks: Floats) -> list[Floats]:
    return [np.ascontiguousarray(block, dtype=np.float64) for block in blocks]


def _first_passage(up: Floats, local: Floats, down: Floats) -> tuple[Floats, float]:
    phases = stationary_vector(up + local + down)
    falls = float(phases @ down.sum(axis=1))
    rho = float(phases @ up.sum(axis=1)) / falls if falls > 0 else math.inf
    if not rho < 1:
        raise UnstableError(rho)
    g, steps, missing = logarithmic_reduction(up, off_diagonal(local), down, _TOLERANCE, _STEPS)
    if not missing < _TOLERANCE:
        raise NoConvergence(f"logarithmic reduction: {missing:.2g} missing after {steps} steps at load {rho:.12g}")
    return np.asarray(g), rho


def solve_qbd(floors: Sequence[Floor], up: Floats, local: Floats, down: Floats) -> Levels:
    """Stationary law of a quasi-birth-death process, level-dependent below level L = `len(floors)`.

    `G` of the repeating part by `first_passage`; then, from level L down to 0, each level is replaced by itself watched
    only while the chain is not above it, `S_k = local_k + up_k (-S_(k+1))^-1 down_k`, and from 0 up
    `pi_(k+1) = pi_k up_k (-S_(k+1))^-1`. All sums are of non-negative numbers (exact to rounding, small relative errors
    of each entry but for the factor 1 / (1 - rho) of the infinite part).

    Parameters
    ----------
    floors : sequence of Floor
        Levels 0 ... L - 1, at least one: `local` (n_k, n_k), `up` (n_k, n_(k+1)), `down` (n_(k+1), n_k), 1 / time.
    up, local, down : arrays, shape (n, n)
        Rates from level L on; level L itself comes down by `floors[-1].down`.

    Raises
    ------
    QueueError
        If shapes do not fit, a rate is negative or not finite, or rows do not sum to 0 (to 1e-9 of the largest rate).
    UnstableError
        If the drift of the repeating part is not downwards; carries the load.

    Notes
    -----
    Neuts (1981); Latouche and Ramaswami, "Introduction to Matrix Analytic Methods in Stochastic Modeling" (1999),
    chapters 8 and 12; Gaver, Jacobs and Latouche, Adv. Appl. Prob. 16 (1984).

    Examples
    --------
    M/M/2, arrivals 3, services 2:

    >>> one = np.ones((1, 1))
    >>> floors = [Floor(-3 * one, 3 * one, 2 * one), Floor(-5 * one, 3 * one, 4 * one)]
    >>> law = solve_qbd(floors, 3 * one, -7 * one, 4 * one)
    >>> law.probabilities(3).round(6), round(law.mean, 9)
    (array([0.142857, 0.214286, 0.160714]), 3.428571429)
    """
    if not floors:
        raise QueueError("at least level 0 needs rates of its own")
    check_floors(floors, local, up)
    check_rows("repeating level", local, up, down)
    return solve_blocks([Floor(*_floats(*floor)) for floor in floors], *_floats(up, local, down))


def solve_blocks(floors: Sequence[Floor], up: Floats, local: Floats, down: Floats) -> Levels:
    """`solve_qbd` without its checks, for blocks that are right by construction, contiguous arrays of floats."""
    g, rho = _first_passage(up, local, down)
    lu = factor(off_diagonal(local) + up @ g, down.sum(axis=1))
    ratio = solve_left(lu, up)
    factors = [lu]
    for k in range(len(floors) - 1, 0, -1):
        here = floors[k]
        factors.append(fold(off_diagonal(here.local), here.up, here.down, factors[-1], floors[k - 1].down)[1])
    if any(np.diag(f).min() <= 0 for f in factors):
        raise QueueError("a level is never left downwards: level 0 is not reached again")
    ground = off_diagonal(floors[0].local) + floors[0].up @ solve(factors[-1], floors[0].down)
    vectors = [stationary_vector(ground)]
    for floor in floors:
        vectors.append(solve_left(factors.pop(), (vectors[-1] @ floor.up)[None, :])[0])
        if vectors[-1].max() > 1e200:
            vectors = [v * 1e-200 for v in vectors]
    law = Levels(tuple(vectors[:-1]), vectors[-1], ratio, g, rho)
    total = sum(float(v.sum()) for v in vectors[:-1]) + float(law.above.sum())
    return Levels(tuple(v / total for v in vectors[:-1]), vectors[-1] / total, ratio, g, rho)
