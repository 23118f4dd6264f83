"""Laws of single uncertain numbers, and draws of several with given rank correlations.

A number is written as ``x = F^-1(Phi(z))`` with a standard normal *score* z; the scores of several numbers have a
correlation matrix R (Gaussian copula). Where every law is normal and not cut, that is the multivariate normal law of
the same covariance.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

__all__ = ["LawName", "Marginal", "correlation_root", "sobol_points"]

Array = NDArray[np.float64]
LawName = Literal["normal", "uniform", "triangular"]

_TINY = 1e-12  # distance of a share from 0 and 1
_CELLS = 4096  # of the quadrature for mean and deviation
_NEGATIVE = 1e-6  # smallest eigenvalue that is rounding, times the size of the matrix


@dataclass(frozen=True, slots=True)
class Marginal:
    """The law of one number on ``[low, high]``.

    Attributes
    ----------
    law : str
        ``"normal"``: of mean `value` and deviation `spread` before it is cut to the range; ``"uniform"`` on the range;
        ``"triangular"`` with its mode at `value`.
    value : float
        The estimate, within the range.
    low, high : float
        Ends of the range; those of a normal law may be infinite.
    spread : float
        Of a normal law, positive.

    Raises
    ------
    ValueError
        If the range does not hold the value, or a normal law has no positive spread.

    Examples
    --------
    >>> import numpy as np
    >>> Marginal("uniform", 2.3, 1.3, 3.2).quantile(np.array([0.0, 0.5])).round(2).tolist()
    [1.3, 2.25]
    """

    law: LawName
    value: float
    low: float
    high: float
    spread: float = 0.0

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"value {self.value:g} is outside {self.low:g} to {self.high:g}; widen the range")
        if self.law == "normal" and not 0 < self.spread < np.inf:
            raise ValueError(f"spread is {self.spread:g}; give a positive number")

    def quantile(self, share: Array) -> Array:
        """Numbers that shares of the law stay below; `share` between 0 and 1, any shape."""
        u = np.clip(share, _TINY, 1.0 - _TINY) if self.law == "normal" else np.clip(share, 0.0, 1.0)
        if self.law == "uniform":
            return np.asarray(self.low + (self.high - self.low) * u)
        if self.law == "triangular":
            return self._triangular(u)
        first, last = (ndtr((end - self.value) / self.spread) for end in (self.low, self.high))
        return np.clip(self.value + self.spread * ndtri(first + (last - first) * u), self.low, self.high)

    def _triangular(self, u: Array) -> Array:
        width, rise = self.high - self.low, self.value - self.low
        if width == 0:
            return np.full_like(u, self.value)
        left = self.low + np.sqrt(u * width * rise)
        right = self.high - np.sqrt((1.0 - u) * width * (width - rise))
        return np.where(u * width < rise, left, right)

    def of_scores(self, scores: Array) -> Array:
        """Numbers that belong to standard normal scores."""
        return self.quantile(np.asarray(ndtr(scores)))

    @property
    def mean(self) -> float:
        """Mean of the law, by the midpoint rule on its quantiles."""
        return float(self._cells().mean())

    @property
    def std(self) -> float:
        """Standard deviation of the law, likewise (within 0.1 % of a normal one's)."""
        return float(self._cells().std())

    @property
    def slope(self) -> float:
        """Units a score moves the number by, around the median."""
        low, high = self.of_scores(np.array([-0.25, 0.25]))
        return float(2.0 * (high - low))

    def _cells(self) -> Array:
        return self.quantile((np.arange(_CELLS) + 0.5) / _CELLS)


def correlation_root(correlation: Array) -> Array:
    """A matrix A with ``A A' = R``; R may be singular (numbers that determine one another).

    Parameters
    ----------
    correlation : float64 array, shape (d, d)
        Symmetric, positive semidefinite.

    Raises
    ------
    ValueError
        If it is no such matrix.

    Examples
    --------
    >>> import numpy as np
    >>> A = correlation_root(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> (A @ A.T).round(12).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    R = np.asarray(correlation, dtype=np.float64)
    if R.ndim != 2 or R.shape[0] != R.shape[1] or not np.allclose(R, R.T, atol=1e-9):
        raise ValueError(f"correlation of shape {R.shape} is not symmetric; give a symmetric matrix")
    values, vectors = np.linalg.eigh(R)
    if values.size and values[0] < -_NEGATIVE * len(R):
        raise ValueError(f"correlation has the eigenvalue {values[0]:.3g}; give a positive semidefinite matrix")
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))


def sobol_points(count: int, dimension: int, seed: int) -> Array:
    """The first points of a scrambled Sobol' sequence, shape ``(count, dimension)``, within (0, 1)."""
    from scipy.stats import qmc  # takes half a second to import

    if dimension == 0:
        return np.empty((count, 0))
    power = max(count - 1, 1).bit_length()
    points = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)[:count]
    return np.clip(np.asarray(points, dtype=np.float64), _TINY, 1.0 - _TINY)
