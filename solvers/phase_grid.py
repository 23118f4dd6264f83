"""Phase-type laws of two to four phases in the place of a law on finitely many points."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.phase_fit import fit_three_moments
from asapmodel.solvers.phase_type import PhaseType, fit_two_moments, mixture
from asapmodel.solvers.queue_errors import MomentError

__all__ = ["fit_grid"]

Floats = NDArray[np.float64]

_PARTITIONS = {2: ((1, 1),), 3: ((1, 1, 1), (1, 2)), 4: ((1, 1, 1, 1), (1, 1, 2), (2, 2), (1, 3))}  # Erlang branches
_CUTS = {2: ((0.5,), (0.8,), (0.95,)), 3: ((0.5, 0.9), (0.3, 0.8)), 4: ((0.3, 0.6, 0.9),)}  # first guesses: slices
_POINTS = 64
_WEIGHT = 100.0  # of a moment's error against one of the distribution function while searching
_EXACT = 1e-9


def fit_grid(values: ArrayLike, weights: ArrayLike, order: int = 2) -> PhaseType:
    """Phase-type law of at most `order` phases with the moments of a law on finitely many points.

    Candidates: the closed forms of two and of three moments, and mixtures of Erlang branches for every split of the
    phases. Taken is the one that matches most of the first three moments (mean and second always, the third where the
    forms allow it; to 1e-9), among those the one with the least mean square difference of the distribution functions
    at 64 quantiles of the given law, into which the freedom that the moments leave goes. An approximation of the law:
    its bounded support becomes an exponential tail, and points close together are smeared. Takes 0.05 to 1 s.

    Parameters
    ----------
    values : array, shape (k,)
        Points, not negative, not all 0.
    weights : array, shape (k,)
        Their weights, not negative; scaled to sum 1.
    order : int
        2, 3 or 4.

    Raises
    ------
    MomentError
        If the points or weights are none, or the scv is below 1 / `order` (a nearly constant law needs more phases:
        `fit_two_moments`).

    Examples
    --------
    >>> x = fit_grid([1.0, 2.0, 10.0], [0.5, 0.4, 0.1], 2)
    >>> x.moments(2).round(9)
    array([ 2.3, 12.1])
    """
    v, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if order not in _PARTITIONS or v.ndim != 1 or v.shape != w.shape or not len(v):
        raise MomentError(f"order 2, 3 or 4 and as many weights as values, not {order}, {v.shape}, {w.shape}")
    if not (np.isfinite(v).all() and np.isfinite(w).all() and min(v.min(), w.min()) >= 0 and v @ w > 0):
        raise MomentError("values and weights must be finite, not negative, and not all 0")
    mean = float(v @ w / w.sum())
    targets = np.array([float((v / mean) ** k @ w / w.sum()) for k in (1, 2, 3)])
    rows = np.argsort(v)
    steps = w[rows].cumsum() / w.sum()
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    quantiles = np.interp(levels, steps - 0.5 * w[rows] / w.sum(), v[rows] / mean)
    best = min(_candidates(targets, quantiles, levels, order), key=lambda law: _rank(law, targets, quantiles, levels))
    return PhaseType(best.initial, best.generator / mean)


def _rank(law: PhaseType, targets: Floats, quantiles: Floats, levels: Floats) -> tuple[int, float]:
    """Smaller is better: moments missed, then the distance of the distribution functions."""
    hit = np.abs(law.moments(3) / targets - 1) < _EXACT
    missed = 3 - int(hit.cumprod().sum())
    return missed, float(np.mean((law.cdf(quantiles) - levels) ** 2))


def _candidates(targets: Floats, quantiles: Floats, levels: Floats, order: int) -> Iterator[PhaseType]:
    yield fit_two_moments(1.0, float(targets[1] - 1), order)
    with suppress(MomentError):
        yield fit_three_moments(1.0, float(targets[1]), float(targets[2]), order)
    if targets[1] - 1 < 0.5:  # below, a mixture would need longer branches than there are
        return
    for part in _PARTITIONS[order]:
        for moments in (3, 2):
            found = list(_mixtures(np.array(part), targets[:moments], quantiles, levels))
            yield from found
            if found:
                break


def _mixtures(phases: NDArray[np.int64], targets: Floats, quantiles: Floats, levels: Floats) -> Iterator[PhaseType]:
    """Mixtures of Erlang branches that match the target moments; one for each first guess that leads to one."""
    from scipy.optimize import least_squares

    for cuts in _CUTS[len(phases)]:
        edges = np.array([0.0, *cuts, 1.0])
        slices = np.searchsorted(edges, levels, "right") - 1
        means = np.array([max(1e-3, float(quantiles[slices == k].mean())) for k in range(len(phases))])
        for part in sorted(set(permutations(phases.tolist()))):
            count = np.array(part)
            start = np.concatenate([np.log(np.diff(edges)[1:] / edges[1]), np.log(means)])

            def misses(z: Floats, count: NDArray[np.int64] = count) -> Floats:
                distance = (_cdf(z, count, quantiles) - levels) / np.sqrt(len(levels))
                return np.concatenate([_WEIGHT * _moment_errors(z, count, targets), distance])

            found = least_squares(misses, start, bounds=(-12.0, 12.0), x_scale=1.0, max_nfev=60).x
            exact = _project(np.asarray(found, dtype=np.float64), count, targets)
            if exact is not None:
                share, branch = _unpack(exact, len(count))
                yield mixture(share, branch, count)


def _unpack(z: Floats, branches: int) -> tuple[Floats, Floats]:
    """Weights and means of the branches; the weights relative to the first, and the means, are kept as logarithms."""
    raw = np.concatenate([[1.0], np.exp(z[: branches - 1])])
    return raw / raw.sum(), np.exp(z[branches - 1 :])


def _cdf(z: Floats, phases: NDArray[np.int64], x: Floats) -> Floats:
    from scipy.special import gammainc

    share, mean = _unpack(z, len(phases))
    return np.asarray(gammainc(phases, np.multiply.outer(x, phases / mean)) @ share)


def _moment_errors(z: Floats, phases: NDArray[np.int64], targets: Floats) -> Floats:
    """Logarithm of each moment over its target."""
    share, mean = _unpack(z, len(phases))
    powers, out = np.ones(len(phases)), np.empty(len(targets))
    for k in range(len(targets)):
        powers = powers * mean * (phases + k) / phases
        out[k] = np.log(share @ powers / targets[k])
    return out


def _project(z: Floats, phases: NDArray[np.int64], targets: Floats) -> Floats | None:
    """Nearest parameters with exactly the target moments, by Newton's method; None if it does not get there."""
    for _ in range(12):
        error = _moment_errors(z, phases, targets)
        if np.abs(error).max() < 1e-13:
            break
        step = 1e-6 * np.eye(len(z))
        slope = np.array(
            [_moment_errors(z + d, phases, targets) - _moment_errors(z - d, phases, targets) for d in step]
        )
        z = z - np.linalg.lstsq(slope.T / 2e-6, error, rcond=1e-10)[0]
        if not np.isfinite(z).all() or np.abs(z).max() > 15:
            return None
    return z if np.abs(_moment_errors(z, phases, targets)).max() < 0.1 * _EXACT else None
