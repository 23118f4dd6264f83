"""Times of single kernels and of whole modules as they are measured: the laws that tables are calibrated on.

The planner's laws (`attention`, `moe`, `link`) leave out what a system that launches ahead does not pay, or what
hardly matters to a whole prefill: launches of single kernels, a host that cannot keep up, element-wise work.
Measurements hold all of it. The laws here are those of the planner plus such terms; at 0 the terms vanish, so that the
shares of peaks mean the same in both.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import sympy

from asapmodel.models.attention import parts
from asapmodel.models.flops import attended, flops, pairs
from asapmodel.models.grouped_query import core_expression
from asapmodel.models.moe import arithmetic_expression, read_expression
from asapmodel.models.symbols import symbols

__all__ = ["attention_kernels", "gemm_expression", "message_expression", "moe_kernels"]


@cache
def attention_kernels(detail: bool = False) -> Mapping[str, sympy.Expr]:
    """Times of attention of N_b prompts of length s, p of it cached, on one of T devices, by what was measured.

    Parameters
    ----------
    detail : bool
        Whether the module has the terms that the planner's law leaves out, k_0 and h_0, or tau_q.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds::

            module        max(tau_f, tau_a + N_b (sum of attention.parts))
            module, detailed: sparse_core for the core; of a dense one core + tau_q h/T
            sparse_core   tau_k + N_b 2 max(h/T, h_0) (2 rk + dr) (attended + k_0 (s-p)) / (P_16 eta_c)
            dense_core    tau_k + N_b dense_pair pairs / (T P_16 eta_c)
            grouped_core  tau_k + N_b grouped_query.core_expression
            indexer       tau_k + N_b indexer_pair pairs / (P_8 eta_i)
            projections   tau_k + N_b projections (s-p) / (T P_8 eta_g)

    Notes
    -----
    tau_f: kernels are launched one by one while others run, so that a module takes the longer of the host's and the
    device's time. h_0: the sparse core works on tiles of 64 heads, so that 32 heads cost as much as 64. k_0: what each
    query costs besides its keys (loading it, storing the result, keys masked in the last tile), in keys. tau_q: a dense
    core is a block of threads a prompt, head and 128 queries; of a prompt of a few tokens its start and end are all.

    Examples
    --------
    >>> sorted(x.name for x in attention_kernels()["indexer"].free_symbols)
    ['Di', 'Hi', 'N_b', 'P_8', 'eta_i', 'p', 's', 'tau_k']
    """
    s, p, h, T, rk, dr, k_0, h_0, N_b = symbols("s p h T rk dr k_0 h_0 N_b")
    tau_k, tau_f, tau_a, P_16, P_8, eta_c, eta_i = symbols("tau_k tau_f tau_a P_16 P_8 eta_c eta_i")
    sparse = 2 * sympy.Max(h / T, h_0) * (2 * rk + dr) * (attended() + k_0 * (s - p)) / (P_16 * eta_c)
    work = sympy.Add(*parts().values())
    if detail:
        k, tau_q = symbols("k tau_q")
        core = sympy.Piecewise((parts()["core"] + tau_q * h / T, sympy.Eq(k, 0)), (sparse, True))
        work = sympy.Add(*(x for name, x in parts().items() if name != "core")) + core
    return MappingProxyType(
        {
            "module": sympy.Max(tau_f, tau_a + N_b * work),
            "sparse_core": tau_k + N_b * sparse,
            "dense_core": tau_k + N_b * flops()["dense_pair"] * pairs() / (T * P_16 * eta_c),
            "grouped_core": tau_k + N_b * core_expression(),
            "indexer": tau_k + N_b * flops()["indexer_pair"] * pairs() / (P_8 * eta_i),
            "projections": tau_k + N_b * parts()["projections"],
        }
    )


@cache
def gemm_expression() -> sympy.Expr:
    """Time of a grouped GEMM, ``tau_k + (read^q + arithmetic^q)^(1/q)``; of a dense one with G = 1.

    Returns
    -------
    sympy.Expr
        Seconds, with ``read = G (N_y N_z b_w + N_x N_z b_a + N_x N_y Dsize)`` over ``B_m eta_m`` and ``arithmetic = 2 G
        (N_x + r_x) N_y N_z / (P_8 eta_x)``.

    Notes
    -----
    Inputs in the device's precision, 16-bit results. q says how far reading and multiplying overlap: fully for q to
    infinity (then the sum is the larger one, the roofline), not at all for q = 1. A tile of rows is read before it is
    multiplied, and a group of few rows has no other tile to hide that behind. r_x pads each group.

    Examples
    --------
    >>> sorted(x.name for x in gemm_expression().free_symbols)
    ['B_m', 'Dsize', 'G', 'N_x', 'N_y', 'N_z', 'P_8', 'b_a', 'b_w', 'eta_m', 'eta_x', 'q', 'r_x', 'tau_k']
    """
    G, N_x, N_y, N_z, b_w, b_a, Dsize, q, r_x = symbols("G N_x N_y N_z b_w b_a Dsize q r_x")
    tau_k, B_m, eta_m, P_8, eta_x = symbols("tau_k B_m eta_m P_8 eta_x")
    read = G * (N_y * N_z * b_w + N_x * N_z * b_a + N_x * N_y * Dsize) / (B_m * eta_m)
    arithmetic = 2 * G * (N_x + r_x) * N_y * N_z / (P_8 * eta_x)
    return tau_k + (read**q + arithmetic**q) ** (1 / q)


@cache
def moe_kernels(detail: bool = False) -> Mapping[str, sympy.Expr]:
    """Times of the experts of n tokens on one of E devices, by what was measured.

    Parameters
    ----------
    detail : bool
        Whether the module has c_m, which the planner's law leaves out.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds: ``module`` is ``max(tau_f, tau_k + max(read, arithmetic))`` of `moe`, detailed with ``+ c_m n``;
        ``grouped_gemm`` is `gemm_expression`.

    Notes
    -----
    Module: tau_f as in `attention_kernels`; c_m is what every device spends on each token of the batch, whether it has
    the token's experts or not (sorting and permuting).

    Examples
    --------
    >>> sorted(moe_kernels())
    ['grouped_gemm', 'module']
    """
    tau_f, tau_k, c_m, n = symbols("tau_f tau_k c_m n")
    device = tau_k + sympy.Max(read_expression(), arithmetic_expression())
    module = sympy.Max(tau_f, device + c_m * n if detail else device)
    return MappingProxyType({"module": module, "grouped_gemm": gemm_expression()})


@cache
def message_expression() -> sympy.Expr:
    """Time of one dispatch or combine of n tokens of T devices, ``tau_b + n K b_x / (T B_l eta_b)``.

    Returns
    -------
    sympy.Expr
        Seconds: a latency and bytes over a share of the link. Copies to one device are counted apart, as in `link`; b_x
        is a copy's bytes on the wire, less where copies to one device or node are merged.

    Examples
    --------
    >>> sorted(x.name for x in message_expression().free_symbols)
    ['B_l', 'K', 'T', 'b_x', 'eta_b', 'n', 'tau_b']
    """
    n, K, T, b_x, B_l, eta_b, tau_b = symbols("n K T b_x B_l eta_b tau_b")
    return tau_b + n * K * b_x / (T * B_l * eta_b)
