"""What a law of prompt lengths or arrival gaps is: one object that serves formulas and sampling alike.

The public methods check and shape their input here, once; a law writes only the underscored hooks. Sampling
is by inverse cdf, one uniform a value, so draws are prefix-stable and monotone in every parameter that
moves the quantile. The laws themselves are in `asapmodel.models.distributions`.
"""

from abc import ABC, abstractmethod
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Distribution", "FloatArray"]

FloatArray = NDArray[np.float64]


class Distribution(ABC):
    """A probability law on the real line, for solvers (moments, cdf, quantile) and simulation (sample).

    A law is immutable, and equal to another exactly when its parameters are.

    Notes
    -----
    A new law implements `support`, `_moment`, `_cdf` and `_quantile`. Overriding `_variance` is
    worth it where E[X^2] - E[X]^2 would cancel.
    """

    __slots__ = ()

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.moment(1)

    @property
    def variance(self) -> float:
        """Var X = E[X^2] - E[X]^2."""
        return self._variance()

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, Var X / E[X]^2 (dimensionless).

        Raises
        ------
        ValueError
            If the mean is zero.
        """
        if self.mean == 0:
            raise ValueError("the squared coefficient of variation needs a mean other than 0")
        return self.variance / self.mean**2

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Lowest and highest possible value; the highest may be infinite."""

    def moment(self, k: int) -> float:
        """Raw moment E[X^k].

        Parameters
        ----------
        k : int
            Order, at least 0.

        Raises
        ------
        ValueError
            If `k` is negative.
        """
        order = index(k)
        if order < 0:
            raise ValueError(f"the order of a moment must be at least 0, not {order}")
        return 1.0 if order == 0 else self._moment(order)

    def cdf(self, x: ArrayLike) -> FloatArray:
        """P(X <= x), elementwise, shaped as `x` (0-d for a number).

        Raises
        ------
        ValueError
            If an element is NaN.
        """
        points = np.asarray(x, dtype=np.float64)
        if np.isnan(points).any():
            raise ValueError("the cdf is not defined at NaN")
        return np.asarray(self._cdf(points), dtype=np.float64)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Smallest x with P(X <= x) >= p, elementwise, shaped as `p`; at p = 0 the low end of the support.

        Raises
        ------
        ValueError
            If an element is outside [0, 1] or NaN.
        """
        levels = np.asarray(p, dtype=np.float64)
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError("a quantile's probability must lie in [0, 1]")
        return np.asarray(self._quantile(levels), dtype=np.float64)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw `size` independent values by inverse cdf.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Exactly `size` uniforms are taken from it, whatever the law.
        size : int
            Number of values.

        Returns
        -------
        ndarray of float64, shape (size,)

        Notes
        -----
        Prefix-stable: 10 values and then 10 more from one generator are the 20 values of a single call.
        """
        return self.quantile(rng.random(size))

    def _variance(self) -> float:
        # Rounding can push a near-degenerate law's difference just below zero.
        return max(self.moment(2) - self.moment(1) ** 2, 0.0)

    @abstractmethod
    def _moment(self, k: int) -> float: ...

    @abstractmethod
    def _cdf(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _quantile(self, p: FloatArray) -> FloatArray: ...
