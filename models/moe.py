"""Experts of one layer on E devices: weights must be read, tokens must be multiplied, the slower of the two counts.

All E devices work on one batch of n tokens at a time. Routed experts are spread evenly over devices, each
device also holds the shared experts; weights have the device's precision. Not modelled: activations' memory
traffic, the gate (2 H E_total FLOP, 0.5 %). Uneven routing enters as one factor on arithmetic, see
`asapmodel.models.imbalance`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.formulas import value
from asapmodel.models.imbalance import expected_maximum, imbalance, imbalance_expression
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.reduction import Plateau
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = [
    "Plateau",
    "arithmetic_expression",
    "batch_time",
    "expected_maximum",
    "floor_expression",
    "flop_per_token",
    "imbalance",
    "imbalance_expression",
    "inflection_expression",
    "read_expression",
    "reduce",
    "time_expression",
]


def _read_time(routed: sympy.Expr) -> sympy.Expr:
    H, m, b_w, B_m, eta_m, g = symbols("H m b_w B_m eta_m g")
    return (routed + g) * 3 * H * m * b_w / (B_m * eta_m)


@cache
def flop_per_token() -> sympy.Expr:
    """FLOP of one token in the experts of one layer, ``6 H m (K + g)``.

    Returns
    -------
    sympy.Expr
        Count (dimension one).

    Notes
    -----
    Three matrices (gate, up, down) of H x m, 2 FLOP per weight, K routed and g shared experts. Exact.
    Source: docs/background/hardware.md section 2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> int(evaluate(flop_per_token(), *paper_deployment()))  # 792.7 M
    792723456
    """
    H, m, K, g = symbols("H m K g")
    return 6 * H * m * (K + g)


@cache
def read_expression() -> sympy.Expr:
    """Time to read activated weights, ``(E_total/E (1 - (1 - K/E_total)^n) + g) 3 H m b_w / (B_m eta_m)``.

    Returns
    -------
    sympy.Expr
        Seconds, per device; domain ``n >= 0``, ``K <= E_total``.

    Notes
    -----
    A token leaves an expert idle with probability ``1 - K/E_total``, n tokens independently all leave it idle
    with the n-th power, so the factor is the expected share of experts that are read. Exact under uniform
    independent routing; skewed routing reads fewer experts (upper bound). Source: sec. 2.2.2 (the plateau is
    memory-bound) and docs/background/hardware.md 4, Janus.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> [f"{float(evaluate(read_expression(), *paper_deployment(), n=n)) * 1e6:.1f} us" for n in (1, 32, 2048)]
    ['49.2 us', '367.2 us', '557.1 us']
    """
    E_total, E, K, n = symbols("E_total E K n")
    return _read_time(E_total / E * (1 - (1 - K / E_total) ** n))


@cache
def floor_expression() -> sympy.Expr:
    """Time to read all weights of a device, ``(E_total/E + g) 3 H m b_w / (B_m eta_m)``: the plateau of sec. 2.2.2.

    Returns
    -------
    sympy.Expr
        Seconds; the limit of `read_expression` for many tokens, hence an upper bound, within 2 % from 128
        tokens on (256 experts, 8 per token).

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> f"{float(evaluate(floor_expression(), *paper_deployment())) * 1e6:.1f} us"  # 17 experts of 44 MB
    '557.1 us'
    """
    E_total, E = symbols("E_total E")
    return _read_time(E_total / E)


@cache
def arithmetic_expression() -> sympy.Expr:
    """Time to multiply n tokens on the busiest device, ``chi (n + r_x E_total/K) 6 H m (K + g) / (E P_8 eta_x)``.

    Returns
    -------
    sympy.Expr
        Seconds; chi is the load of the busiest device over the mean.

    Notes
    -----
    A grouped GEMM works in tiles of rows: the n K/E_total rows of an expert are rounded up to whole tiles. Where the
    remainder is equally likely anywhere in a tile the expected padding is half a tile, r_x rows an expert, as if there
    were r_x E_total/K more tokens. That is why time is not proportional to tokens right behind the plateau. Exact for
    chi and the share of peak given and many rows per expert; with less than a tile per expert the weights' read time
    covers it. The shared experts are counted as padded alike (g of K + g, a few per cent). Source: sec. 2.2.2 for the
    linear regime; half a tile: e.g. the 128-row alignment of DeepGEMM's grouped kernels (its README).

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> f"{float(evaluate(arithmetic_expression(), *paper_deployment(), n=8192, chi=1)) * 1e3:.3f} ms"
    '1.349 ms'
    """
    n, E, E_total, K, P_8, eta_x, chi, r_x = symbols("n E E_total K P_8 eta_x chi r_x")
    return chi * (n + r_x * E_total / K) * flop_per_token() / (E * P_8 * eta_x)


@cache
def inflection_expression() -> sympy.Expr:
    """Tokens at which the plateau ends, solving ``arithmetic = floor`` for n.

    Returns
    -------
    sympy.Expr
        ``n* = floor / slope - r_x E_total/K``, with the slope of `arithmetic_expression` in n. Exact for the two laws.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> float(evaluate(inflection_expression(), *paper_deployment(), chi=1)).__round__()
    3382
    """
    import sympy

    n = symbols("n")
    (solution,) = sympy.solve(arithmetic_expression() - floor_expression(), n)
    return solution


@cache
def time_expression() -> sympy.Expr:
    """Time of the experts for a batch, ``max(read, arithmetic)`` (roofline).

    Returns
    -------
    sympy.Expr
        Seconds, in n and chi; a lower bound where reading and multiplying do not overlap fully (at most a
        factor 2, at the inflection).

    Examples
    --------
    >>> sorted(x.name for x in time_expression().free_symbols)[:4]
    ['B_m', 'E', 'E_total', 'H']
    """
    import sympy

    return sympy.Max(read_expression(), arithmetic_expression())


def batch_time(
    architecture: Architecture, device: Device, profile: Profile, split: Split, n: ArrayLike
) -> NDArray[np.float64]:
    """Time of the experts for batches of n tokens, `time_expression` in numbers with chi from `imbalance`.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        What is computed, where, how well, over how many devices.
    n : float or array
        Tokens, > 0.

    Returns
    -------
    float64 array
        Seconds, shape of n. Exactness and error as in the expressions.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> [f"{t * 1e3:.3f} ms" for t in batch_time(*paper_deployment(), [64, 2048, 8192])]
    ['0.488 ms', '0.557 ms', '1.349 ms']
    """
    chi = imbalance(architecture, device, profile, split)
    return value(time_expression, architecture, device, profile, split, n=n, chi=chi)


def reduce(
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
    batches: ArrayLike | None = None,
    layers: int = 1,
) -> Plateau:
    """The law ``max(floor, per_token n)``, with the full read as floor and imbalance in the slope.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `batch_time`.
    batches : float array, optional
        Tokens of typical batches. The slope is then such that their total time is exact.
    layers : int
        Layers over which a device's loads average out, see `imbalance`.

    Returns
    -------
    Plateau
        floor in s, per_token in s/token, and `inflection_tokens` (of this law; that of the exact one is
        `inflection_expression`).

    Raises
    ------
    ValueError
        A value is out of its domain.

    Notes
    -----
    Without padding exact above the inflection. Padding puts an intercept into the exact law that a line through the
    origin does not have: given `batches` the total over them is kept, and smaller batches come out too short, larger
    ones too long. Without `batches` the slope is that of the exact law far out. Below the inflection the law is an
    upper bound: too long by the share of experts that n tokens do not activate; the exact time is 2 % shorter at 128
    tokens and 34 % at 32 (256 experts, 8 per token, E = 16).

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = reduce(*paper_deployment())
    >>> f"{law.floor * 1e6:.1f} us, {law.per_token * 1e9:.1f} ns/token, {law.inflection_tokens:.0f} tokens"
    '557.1 us, 164.7 ns/token, 3382 tokens'
    """
    given = (architecture, device, profile, split)
    chi, floor, slope = _far_out(*given, layers)
    if batches is None:
        return Plateau(floor, slope)
    n = np.asarray(batches, dtype=np.float64)
    exact = float(value(time_expression, *given, n=n, chi=chi).sum())
    if float(np.maximum(floor, slope * n).sum()) >= (1 - 1e-12) * exact:  # nothing to make up for, within rounding
        return Plateau(floor, slope)
    # The total is piecewise linear in the slope: with the k largest batches above the plateau it is
    # (N - k) floor + slope sum of these k; the right k is the one whose k-th batch is and whose next is not.
    largest = np.sort(n)[::-1]
    above = np.arange(1, n.size + 1)
    slopes = (exact - (n.size - above) * floor) / np.cumsum(largest)
    following = np.append(largest[1:], 0.0)
    fits = (slopes * largest >= floor) & (slopes * following <= floor * (1 + 1e-12))
    return Plateau(floor, float(slopes[np.flatnonzero(fits)[0]]))


@lru_cache(maxsize=4096)
def _far_out(
    architecture: Architecture, device: Device, profile: Profile, split: Split, layers: int
) -> tuple[float, float, float]:
    """Imbalance, floor and slope far out: what a reduction needs that no batch changes."""
    given = (architecture, device, profile, split)
    chi = imbalance(*given, layers)
    one, two = (float(value(arithmetic_expression, *given, n=n, chi=chi)) for n in (1, 2))
    return chi, float(value(floor_expression, *given)), two - one
