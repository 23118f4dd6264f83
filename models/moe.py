"""Experts of one layer on E devices: weights must be read, tokens must be multiplied, the slower of the two counts.

All E devices work on one batch of n tokens at a time. Routed experts are spread evenly over devices, each
device also holds the shared experts; weights are INT8. Not modelled: activations' memory traffic, the gate (2
H E_total FLOP, 0.5 %), tile quantisation of the grouped GEMM. Uneven routing enters as one factor on
arithmetic, see `asapmodel.models.imbalance`.
"""

from functools import cache

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.evaluation import evaluate
from asapmodel.models.imbalance import expected_maximum, imbalance, imbalance_expression
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.reduction import Plateau
from asapmodel.models.symbols import symbols

__all__ = [
    "Plateau",
    "arithmetic_expression",
    "batch_time",
    "expected_maximum",
    "floor_expression",
    "flop_per_token",
    "imbalance",
    "imbalance_expression",
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
    Source: hardware_and_models.md section 2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
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
    memory-bound) and hardware_and_models.md 5, Janus.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
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
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> f"{float(evaluate(floor_expression(), *paper_deployment())) * 1e6:.1f} us"  # 17 experts of 44 MB
    '557.1 us'
    """
    E_total, E = symbols("E_total E")
    return _read_time(E_total / E)


@cache
def arithmetic_expression() -> sympy.Expr:
    """Time to multiply n tokens on the busiest device, ``chi n 6 H m (K + g) / (E P_8 eta_x)``.

    Returns
    -------
    sympy.Expr
        Seconds; chi is the load of the busiest device over the mean. Exact for chi given and a constant share
        of peak; the share falls for few tokens per expert, where the plateau covers it. Source: sec. 2.2.2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> f"{float(evaluate(arithmetic_expression(), *paper_deployment(), n=8192, chi=1)) * 1e3:.3f} ms"
    '1.349 ms'
    """
    n, E, P_8, eta_x, chi = symbols("n E P_8 eta_x chi")
    return chi * n * flop_per_token() / (E * P_8 * eta_x)


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
    return evaluate(time_expression(), architecture, device, profile, split, n=n, chi=chi)


def reduce(architecture: Architecture, device: Device, profile: Profile, split: Split) -> Plateau:
    """The law ``max(floor, per_token n)``, with the full read as floor and imbalance in the slope.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `batch_time`.

    Returns
    -------
    Plateau
        floor in s, per_token in s/token, and `inflection_tokens`.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Notes
    -----
    Exact above the inflection, an upper bound below it: too long by the share of experts that n tokens do not
    activate; the exact time is 2 % shorter at 128 tokens and 34 % at 32 (256 experts, 8 per token, E = 16).

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = reduce(*paper_deployment())
    >>> f"{law.floor * 1e6:.1f} us, {law.per_token * 1e9:.1f} ns/token, {law.inflection_tokens:.0f} tokens"
    '557.1 us, 164.7 ns/token, 3382 tokens'
    """
    given = (architecture, device, profile, split)
    slope = evaluate(arithmetic_expression(), *given, n=1, chi=imbalance(*given))
    return Plateau(float(evaluate(floor_expression(), *given)), float(slope))
