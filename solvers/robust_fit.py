"""Robust bounded least squares of positive parameters on the logarithms of positive measurements.

A law ``f(theta)`` predicts ``N`` positive quantities. With relative noise ``s_i`` of the measurements ``y_i`` the fit
minimises ``sum rho(r_i / c)`` over ``r_i = log(f_i / y_i) / s_i``, ``rho(z) = 2 (sqrt(1 + z^2) - 1)`` (soft L1: square
for small, linear for large residuals) and parameters between bounds, in their logarithms. The scale ``c`` is 1.345
times the robust standard deviation of the residuals, found by refitting.

*Covariance.* An M-estimator with ``psi(z) = z / sqrt(1 + z^2)`` and Jacobian J of the r has, for many points (Huber,
Robust Statistics, 7.6)::

    C = K^2 c^2 sum psi^2 / (N - P) / (mean psi')^2 (J'J)^-1,    K = 1 + P/N var psi' / (mean psi')^2

Parameters at a bound are held there and left out of C. Where J has a null space the points say nothing along it: P is
then the rank of J, parameters that have a part in the null space are open, and the others have the C of the directions
that are left (the pseudo-inverse in place of the inverse). With fewer than 30 points a residual bootstrap is done as
well, and an interval is the hull of both.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.fitted import EXACT, Fit, Parameter, tiny

__all__ = ["Fit", "Parameter", "check_points", "robust_fit"]

Array = NDArray[np.float64]
Law = Callable[[Array], Array]

FEW = 30
"""Points below which intervals come from a bootstrap too."""

_TUNING = 1.345  # of Huber: 95 % of the efficiency of least squares under normal noise
_RESAMPLES = 100
_PASSES = 4  # to find the scale
_OPEN = 1e-4  # part of a parameter in what the points leave open, from which on it counts as open itself
_EVALUATIONS = 100  # of the residuals in one pass, differences not counted


def robust_fit(
    law: Law, measured: Array, parameters: Sequence[Parameter], noise: Array | float = 0.02, bootstrap: bool = True
) -> Fit:
    """Fit the parameters of a law to measurements.

    Parameters
    ----------
    law : callable
        Predictions, shape (N,), > 0, for parameters of shape (P,).
    measured : float64 array, shape (N,)
        What was measured, > 0, in the unit of the predictions.
    parameters : sequence of Parameter
        P of them, ``P <= N``.
    noise : float or float64 array, shape (N,)
        Relative standard deviation of the measurements, > 0; only ratios matter for the estimates.
    bootstrap : bool
        Whether few points are resampled for the intervals; seed fixed.

    Returns
    -------
    Fit
        Estimates, how sure they are, and what the points leave open.

    Raises
    ------
    ValueError
        Fewer points than parameters, a value not positive and finite, or a start outside its bounds.

    Examples
    --------
    >>> n = np.array([256.0, 1024.0, 4096.0, 16384.0])
    >>> law = lambda p: p[0] + p[1] * n
    >>> fit = robust_fit(law, 5e-5 + 2e-7 * n, [Parameter("a", 1e-5, 1e-7, 1e-2), Parameter("b", 1e-6, 1e-9, 1e-4)])
    >>> [f"{value:.4g}" for value in fit.values]
    ['5e-05', '2e-07']
    """
    y, spread = (
        np.asarray(measured, dtype=np.float64),
        np.broadcast_to(np.asarray(noise, dtype=np.float64), (len(measured),)),
    )
    check_points(y, spread, parameters)
    start = np.log([one.start for one in parameters])
    lower, upper = (np.log([getattr(one, side) for one in parameters]) for side in ("lower", "upper"))
    theta, scale, jacobian = _estimate(law, y, spread, start, lower, upper)
    predicted = law(np.exp(theta))
    z = np.log(predicted / y) / spread
    free = ~((theta - lower < 1e-6) | (upper - theta < 1e-6))
    covariance = np.zeros((theta.size, theta.size))
    if free.any():
        covariance[np.ix_(free, free)] = _covariance(z, jacobian[:, free], scale)
    _, singular, rows = np.linalg.svd(jacobian[:, free], full_matrices=False)
    directions = np.zeros((singular.size, theta.size))
    directions[:, free] = rows
    intervals = _intervals(theta, covariance, y.size - int(free.sum()))
    if bootstrap and y.size < FEW and free.any() and y.size > free.sum():
        draws = _resample(law, predicted, z, spread, theta, lower, upper)
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        intervals = np.column_stack([np.minimum(intervals[:, 0], low), np.maximum(intervals[:, 1], high)])
    return Fit(
        names=tuple(one.name for one in parameters),
        values=np.exp(theta),
        covariance=covariance,
        intervals=np.exp(np.clip(intervals, lower[:, None], upper[:, None])),
        at_bound=tuple(one.name for one, inside in zip(parameters, free, strict=True) if not inside),
        predicted=predicted,
        residuals=np.log(predicted / y),
        scale=scale,
        singular_values=singular,
        directions=directions,
    )


def check_points(y: Array, noise: Array, parameters: Sequence[Parameter]) -> None:
    """Refuse points and parameters that cannot be fitted, with a ValueError; arguments as in `robust_fit`."""
    if y.size < len(parameters):
        raise ValueError(f"{y.size} points cannot determine {len(parameters)} parameters; measure at least as many")
    for what, values in (("measurements", y), ("noise", noise)):
        if not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(f"{what} must be finite and positive, one is {values[~(values > 0)][:1]}")
    for one in parameters:
        if not 0 < one.lower <= one.start <= one.upper < np.inf:
            bounds = f"[{one.lower:g}, {one.upper:g}]"
            raise ValueError(f"parameter {one.name} starts at {one.start:g}, outside {bounds}; start inside, above 0")


def _estimate(law: Law, y: Array, noise: Array, start: Array, lower: Array, upper: Array) -> tuple[Array, float, Array]:
    """Logarithms of the estimates, scale of the residuals, Jacobian of the scaled residuals."""
    from scipy.optimize import least_squares

    def residuals(theta: Array) -> Array:
        out: Array = np.log(law(np.exp(theta)) / y) / noise
        return out

    theta, scale = np.clip(start, lower + 1e-9, upper - 1e-9), 10.0
    jacobian = np.empty((y.size, theta.size))
    for _ in range(_PASSES):
        with np.errstate(all="ignore"):
            found = least_squares(
                residuals,
                theta,
                "2-point",
                (lower - 1e-9, upper + 1e-9),
                loss="soft_l1",
                f_scale=_TUNING * scale,
                xtol=1e-9,
                ftol=1e-9,
                gtol=1e-9,
                max_nfev=_EVALUATIONS,
            )
        theta = np.clip(found.x, lower, upper)
        jacobian = _jacobian(residuals, theta)
        before, scale = scale, _spread(residuals(theta), theta.size)
        if abs(scale / before - 1) < 0.01:
            break
    return theta, scale, jacobian


def _jacobian(residuals: Law, theta: Array) -> Array:
    """Central differences; one-sided kinks of a law average out."""
    step = 1e-4
    columns = [(residuals(theta + step * e) - residuals(theta - step * e)) / (2 * step) for e in np.eye(theta.size)]
    return np.column_stack(columns)


def _spread(z: Array, count: int) -> float:
    """Robust standard deviation: median size over that of a normal, for the freedom used up; at least `EXACT`."""
    freedom = z.size / max(z.size - count, 1)
    return max(1.4826 * float(np.median(np.abs(z))) * float(np.sqrt(freedom)), EXACT)


def _covariance(z: Array, jacobian: Array, scale: float) -> Array:
    """Covariance of the logarithms of the free parameters; see the module.

    With fewer directions than parameters the points say nothing along the null space of J: a parameter that has a part
    in it is open (infinity), the others have the covariance of the directions that are left.
    """
    _, singular, directions = np.linalg.svd(jacobian, full_matrices=True)
    rank = int(np.sum(singular > tiny(singular)))
    known, open_ = directions[:rank], np.linalg.norm(directions[rank:], axis=0) > _OPEN
    c = _TUNING * scale
    psi, slope = (z / c) / np.sqrt(1 + (z / c) ** 2), (1 + (z / c) ** 2) ** -1.5
    correction = 1 + rank / z.size * float(slope.var()) / float(slope.mean()) ** 2
    variance = c**2 * float(psi @ psi) / max(z.size - rank, 1) / float(slope.mean()) ** 2
    out: Array = correction**2 * variance * (known.T / singular[:rank] ** 2) @ known
    out[open_], out[:, open_] = 0.0, 0.0
    out[open_, open_] = np.inf
    return out


def _intervals(theta: Array, covariance: Array, freedom: int) -> Array:
    from scipy.stats import t

    reach = float(t.ppf(0.975, max(freedom, 1))) * np.sqrt(np.diag(covariance))
    return np.column_stack([theta - reach, theta + reach])


def _resample(law: Law, predicted: Array, z: Array, noise: Array, theta: Array, lower: Array, upper: Array) -> Array:
    """Estimates from resampled residuals, inflated for the freedom the fit used up; shape (resamples, P)."""
    generator = np.random.default_rng(0)
    wide = z * np.sqrt(z.size / (z.size - theta.size)) if z.size > theta.size else z
    draws = []
    for _ in range(_RESAMPLES):
        other = predicted * np.exp(-noise * generator.choice(wide, z.size))
        draws.append(_once(law, other, noise, theta, lower, upper, _spread(z, theta.size)))
    return np.array(draws)


def _once(law: Law, y: Array, noise: Array, start: Array, lower: Array, upper: Array, scale: float) -> Array:
    from scipy.optimize import least_squares

    def residuals(theta: Array) -> Array:
        out: Array = np.log(law(np.exp(theta)) / y) / noise
        return out

    inside = np.clip(start, lower + 1e-9, upper - 1e-9)
    bounds = (lower - 1e-9, upper + 1e-9)
    found = least_squares(residuals, inside, "2-point", bounds, loss="soft_l1", f_scale=_TUNING * scale, max_nfev=30)
    return np.clip(found.x, lower, upper)
