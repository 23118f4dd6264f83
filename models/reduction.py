"""Reduced cost laws, as plain numbers, and the fit that finds the quadratic one.

The engines read a handful of coefficients per phase, not expressions. The tuples here hold them in the order
in which `asapmodel.costs` declares its classes (`costs.Affine(*law)` works). Affine and plateau laws are
exact reductions of their expressions or say how far off they are; the quadratic law of attention is a
constrained fit and carries its error.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Affine", "Plateau", "Reduction", "fit_quadratic"]


class Affine(NamedTuple):
    """``fixed + per_token n``, in s and s/token."""

    fixed: float
    per_token: float


class Plateau(NamedTuple):
    """``max(floor, per_token n)``, in s and s/token."""

    floor: float
    per_token: float

    @property
    def inflection_tokens(self) -> float:
        """Tokens at which the plateau ends, ``floor / per_token``."""
        return self.floor / self.per_token


class Reduction(NamedTuple):
    """``fixed + per_token n + per_token2 w``, in s, s/token, s/token^2, and how far off it is.

    The errors are relative to the time of single prompts without `fixed`, as fractions: the largest over the
    length grid, and the mean under its weights.
    """

    fixed: float
    per_token: float
    per_token2: float
    max_relative_error: float
    mean_relative_error: float


def fit_quadratic(
    lengths: NDArray[np.float64], costs: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Coefficients a1, a2 >= 0 of ``a1 s + a2 s^2`` that keep the mean cost and minimise the squared relative error.

    Parameters
    ----------
    lengths : float64 array, shape (N,)
        Prompt lengths s_i > 0, at least two distinct ones with a positive weight.
    costs : float64 array, shape (N,)
        Costs y_i > 0, in any unit (here s).
    weights : float64 array, shape (N,)
        Probabilities q_i >= 0; they need not sum to 1.

    Returns
    -------
    tuple of float
        a1 in s/token, a2 in s/token^2.

    Raises
    ------
    ValueError
        Shapes differ, a value is out of its domain, or fewer than two lengths carry weight.

    Notes
    -----
    Minimise ``sum q_i ((a1 s_i + a2 s_i^2)/y_i - 1)^2`` under ``a1 M1 + a2 M2 = Y`` with
    ``M_j = sum q_i s_i^j``, ``Y = sum q_i y_i``. The constraint leaves one unknown, ``a2 = (Y - a1 M1)/M2``,
    hence the residual is affine in a1, ``r_i = a1 u_i + c_i`` with ``u_i = (s_i - s_i^2 M1/M2)/y_i``,
    ``c_i = s_i^2 Y/(M2 y_i) - 1``, and ``a1 = -sum(q u c) / sum(q u^2)``. Clipping a1 to ``[0, Y/M1]`` is
    where both coefficients are nonnegative, and since the objective is convex in a1 the clipped value is the
    constrained minimum. Exact (no iteration).

    Examples
    --------
    >>> s = np.array([100.0, 1000.0, 10000.0])
    >>> a1, a2 = fit_quadratic(s, 3e-7 * s + 2e-11 * s**2, np.array([0.5, 0.3, 0.2]))
    >>> f"{a1:.6e} {a2:.6e}"
    '3.000000e-07 2.000000e-11'
    """
    if not lengths.shape == costs.shape == weights.shape or lengths.ndim != 1:
        raise ValueError("lengths, costs and weights must be one-dimensional and of one shape")
    if np.any(lengths <= 0) or np.any(costs <= 0) or np.any(weights < 0):
        raise ValueError("lengths and costs must be positive, weights at least 0")
    if np.unique(lengths[weights > 0]).size < 2:
        raise ValueError("at least two distinct lengths must carry weight to tell n from w")
    share = weights / weights.sum()
    mean, second, total = share @ lengths, share @ lengths**2, share @ costs
    slope = (lengths - lengths**2 * mean / second) / costs
    offset = lengths**2 * total / (second * costs) - 1.0
    free = -(share @ (slope * offset)) / (share @ slope**2)
    per_token = float(np.clip(free, 0.0, total / mean))
    # Clipping at the upper end makes the difference 0 up to rounding, which must not come out negative.
    per_token2 = float(max(0.0, (total - per_token * mean) / second))
    return per_token, per_token2
