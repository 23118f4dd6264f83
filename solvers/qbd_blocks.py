"""Blocks of rates of chains that move by levels: what they must satisfy, and the stationary law of their phases."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from asapmodel.solvers.qbd_kernels import null_vector
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["Floor", "check_floors", "check_rows", "off_diagonal", "product", "stationary_vector"]

Floats = NDArray[np.float64]

_ROUNDING = 1e-9  # of the largest rate: what the row sums of a generator may be off


class Floor(NamedTuple):
    """Rates of one of the lowest levels: within it, up from it, and down into it from the level above."""

    local: Floats
    up: Floats
    down: Floats


def stationary_vector(generator: Floats) -> Floats:
    """Stationary probabilities of a chain with one closed class, each with a small relative error; diagonal unused.

    Raises
    ------
    QueueError
        If there are several closed classes.

    Examples
    --------
    >>> stationary_vector(np.array([[-1.0, 1.0], [3.0, -3.0]]))
    array([0.75, 0.25])
    """
    off = off_diagonal(generator)
    out = np.asarray(null_vector(off))
    if not math.isnan(out[0]):
        return out
    count, labels = connected_components(off > 0, connection="strong")
    leaves = {int(labels[i]) for i, j in zip(*np.nonzero(off), strict=True) if labels[i] != labels[j]}
    closed = [label for label in range(count) if label not in leaves]
    if len(closed) > 1 or not np.isfinite(off).all():
        raise QueueError(f"the phases fall into {len(closed)} closed classes: no single stationary law")
    inside = np.nonzero(labels == closed[0])[0]
    out = np.zeros(len(off))
    out[inside] = null_vector(np.ascontiguousarray(off[np.ix_(inside, inside)]))
    return out


def off_diagonal(block: Floats) -> Floats:
    """Off-diagonal part."""
    out = np.array(block, dtype=np.float64)
    np.fill_diagonal(out, 0.0)
    return out


def product(first: Floats, second: Floats) -> Floats:
    """Kronecker product, quick where one of the two is a number."""
    if first.shape == (1, 1) or second.shape == (1, 1):
        return first * second
    return np.asarray(np.kron(first, second))


def check_rows(name: str, local: Floats, *others: Floats) -> None:
    """Refuse blocks that are not the rows of a generator."""
    n = len(local)
    if local.shape != (n, n) or any(block.ndim != 2 or len(block) != n for block in others):
        raise QueueError(f"{name}: blocks of shapes {[local.shape, *(block.shape for block in others)]} do not fit")
    row = np.hstack([local, *others])
    if not np.isfinite(row).all() or min(off_diagonal(local).min(), *(block.min() for block in others)) < 0:
        raise QueueError(f"{name}: a rate is negative or not finite")
    if np.abs(row.sum(axis=1)).max() > _ROUNDING * np.abs(row).max():
        raise QueueError(f"{name}: rows of a generator sum to 0, not to {row.sum(axis=1)}")


def check_floors(floors: Sequence[Floor], local: Floats, up: Floats) -> None:
    """Refuse lowest levels whose blocks do not fit each other and the first of the repeating levels."""
    rows = [*floors, Floor(local, up, up)]
    for k, floor in enumerate(floors):
        here, above = len(floor.local), len(rows[k + 1].local)
        if floor.up.shape != (here, above) or floor.down.shape != (above, here):
            raise QueueError(f"level {k}: up {floor.up.shape}, down {floor.down.shape} for {here} and {above} phases")
    for k, row in enumerate(rows):
        check_rows(f"level {k}", row.local, row.up, *([floors[k - 1].down] if k else []))
