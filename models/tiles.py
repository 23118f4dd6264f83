"""Matrix products in tiles and waves: what a product costs on a device of many multiprocessors.

A product of ``N_x x N_z`` by ``N_z x N_y`` is cut into tiles of ``t_x x t_y`` results; of a grouped one each of its G
groups is. Each of the ``P_n`` multiprocessors works on one tile at a time, so that the tiles are done in waves::

    N_w = ceil(G ceil(N_x/t_x) ceil(N_y/t_y) / P_n)

Per step of depth a multiprocessor multiplies ``t_x t_y`` pairs and takes ``t_x + t_y`` operands in, from the cache that
all share; whichever is slower paces it::

    step = max(2 t_x t_y P_n / (P_8 eta_x), (t_x + t_y) b_a / B_t)

A tile takes ``N_z`` steps and k_z more: its pipeline has to fill, and its results have to be stored. Products of few or
narrow tiles cannot use the peak, however large their depth: a tile of 64 x 16 takes in 80 operands for 1024 pairs, one
of 128 x 128 only 256 for 16384. In large products ``N_w`` tends to ``G N_x N_y / (t_x t_y P_n)``, and the time to
``2 G N_x N_y (N_z + k_z) / (P_8 eta_x)``: the law without tiles, with a penalty for shallow products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["Tiles", "tile_expression", "tiles"]

Array = NDArray[np.float64]

_HEIGHTS = (64, 128, 256)
_WIDTHS = (*range(16, 129, 8), 136, 152)
"""Tiles that DeepGEMM has kernels for, on GPUs of NVIDIA's Hopper generation; not both above 128."""


class Tiles(NamedTuple):
    """Rows and columns of a tile, and waves of tiles; arrays of one shape."""

    rows: Array
    columns: Array
    waves: Array


def tiles(
    rows: ArrayLike,
    width: ArrayLike,
    multiprocessors: ArrayLike,
    groups: ArrayLike = 1.0,
    heights: Sequence[int] = _HEIGHTS,
) -> Tiles:
    """Tiles that a library cuts a product into.

    Parameters
    ----------
    rows, width : float or array
        N_x and N_y of the result of each group, > 0; fractions of a row count as one.
    multiprocessors : float or array
        P_n, > 0.
    groups : float or array
        G, of equal rows, > 0.
    heights : sequence of int
        Rows that a tile may have. Where groups lie one after another in memory, each padded to 128, it is 128 alone.

    Returns
    -------
    Tiles
        Of the broadcast shape, at least one-dimensional.

    Raises
    ------
    ValueError
        If a size is not positive and finite.

    Notes
    -----
    The choice is DeepGEMM's (``get_best_configs`` of its kernels, 2025): the fewest waves; of those the fullest last
    wave; of those the lowest and then the narrowest tile. It knows nothing of times, so it is not always the fastest.

    Examples
    --------
    >>> [float(one[0]) for one in tiles(4096, 7168, 132)]
    [256.0, 128.0, 7.0]
    >>> [float(one[0]) for one in tiles(16, 512, 132)]
    [64.0, 16.0, 1.0]
    """
    given = {"rows": rows, "width": width, "multiprocessors": multiprocessors, "groups": groups}
    arrays = [np.asarray(one, dtype=np.float64) for one in given.values()]
    for name, value in zip(given, arrays, strict=True):
        if not np.all(np.isfinite(value) & (value > 0)):
            raise ValueError(f"{name} of a product in tiles must be finite and positive, got {value}; give what it has")
    N_x, N_y, P_n, G = (one[..., None] for one in np.atleast_1d(*np.broadcast_arrays(*arrays)))
    shapes = np.array([(x, y) for x in sorted(heights) for y in _WIDTHS if min(x, y) <= 128], dtype=np.float64)
    count = G * np.ceil(N_x / shapes[:, 0]) * np.ceil(N_y / shapes[:, 1])
    waves = np.ceil(count / P_n)
    last = count - (waves - 1) * P_n
    best = np.argmin(waves + (1 - last / P_n) / 2, axis=-1)  # the first of the equal ones; the last wave counts less
    found = np.take_along_axis(waves, best[..., None], axis=-1)[..., 0]
    return Tiles(shapes[best, 0], shapes[best, 1], found)


@cache
def tile_expression() -> sympy.Expr:
    """Time of one product, dense (G = 1) or grouped, ``tau_k + (moved^q + N_w^q (N_z + k_z)^q step^q)^(1/q)``.

    Returns
    -------
    sympy.Expr
        Seconds, with step as in the module and ``moved = G (N_y N_z b_w + N_x N_z b_a + N_x N_y Dsize) / (B_m eta_m)``,
        what goes through memory once.

    Notes
    -----
    q says how far memory traffic and multiplying overlap, as in `asapmodel.models.kernels.gemm_expression`. eta_x is
    the share of the peak inside a tile, higher than that of whole products.

    Examples
    --------
    >>> sorted(x.name for x in tile_expression().free_symbols)
    ... # doctest: +NORMALIZE_WHITESPACE
    ['B_m', 'B_t', 'Dsize', 'G', 'N_w', 'N_x', 'N_y', 'N_z', 'P_8', 'P_n', 'b_a', 'b_w', 'eta_m', 'eta_x', 'k_z', 'q',
     't_x', 't_y', 'tau_k']
    """
    import sympy

    G, N_x, N_y, N_z, N_w, t_x, t_y, k_z, q, P_n = symbols("G N_x N_y N_z N_w t_x t_y k_z q P_n")
    tau_k, P_8, eta_x, B_m, eta_m, B_t, b_w, b_a, Dsize = symbols("tau_k P_8 eta_x B_m eta_m B_t b_w b_a Dsize")
    moved = G * (N_y * N_z * b_w + N_x * N_z * b_a + N_x * N_y * Dsize) / (B_m * eta_m)
    step = sympy.Max(2 * t_x * t_y * P_n / (P_8 * eta_x), (t_x + t_y) * b_a / B_t)
    return tau_k + (moved**q + (N_w * (N_z + k_z) * step) ** q) ** (1 / q)
