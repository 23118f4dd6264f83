"""Laws of prompt lengths and arrival gaps: constant, exponential, gamma, empirical, truncated log-normal.

Import every law from here. Each is a frozen value checked at construction; what all of them can do is said
in `Distribution`. Formulas are exact; the floating-point error is noted where it is not a few ulp. Which of
them fits public traffic: `docs/background/traffic.md`. SciPy's special functions are loaded on first use, because
they cost more to import than a model costs to evaluate.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from asapmodel.models.distribution_base import Distribution, FloatArray
from asapmodel.models.truncated_lognormal import TruncatedLognormal

__all__ = ["Constant", "Distribution", "Empirical", "Exponential", "Gamma", "TruncatedLognormal"]


def _require_positive(law: str, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{law}: {name} must be positive and finite, not {value}")


@dataclass(frozen=True, slots=True)
class Constant(Distribution):
    """X = `value` with probability 1; E[X^k] = value^k. Exact.

    Examples
    --------
    >>> Constant(4096).mean, Constant(4096).scv
    (4096.0, 0.0)
    """

    value: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"Constant: value must be finite, not {self.value}")

    @property
    def support(self) -> tuple[float, float]:
        """The value, twice."""
        return float(self.value), float(self.value)

    def _variance(self) -> float:
        return 0.0

    def _moment(self, k: int) -> float:
        return float(self.value) ** k

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.where(x >= self.value, 1.0, 0.0)

    def _quantile(self, p: FloatArray) -> FloatArray:
        return np.full(p.shape, float(self.value))


@dataclass(frozen=True, slots=True)
class Exponential(Distribution):
    """Exponential law: P(X > x) = exp(-x / mean), E[X^k] = k! mean^k. Exact.

    Examples
    --------
    >>> Exponential(2.0).moment(2), Exponential(2.0).scv
    (8.0, 1.0)
    """

    # `field()` keeps the inherited property from becoming this field's default.
    mean: float = field()

    def __post_init__(self) -> None:
        _require_positive("Exponential", mean=self.mean)

    @property
    def support(self) -> tuple[float, float]:
        """Zero to infinity."""
        return 0.0, math.inf

    def _variance(self) -> float:
        return self.mean**2

    def _moment(self, k: int) -> float:
        return math.factorial(k) * self.mean**k

    def _cdf(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-np.maximum(x, 0.0) / self.mean)

    def _quantile(self, p: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return -self.mean * np.log1p(-p)


@dataclass(frozen=True, slots=True)
class Gamma(Distribution):
    """Gamma law by its mean and coefficient of variation; `cv` = 1 is the exponential.

    Shape a = 1 / cv^2, scale b = mean cv^2; E[X^k] = b^k a (a+1) ... (a+k-1); P(X <= x) = P(a, x/b), the
    regularised lower incomplete gamma function (DLMF 8.2.4). Moments exact; cdf and quantile to SciPy's
    accuracy, about 1e-13. Where the law is very bursty (cv above 10) its smallest values underflow to zero.

    Examples
    --------
    >>> bursty = Gamma(mean=1.0, cv=2.0)
    >>> bursty.variance, bursty.moment(3)
    (4.0, 45.0)
    """

    mean: float = field()
    cv: float = field()

    def __post_init__(self) -> None:
        _require_positive("Gamma", mean=self.mean, cv=self.cv)
        if not math.isfinite(self._shape) or self._shape == 0:
            raise ValueError(f"Gamma: cv {self.cv} is out of range")

    @property
    def support(self) -> tuple[float, float]:
        """Zero to infinity."""
        return 0.0, math.inf

    @property
    def _shape(self) -> float:
        inverse = 1 / self.cv
        return inverse * inverse

    def _variance(self) -> float:
        return (self.mean * self.cv) ** 2

    def _moment(self, k: int) -> float:
        return math.prod(self.mean * (1 + j * self.cv**2) for j in range(k))

    def _cdf(self, x: FloatArray) -> FloatArray:
        from scipy.special import gammainc

        return np.asarray(gammainc(self._shape, np.maximum(x, 0.0) / self.mean * self._shape), np.float64)

    def _quantile(self, p: FloatArray) -> FloatArray:
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self._shape, p), np.float64) * self.mean / self._shape


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Empirical(Distribution):
    """The law of a list of observed values, each equally likely; sampling is with replacement.

    E[X^k] = sum(x_i^k) / n; P(X <= x) = #{x_i <= x} / n; the quantile is the smallest value whose cdf
    reaches p. Exact for the list; as an estimate of the law it came from, its error is statistical.
    `values` is kept sorted and read-only; any array-like of finite numbers is accepted.

    Examples
    --------
    >>> lengths = Empirical([512, 31, 2048, 512])
    >>> lengths.mean, float(lengths.cdf(512)), lengths.quantile([0.25, 0.5, 1.0]).tolist()
    (775.75, 0.75, [31.0, 512.0, 2048.0])
    """

    values: FloatArray

    def __init__(self, values: ArrayLike) -> None:
        ordered = np.sort(np.asarray(values, dtype=np.float64), axis=None)
        if ordered.size == 0 or not np.isfinite(ordered).all():
            raise ValueError("Empirical: needs at least one value, all of them finite")
        ordered.setflags(write=False)
        object.__setattr__(self, "values", ordered)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self.values[0]), float(self.values[-1])

    def _variance(self) -> float:
        return float(self.values.var())

    def _moment(self, k: int) -> float:
        return float(np.mean(self.values**k))

    def _cdf(self, x: FloatArray) -> FloatArray:
        return np.searchsorted(self.values, x, side="right") / self.values.size

    def _quantile(self, p: FloatArray) -> FloatArray:
        # Searching the cdf's own floats, unlike ceil(n p), makes the quantile its exact inverse.
        steps = np.arange(1, self.values.size + 1) / self.values.size
        return self.values[np.searchsorted(steps, p, side="left")]
