"""Raw moments, transforms and limited means of the service and interarrival laws that the formulas are checked on.

A *transform* is E[exp(-s X)] for s >= 0 (for light tails also for some s < 0, where it is the moment generating
function at -s); a *limited mean* is L(x) = E[min(X, x)], from which the equilibrium residual law has the distribution
L(x) / E[X]. All closed forms, exact up to rounding. Source: Johnson, Kotz and Balakrishnan, "Continuous univariate
distributions" (1994). Units: those of the mean; transforms take the inverse unit.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from asapmodel.solvers.queue_errors import MomentError, at_least_one, nonnegative, positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "balanced_hyperexponential",
    "deterministic_limited_mean",
    "deterministic_moments",
    "deterministic_transform",
    "erlang_moments",
    "erlang_transform",
    "exponential_limited_mean",
    "hyperexponential_moments",
    "hyperexponential_transform",
    "lognormal_moments",
    "points_limited_mean",
    "uniform_moments",
]

Transform = Callable[[float], float]


def deterministic_moments(mean: float, order: int) -> list[float]:
    """Raw moments 1..order of a constant.

    Examples
    --------
    >>> deterministic_moments(2.0, 3)
    [2.0, 4.0, 8.0]
    """
    return [positive("mean", mean) ** k for k in range(1, order + 1)]


def erlang_moments(mean: float, phases: int, order: int) -> list[float]:
    """Raw moments 1..order of the Erlang law of `phases` phases; 1 phase is the exponential law.

    `E[X^k] = (mean/n)^k n (n+1) ... (n+k-1)`.

    Examples
    --------
    >>> erlang_moments(1.0, 1, 3)
    [1.0, 2.0, 6.0]
    """
    n = at_least_one("phases", phases)
    unit = positive("mean", mean) / n
    return [unit**k * math.prod(range(n, n + k)) for k in range(1, order + 1)]


def uniform_moments(low: float, high: float, order: int) -> list[float]:
    """Raw moments 1..order of the uniform law: `sum_j low^j high^(k-j) / (k+1)`.

    Examples
    --------
    >>> uniform_moments(0.0, 2.0, 3)
    [1.0, 1.3333333333333333, 2.0]
    """
    low, high = nonnegative("low", low), positive("high", high)
    if low > high:
        raise MomentError(f"uniform law from {low} to {high}")
    return [math.fsum(low**j * high ** (k - j) for j in range(k + 1)) / (k + 1) for k in range(1, order + 1)]


def lognormal_moments(mean: float, scv: float, order: int) -> list[float]:
    """Raw moments 1..order of the lognormal law: `mean^k (1 + scv)^(k(k-1)/2)`.

    Examples
    --------
    >>> lognormal_moments(1.0, 2.0, 3)
    [1.0, 3.0, 27.0]
    """
    mean, base = positive("mean", mean), 1 + nonnegative("scv", scv)
    return [mean**k * base ** (k * (k - 1) // 2) for k in range(1, order + 1)]


def balanced_hyperexponential(mean: float, scv: float) -> tuple[list[float], list[float]]:
    """Weights and rates of the two-phase hyperexponential law with balanced means.

    `p = (1 + sqrt((scv-1)/(scv+1)))/2`, rates `2p/mean` and `2(1-p)/mean`: both phases carry half of the mean.
    Domain: scv >= 1. Source: Whitt, "Approximating a point process by a renewal process, I", Oper. Res. 30 (1982).

    Examples
    --------
    >>> balanced_hyperexponential(1.0, 1.0)
    ([0.5, 0.5], [1.0, 1.0])
    """
    mean = positive("mean", mean)
    if not scv >= 1:
        raise MomentError(f"a hyperexponential law has scv from 1 on, not {scv}")
    p = 0.5 * (1 + math.sqrt((scv - 1) / (scv + 1)))
    return [p, 1 - p], [2 * p / mean, 2 * (1 - p) / mean]


def hyperexponential_moments(weights: list[float], rates: list[float], order: int) -> list[float]:
    """Raw moments 1..order of a mixture of exponentials: `k! sum_i w_i / r_i^k`.

    Examples
    --------
    >>> [round(m, 9) for m in hyperexponential_moments(*balanced_hyperexponential(1.0, 4.0), 3)]
    [1.0, 5.0, 60.0]
    """
    pairs = list(zip(weights, rates, strict=True))
    return [math.factorial(k) * math.fsum(w / r**k for w, r in pairs) for k in range(1, order + 1)]


def deterministic_transform(value: float) -> Transform:
    """Transform of a constant: `exp(-s value)`."""
    positive("value", value)
    return lambda s: math.exp(-s * value)


def erlang_transform(mean: float, phases: int) -> Transform:
    """Transform of the Erlang law, `(1 + s mean/n)^-n`, infinite at and left of `-n/mean`.

    Examples
    --------
    >>> erlang_transform(1.0, 2)(1.0) == 1 / 1.5**2
    True
    """
    unit = positive("mean", mean) / at_least_one("phases", phases)
    return lambda s: (1 + s * unit) ** -phases if 1 + s * unit > 0 else math.inf


def hyperexponential_transform(weights: list[float], rates: list[float]) -> Transform:
    """Transform of a mixture of exponentials, `sum_i w_i r_i / (r_i + s)`, infinite at and left of the least `-r_i`."""
    pairs = list(zip(weights, rates, strict=True))
    least = min(rates)
    return lambda s: math.fsum(w * r / (r + s) for w, r in pairs) if s > -least else math.inf


def deterministic_limited_mean(value: float) -> Callable[["Floats"], "Floats"]:
    """Limited mean of a constant: `min(value, x)`."""
    import numpy as np

    positive("value", value)
    return lambda x: np.minimum(x, value)


def exponential_limited_mean(mean: float) -> Callable[["Floats"], "Floats"]:
    """Limited mean of the exponential law: `mean (1 - exp(-x/mean))`."""
    import numpy as np

    positive("mean", mean)
    return lambda x: -mean * np.expm1(-x / mean)


def points_limited_mean(values: "Floats", weights: "Floats") -> Callable[["Floats"], "Floats"]:
    """Limited mean of a discrete law: straight between the points, `sum_i w_i min(v_i, x)`.

    Parameters
    ----------
    values, weights : float arrays of one shape
        Points from 0 on and their probabilities (made to sum to 1).

    Examples
    --------
    >>> import numpy as np
    >>> points_limited_mean(np.array([1.0, 3.0]), np.array([0.5, 0.5]))(np.array([0.5, 2.0, 9.0])).tolist()
    [0.5, 1.5, 2.0]
    """
    import numpy as np

    order = np.argsort(values)
    points = np.concatenate([[0.0], np.asarray(values, dtype=float)[order]])
    mass = np.asarray(weights, dtype=float)[order] / float(np.sum(weights))
    if points[1:].min() < 0 or mass.min() < 0 or not np.isfinite(points).all():
        raise MomentError("points and weights must be finite and not negative")
    survival = np.concatenate([[1.0], 1.0 - np.cumsum(mass)])
    level = np.concatenate([[0.0], np.cumsum(np.diff(points) * survival[:-1])])
    return lambda x: np.interp(x, points, level)
