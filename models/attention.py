"""Attention of one layer in one group of T devices: the exact symbolic time of a prompt, and its quadratic reduction.

A prompt of s tokens, p of them cached, computes its last s - p tokens. Projections and core are split over
the T devices by heads; the indexer is not (each device selects for all queries), which makes long prompts
dear. Assumed: every part runs at a constant share of a peak and parts do not overlap. Not modelled:
tensor-parallel all-reduce, memory bandwidth (prefill is compute-bound), the expansion of cached keys to heads
(see `parts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models import grouped_query
from asapmodel.models.flops import attended, flops, pairs, topk_operations
from asapmodel.models.formulas import value
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.reduction import Reduction, fit_quadratic
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["Reduction", "batch_time", "parts", "prompt_expression", "prompt_time", "reduce"]


@cache
def parts() -> Mapping[str, sympy.Expr]:
    """Times of the parts of one prompt in one layer, ``work / (T rate)``, or ``work / rate`` where replicated.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds, in the symbols of the table, domain ``0 <= p <= s``::

            projections          projections (s-p) / (T P_8 eta_g)
            indexer_projections  indexer_projections (s-p) / (P_8 eta_g)
            core                 min(dense_pair pairs, absorbed_key attended) / (T P_16 eta_c)
            indexer_scores       indexer_pair pairs / (P_8 eta_i)
            topk                 topk_operations / (P_v eta_v)
            tokens               c_t (s-p)

    Notes
    -----
    FLOP counts are those of `asapmodel.models.flops`. P_8 is the peak at the device's precision, mostly of 8 bit;
    projections and scores run at it, the core in BF16 and top-k in FP32 at any precision, as in the CloudMatrix
    INT8 deployment (docs/background/hardware.md 1.1); the replicated indexer is section
    1.6's condition for the paper's ratio of 4.2. The core takes the cheaper form for the whole prompt, as
    DeepSeek-V3.2's masked MHA mode for short prompts does: expanded keys and values with a mask, or the
    absorbed sparse form. Hence pieces cost at most as much as the whole in the core (each takes its own
    minimum) and exactly as much in every other part. Approximation: shares of peak are constant. A lower
    bound for pieces in the expanded form: expanding p cached keys, ``2 rk h (dn+dv) p`` FLOP, is left out
    (16 % of the core for 2k tokens behind 4k; never more than the factor ``absorbed_key / dense_pair`` = 3.4,
    since the absorbed form needs no expansion). With ``k = 0`` the core is ``dense_pair pairs``, there is no
    indexer, and its parts are 0.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> {name: f"{evaluate(x, *paper_deployment(), s=32768, p=0) * 1e3:.2f} ms" for name, x in parts().items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'projections': '5.10 ms', 'indexer_projections': '1.52 ms', 'core': '18.52 ms', 'indexer_scores': '18.00 ms',
     'topk': '0.77 ms', 'tokens': '0.00 ms'}
    """
    import sympy

    s, p, k, T, P_16, P_8, P_v = symbols("s p k T P_16 P_8 P_v")
    eta_g, eta_c, eta_i, eta_v, c_t = symbols("eta_g eta_c eta_i eta_v c_t")
    flop = flops()
    dense, absorbed = flop["dense_pair"] * pairs(), flop["absorbed_key"] * attended()
    core = sympy.Piecewise((dense, sympy.Eq(k, 0)), (sympy.Min(dense, absorbed), True))

    def indexed(time: sympy.Expr) -> sympy.Expr:
        return sympy.Piecewise((0, sympy.Eq(k, 0)), (time, True))

    return MappingProxyType(
        {
            "projections": flop["projections"] * (s - p) / (T * P_8 * eta_g),
            "indexer_projections": indexed(flop["indexer_projections"] * (s - p) / (P_8 * eta_g)),
            "core": core / (T * P_16 * eta_c),
            "indexer_scores": indexed(flop["indexer_pair"] * pairs() / (P_8 * eta_i)),
            "topk": indexed(topk_operations() / (P_v * eta_v)),
            "tokens": c_t * (s - p),
        }
    )


@cache
def prompt_expression() -> sympy.Expr:
    """Time of one prompt in one layer without the launch floor, the sum of `parts`, in seconds.

    Returns
    -------
    sympy.Expr
        In s, p and the symbols of architecture, device, profile and split; domain ``0 <= p <= s``. Source,
        exactness and error as in `parts`.

    Examples
    --------
    >>> {"s", "p", "T", "k"} <= {x.name for x in prompt_expression().free_symbols}
    True
    """
    import sympy

    return sympy.Add(*parts().values())


def _products(grouped: bool) -> sympy.Expr:
    """All parts but the time of tokens outside products, which most profiles leave 0."""
    import sympy

    law = grouped_query.parts() if grouped else parts()
    return sympy.Add(*(part for name, part in law.items() if name != "tokens"))


def _tokens() -> sympy.Expr:
    return parts()["tokens"]


def prompt_time(
    architecture: Architecture, device: Device, profile: Profile, split: Split, s: ArrayLike, p: ArrayLike = 0
) -> NDArray[np.float64]:
    """Time of prompts in one layer without the launch floor: `prompt_expression`, or `grouped_query.parts`, in numbers.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        What is computed, where, how well, over how many devices.
    s : float or array
        Prompt lengths in tokens, > 0.
    p : float or array
        Cached tokens of each, ``0 <= p <= s``. A piece of c tokens behind q others costs ``prompt_time(..., q
        + c, q)``.

    Returns
    -------
    float64 array
        Seconds, of the broadcast shape of s and p. Exactness and error as in `parts`.

    Raises
    ------
    ValueError
        A length is out of its domain, or a parameter is.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> [f"{t * 1e3:.3f} ms" for t in prompt_time(*paper_deployment(), s=[1024, 32768])]
    ['0.268 ms', '43.905 ms']
    """
    if np.any(np.asarray(p) > np.asarray(s)):
        raise ValueError("cached tokens p must not exceed the prompt length s")
    given = (architecture, device, profile, split)
    return value(partial(_products, architecture.grouped), *given, s=s, p=p) + value(_tokens, *given, s=s, p=p)


def batch_time(
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
    lengths: Sequence[float] | NDArray[np.float64],
    cached: Sequence[float] | NDArray[np.float64] | None = None,
) -> float:
    """Time of a batch in one layer, ``attention_overhead + sum of prompt_time``.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `prompt_time`.
    lengths : sequence of float, shape (N,)
        Prompt lengths in tokens, N >= 1.
    cached : sequence of float, shape (N,), optional
        Cached tokens of each prompt; none by default.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    ValueError
        No prompt, shapes differ, or a value is out of its domain.

    Notes
    -----
    The launch floor is paid once per batch and layer, prompts of a batch add up (sec. 2.2.1: the cost of a
    batch is governed by the sum of squares of its lengths). Approximation: short prompts in one batch do not
    raise each other's efficiency. At equal shares of peak the paper's 1 x 32k over 32 x 1k comes out above
    its "up to 4.2".

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> one = batch_time(*paper_deployment(), [32768])
    >>> many = batch_time(*paper_deployment(), [1024] * 32)
    >>> f"{one * 1e3:.2f} ms, {many * 1e3:.2f} ms, ratio {one / many:.2f}"
    '44.40 ms, 9.09 ms, ratio 4.89'
    """
    s = np.asarray(lengths, dtype=np.float64)
    p = np.zeros_like(s) if cached is None else np.asarray(cached, dtype=np.float64)
    if s.ndim != 1 or s.size == 0 or p.shape != s.shape:
        raise ValueError("a batch needs at least one length, and as many cached counts as lengths")
    return profile.attention_overhead + float(prompt_time(architecture, device, profile, split, s, p).sum())


def reduce(
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
    lengths: Sequence[float] | NDArray[np.float64],
    weights: Sequence[float] | NDArray[np.float64] | None = None,
) -> Reduction:
    """The law ``a0 + a1 n + a2 w`` that stands for `batch_time`, with ``n = s - p`` and ``w = s^2 - p^2``.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `prompt_time`.
    lengths : sequence of float, shape (N,)
        Grid of prompt lengths, > 0.
    weights : sequence of float, shape (N,), optional
        Probability of each length (any scale); equal by default.

    Returns
    -------
    Reduction
        a0 in s, a1 in s/token, a2 in s/token^2, largest and mean relative error without a0.

    Raises
    ------
    ValueError
        Shapes differ, no length carries weight, or a value is out of its domain.

    Notes
    -----
    a0 is the launch floor, exactly. a1, a2 are `fit_quadratic` against whole prompts (p = 0): mean and mean square
    of a prompt's cost under this law of lengths are exact, so that neither load nor waiting is biased by the
    fit. Approximation: attended keys saturate at k and the core changes its
    form, neither of which is a quadratic, so the reported errors are not small; they vanish for a dense model
    (k = 0). Indexer scores are exact in n and w for cached prefixes too. If one length carries all the
    weight, n and w cannot be told apart by it: the shape is fitted to eight shorter prompts and scaled to be
    exact at that length.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = reduce(*paper_deployment(), lengths=[512, 2048, 8192, 32768], weights=[0.4, 0.3, 0.2, 0.1])
    >>> f"{law.fixed:.1e} {law.per_token:.3e} {law.per_token2:.3e}"
    '5.0e-04 3.765e-07 2.952e-11'
    """
    s = np.asarray(lengths, dtype=np.float64)
    q = np.ones_like(s) if weights is None else np.asarray(weights, dtype=np.float64)
    if s.ndim != 1 or q.shape != s.shape or np.any(q < 0) or not q.sum() > 0:
        raise ValueError("a reduction needs lengths, and a weight of at least 0 for each, not all 0")
    cost = prompt_time(architecture, device, profile, split, s)
    shortest, longest = float(s[q > 0].min()), float(s[q > 0].max())
    if shortest == longest:
        pieces = np.linspace(longest / 8, longest, 8)
        times = prompt_time(architecture, device, profile, split, pieces)
        a1, a2 = fit_quadratic(pieces, times, np.ones_like(pieces))
        scale = float(times[-1] / (a1 * pieces[-1] + a2 * pieces[-1] ** 2))
        a1, a2 = a1 * scale, a2 * scale
    else:
        a1, a2 = fit_quadratic(s, cost, q)
    error = np.abs((a1 * s + a2 * s**2) / cost - 1.0)
    misplaced = float((error * cost) @ q / (cost @ q))
    return Reduction(profile.attention_overhead, a1, a2, float(error.max()), misplaced)
