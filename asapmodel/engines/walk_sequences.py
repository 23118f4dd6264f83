"""Fixed sequences of prompts and gaps: the quadrature points of the queueing engine.

A coordinate is the middles of equally likely cells, each once, in the order of a Weyl sequence `frac(a t^3)`. Such a
sequence is equidistributed together with its shifts by one and two (Weyl, Math. Ann. 77 (1916)), so neighbours are as
good as independent. In a Kronecker sequence `frac(a t)`, or any usual low-discrepancy sequence of one dimension, they
repel each other, and queues fed by it are too short. No random numbers and no seed: the same points for every scenario.
But as points of a path, in thousands of dimensions, they are no better than a sample: what a path of n prompts gives is
off by the order of `1 / sqrt(n)`, and it is `walk_controls` that makes this small.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["deck", "even_deck", "gamma_shape", "prompt_rows", "unit_gaps", "weyl"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_GAPS, _ROWS = 11400714819323198485, 13787848793156543929  # 2^64 times the golden section, and another irrational
_LEAST_CV = 0.02
_STRETCH = 128


def weyl(count: int, slope: int, start: int) -> Floats:
    """`frac(a t^3)` for `t = start, start + 1, ...`, in (0, 1); `a = slope / 2^64`, computed in whole numbers."""
    steps = np.arange(start, start + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return ((steps * steps * steps * np.uint64(slope) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _strata(count: int, slope: int, start: int) -> Floats:
    """Middles of equally likely cells in the order of the Weyl sequence."""
    place = np.empty(count)
    place[np.argsort(weyl(count, slope, start))] = (np.arange(count) + 0.5) / count
    return place


def gamma_shape(cv: float) -> float:
    """Shape of gamma gaps with a coefficient of variation; below 0.02 that of 0.02, as good as constant gaps."""
    return 1.0 / max(cv, _LEAST_CV) ** 2


@lru_cache(maxsize=64)
def _gap_quantiles(cv: float, count: int) -> Floats:
    """Gamma gaps of mean 1 at the middles of equally likely cells, ascending."""
    middles = (np.arange(count) + 0.5) / count
    if gamma_shape(cv) == 1.0:  # Poisson arrivals, without loading special functions
        gaps = -np.log1p(-middles)
    else:
        from scipy.special import gammaincinv

        gaps = np.asarray(gammaincinv(gamma_shape(cv), middles), dtype=np.float64)
    return gaps / float(gaps.mean())


@lru_cache(maxsize=64)
def unit_gaps(cv: float, count: int, start: int) -> Floats:
    """Gamma gaps of mean 1."""
    gaps = np.empty(count)
    gaps[np.argsort(weyl(count, _GAPS, start))] = _gap_quantiles(cv, count)
    return gaps


@lru_cache(maxsize=64)
def prompt_rows(rows: int, count: int, start: int) -> Ints:
    """Rows of a length law with `rows` equally likely ones."""
    return (_strata(count, _ROWS, start) * rows).astype(np.int64)


@lru_cache(maxsize=64)
def even_deck(rows: int, rounds: int) -> Ints:
    """Every row equally often, and any stretch of `_STRETCH` an even spread of them.

    The rows, which are sorted, are cut into `_STRETCH` cells; a stretch takes one of each, in an order of its own.
    """
    cells = min(_STRETCH, rows)
    edges = [k * rows // cells for k in range(cells + 1)]
    out = []
    for k in range(rounds):
        place = weyl(rows, _ROWS, 7000 + 2 * k * rows)  # where in the round a row comes
        for low, high in pairwise(edges):
            order = np.argsort(place[low:high])
            jitter = weyl(high - low, _GAPS, 9000 + (2 * k + 1) * rows + low)
            place[low + order] = (np.arange(high - low) + jitter) / (high - low)
        out.append(np.argsort(place))
    return np.concatenate(out).astype(np.int64)


@lru_cache(maxsize=16)
def deck(rows: int, rounds: int) -> Ints:
    """Every row equally often, `rounds` times one after another, each time in an order of its own."""
    order = [np.argsort(weyl(rows, _GAPS, 5000 + k * rows)) for k in range(rounds)]
    return np.concatenate(order).astype(np.int64)
