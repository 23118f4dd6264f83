"""Predict measurements by fits that have not seen them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.robust_fit import Parameter, check_points, robust_fit

__all__ = ["cross_validate"]

Array = NDArray[np.float64]
_ALONE = 12
SubsetLaw = Callable[[Array, NDArray[np.int64]], Array]


def cross_validate(
    law: SubsetLaw, measured: Array, parameters: Sequence[Parameter], noise: Array | float = 0.02, folds: int = 10
) -> Array:
    """Predict every point by a fit that has not seen it.

    Parameters
    ----------
    law : callable
        Predictions of the points of given indices: ``law(parameters, indices)``.
    measured, parameters, noise
        As in `robust_fit`.
    folds : int
        Groups that are left out in turn; with at most 12 points each is left out alone. Point i is in group
        ``i % folds``, so that neighbouring rows are in different ones.

    Returns
    -------
    float64 array, shape (N,)
        ``predicted / measured - 1``; NaN throughout if what is left has fewer points than parameters.

    Raises
    ------
    ValueError
        As in `robust_fit`.

    Examples
    --------
    >>> n = np.arange(1.0, 9.0)
    >>> errors = cross_validate(lambda p, rows: p[0] * n[rows], 3 * n, [Parameter("a", 1, 0.1, 10)])
    >>> bool(np.abs(errors).max() < 1e-6)
    True
    """
    y = np.asarray(measured, dtype=np.float64)
    spread = np.broadcast_to(np.asarray(noise, dtype=np.float64), y.shape)
    check_points(y, spread, parameters)
    groups = y.size if y.size <= _ALONE else folds
    out = np.full(y.size, np.nan)
    for group in range(groups):
        rows = np.arange(y.size)
        left, kept = rows[rows % groups == group], rows[rows % groups != group]
        if kept.size < len(parameters):
            return np.full(y.size, np.nan)
        fit = robust_fit(lambda p, kept=kept: law(p, kept), y[kept], parameters, spread[kept], bootstrap=False)  # type: ignore[misc]
        out[left] = law(fit.values, left) / y[left] - 1
    return out
