"""Brownian motion reflected at 0: how a queue in heavy traffic fills and empties.

R(t) has drift `mu` (any sign) and variance `s2` per unit of time and starts at `x`. All formulas are exact, and closed
where nothing else is said; arguments are arrays that broadcast. Notation: `d = mu sqrt(t) / s`, `z = y / (s sqrt t)`,
`Phi` and `phi` the normal distribution and density.

Sources: Harrison, "Brownian motion and stochastic flow systems" (1985), 1.8 and 3.6, for the law; Abate and Whitt,
"Transient behavior of regulated Brownian motion, I: starting at the origin", Adv. Appl. Prob. 19 (1987) 560-598, for
the moments, which there are in units with `mu = -1`, `s2 = 1`.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.compiled import njit
from asapmodel.solvers.queue_errors import MomentError, nonnegative, positive

__all__ = ["average_mean", "average_tail", "transient_mean", "transient_mean_square", "transient_tail"]

Floats = NDArray[np.float64]

_ROOT_2 = math.sqrt(2)
_ROOT_2PI = math.sqrt(2 * math.pi)
_SLOW = 0.1  # below this |d| closed forms lose digits to cancellation


@cache  # at first use: NumPy's polynomials take a while to load
def _quadrature() -> tuple[Floats, Floats]:
    """Quadrature over sqrt t: times as shares of H, and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return 0.25 * (1 + nodes) ** 2, 0.5 * weights * (1 + nodes)


def transient_tail(level: ArrayLike, time: ArrayLike, drift: float, variance: float, start: float = 0.0) -> Floats:
    """P(R(t) > y) at levels y and times t.

    `Phi((x - y + mu t) / (s sqrt t)) + exp(2 mu y / s2) Phi((-x - y - mu t) / (s sqrt t))`; from 0 this is the law of
    the first passage to y of the motion without reflection, an inverse Gaussian law (defective if `mu < 0`).

    Parameters
    ----------
    level, time : array_like
        y and t; 1 below level 0, and R(0) = x.
    drift, variance : float
        mu and s2 > 0.
    start : float
        x >= 0.

    Raises
    ------
    MomentError
        If a parameter is outside its domain, or a time is negative.

    Examples
    --------
    >>> [round(float(p), 6) for p in transient_tail(1.0, [0.0, 1.0, 1e9], drift=-0.5, variance=1.0)]
    [0.0, 0.180312, 0.367879]
    """
    y, t = _checked(level, time, variance, start)
    return np.asarray(_tails(y.ravel(), t.ravel(), drift, variance, start), dtype=np.float64).reshape(y.shape)


def average_tail(level: ArrayLike, horizon: ArrayLike, drift: float, variance: float, start: float = 0.0) -> Floats:
    """Mean of P(R(t) > y) over 0 <= t <= H.

    From 0: `E (H - T)+ / H` with T the first passage to y, hence `A + B - (z / d) (A - B)` with `A = Phi(d - z)`,
    `B = exp(2 d z) Phi(-d - z)` at t = H. From `x > 0`: Gauss-Legendre quadrature over `sqrt t` with 64 nodes, right to
    1e-4 (worst at y = x while little has happened, where the tail jumps at t = 0) and mostly to 1e-8.

    Parameters
    ----------
    level, horizon : array_like
        y, and H > 0.
    drift, variance, start : float
        As in `transient_tail`.

    Examples
    --------
    >>> [round(float(p), 6) for p in average_tail(1.0, [1.0, 1e9], drift=-0.5, variance=1.0)]
    [0.086917, 0.367879]
    """
    y, horizons = _checked(level, horizon, variance, start)
    if not (horizons > 0).all():
        raise MomentError("a horizon must be positive")
    if start > 0:
        shares, weights = _quadrature()
        tails = transient_tail(y[..., None], horizons[..., None] * shares, drift, variance, start)
        return np.asarray(tails @ weights, dtype=np.float64)
    return np.asarray(_averages(y.ravel(), horizons.ravel(), drift, variance), dtype=np.float64).reshape(y.shape)


def transient_mean(time: ArrayLike, drift: float, variance: float, start: float = 0.0) -> Floats:
    """E R(t): `m Phi(m/r) + r phi(m/r) + s2/(2 mu) (exp(-2 mu x/s2) Phi((mu t - x)/r) - Phi(-m/r))`.

    `m = x + mu t` and `r = s sqrt t`. For `mu < 0` it tends to `s2 / (2 |mu|)`; for `mu = 0` from 0 it is
    `s sqrt(2 t / pi)`.

    Examples
    --------
    >>> [round(float(m), 6) for m in transient_mean([0.0, 1.0, 1e6], drift=-1.0, variance=1.0)]
    [0.0, 0.42466, 0.5]
    """
    _, t = _checked(0.0, time, variance, start)
    return np.asarray(_means(t.ravel(), drift, variance, start), dtype=np.float64).reshape(t.shape)


def average_mean(horizon: ArrayLike, drift: float, variance: float, start: float = 0.0) -> Floats:
    """Mean of E R(t) over 0 <= t <= H: `(E R(H)^2 - x^2 - s2 H) / (2 mu H)`.

    Follows from `d E R^2 / dt = 2 mu E R + s2`. With little drift in H (`|d| < 0.1`) by Gauss-Legendre quadrature
    over `sqrt t`, in which E R is smooth; right to 1e-9 from 0, to 1e-6 from elsewhere.

    Examples
    --------
    >>> [round(float(m), 6) for m in average_mean([1.0, 1e6], drift=-1.0, variance=1.0)]
    [0.333315, 0.5]
    """
    _, horizons = _checked(0.0, horizon, variance, start)
    if not (horizons > 0).all():
        raise MomentError("a horizon must be positive")
    shares, weights = _quadrature()
    summed = transient_mean(horizons[..., None] * shares, drift, variance, start) @ weights
    slow = abs(drift) * np.sqrt(horizons / variance) < _SLOW
    square = np.asarray(_squares(horizons.ravel(), drift, variance, start), dtype=np.float64).reshape(horizons.shape)
    closed = (square - start**2 - variance * horizons) / (2 * np.where(slow, 1.0, drift) * horizons)
    return np.asarray(np.where(slow, summed, closed), dtype=np.float64)


def transient_mean_square(time: ArrayLike, drift: float, variance: float, start: float = 0.0) -> Floats:
    """E R(t)^2, closed where drift matters (`|d| >= 0.1`), else `x^2 + s2 t + 2 mu t average_mean(t)`.

    For `mu < 0` it tends to `s2^2 / (2 mu^2)`; for `mu = 0` from 0 it is `s2 t`.

    Examples
    --------
    >>> [round(float(m), 6) for m in transient_mean_square([0.0, 1.0, 1e6], drift=-1.0, variance=1.0)]
    [0.0, 0.333369, 0.5]
    """
    _, t = _checked(0.0, time, variance, start)
    safe = np.where(t > 0, t, 1.0)
    square = start**2 + safe * (variance + 2 * drift * average_mean(safe, drift, variance, start))
    return np.asarray(np.where(t > 0, square, start**2), dtype=np.float64)


def _checked(level: ArrayLike, time: ArrayLike, variance: float, start: float) -> tuple[Floats, Floats]:
    positive("variance", variance)
    nonnegative("start", start)
    levels, times = np.broadcast_arrays(np.asarray(level, dtype=np.float64), np.asarray(time, dtype=np.float64))
    if not (times >= 0).all():
        raise MomentError("a time must not be negative")
    return levels, times


@njit(cache=True, nogil=True)
def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / _ROOT_2)


@njit(cache=True, nogil=True)
def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / _ROOT_2PI


@njit(cache=True, nogil=True)
def _mirrored(z: float, x: float, d: float) -> float:
    """`exp(2 d z) Phi(-(x + z + d))` for x, z >= 0, without overflow: up to 25 the exponent is below 25^2 / 2."""
    u = x + z + d
    if u < 25:
        return math.exp(2 * d * z) * _normal(-u)
    v = 1 / (u * u)
    return math.exp(2 * d * z - 0.5 * u * u) / (u * _ROOT_2PI) * (1 - v * (1 - v * (3 - 15 * v)))


@njit(cache=True, nogil=True)
def _difference(z: float, d: float) -> float:
    """`(Phi(d - z) - exp(2 d z) Phi(-d - z)) / d` for z >= 0, also where d is 0.

    With the ratio `M = (1 - Phi) / phi` of Mills this is `phi(z - d) (M(z - d) - M(z + d)) / d`, in small d
    `-2 phi(z - d) (M' + d^2 M''' / 6)`, `M' = z M - 1`.
    """
    if abs(d) >= 1e-3:
        return (_normal(d - z) - _mirrored(z, 0.0, d)) / d
    if z > 25:
        return 0.0  # below 1e-130
    mills = _normal(-z) / _density(z)
    first = z * mills - 1
    third = 2 * first + z * (mills + z * first)
    return -2 * _density(z - d) * (first + d * d * third / 6)


@njit(cache=True, nogil=True)
def _tails(level: Floats, time: Floats, drift: float, variance: float, start: float) -> Floats:
    out = np.empty(len(level))
    for i in range(len(level)):
        if level[i] < 0:
            out[i] = 1.0
        elif time[i] == 0:
            out[i] = 1.0 if start > level[i] else 0.0
        else:
            spread = math.sqrt(variance * time[i])
            z, x, d = level[i] / spread, start / spread, drift * time[i] / spread
            out[i] = min(_normal(x - z + d) + _mirrored(z, x, d), 1.0)
    return out


@njit(cache=True, nogil=True)
def _averages(level: Floats, horizon: Floats, drift: float, variance: float) -> Floats:
    out = np.empty(len(level))
    for i in range(len(level)):
        spread = math.sqrt(variance * horizon[i])
        z, d = max(level[i], 0.0) / spread, drift * horizon[i] / spread
        average = _normal(d - z) + _mirrored(z, 0.0, d) - z * _difference(z, d)
        out[i] = 1.0 if level[i] < 0 else min(max(average, 0.0), 1.0)
    return out


@njit(cache=True, nogil=True)
def _means(time: Floats, drift: float, variance: float, start: float) -> Floats:
    out = np.empty(len(time))
    for i in range(len(time)):
        if time[i] == 0:
            out[i] = start
            continue
        spread = math.sqrt(variance * time[i])
        z, d = start / spread, drift * time[i] / spread
        out[i] = spread * ((z + d) * _normal(z + d) + _density(z + d) + 0.5 * _difference(z, -d))
    return out


@njit(cache=True, nogil=True)
def _squares(time: Floats, drift: float, variance: float, start: float) -> Floats:
    """E R(t)^2 as the integral of `2 y P(R(t) > y)`, term by term: loses digits as `d^-2`, not a number near d = 0.

    Uses `exp(-2 d z) phi(d - z) = phi(d + z)`, which never overflows.
    """
    out = np.empty(len(time))
    for i in range(len(time)):
        spread = math.sqrt(variance * time[i])
        z, d = start / spread, drift * time[i] / spread
        if abs(d) < 1e-8:
            out[i] = np.nan
            continue
        passed = _mirrored(z, 0.0, -d)
        free = (1 + (z + d) ** 2) * _normal(z + d) + (z + d) * _density(z + d)
        mirrored = ((d - z) * passed + _density(z + d)) / d - 0.5 * (passed - _normal(-z - d)) / (d * d)
        out[i] = variance * time[i] * (free + mirrored)
    return out
