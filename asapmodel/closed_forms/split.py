"""How many of N devices should do attention: D groups of T, the rest experts.

Groups give D / G batches per layer time. E devices give E / K_E of them, with ``K_E = E0 M(E0)`` the device-seconds
that a batch takes of the experts: their linear part and, weights being spread over the devices, their plateau both
shrink as 1/E. What one side gains the other loses, so the best split is where both are equal.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.notation import letters

__all__ = ["SPLIT_FORMS", "best_groups", "best_throughput", "rounding_share"]

_SECTION = "Best split of the devices"
_SCALING = "experts scale as 1/E, no other limit; D a real number"
_ERROR = "shared experts and transfers do not scale: see the section"


@cache
def best_groups() -> ClosedForm:
    """Groups at which both sides limit, ``D* = 2 G N / (b + sqrt(b^2 - 4 h T G N))``, ``b = T G + K_E + h N``.

    From ``D / G = 1 / (K_E / (N - D T) + h)``, the root below N/T. Without host dispatch ``D* = G N / (T G + K_E)``.
    """
    G, K_E, h, N, T = letters("G K_E h N T")
    b = T * G + K_E + h * N
    return ClosedForm(
        "best_groups",
        "groups at which groups and experts limit alike",
        "D^*",
        "1",
        2 * G * N / (b + sympy.sqrt(b**2 - 4 * h * T * G * N)),
        "approximation",
        _SCALING,
        _SECTION,
        _ERROR,
    )


@cache
def best_throughput() -> ClosedForm:
    """Batches per layer time at the best split without host dispatch, ``N / (T G + K_E)``.

    The denominator is the device-seconds of a batch: at the best split no device is idle.
    """
    G, K_E, N, T = letters("G K_E N T")
    return ClosedForm(
        "best_throughput",
        "batches per layer time at the best split",
        "X^*",
        "1/s",
        N / (T * G + K_E),
        "upper bound",
        _SCALING,
        _SECTION,
        _ERROR,
    )


@cache
def rounding_share() -> ClosedForm:
    """Share of `best_throughput` that is left with D groups, a whole number.

    With fewer groups than the best they limit, ``D / D*``; with more the experts do, ``(N - T D) / (N - T D*)``.
    """
    G, K_E, N, T, D = letters("G K_E N T D")
    best = G * N / (T * G + K_E)
    groups, experts = D / best, (N - T * D) / (N - T * best)
    return ClosedForm(
        "rounding_share",
        "share of the best throughput with a whole number of groups",
        r"X(D)/X^*",
        "1",
        sympy.Min(groups, experts),
        "approximation",
        f"{_SCALING.removesuffix('; D a real number')}, no host dispatch",
        _SECTION,
        _ERROR,
        domain=D * T < N,
        conditions={"groups limit": groups <= experts, "experts limit": experts <= groups},
    )


SPLIT_FORMS = (best_groups(), best_throughput(), rounding_share())
"""All forms of this module."""
