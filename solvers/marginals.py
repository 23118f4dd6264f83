"""Laws of single uncertain numbers, and draws of several with given correlations.

A number is written as ``x = F^-1(Phi(z))`` with a standard normal *score* z; the scores of several numbers have a
correlation matrix R (Gaussian copula). Where every law is normal that is the multivariate normal law of the same
covariance. Its part inside a box of physical bounds is had by leaving out draws outside (`inside`): cutting every law
by itself would break sums that the covariance keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

__all__ = ["LawName", "Marginal", "correlation_root", "inside", "sobol_points"]

Array = NDArray[np.float64]
LawName = Literal["normal", "reciprocal", "uniform", "triangular"]

_TINY = 1e-12  # distance of a share from 0 and 1
_NEGATIVE = 1e-6  # smallest eigenvalue that is rounding, times the size of the matrix


@dataclass(frozen=True, slots=True)
class Marginal:
    """The law of one number on ``[low, high]``.

    Attributes
    ----------
    law : str
        ``"normal"``: of mean `value` and deviation `spread`; ``"reciprocal"``: ``1/x`` is normal, of mean ``1/value``
        and deviation ``spread / value^2`` (what is divided by a share or a speed has normal errors then);
        ``"uniform"`` on the range; ``"triangular"`` with its mode at `value`.
    value : float
        The estimate, within the range; of a reciprocal law positive.
    low, high : float
        Ends of the range; those of a normal law may be infinite. Numbers beyond are put on the end (see `inside`).
    spread : float
        Of a normal or reciprocal law, positive.

    Raises
    ------
    ValueError
        If the range does not hold the value, or there is no positive spread.

    Examples
    --------
    >>> import numpy as np
    >>> Marginal("uniform", 2.3, 1.3, 3.2).quantile(np.array([0.0, 0.5])).round(2).tolist()
    [1.3, 2.25]
    >>> Marginal("reciprocal", 0.5, 0.1, 1.0, 0.05).of_scores(np.array([-1.0, 0.0, 5.0])).round(3).tolist()
    [0.455, 0.5, 1.0]
    """

    law: LawName
    value: float
    low: float
    high: float
    spread: float = 0.0

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"value {self.value:g} is outside {self.low:g} to {self.high:g}; widen the range")
        if self.law in ("normal", "reciprocal") and not 0 < self.spread < np.inf:
            raise ValueError(f"spread is {self.spread:g}; give a positive number")
        if self.law == "reciprocal" and self.low <= 0:
            raise ValueError(f"low is {self.low:g}; give a reciprocal law a positive range")

    def quantile(self, share: Array) -> Array:
        """Numbers that shares of the law stay below; `share` between 0 and 1, any shape."""
        u = np.clip(share, 0.0, 1.0)
        if self.law == "uniform":
            return np.asarray(self.low + (self.high - self.low) * u)
        if self.law == "triangular":
            return self._triangular(u)
        return self.of_scores(np.asarray(ndtri(np.clip(u, _TINY, 1.0 - _TINY))))

    def of_scores(self, scores: Array) -> Array:
        """Numbers that belong to standard normal scores."""
        if self.law == "normal":
            return np.clip(self.value + self.spread * scores, self.low, self.high)
        if self.law == "reciprocal":
            parts = 1.0 - self.spread / self.value * scores  # of value / x
            with np.errstate(divide="ignore"):
                return np.where(parts > 0, np.clip(self.value / np.abs(parts), self.low, self.high), self.high)
        return self.quantile(np.asarray(ndtr(scores)))

    @property
    def score_range(self) -> tuple[float, float]:
        """Scores whose numbers are within the range without being put on its ends."""
        if self.law == "normal":
            return (self.low - self.value) / self.spread, (self.high - self.value) / self.spread
        if self.law == "reciprocal":
            scale = self.value / self.spread
            return scale * (1.0 - self.value / self.low), scale * (1.0 - self.value / self.high)
        return -np.inf, np.inf

    @property
    def std(self) -> float:
        """Standard deviation: `spread`, or that of the range's law; exact but for a reciprocal law (to first order)."""
        low, middle, high = self.low, self.value, self.high
        if self.law == "uniform":
            return float((high - low) / np.sqrt(12.0))
        if self.law == "triangular":
            squares = low**2 + middle**2 + high**2 - low * middle - low * high - middle * high
            return float(np.sqrt(max(squares, 0.0) / 18.0))
        return self.spread

    @property
    def slope(self) -> float:
        """Units a score moves the number by, around the median."""
        low, high = self.of_scores(np.array([-0.25, 0.25]))
        return float(2.0 * (high - low))

    def _triangular(self, u: Array) -> Array:
        width, rise = self.high - self.low, self.value - self.low
        if width == 0:
            return np.full_like(u, self.value)
        left = self.low + np.sqrt(u * width * rise)
        right = self.high - np.sqrt((1.0 - u) * width * (width - rise))
        return np.where(u * width < rise, left, right)


def inside(laws: Sequence[Marginal], scores: Array) -> NDArray[np.bool_]:
    """Which rows of scores, shape (n, laws), give numbers within all ranges."""
    kept = np.ones(len(scores), dtype=bool)
    for k, law in enumerate(laws):
        low, high = law.score_range
        kept &= (scores[:, k] >= low) & (scores[:, k] <= high)
    return kept


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
