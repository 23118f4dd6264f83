"""Distributions on a uniform grid: sums, mixtures, shifts and maxima of independent variables.

All mass sits on whole multiples of the step. Putting a law on the grid keeps its mean (each mass is split between its
two neighbours) and adds at most `step^2 / 4` to its variance; the distribution function is then wrong by at most the
mass within one step of the argument. Everything afterwards is exact up to rounding: `maximum`, `mixture` and shifts by
whole steps to about 1e-16 per mass, `convolve` to about 1e-15 (absolute, from the FFT; short ones are summed directly).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.queue_errors import MomentError, NoConvergence, QueueError, positive

__all__ = [
    "GridDistribution",
    "cdf",
    "convolve",
    "from_limited_mean",
    "from_points",
    "from_tail",
    "maximum",
    "mixture",
    "moment",
    "quantile",
    "shift",
]

Floats = NDArray[np.float64]

_NOISE = 1e-12  # negative mass that rounding may leave
_DIRECT = 64  # shorter operands are convolved by sums of products


@dataclass(frozen=True, slots=True, eq=False)
class GridDistribution:
    """Probabilities `mass[k]` of the values `step * (first + k)`; not negative, summing to 1.

    Raises
    ------
    MomentError
        If the step is not positive, or the masses are negative, not numbers or do not sum to 1 within 1e-9.
    """

    step: float
    first: int
    mass: Floats

    def __post_init__(self) -> None:
        positive("step", self.step)
        if self.mass.ndim != 1 or len(self.mass) == 0 or not (self.mass >= 0).all():
            raise MomentError("masses must be a non-empty row of numbers that are not negative")
        if not abs(float(self.mass.sum()) - 1) < 1e-9:
            raise MomentError(f"masses sum to {float(self.mass.sum())!r}")

    @property
    def values(self) -> Floats:
        """Points of the grid, one per mass."""
        return self.step * (self.first + np.arange(len(self.mass), dtype=np.float64))

    @property
    def mean(self) -> float:
        """First moment."""
        return float(self.mass @ self.values)

    @property
    def variance(self) -> float:
        """Second central moment."""
        return float(self.mass @ (self.values - self.mean) ** 2)


def _settled(step: float, first: int, mass: Floats) -> GridDistribution:
    """Cut the zeros off both ends after refusing more negative mass than rounding explains."""
    if not mass.min() > -_NOISE:
        raise NoConvergence(f"mass {float(mass.min()):.3g} is more than rounding explains")
    mass = np.maximum(mass, 0.0)
    there = np.flatnonzero(mass)
    return GridDistribution(step, first + int(there[0]), mass[there[0] : there[-1] + 1] / mass.sum())


def from_points(values: Floats, weights: Floats, step: float) -> GridDistribution:
    """Put a discrete law on the grid, each point split between its two neighbours so that the mean is kept.

    Parameters
    ----------
    values, weights : float arrays of one shape
        Points (in the unit of the step) and probabilities, which are made to sum to 1.
    step : float
        Distance of the grid's points.

    Examples
    --------
    >>> d = from_points(np.array([0.25, 1.0]), np.array([0.5, 0.5]), 0.5)
    >>> d.mass.tolist(), d.mean
    ([0.25, 0.25, 0.5], 0.625)
    """
    scaled = np.asarray(values, dtype=np.float64) / positive("step", step)
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != scaled.shape or not np.isfinite(scaled).all() or not (share >= 0).all():
        raise MomentError("points must be finite, weights not negative, and as many of one as of the other")
    nearest = np.rint(scaled)
    scaled = np.where(np.abs(scaled - nearest) < 1e-9, nearest, scaled)  # points meant to lie on the grid do
    below = np.floor(scaled).astype(np.int64)
    above = share * (scaled - below)
    first = int(below.min())
    mass = np.bincount(below - first, share - above, int(below.max()) - first + 2)
    mass += np.bincount(below - first + 1, above, len(mass))
    return _settled(step, first, mass / mass.sum())


def from_limited_mean(limited_mean: Callable[[Floats], Floats], step: float, size: int) -> GridDistribution:
    """Put a law on [0, inf) on the grid, given `L(x) = E[min(X, x)]`; the law is cut to `min(X, step * (size - 1))`.

    `m[k] = (2 L(kh) - L((k-1)h) - L((k+1)h)) / h`: the mean of the cut law is kept. Rounding: about 1e-16 L / h per
    mass.
    Source: local moment matching, Klugman, Panjer and Willmot, "Loss models" (1998), 6.15.

    Examples
    --------
    >>> from asapmodel.solvers.laws import exponential_limited_mean
    >>> round(from_limited_mean(exponential_limited_mean(1.0), 0.01, 4001).mean, 9)
    1.0
    """
    level = np.asarray(limited_mean(positive("step", step) * np.arange(size, dtype=np.float64)))
    survival = np.diff(level) / step  # mean of P(X > x) over each cell
    return _settled(step, 0, -np.diff(survival, prepend=1.0, append=0.0))


def from_tail(tail: Floats, step: float, lost: float = 1e-9) -> GridDistribution:
    """Grid law of a continuous variable on [0, inf), with an atom at 0 allowed, from `tail[k] = P(X > k step)`.

    The mass of a cell goes half to each end (the mean is right to second order in the step); what lies beyond the last
    point is put there.

    Raises
    ------
    NoConvergence
        If more than `lost` lies beyond the last point: give a longer tail.
    MomentError
        If the tail rises or leaves [0, 1].
    """
    if not float(tail[-1]) <= lost:
        raise NoConvergence(f"{float(tail[-1]):.3g} of the mass lies beyond the grid, allowed is {lost:.3g}")
    cells = -np.diff(np.append(tail, 0.0))
    if not (cells >= -_NOISE).all() or not tail[0] <= 1:
        raise MomentError("a tail falls from at most 1")
    half = 0.5 * np.maximum(cells[:-1], 0.0)
    mass = np.append(half, cells[-1])
    mass[1:] += half
    mass[0] += 1 - tail[0]
    return _settled(step, 0, mass)


def shift(law: GridDistribution, offset: float) -> GridDistribution:
    """Law of X + offset; exact for whole steps, else mean-preserving (adds `f (1-f) step^2` to the variance).

    Examples
    --------
    >>> shift(GridDistribution(0.5, 0, np.array([1.0])), 1.25).mean
    1.25
    """
    return from_points(law.values + offset, law.mass, law.step)


def _aligned(laws: Sequence[GridDistribution]) -> tuple[int, Floats]:
    """Masses of all laws on the smallest common grid, one row each."""
    if not laws:
        raise QueueError("at least one distribution is needed")
    if any(abs(law.step / laws[0].step - 1) > 1e-12 for law in laws):
        raise QueueError(f"distributions on different steps: {sorted({law.step for law in laws})}")
    first = min(law.first for law in laws)
    rows = np.zeros((len(laws), max(law.first + len(law.mass) for law in laws) - first))
    for row, law in zip(rows, laws, strict=True):
        row[law.first - first : law.first - first + len(law.mass)] = law.mass
    return first, rows


def convolve(*laws: GridDistribution) -> GridDistribution:
    """Law of the sum of independent variables on the same step.

    Examples
    --------
    >>> die = GridDistribution(1.0, 1, np.full(6, 1 / 6))
    >>> round(float(convolve(die, die).mass[5]) * 36, 9)
    6.0
    """
    _aligned(laws)
    first, mass = laws[0].first, laws[0].mass
    for law in laws[1:]:
        first += law.first
        if min(len(mass), len(law.mass)) <= _DIRECT:
            mass = np.convolve(mass, law.mass)
        else:
            size = len(mass) + len(law.mass) - 1
            padded = 1 << (size - 1).bit_length()
            mass = np.fft.irfft(np.fft.rfft(mass, padded) * np.fft.rfft(law.mass, padded), padded)[:size]
    return _settled(laws[0].step, first, mass)


def mixture(weights: Sequence[float], laws: Sequence[GridDistribution]) -> GridDistribution:
    """Law of one of the variables, chosen with the given weights (made to sum to 1)."""
    first, rows = _aligned(laws)
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (len(laws),) or not (share >= 0).all() or not share.sum() > 0:
        raise MomentError("one weight that is not negative for each distribution, and not all 0")
    return _settled(laws[0].step, first, share / share.sum() @ rows)


def maximum(*laws: GridDistribution) -> GridDistribution:
    """Law of the largest of independent variables on the same step: the product of the distribution functions.

    Examples
    --------
    >>> die = GridDistribution(1.0, 1, np.full(6, 1 / 6))
    >>> round(maximum(die, die).mean * 36, 9)
    161.0
    """
    first, rows = _aligned(laws)
    product = np.prod(np.minimum(np.cumsum(rows, axis=1), 1.0), axis=0)
    return _settled(laws[0].step, first, np.diff(product, prepend=0.0))


def moment(law: GridDistribution, order: int) -> float:
    """Raw moment E[X^order]."""
    return float(law.mass @ law.values**order)


def cdf(law: GridDistribution, x: float) -> float:
    """P(X <= x); a point within 1e-9 steps of x counts as reached."""
    last = int(np.floor(x / law.step + 1e-9)) - law.first
    return float(min(1.0, law.mass[: last + 1].sum())) if last >= 0 else 0.0


def quantile(law: GridDistribution, p: float) -> float:
    """Smallest grid point whose distribution function reaches p (to 1e-15), 0 < p <= 1."""
    if not 0 < p <= 1:
        raise QueueError(f"p must be in (0, 1], not {p}")
    reached = np.cumsum(law.mass)
    index = min(int(np.searchsorted(reached, p - 1e-15)), len(reached) - 1)
    return law.step * (law.first + index)
