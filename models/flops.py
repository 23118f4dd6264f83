"""Work of attention, counted: FLOP per token, per query-key pair and per attended key, and how many of each there are.

Multi-head latent attention (MLA) with an optional lightning indexer that keeps the k best keys of each query
(DeepSeek sparse attention). One multiply-add is 2 FLOP. Not counted: normalisation, rotary embedding, softmax
and the gate (2 H E_total, 0.5 % of the experts' work). Times are made of these counts in `attention`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["attended", "flops", "pairs", "topk_operations"]


@cache
def pairs() -> sympy.Expr:
    """Causal query-key pairs of one prompt, ``(s^2 - p^2 + s - p) / 2``.

    Returns
    -------
    sympy.Expr
        Count (dimension one) in the symbols s, p; domain ``0 <= p <= s``.

    Notes
    -----
    Only the tokens at positions ``p < i <= s`` are computed, and the one at position i sees i keys:
    ``sum_{i=p+1..s} i``. Exact; with ``n = s - p`` and ``w = s^2 - p^2`` it is ``(n + w) / 2``, so it adds up
    over pieces. Source: docs/background/hardware.md section 2, `pairs = s p + s(s+1)/2` with s counted without the
    cached part.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate
    >>> int(evaluate(pairs(), s=4, p=2))  # 3 + 4
    7
    """
    s, p = symbols("s p")
    return (s**2 - p**2 + s - p) / 2


@cache
def attended() -> sympy.Expr:
    """Keys that the sparse core attends to, ``A(s) - A(p)``, ``A(x) = min(x, k)(min(x, k) + 1)/2 + k max(x - k, 0)``.

    Returns
    -------
    sympy.Expr
        Count (dimension one) in the symbols s, p, k; domain ``0 <= p <= s``.

    Notes
    -----
    The query at position i attends to ``min(i, k)`` keys; the sum over ``p < i <= s`` splits at ``i = k``
    into an arithmetic series and a constant. Exact. Grows like s^2 / 2 below k and like k s above: the top-k
    saturation, which is why attention is no exact quadratic in s. Source: docs/background/hardware.md section 2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> int(evaluate(attended(), *paper_deployment(), s=2050, p=2047))  # 2048 three times
    6144
    """
    import sympy

    s, p, k = symbols("s p k")

    def up_to(x: sympy.Expr) -> sympy.Expr:
        return sympy.Piecewise((x * (x + 1) / 2, x <= k), (k * (k + 1) / 2 + k * (x - k), True))

    return up_to(s) - up_to(p)


@cache
def topk_operations() -> sympy.Expr:
    """Vector operations that select k keys, ``sum over p < i <= s, i > k of (c_key i + c_top k)``.

    Returns
    -------
    sympy.Expr
        Count (dimension one) in the symbols s, p, k, c_key, c_top; 0 for ``s <= k``; domain ``0 <= p <= s``.

    Notes
    -----
    With ``b = max(s, k)`` and ``a = max(p, k)`` the sum is ``c_key (b^2 - a^2 + b - a)/2 + c_top k (b - a)``.
    Exact for the count per row ``4.36 Sk + 3.32 k`` of the cann-recipes DeepSeek-V3.2 document
    (docs/background/hardware.md 1.2); rows that see at most k keys keep them all and select nothing.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> round(float(evaluate(topk_operations(), *paper_deployment(), s=2049, p=0)), 2)  # 4.36 * 2049 + 3.32 * 2048
    15733.0
    """
    import sympy

    s, p, k, c_key, c_top = symbols("s p k c_key c_top")
    a, b = sympy.Max(p, k), sympy.Max(s, k)
    return c_key * (b**2 - a**2 + b - a) / 2 + c_top * k * (b - a)


@cache
def flops() -> Mapping[str, sympy.Expr]:
    """FLOP per token, pair or key of one layer, e.g. ``2[H rq + rq h(dn+dr) + H(rk+dr) + rk h(dn+dv) + h dv H]``.

    Returns
    -------
    mapping of str to sympy.Expr
        ``projections`` as above and ``indexer_projections`` ``2(rq Hi Di + H Di + H Hi)`` per token;
        ``dense_pair`` ``2 h (dn+dr+dv)`` per causal pair (keys and values expanded to heads);
        ``absorbed_key`` ``2 h (2 rk + dr)`` per attended key (heads work on the shared latent);
        ``indexer_pair`` ``2 Hi Di`` per causal pair. Dimension one.

    Notes
    -----
    Each matrix product of widths a x b costs 2 a b FLOP per token. The projections are the same in total for
    the absorbed and the expanded form. Exact counts, checked against Step-3's tables (61 x 374.2 M =
    2.283e10) in docs/background/hardware.md section 2. Step-3 itself counts the absorbed core with value width rk
    + dr, 5.9 % more.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> {name: int(evaluate(x, *paper_deployment())) for name, x in flops().items()}  # doctest: +NORMALIZE_WHITESPACE
    {'projections': 374210560, 'indexer_projections': 27918336, 'dense_pair': 81920, 'absorbed_key': 278528,
     'indexer_pair': 16384}
    """
    H, h, rq, rk, dn, dr, dv, Hi, Di = symbols("H h rq rk dn dr dv Hi Di")
    return MappingProxyType(
        {
            "projections": 2 * (H * rq + rq * h * (dn + dr) + H * (rk + dr) + rk * h * (dn + dv) + h * dv * H),
            "indexer_projections": 2 * (rq * Hi * Di + H * Di + H * Hi),
            "dense_pair": 2 * h * (dn + dr + dv),
            "absorbed_key": 2 * h * (2 * rk + dr),
            "indexer_pair": 2 * Hi * Di,
        }
    )
