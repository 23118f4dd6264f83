"""The log-normal law conditioned on an interval: the usual choice for prompt lengths.

Prompt lengths are long-tailed but cut at both ends: by the shortest chat template and by the context
window. Moments are in closed form, so the solvers need no quadrature. Apart from `distributions` only for
its length.
"""

import math
from dataclasses import dataclass

import numpy as np

from asapmodel.models.distribution_base import Distribution, FloatArray
from asapmodel.models.normal import log_cdf, normal_cdf, normal_quantile

__all__ = ["TruncatedLognormal"]

# Below this share of the untruncated law, differences of the normal cdf keep fewer than seven digits.
_MIN_MASS = 1e-9
# exp(mu) stays a normal floating-point number.
_MAX_MU = 700


@dataclass(frozen=True, slots=True)
class TruncatedLognormal(Distribution):
    """Log-normal law, ln X ~ N(mu, sigma^2), given that X lies in [low, high]; `high` may be infinite.

    With a_k = (ln low - mu)/sigma - k sigma, b_k likewise for `high`, and N the normal cdf,

        E[X^k] = exp(k mu + k^2 sigma^2 / 2) (N(b_k) - N(a_k)) / (N(b_0) - N(a_0)),

    (Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions 1, 1994, chapter 14). Exact; rounding
    error up to 1e-7 when the interval holds only 1e-9 of the untruncated law, less than which is refused.
    `sigma` = 0 is a point mass at exp(mu). To cut such a law further, narrow its bounds.

    Examples
    --------
    >>> cut = TruncatedLognormal(mu=7.5733, sigma=1.445, low=31, high=32768)
    >>> f"{cut.moment(2):.3g}", round(cut.scv**0.5, 2)
    ('4.43e+07', 1.36)
    """

    mu: float
    sigma: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (abs(self.mu) <= _MAX_MU and 0 <= self.sigma < math.inf):
            raise ValueError(f"TruncatedLognormal: needs |mu| <= {_MAX_MU} and finite sigma >= 0, not {self}")
        if not 0 <= self.low <= self.high or self.low == math.inf:
            raise ValueError(f"TruncatedLognormal: needs 0 <= low <= high, not [{self.low}, {self.high}]")
        if self.sigma == 0 and not self.low <= math.exp(self.mu) <= self.high:
            raise ValueError("TruncatedLognormal: sigma = 0 needs exp(mu) inside [low, high]")
        if self.sigma > 0 and not self._log_mass(0) >= math.log(_MIN_MASS):
            raise ValueError(f"TruncatedLognormal: [{self.low}, {self.high}] holds less than {_MIN_MASS} of the law")

    @property
    def support(self) -> tuple[float, float]:
        """`low` and `high`; the point itself when `sigma` is 0."""
        if self.sigma == 0:
            return math.exp(self.mu), math.exp(self.mu)
        return float(self.low), float(self.high)

    def _standard(self, x: FloatArray | float) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray((np.log(x) - self.mu) / self.sigma)

    def _log_mass(self, k: int) -> float:
        """ln(N(b_k) - N(a_k)), taken in the tail where the two are small so that they do not cancel."""
        ends = np.array([float(self._standard(bound)) - k * self.sigma for bound in (self.low, self.high)])
        small, large = log_cdf(ends if ends[0] <= 0 else -ends[::-1]).tolist()
        return float(large + math.log(-math.expm1(small - large))) if small < large else -math.inf

    def _moment(self, k: int) -> float:
        if self.sigma == 0:
            return math.exp(k * self.mu)
        growth = k * self.mu + (k * self.sigma) ** 2 / 2
        return math.exp(growth + self._log_mass(k) - self._log_mass(0))

    def _cdf(self, x: FloatArray) -> FloatArray:
        if self.sigma == 0:
            return np.where(x >= self.support[0], 1.0, 0.0)
        a, z, b = (self._standard(v) for v in (self.low, np.clip(x, self.low, self.high), self.high))
        sign = 1 if a <= 0 else -1
        return (normal_cdf(sign * z) - normal_cdf(sign * a)) / (normal_cdf(sign * b) - normal_cdf(sign * a))

    def _quantile(self, p: FloatArray) -> FloatArray:
        if self.sigma == 0:
            return np.full(p.shape, self.support[0])
        a, b = self._standard(self.low), self._standard(self.high)
        # Both tails as convex combinations: neither subtracts, so the smaller one is always precise.
        below = (1 - p) * normal_cdf(a) + p * normal_cdf(b)
        above = (1 - p) * normal_cdf(-a) + p * normal_cdf(-b)
        z = np.where(below <= above, 1.0, -1.0) * normal_quantile(np.minimum(below, above))
        inside = np.clip(np.exp(self.mu + self.sigma * z), self.low, self.high)
        # The way through the normal law and back does not return the bounds to the last bit.
        return np.where(p == 0, self.low, np.where(p == 1, self.high, inside))
