"""Blocking all-to-alls in which the busiest device counts: cheap for a group alone, dear for all of them together.

`asapmodel.models.link.synchronous` prices a collective by its senders alone. Here the device with the hottest experts
counts as well, which is why the cost of a collective grows with the tokens of *all* groups. A profile chooses this law
with ``collectives = "contention"``. Not modelled: copies that stay on a device, and queues inside the switch.

Derivation. Let the largest group have n tokens, all groups N, and let ``chi`` be the load of the busiest device over
the mean, as in `asapmodel.models.imbalance`. A sender has ``V(n)/T`` bytes and writes them one-sidedly, at the share
eta_l of its link. The busiest of the ``E = D T`` devices that hold experts gets ``chi V(N)/E`` in the dispatch, and
sends as much back in the combine, at the share eta_b that whole collectives reach. Nobody goes on before both are done.
With ``u = N / (D n)``, the fill of the groups, from 1/D (a group alone) to 1 (equal groups), a collective takes::

    t(u) = V(n) / (T B_l) max(1 / eta_l, chi u / eta_b)

That is no sum of a term in n and a term in N, which is all that the engines know. The law taken is the chord of t
from u = 0 to u = 1::

    V(n) / (T B_l eta_l)  +  max(0, chi / eta_b - 1 / eta_l) V(N) / (E B_l)

The first term is the transfer's, the second goes with the experts, whose time depends on N as well.

*Error.* t is convex in u, so the chord is exact for equal groups and in the limit of no company, and above t between:
most so at ``u* = eta_b / (chi eta_l)``, by ``1 - u*`` of t. Where the experts' read of weights covers their arithmetic
(`asapmodel.models.moe`), it covers the second term, too, which is then missing from the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models.formulas import value
from asapmodel.models.imbalance import imbalance
from asapmodel.models.link import affine
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.reduction import Affine
from asapmodel.models.symbols import symbols
from asapmodel.models.volumes import combine_volume, dispatch_volume

if TYPE_CHECKING:
    import sympy

__all__ = ["busiest", "busiest_expression", "contended", "contended_expressions"]


@cache
def contended_expressions() -> Mapping[str, sympy.Expr]:
    """Times of the senders of blocking all-to-alls, ``latency + V/T / (B_l eta_l)`` of the largest group.

    Returns
    -------
    mapping of str to sympy.Expr
        Seconds, linear in n, the tokens of the largest group; V and V_c as in `asapmodel.models.link`::

            dispatch_send  tau_b + V/T / (B_l eta_l)        dispatch_recv  tau_r
            combine_send   tau_b + V_c/T / (B_l eta_l)      combine_recv   tau_r

    Notes
    -----
    What a group without company would take. Derivation, source and error: the module.

    Examples
    --------
    >>> "eta_b" in {x.name for x in contended_expressions()["dispatch_send"].free_symbols}
    False
    """
    T, B_l, eta_l, tau_b, tau_r = symbols("T B_l eta_l tau_b tau_r")
    return MappingProxyType(
        {
            "dispatch_send": tau_b + dispatch_volume() / T / (B_l * eta_l),
            "dispatch_recv": tau_r,
            "combine_send": tau_b + combine_volume() / T / (B_l * eta_l),
            "combine_recv": tau_r,
        }
    )


@cache
def busiest_expression() -> sympy.Expr:
    """Time of the busiest device beyond the senders, ``max(0, chi / eta_b - 1 / eta_l) (V + V_c) / (E B_l)``.

    Returns
    -------
    sympy.Expr
        Seconds, of dispatch and combine together; n are the tokens of *all* groups. Derivation and error: the module.

    Examples
    --------
    >>> sorted(x.name for x in busiest_expression().free_symbols)
    ['B_l', 'E', 'K', 'b_c', 'b_d', 'chi', 'eta_b', 'eta_l', 'kappa', 'n']
    """
    import sympy

    E, B_l, eta_b, eta_l, chi = symbols("E B_l eta_b eta_l chi")
    volume = dispatch_volume() + combine_volume()
    return sympy.Max(0, chi / eta_b - 1 / eta_l) * volume / (E * B_l)


def contended(architecture: Architecture, device: Device, profile: Profile, split: Split) -> dict[str, Affine]:
    """Coefficients ``fixed + per_token n`` of the senders of blocking transfers, n of the largest group.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `asapmodel.models.link.synchronous`.

    Returns
    -------
    dict of str to Affine
        dispatch_send, dispatch_recv, combine_send, combine_recv, in s and s/token: `contended_expressions`, exact in n.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> law = contended(*paper_deployment())["combine_send"]  # 115 kB a token over 4 ports of 176 GB/s, not of 98
    >>> f"{law.fixed * 1e6:.0f} us + {law.per_token * 1e9:.1f} ns/token"
    '100 us + 162.5 ns/token'
    """
    return affine(contended_expressions, architecture, device, profile, split)


def busiest(architecture: Architecture, device: Device, profile: Profile, split: Split) -> float:
    """What the busiest device adds for each token of all groups, `busiest_expression` in numbers.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `contended`; chi is `asapmodel.models.imbalance.imbalance` of a layer.

    Returns
    -------
    float
        s/token, at least 0.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, device, profile, split = paper_deployment()
    >>> f"{busiest(architecture, device, replace(profile, expert_load_cv=2.0), split) * 1e9:.1f} ns/token"
    '149.1 ns/token'
    """
    given = (architecture, device, profile, split)
    return float(value(busiest_expression, *given, n=1.0, chi=imbalance(*given)))
