"""A quadratic through scattered points of a slow function, with the error of points it has not seen.

``y ~ c0 + sum_i b_i x_i + sum_ij c_ij x_i x_j`` by least squares on inputs scaled to mean 0 and deviation 1. With few
points the products of different inputs are left out, with very few the squares too: at least `ENOUGH` points a
coefficient. The error is that of leaving out each point in turn, which for least squares needs no refitting: residual
over ``1 - h``, with h the point's leverage (Allen's PRESS).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENOUGH", "Surface", "fit_surface"]

Array = NDArray[np.float64]

ENOUGH = 2.5
"""Points a coefficient of the form that is chosen."""

_RANK = 1e-9  # singular values below, relative to the largest, count as 0
_STILL = 1e-12  # relative deviation of an input that does not vary


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """A fitted quadratic.

    Attributes
    ----------
    centre, scale : float64 arrays, shape (d,)
        Of the inputs.
    form : str
        ``"linear"``, ``"squares"`` (and no products) or ``"full"``.
    coefficients : float64 array
        In the order of the terms.
    explained : float
        Share of the variance of unseen points that the surface explains; 1 is all, and it can be negative.
    lowest, highest : float64 arrays, shape (d,)
        Of the inputs it was fitted to.
    """

    centre: Array
    scale: Array
    form: str
    coefficients: Array
    explained: float
    lowest: Array
    highest: Array

    def __call__(self, inputs: Array) -> Array:
        """Values at inputs, shape (n, d) to (n,)."""
        return _terms((inputs - self.centre) / self.scale, self.form) @ self.coefficients

    def within(self, inputs: Array) -> Array:
        """Values at the nearest points of the box that holds the inputs it was fitted to, shape (n, d) to (n,).

        Far outside a quadratic says nothing, and one point of a wide law can outweigh thousands.
        """
        return self(np.clip(inputs, self.lowest, self.highest))


def _count(d: int, form: str) -> int:
    return {"linear": 1 + d, "squares": 1 + 2 * d, "full": (d + 1) * (d + 2) // 2}[form]


def _terms(x: Array, form: str) -> Array:
    columns = [np.ones((len(x), 1)), x]
    if form != "linear":
        columns.append(x**2)
    if form == "full":
        first, second = np.triu_indices(x.shape[1], k=1)
        columns.append(x[:, first] * x[:, second])
    return np.hstack(columns)


def fit_surface(inputs: Array, values: Array) -> Surface:
    """Fit a quadratic.

    Parameters
    ----------
    inputs : float64 array, shape (n, d)
        Points.
    values : float64 array, shape (n,)
        Values there.

    Raises
    ------
    ValueError
        If there are fewer points than a linear form needs twice over.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> surface = fit_surface(x, 1 + x[:, 0] ** 2)
    >>> surface.form, round(float(surface(np.array([[3.0]]))[0]), 9), round(surface.explained, 9)
    ('full', 10.0, 1.0)
    """
    count, d = inputs.shape
    if count < 2 * _count(d, "linear"):
        raise ValueError(f"{count} points for {d} inputs; give at least {2 * _count(d, 'linear')}")
    form = next((f for f in ("full", "squares") if count >= ENOUGH * _count(d, f)), "linear")
    centre, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    scale = np.where(deviation > _STILL * np.maximum(np.abs(centre), 1e-300), deviation, 1.0)
    left, singular, right = np.linalg.svd(_terms((inputs - centre) / scale, form), full_matrices=False)
    rank = int(np.sum(singular > _RANK * singular[0]))
    left, singular, right = left[:, :rank], singular[:rank], right[:rank]
    coefficients = right.T @ ((left.T @ values) / singular)
    leverage = np.sum(left**2, axis=1)
    unseen = (values - left @ (left.T @ values)) / np.maximum(1.0 - leverage, 1e-9)
    spread = float(np.sum((values - values.mean()) ** 2))
    explained = 1.0 - float(np.sum(unseen**2)) / spread if spread > 0 else 1.0
    return Surface(centre, scale, form, coefficients, explained, inputs.min(axis=0), inputs.max(axis=0))
