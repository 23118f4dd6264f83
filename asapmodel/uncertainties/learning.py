"""Shares of an answer's variance, and the interval that is left after a measurement: on a surface through the samples.

The logarithm of the SLO throughput is fitted by a quadratic in the constants (`asapmodel.solvers.response_surface`), as
far as it explains samples it has not seen. On it an observation can be drawn, the law of the constants given it, and
answers from that law, thousands of times. A measurement tells each constant of its group with a relative error; in
scores that is the error over the slope of the constant at its median.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asapmodel.solvers.marginals import sobol_points
from asapmodel.solvers.response_surface import Surface, fit_surface
from asapmodel.solvers.variance_shares import Output, posterior, variance_shares
from asapmodel.uncertainties.answer import Constant, Narrowing
from asapmodel.uncertainties.measurements import grouped
from asapmodel.uncertainties.sampling import values_of
from asapmodel.uncertainties.sources import Sources

__all__ = ["constants_of", "measurements_of", "surface_of"]

Array = NDArray[np.float64]

_OUTCOMES, _DRAWS = 64, 1024  # of a measurement, and of constants given one
_CENTRAL = 4096  # draws for the outcome in the middle
_STILL = 1e-9  # deviation of a logarithm that counts as none


def surface_of(values: Array, throughput: Array) -> Surface | None:
    """A surface through ln throughput; None if too few systems have one, or it does not vary."""
    known = np.isfinite(throughput) & (throughput > 0)
    if np.sum(known) < 2 * (1 + values.shape[1]) or values.shape[1] == 0:
        return None
    heights = np.log(throughput[known])
    return fit_surface(values[known], heights) if heights.std() > _STILL else None


def constants_of(sources: Sources, values: Array, surface: Surface | None, level: float, seed: int) -> list[Constant]:
    """The uncertain constants with their shares, the largest total first."""
    count = len(sources.constants)
    shares = [(float("nan"), float("nan"))] * count
    if surface is not None:
        found = variance_shares(_output(surface, sources), sources.correlation, [[k] for k in range(count)], seed=seed)
        shares = [(one.alone, one.total) for one in found]
    out = []
    ends = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    for one, (low, high), (alone, total) in zip(sources.constants, ends.T.tolist(), shares, strict=True):
        out.append(Constant(one.key, one.law.law, one.law.value, low, high, one.relative_std, one.origin, alone, total))
    return sorted(out, key=lambda one: -np.nan_to_num(max(one.alone, one.total)))


def measurements_of(
    sources: Sources, surface: Surface | None, level: float, noise: float, seed: int
) -> list[Narrowing]:
    """What each measurement would narrow the interval to, the most useful first.

    Parameters
    ----------
    sources : Sources
        The constants.
    surface : Surface or None
        Of ln throughput.
    level, noise : float
        Of the interval, and relative error of what is measured.
    seed : int
        Of the draws.
    """
    if surface is None:
        return []
    output = _output(surface, sources)
    groups = grouped([one.key for one in sources.constants])
    shares = variance_shares(output, sources.correlation, [places for _, places in groups], seed=seed)
    d = len(sources.constants)
    rest = _scores(_DRAWS, d, seed + 2)
    today = _width(output(rest @ posterior(sources.correlation, []).root.T), level)
    out = []
    for (what, places), share in zip(groups, shares, strict=True):
        law = posterior(sources.correlation, places, _noise(sources, places, noise))
        middle = np.quantile(output(_scores(_CENTRAL, d, seed) @ law.root.T), [0.5 - level / 2, 0.5 + level / 2])
        outcomes = _scores(_OUTCOMES, len(places), seed + 1) @ law.spread.T @ law.gain.T
        width = float(np.mean([_width(output(mean + rest @ law.root.T), level) for mean in outcomes]))
        low, high = np.exp(middle).tolist()
        keys = tuple(sources.constants[k].key for k in places)
        out.append(Narrowing(what.name, what.words, keys, share.alone, share.total, low, high, width / today))
    return sorted(out, key=lambda one: one.width)


def _noise(sources: Sources, places: Sequence[int], noise: float) -> Array:
    """Errors of measured constants, in scores."""
    laws = [sources.constants[k].law for k in places]
    medians = [float(law.quantile(np.array([0.5]))[0]) for law in laws]
    return np.array([noise * abs(middle) / law.slope for middle, law in zip(medians, laws, strict=True)])


def _scores(count: int, dimension: int, seed: int) -> Array:
    return np.asarray(ndtri(sobol_points(count, dimension, seed)))


def _width(logs: Array, level: float) -> float:
    low, high = np.exp(np.quantile(logs, [0.5 - level / 2, 0.5 + level / 2]))
    return float(high - low)


def _output(surface: Surface, sources: Sources) -> Output:
    return lambda scores: surface.within(values_of(sources, scores))
