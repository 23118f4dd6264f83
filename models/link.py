"""Transfers of one layer over the Unified Bus: four asynchronous primitives, and the blocking collectives they replace.

A batch of n tokens of one group sends K copies of each token to the experts (dispatch, in the precision of products)
and gets K results back (combine, BF16), spread evenly. A transfer costs a latency plus the bytes at its busiest port
at a constant share of the link. Not modelled: contention between batches on one port (the engines serialise
phases), copies that stay on a device. Collectives whose busiest device counts are in `asapmodel.models.collectives`,
point-to-point transfers in `asapmodel.models.point_to_point`, byte counts in `asapmodel.models.volumes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models.formulas import values
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.point_to_point import (
    P2PFit,
    async_dispatch_expression,
    async_dispatch_time,
    fit_p2p,
    p2p_expression,
    p2p_time,
)
from asapmodel.models.reduction import Affine
from asapmodel.models.symbols import symbols
from asapmodel.models.volumes import (
    combine_volume,
    dispatch_bytes,
    dispatch_bytes_as_printed,
    dispatch_volume,
)

if TYPE_CHECKING:
    import sympy

__all__ = [
    "Affine",
    "P2PFit",
    "affine",
    "async_dispatch_time",
    "asynchronous",
    "asynchronous_expressions",
    "dispatch_bytes",
    "dispatch_bytes_as_printed",
    "fit_p2p",
    "p2p_expression",
    "p2p_time",
    "synchronous",
    "synchronous_expressions",
]


@cache
def asynchronous_expressions() -> Mapping[str, sympy.Expr]:
    """Times of the four asynchronous primitives, ``latency + bytes at the busiest port / rate``.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds, linear in n; with ``V = n K kappa b_d`` and ``V_c = n K kappa b_c``::

            dispatch_send  tau_s + max(V/T, V/E) / (B_l eta_l)       T senders, E receivers
            dispatch_recv  tau_r + max(2 V/E / (B_m eta_m), V/E / (B_l eta_l))    shared buffer to private memory
            combine_send   tau_s + max(V_c/E, V_c/(D T)) / (B_l eta_l)            E senders, D T receivers in all
            combine_recv   tau_r + 2 V_c/T / (B_m eta_m)

    Notes
    -----
    The side with fewer devices has the busier ports. The two phases on the expert devices are on streams that all D
    groups share, so their times are what a stream that never idles needs per batch: results of different groups go to
    different ports, several of them are under way at once, and the limit is the pool's E ports or all D T receivers.
    For a lone batch that is exact in dispatch_recv up to counting its port time twice (once as sending), and short in
    combine_send, which alone would take ``V_c/T`` at its own group's ports (D times longer if ``E >= D T``): 0.12 us a
    token in the paper's deployment, 7 % of a lone prompt's TTFT. Receiving copies the payload (sec. 3.2.1: "migrates
    ... to its private memory"): one read and one write. Sources: sec. 3.2, Table 1 for the payloads, 5.4 for the
    7.5 KiB of a dispatched copy. Approximation: even spread of copies over experts; shares of the link fall
    for messages below about 1 MB. Fits of such laws to published dispatch tables are never better than the
    15-45 % by which kernels move between releases (docs/background/hardware.md 1.3).

    Examples
    --------
    >>> sorted(x.name for x in asynchronous_expressions()["dispatch_recv"].free_symbols)
    ['B_l', 'B_m', 'E', 'K', 'b_d', 'eta_l', 'eta_m', 'kappa', 'n', 'tau_r']
    """
    import sympy

    D, T, E = symbols("D T E")
    V, V_c = dispatch_volume(), combine_volume()
    B_l, B_m, eta_l, eta_m, tau_s, tau_r = symbols("B_l B_m eta_l eta_m tau_s tau_r")
    copy_rate, port_rate = B_m * eta_m, B_l * eta_l
    return MappingProxyType(
        {
            "dispatch_send": async_dispatch_expression(),
            "dispatch_recv": tau_r + V / E * sympy.Max(2 / copy_rate, 1 / port_rate),
            "combine_send": tau_s + V_c * sympy.Max(1 / E, 1 / (D * T)) / port_rate,
            "combine_recv": tau_r + 2 * V_c / T / copy_rate,
        }
    )


@cache
def synchronous_expressions() -> Mapping[str, sympy.Expr]:
    """Times of the blocking all-to-alls, ``latency + V/T / rate`` of the largest group.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds, linear in n, the tokens of the largest group; V and V_c as in `asynchronous_expressions`::

            dispatch_send  tau_b + V/T / (B_l eta_b)        dispatch_recv  tau_r
            combine_send   tau_b + V_c/T / (B_l eta_b)      combine_recv   tau_r

    Notes
    -----
    Attention and experts share the ``E = D T`` devices. In the dispatch each device of the largest group
    sends ``V/T``, no device receives more as long as copies spread evenly, and nobody goes on before all are
    done (sec. 2.3). The share eta_b is of whole collectives as they are measured, from call to received data, so
    receiving adds a latency only. The copies that stay on a device, 1/E of all, are counted as sent. Source: sec. 2.2,
    3.2; docs/background/semantics.md.

    Examples
    --------
    >>> sorted(x.name for x in synchronous_expressions()["dispatch_send"].free_symbols)
    ['B_l', 'K', 'T', 'b_d', 'eta_b', 'kappa', 'n', 'tau_b']
    """
    (T,) = symbols("T")
    V, V_c = dispatch_volume(), combine_volume()
    B_l, eta_b, tau_b, tau_r = symbols("B_l eta_b tau_b tau_r")
    port_rate = B_l * eta_b
    return MappingProxyType(
        {
            "dispatch_send": tau_b + V / T / port_rate,
            "dispatch_recv": tau_r,
            "combine_send": tau_b + V_c / T / port_rate,
            "combine_recv": tau_r,
        }
    )


def _coefficients(law: Callable[[], Mapping[str, sympy.Expr]]) -> dict[str, sympy.Expr]:
    """Values at n = 0 and derivatives of a law linear in n, by name and `_FIXED` or `_PER_TOKEN`."""
    (n,) = symbols("n")
    fixed = {f"{name}{_FIXED}": expression.subs(n, 0) for name, expression in law().items()}
    return fixed | {f"{name}{_PER_TOKEN}": expression.diff(n) for name, expression in law().items()}


def affine(
    law: Callable[[], Mapping[str, sympy.Expr]],
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
) -> dict[str, Affine]:
    """Coefficients of times that are linear in n: their values at 0 and derivatives.

    Parameters
    ----------
    law : callable
        Without arguments; gives times by name, in s.
    architecture, device, profile, split : Architecture, Device, Profile, Split
        Values of all letters but n.

    Returns
    -------
    dict of str to Affine
        By the names of the law, in s and s/token.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> f"{affine(synchronous_expressions, *paper_deployment())['dispatch_send'].fixed * 1e6:.0f} us"
    '100 us'
    """
    numbers = values(partial(_coefficients, law), architecture, device, profile, split)
    names = (name.removesuffix(_FIXED) for name in numbers if name.endswith(_FIXED))
    return {name: Affine(float(numbers[name + _FIXED]), float(numbers[name + _PER_TOKEN])) for name in names}


_FIXED, _PER_TOKEN = ".fixed", ".per_token"


def asynchronous(architecture: Architecture, device: Device, profile: Profile, split: Split) -> dict[str, Affine]:
    """Coefficients ``fixed + per_token n`` of the four asynchronous primitives.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        What is sent, over which link, how well, between how many devices.

    Returns
    -------
    dict of str to Affine
        dispatch_send, dispatch_recv, combine_send, combine_recv, in s and s/token. Exact in n: value at 0 and
        derivative of `asynchronous_expressions`, whose sources and errors apply.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = asynchronous(*paper_deployment())["dispatch_send"]  # 61 kB per token over 4 ports of 176 GB/s
    >>> f"{law.fixed * 1e6:.0f} us + {law.per_token * 1e9:.1f} ns/token"
    '20 us + 87.1 ns/token'
    """
    return affine(asynchronous_expressions, architecture, device, profile, split)


def synchronous(architecture: Architecture, device: Device, profile: Profile, split: Split) -> dict[str, Affine]:
    """Coefficients ``fixed + per_token n`` of the blocking transfers, n of the largest group.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `asynchronous`.

    Returns
    -------
    dict of str to Affine
        The same names, in s and s/token. Exact in n: value at 0 and derivative of `synchronous_expressions`,
        whose sources and errors apply.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = synchronous(*paper_deployment())["combine_send"]
    >>> f"{law.fixed * 1e6:.0f} us + {law.per_token * 1e9:.1f} ns/token"
    '100 us + 292.6 ns/token'
    """
    return affine(synchronous_expressions, architecture, device, profile, split)
