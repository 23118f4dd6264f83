"""Chains of M/G/1 type: discrete time, down by at most one level a step, up by several."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.qbd import first_passage
from asapmodel.solvers.qbd_blocks import stationary_vector
from asapmodel.solvers.queue_errors import QueueError, UnstableError

__all__ = ["mg1_passage", "mg1_stationary"]

Floats = NDArray[np.float64]


def mg1_passage(blocks: Sequence[ArrayLike]) -> Floats:
    """G of a chain of M/G/1 type: `G = A0 + A1 G + A2 G^2 + ...`, minimal non-negative solution. Exact.

    J levels are taken as one, which gives a quasi-birth-death process whose G holds ours in a corner: cost
    `(J n)^3` a doubling, J = len(blocks) - 2 the largest rise.
    Source: Latouche and Ramaswami, "Introduction to Matrix Analytic Methods" (1999), section 13.1.

    Parameters
    ----------
    blocks : sequence of arrays, shape (n, n)
        `A0, A1, ...`: probabilities of a step by -1, 0, ... levels.

    Raises
    ------
    QueueError
        If the blocks are not stochastic.
    UnstableError
        If the drift `x (A1 + 2 A2 + ...) 1` is not below 1; it is the load.

    Examples
    --------
    >>> mg1_passage([[[0.5]], [[0.25]], [[0.125]], [[0.125]]]).round(12)
    array([[1.]])
    """
    a = _blocks(blocks)
    n, rise = a.shape[1], max(1, len(a) - 2)
    phases = stationary_vector(a.sum(axis=0))
    drift = float(phases @ np.tensordot(np.arange(len(a)), a, axes=1).sum(axis=1))
    if not drift < 1:
        raise UnstableError(drift)
    parts = np.zeros((3, rise, n, rise, n))  # down, local, up between groups of levels
    for i in range(rise):
        for k, block in enumerate(a):
            group, j = divmod(i + k - 1, rise)
            parts[group + 1, i, :, j, :] = block
    down, local, up = parts.reshape(3, rise * n, rise * n)
    return first_passage(up, local - np.eye(rise * n), down)[0][:n, -n:]


def mg1_stationary(boundary: Sequence[ArrayLike], blocks: Sequence[ArrayLike], levels: int) -> Floats:
    """Stationary probabilities of levels 0 ... `levels` - 1 of a chain of M/G/1 type; exact.

    Ramaswami's recursion, sums of non-negative numbers only: with `Ak* = Ak + A(k+1) G + ...` and `Bk*` alike,
    `pi_0 = pi_0 B0*`, `pi_k = (pi_0 Bk* + sum over 0 < j < k of pi_j A(k-j+1)*) (I - A1*)^-1`, and all levels from 1 on
    sum to `pi_0 (B1* + B2* + ...) (I - A1* - A2* - ...)^-1`.
    Source: Ramaswami, Comm. Stat. Stoch. Models 4 (1988); Meini, Comm. Stat. Stoch. Models 13 (1997).

    Parameters
    ----------
    boundary : sequence of arrays, shape (n, n)
        `B0, B1, ...`: probabilities of a step from level 0 to 0, 1, ...
    blocks : sequence of arrays, shape (n, n)
        `A0, A1, ...`: from any other level by -1, 0, ...
    levels : int
        Number of levels wanted.

    Returns
    -------
    array, shape (levels, n)

    Raises
    ------
    QueueError, UnstableError
        As `mg1_passage`.

    Examples
    --------
    >>> geometric = mg1_stationary([[[0.5]], [[0.5]]], [[[0.5]], [[0.25]], [[0.25]]], 3)
    >>> geometric.ravel()
    array([0.33333333, 0.33333333, 0.16666667])
    """
    a, b = _blocks(blocks), _blocks(boundary)
    if a.shape[1] != b.shape[1]:
        raise QueueError(f"boundary of {b.shape[1]} and levels of {a.shape[1]} phases do not fit")
    g = mg1_passage(blocks)
    a, b = _folded(a, g), _folded(b, g)
    eye = np.eye(len(g))
    ground = stationary_vector(b[0])
    rest = np.linalg.solve((eye - a[1:].sum(axis=0)).T, ground @ b[1:].sum(axis=0))
    out = np.zeros((levels, len(g)))
    out[0] = ground / (1 + rest.sum())
    for k in range(1, levels):
        inflow = out[0] @ b[k] if k < len(b) else np.zeros(len(g))
        for j in range(max(1, k - len(a) + 2), k):
            inflow = inflow + out[j] @ a[k - j + 1]
        out[k] = np.linalg.solve((eye - a[1]).T, inflow)
    return out


def _blocks(blocks: Sequence[ArrayLike]) -> Floats:
    """One array of shape (count, n, n), count >= 2, checked to be stochastic."""
    out = np.array([np.asarray(block, dtype=np.float64) for block in blocks])
    if out.ndim != 3 or out.shape[1] != out.shape[2] or len(out) < 2:
        raise QueueError(f"at least two square blocks of one shape are needed, not {out.shape}")
    sums = out.sum(axis=(0, 2))
    if not np.isfinite(out).all() or out.min() < 0 or np.abs(sums - 1).max() > 1e-9:
        raise QueueError(f"blocks are not stochastic: smallest entry {out.min()}, row sums {sums}")
    return out


def _folded(blocks: Floats, g: Floats) -> Floats:
    """`Xk + X(k+1) G + X(k+2) G^2 + ...` for every k."""
    out = blocks.copy()
    for k in range(len(out) - 2, -1, -1):
        out[k] += out[k + 1] @ g
    return out
