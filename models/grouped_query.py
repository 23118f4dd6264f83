"""Grouped-query attention of one layer: work, times of a prompt, weights and cache of a device.

h query heads of width d_h share h_kv heads of keys and values. A group of T devices splits them by heads; where it has
more devices than key-value heads, each device still holds one, so that these are repeated. Some layers may look back
over a window of W tokens only; all layers of the planner are alike, so a layer is the mean of the two kinds. A core
attends by causal pairs in BF16, as in `asapmodel.models.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models.flops import pairs
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["cache_bytes", "core_expression", "flops", "keys", "parts", "weight_bytes"]


def _held() -> sympy.Expr:
    """Key-value heads on a device."""
    import sympy

    h_kv, T = symbols("h_kv T")
    return sympy.Max(h_kv / T, 1)


@cache
def keys() -> sympy.Expr:
    """Keys that a prompt's queries attend to in the mean layer, ``((L - L_w) pairs + L_w (A(s) - A(p))) / L``.

    Returns
    -------
    sympy.Expr
        Count, with ``A(x) = sum over i <= x of min(i, W)`` as in `asapmodel.models.flops.attended`, the window W in
        place of the top-k. Exact as a mean over layers.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate
    >>> float(evaluate(keys(), s=4, p=0, W=2, L=36, L_w=18))  # half 1 + 2 + 3 + 4, half 1 + 2 + 2 + 2
    8.5
    """
    import sympy

    s, p, W, L, L_w = symbols("s p W L L_w")

    def up_to(x: sympy.Expr) -> sympy.Expr:
        return sympy.Piecewise((x * (x + 1) / 2, x <= W), (W * (W + 1) / 2 + W * (x - W), True))

    return ((L - L_w) * pairs() + L_w * (up_to(s) - up_to(p))) / L


@cache
def flops() -> Mapping[str, sympy.Expr]:
    """FLOP of a layer: ``projections`` ``2 H (h d_h + 2 h_kv d_h) + 2 h d_h H`` a token, ``pair`` ``4 h d_h`` a key.

    Returns
    -------
    mapping of str to sympy.Expr
        Counts. Queries, keys, values and output; then scores and weighted values. Exact; checked against the Step-3
        paper's table (Qwen3-235B-A22B at 8192 tokens: 1.34e10 linear, 2.52e10 core).

    Examples
    --------
    >>> sorted(x.name for x in flops()["pair"].free_symbols)
    ['d_h', 'h']
    """
    H, h, h_kv, d_h = symbols("H h h_kv d_h")
    projections = 2 * H * (h * d_h + 2 * h_kv * d_h) + 2 * h * d_h * H
    return MappingProxyType({"projections": projections, "pair": 4 * h * d_h})


def _device_projections() -> sympy.Expr:
    """FLOP of a token's projections on one device of the group."""
    H, h, d_h, T = symbols("H h d_h T")
    return 4 * H * h * d_h / T + 4 * H * d_h * _held()


@cache
def core_expression() -> sympy.Expr:
    """Time of the core of one prompt, ``pair keys / (T P_16 eta_c)``, in seconds.

    Examples
    --------
    >>> {"W", "L_w", "h"} <= {x.name for x in core_expression().free_symbols}
    True
    """
    T, P_16, eta_c = symbols("T P_16 eta_c")
    return flops()["pair"] * keys() / (T * P_16 * eta_c)


@cache
def parts() -> Mapping[str, sympy.Expr]:
    """Times of the parts of one prompt in one layer, as `asapmodel.models.attention.parts` for latent attention.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds, domain ``0 <= p <= s``::

            projections   (4 H h d_h/T + 4 H d_h max(h_kv/T, 1)) (s-p) / (P_8 eta_g)
            core          4 h d_h keys / (T P_16 eta_c)
            tokens        c_t (s-p)

    Examples
    --------
    >>> list(parts())
    ['projections', 'core', 'tokens']
    """
    s, p, P_8, eta_g, c_t = symbols("s p P_8 eta_g c_t")
    return MappingProxyType(
        {
            "projections": _device_projections() * (s - p) / (P_8 * eta_g),
            "core": core_expression(),
            "tokens": c_t * (s - p),
        }
    )


@cache
def weight_bytes() -> sympy.Expr:
    """Attention weights on a device, ``L (2 H h d_h/T + 2 H d_h max(h_kv/T, 1)) b_w``; exact without norms and biases.

    Examples
    --------
    >>> "h_kv" in {x.name for x in weight_bytes().free_symbols}
    True
    """
    L, b_w = symbols("L b_w")
    return L * _device_projections() / 2 * b_w


@cache
def cache_bytes() -> sympy.Expr:
    """Key-value cache on a device, ``S N_s L 2 d_h max(h_kv/T, 1) Dsize``, for N_s batches of S tokens.

    Notes
    -----
    Layers with a window could drop what is behind it; that is not counted: an upper bound for them.

    Examples
    --------
    >>> "S" in {x.name for x in cache_bytes().free_symbols}
    True
    """
    S, N_s, L, d_h, Dsize = symbols("S N_s L d_h Dsize")
    return S * N_s * L * 2 * d_h * _held() * Dsize
