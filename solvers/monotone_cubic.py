"""Interpolation by cubic pieces that rise and fall only where the data do (PCHIP), many curves over one abscissa.

The same method as SciPy's `PchipInterpolator`, whose module takes half a second to load, longer than most answers that
interpolate; a test holds the two together to rounding.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MonotoneCubic"]

Floats = NDArray[np.float64]


class MonotoneCubic:
    """Monotone cubic Hermite interpolant of values at nodes.

    Parameters
    ----------
    x : array, shape (N,)
        Nodes, strictly ascending, N >= 2.
    y : array, shape (N,) or (N, M)
        Values, one curve a column.

    Raises
    ------
    ValueError
        Fewer than two nodes, nodes that do not ascend, or another number of values.

    Notes
    -----
    On each interval the cubic with the values and slopes at its ends. With steps ``h_i = x_(i+1) - x_i`` and secants
    ``s_i = (y_(i+1) - y_i) / h_i`` the slope at an inner node is 0 where neighbouring secants differ in sign (or one is
    0), else their weighted harmonic mean ``(w1 + w2) / (w1/s_(i-1) + w2/s_i)``, ``w1 = 2 h_i + h_(i-1)``,
    ``w2 = h_i + 2 h_(i-1)``: then no piece leaves the range of its ends. At the first and last node the three-point
    estimate, cut to the same conditions. Source: Fritsch & Butland, SIAM J. Sci. Stat. Comput. 5 (1984) 300; Fritsch &
    Carlson, SIAM J. Numer. Anal. 17 (1980) 238. Exact for straight lines; error of second order at least.

    Examples
    --------
    >>> curve = MonotoneCubic([0.0, 1.0, 3.0], [0.0, 1.0, 1.0])
    >>> curve(np.array([0.0, 0.5, 2.0])).round(4).tolist()
    [0.0, 0.6667, 1.0]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        self._x = np.asarray(x, dtype=np.float64)
        values = np.asarray(y, dtype=np.float64)
        if self._x.ndim != 1 or len(self._x) < 2 or len(values) != len(self._x) or np.any(np.diff(self._x) <= 0):
            raise ValueError("an interpolant needs at least two strictly ascending nodes, and a value for each")
        self._flat = values.ndim == 1
        self._y = values.reshape(len(values), -1)
        self._steps = np.diff(self._x)[:, None]
        self._slopes = _slopes(self._steps, np.diff(self._y, axis=0) / self._steps)

    def __call__(self, x: ArrayLike) -> Floats:
        """Values at `x`, shape (K,): (K,) or (K, M). Beyond the nodes the outer pieces go on."""
        places = np.asarray(x, dtype=np.float64)
        i = np.clip(np.searchsorted(self._x, places, side="right") - 1, 0, len(self._x) - 2)
        h = self._steps[i]
        t = (places - self._x[i])[:, None] / h
        rise = self._y[i + 1] - self._y[i]
        left, right = h * self._slopes[i], h * self._slopes[i + 1]
        # y + t (left + t (3 rise - 2 left - right + t (left + right - 2 rise))), Hermite's cubic by powers of t
        curved = 3.0 * rise - 2.0 * left - right + t * (left + right - 2.0 * rise)
        found: Floats = self._y[i] + t * (left + t * curved)
        return found[:, 0] if self._flat else found


def _slopes(h: Floats, s: Floats) -> Floats:
    """Slopes at all nodes from steps (N - 1, 1) and secants (N - 1, M)."""
    if len(h) == 1:
        return np.repeat(s, 2, axis=0)
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    before, after = s[:-1], s[1:]
    same = before * after > 0.0
    one = np.where(same, before, 1.0)
    other = np.where(same, after, 1.0)
    inner = np.where(same, (w1 + w2) / (w1 / one + w2 / other), 0.0)
    first = _end(h[0], h[1], s[0], s[1])
    last = _end(h[-1], h[-2], s[-1], s[-2])
    return np.concatenate([first[None], inner, last[None]])


def _end(h0: Floats, h1: Floats, s0: Floats, s1: Floats) -> Floats:
    """Slope at an end: three-point estimate, 0 if it has another sign than the secant, at most thrice that."""
    slope = ((2.0 * h0 + h1) * s0 - h0 * s1) / (h0 + h1)
    slope = np.where(slope * s0 > 0.0, slope, 0.0)
    too_steep = (s0 * s1 <= 0.0) & (np.abs(slope) > 3.0 * np.abs(s0))
    return np.where(too_steep, 3.0 * s0, slope)
