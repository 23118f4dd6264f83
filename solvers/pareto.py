"""The exact Pareto front of points with several objectives."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["pareto_front"]


def pareto_front(costs: ArrayLike) -> NDArray[np.bool_]:
    """Which points are dominated by no other.

    A point dominates another if it is at most as large in every objective and smaller in one. Equal points do not
    dominate one another: all of them are in the front, or none is.

    Parameters
    ----------
    costs : float array, shape (n, m)
        A row per point, a column per objective, each to be minimised. Infinities are allowed.

    Returns
    -------
    bool array, shape (n,)
        True for points of the front.

    Raises
    ------
    ValueError
        If the array has not two dimensions, no column, or holds NaN.

    Notes
    -----
    Exact. In lexicographic order no point is dominated by a later one, so the first point left is in the front; all it
    dominates are struck out, and so on (Kung, Luccio and Preparata, J. ACM 22 (1975), have the order). A dominated
    point is struck out by a point of the front, since dominance is transitive. Time `O(n log n + n f m)` for a front of
    `f` different points.

    Examples
    --------
    >>> pareto_front([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]]).tolist()
    [True, True, False, True]
    """
    given = np.asarray(costs, dtype=np.float64) + 0.0  # -0 becomes 0, which sorting would tell apart
    if given.ndim != 2 or given.shape[1] == 0:
        raise ValueError(f"costs have shape {given.shape}; give a row per point and a column per objective")
    if np.isnan(given).any():
        raise ValueError("costs hold NaN; leave points out that have no value")
    points, place = np.unique(given, axis=0, return_inverse=True)
    best = np.zeros(len(points), dtype=np.bool_)
    left = np.arange(len(points))
    while len(left):
        first, left = left[0], left[1:]
        best[first] = True
        # No row equals another here: what is nowhere smaller than the first is dominated by it.
        left = left[(points[left] < points[first]).any(axis=1)]
    return best[place.reshape(-1)]
