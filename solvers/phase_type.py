"""Phase-type laws: the time a finite Markov chain takes to leave its transient states."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.qbd_kernels import factor, solve
from asapmodel.solvers.queue_errors import MomentError, QueueError

__all__ = ["PhaseType", "erlang", "exponential", "fit_two_moments", "hyperexponential", "mixture"]

Floats = NDArray[np.float64]

_ROUNDING = 1e-9  # of the largest rate: what a row sum or a probability may be off


@dataclass(init=False, frozen=True, eq=False)
class PhaseType:
    """Phase-type law: `P(X > t) = initial exp(generator t) 1`. Exact.

    Parameters
    ----------
    initial : array, shape (n,)
        Probabilities of the first phase; they sum to 1 (no atom at 0).
    generator : array, shape (n, n)
        Rates between phases, 1 / time; minus the row sums are the exit rates.

    Raises
    ------
    QueueError
        If an entry is not finite or negative where it must not be, the probabilities do not sum to 1, a row sum is
        positive, or some phase never ends.

    Notes
    -----
    Neuts, "Matrix-Geometric Solutions in Stochastic Models" (1981), chapter 2.

    Examples
    --------
    >>> x = PhaseType([1.0, 0.0], [[-2.0, 2.0], [0.0, -4.0]])
    >>> round(x.mean, 12), round(x.scv, 6)
    (0.75, 0.555556)
    >>> round(float(x.cdf(x.quantile(0.9))), 12)
    0.9
    """

    initial: Floats
    generator: Floats

    def __init__(self, initial: ArrayLike, generator: ArrayLike) -> None:
        first, rates = np.array(initial, dtype=np.float64), np.array(generator, dtype=np.float64)
        _check(first, rates)
        for array in (first, rates):
            array.flags.writeable = False
        object.__setattr__(self, "initial", first)
        object.__setattr__(self, "generator", rates)
        if not np.all(np.diag(self._factors) > 0):
            raise QueueError("a phase is never left: the time would be infinite")

    @property
    def order(self) -> int:
        """Number of phases."""
        return len(self.initial)

    @cached_property
    def exits(self) -> Floats:
        """Exit rates, shape (n,); rounding below 0 is cut."""
        return np.asarray(np.maximum(0.0, -self.generator.sum(axis=1)))

    @cached_property
    def _factors(self) -> Floats:
        return np.asarray(factor(_off_diagonal(self.generator), self.exits))

    @cached_property
    def _law(self) -> TailLaw:
        return TailLaw(self.initial.copy(), self.generator.copy(), np.ones(self.order))

    @property
    def mean(self) -> float:
        """E X."""
        return float(self.moments(1)[0])

    @property
    def scv(self) -> float:
        """Variance over squared mean."""
        first, second = self.moments(2)
        return float(second / first**2 - 1)

    def moments(self, count: int) -> Floats:
        """E X^k for k = 1 ... `count`: `k! initial (-generator)^-k 1`."""
        out = np.empty(count)
        v = np.ones((self.order, 1))
        for k in range(1, count + 1):
            v = k * solve(self._factors, v)
            out[k - 1] = self.initial @ v[:, 0]
        return out

    def cdf(self, t: ArrayLike) -> Floats:
        """P(X <= t), of the shape of `t`."""
        return np.asarray(1.0 - self._law.tail(t))

    def quantile(self, p: float) -> float:
        """Time t with `P(X <= t) = p`; QueueError unless 0 <= p < 1."""
        return self._law.quantile(p)

    def lst(self, s: complex) -> complex:
        """Laplace-Stieltjes transform E exp(-s X) = `initial (s I - generator)^-1 exits`, Re s >= 0."""
        v = np.linalg.solve(s * np.eye(self.order) - self.generator, self.exits)
        return complex(self.initial @ v)

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """`count` independent draws, by running the chain."""
        rates = -np.diag(self.generator)
        ends = np.column_stack([_off_diagonal(self.generator), self.exits]).cumsum(axis=1) / rates[:, None]
        ends[:, -1] = 1.0
        phase = np.minimum(np.searchsorted(self.initial.cumsum(), generator.random(count), "right"), self.order - 1)
        out = np.zeros(count)
        alive = np.arange(count)
        while len(alive):
            now = phase[alive]
            out[alive] += generator.exponential(size=len(alive)) / rates[now]
            phase[alive] = (generator.random(len(alive))[:, None] >= ends[now]).sum(axis=1)
            alive = alive[phase[alive] < self.order]
        return out


def _off_diagonal(matrix: Floats) -> Floats:
    out = matrix.copy()
    np.fill_diagonal(out, 0.0)
    return out


def _check(first: Floats, rates: Floats) -> None:
    if first.ndim != 1 or len(first) == 0 or rates.shape != (len(first), len(first)):
        raise QueueError(f"initial {first.shape} and generator {rates.shape} do not fit")
    if not (np.isfinite(first).all() and np.isfinite(rates).all()):
        raise QueueError("an entry is not finite")
    slack = _ROUNDING * float(np.abs(rates).max())
    if first.min() < 0 or abs(first.sum() - 1) > _ROUNDING:
        raise QueueError(f"initial probabilities {first} are negative or do not sum to 1")
    if _off_diagonal(rates).min() < 0 or rates.sum(axis=1).max() > slack:
        raise QueueError("not a generator: a rate is negative or a row sum positive")


def exponential(mean: float) -> PhaseType:
    """Exponential law of the given mean."""
    return erlang(mean, 1)


def erlang(mean: float, phases: int) -> PhaseType:
    """Sum of `phases` equal exponential times; scv `1 / phases`.

    Examples
    --------
    >>> round(erlang(2.0, 4).scv, 12)
    0.25
    """
    return mixture([1.0], [mean], [phases])


def mixture(weights: ArrayLike, means: ArrayLike, phases: ArrayLike) -> PhaseType:
    """Hyper-Erlang law: with probability `weights[i]` an Erlang time of `phases[i]` phases and mean `means[i]`.

    Raises
    ------
    QueueError, MomentError
        If the weights are no probabilities, or a mean is not positive.

    Examples
    --------
    >>> round(mixture([0.5, 0.5], [1.0, 3.0], [1, 2]).mean, 12)
    2.0
    """
    share, mean, count = np.asarray(weights, float), np.asarray(means, float), np.asarray(phases, int)
    if not np.all((mean > 0) & np.isfinite(mean)) or np.any(count < 1):
        raise MomentError(f"Erlang branches need positive means and phases, not {mean}, {count}")
    starts = np.concatenate([[0], count.cumsum()])
    generator = np.diag(-np.repeat(count / mean, count))
    for first, last in pairwise(starts):
        rows = np.arange(first, last - 1)
        generator[rows, rows + 1] = -generator[rows, rows]
    initial = np.zeros(starts[-1])
    initial[starts[:-1]] = share
    return PhaseType(initial, generator)


def hyperexponential(mean: float, scv: float) -> PhaseType:
    """Mixture of two exponentials with balanced means (`p1 m1 = p2 m2`), scv > 1.

    `p1 = (1 + sqrt((scv - 1) / (scv + 1))) / 2`, rates `2 p / mean`. Third moment as it comes.
    Source: Tijms, "Stochastic Models" (1994), appendix B.

    Raises
    ------
    MomentError
        Unless mean > 0 and scv > 1.

    Examples
    --------
    >>> round(hyperexponential(2.0, 4.0).scv, 12)
    4.0
    """
    if not (mean > 0 and 1 < scv < math.inf):
        raise MomentError(f"two exponentials need mean > 0 and scv > 1, not {mean} and {scv}")
    p = 0.5 * (1 + math.sqrt((scv - 1) / (scv + 1)))
    q = 1 / (p * (scv + 1) * 2)  # = 1 - p, without cancellation
    return mixture([p, q], [mean / (2 * p), mean / (2 * q)], [1, 1])


def fit_two_moments(mean: float, scv: float, limit: int = 100) -> PhaseType:
    """Phase-type law with the given mean and scv, exactly.

    scv < 1: an Erlang time of k - 1 or k phases of one rate, `1 / k <= scv <= 1 / (k - 1)`, with
    `p = (k scv - sqrt(k (1 + scv) - k^2 scv)) / (1 + scv)` for k - 1. scv > 1: balanced hyperexponential.
    Source: Tijms, "Stochastic Models" (1994), appendix B.

    Raises
    ------
    MomentError
        Unless mean > 0 and scv >= 1 / `limit`.

    Examples
    --------
    >>> x = fit_two_moments(3.0, 0.4)
    >>> x.order, round(x.mean, 12), round(x.scv, 12)
    (3, 3.0, 0.4)
    """
    if not (0 < mean < math.inf and 1 / limit <= scv * (1 + 1e-12) and scv < math.inf):
        raise MomentError(f"{limit} phases need mean > 0 and scv >= {1 / limit:.4g}, not {mean} and {scv}")
    if scv > 1:
        return hyperexponential(mean, scv)
    k = max(1, math.ceil(1 / scv - 1e-12))
    if k == 1 or abs(k * scv - 1) < 1e-12:
        return erlang(mean, k)
    p = (k * scv - math.sqrt(max(0.0, k * (1 + scv) - k * k * scv))) / (1 + scv)
    rate = (k - p) / mean
    generator = np.diag(np.full(k, -rate)) + np.diag(np.full(k - 1, rate), 1)
    initial = np.zeros(k)
    initial[:2] = 1 - p, p
    return PhaseType(initial, generator)
