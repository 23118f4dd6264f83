"""Reduced cost laws, as plain numbers, and the fit that finds the quadratic one.

The engines read a handful of coefficients per phase, not expressions. The tuples here hold them in the order
in which `asapmodel.costs` declares its classes (`costs.Affine(*law)` works). Affine and plateau laws are
exact reductions of their expressions or say how far off they are; the quadratic law of attention is a
constrained fit and carries its error.
"""

import math
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

    The errors are of the time of single prompts without `fixed`, as fractions: the largest one relative to the prompt's
    own time over the length grid, and the mean absolute error relative to the mean time, ``E|law - exact| / E exact``.
    """

    fixed: float
    per_token: float
    per_token2: float
    max_relative_error: float
    mean_relative_error: float


def fit_quadratic(
    lengths: NDArray[np.float64], costs: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Coefficients a1, a2 >= 0 of ``a1 s + a2 s^2`` that keep mean and mean square of the cost.

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
    Load depends on the mean of the cost, waiting on its mean square (Pollaczek and Khinchine), so these two are kept.
    With ``M_j = E s^j``, ``Y_j = E y^j``, ``c = M2/M1`` the first condition gives ``a1 = (Y1 - a2 M2)/M1``, that is
    ``a1 s + a2 s^2 = (Y1/M1) s + a2 (s^2 - c s)``, and the second one a quadratic for a2::

        A a2^2 + 2 B a2 + C = 0,   A = E (s^2 - c s)^2,   B = (Y1/M1) (M3 - c M2),   C = (Y1/M1)^2 M2 - Y2

    B >= 0 (Cauchy-Schwarz), so at most one root is positive: ``a2 = (-B + sqrt(B^2 - A C))/A`` if C < 0. If C >= 0
    the cost varies less than the length (a2 = 0), if the root makes a1 negative more than its square (a1 = 0); then
    only the mean is kept. Exact (no iteration).

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
    carrying = lengths[weights > 0]
    if carrying.size == 0 or carrying.min() == carrying.max():
        raise ValueError("at least two distinct lengths must carry weight to tell n from w")
    share = weights / weights.sum()
    first, second, third = (float(share @ lengths**k) for k in (1, 2, 3))
    mean, mean_square = float(share @ costs), float(share @ costs**2)
    tilt = second / first
    A = float(share @ (lengths**2 - tilt * lengths) ** 2)
    B = mean / first * (third - tilt * second)
    C = (mean / first) ** 2 * second - mean_square
    per_token2 = 0.0 if C >= 0 else min((math.sqrt(B * B - A * C) - B) / A, mean / second)
    # At the upper end the difference is 0 up to rounding, which must not come out negative.
    return max(0.0, (mean - per_token2 * second) / first), per_token2
