"""How many tokens the experts need: efficiency of a batch, the inverse, and the inflection from the hardware."""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.notation import letters
from asapmodel.models.moe import inflection_expression
from asapmodel.models.symbols import symbols

__all__ = [
    "EXPERT_FORMS",
    "efficiency",
    "efficiency_merged",
    "inflection",
    "inflection_hardware",
    "tokens_for_efficiency",
    "tokens_merged",
]

_SECTION = "Tokens for efficient experts"


@cache
def efficiency() -> ClosedForm:
    """Share of the experts' linear rate that a batch reaches, ``m1 n / (max(m0, m1 n) + h)``."""
    m0, m1, h, n = letters("m0 m1 h n")
    return ClosedForm(
        "expert_efficiency",
        "share of the experts' linear rate that a batch of n tokens reaches",
        r"\eta(n)",
        "1",
        m1 * n / (sympy.Max(m0, m1 * n) + h),
        "exact",
        "experts have a stream of their own",
        _SECTION,
        conditions={"plateau": m1 * n <= m0, "linear": m1 * n >= m0},
    )


@cache
def tokens_for_efficiency() -> ClosedForm:
    """Tokens for a wanted efficiency: the smaller of two rising branches reaches it where the later one does.

    Without host dispatch ``n = eta m0 / m1``. With it eta = 1 is never reached.
    """
    m0, m1, h, eta = letters("m0 m1 h eta")
    return ClosedForm(
        "tokens_for_efficiency",
        "tokens of a batch for a wanted efficiency of the experts",
        r"n_\eta",
        "token",
        sympy.Max(eta * (m0 + h) / m1, eta * h / (m1 * (1 - eta))),
        "exact",
        "experts have a stream of their own",
        _SECTION,
        domain=eta < 1,
    )


@cache
def efficiency_merged() -> ClosedForm:
    """Efficiency where the pool's transfers share its stream, ``m1 n / (max(m0, m1 n) + h + r0 + r1 n)``.

    ``r0 = alpha_2 + alpha_4``, ``r1 = beta_2 + beta_4``. It stays below ``m1 / (m1 + r1)``.
    """
    m0, m1, h, n, r0, r1 = letters("m0 m1 h n r0 r1")
    return ClosedForm(
        "pool_efficiency_merged",
        "share of the experts' linear rate, transfers on the same stream",
        r"\eta'(n)",
        "1",
        m1 * n / (sympy.Max(m0, m1 * n) + h + r0 + r1 * n),
        "exact",
        "one stream of the pool",
        _SECTION,
        conditions={"plateau": m1 * n <= m0, "linear": m1 * n >= m0},
    )


@cache
def tokens_merged() -> ClosedForm:
    """Tokens for a wanted efficiency with merged streams; domain ``eta < m1 / (m1 + r1)``."""
    m0, m1, h, eta, r0, r1 = letters("m0 m1 h eta r0 r1")
    fixed = h + r0
    return ClosedForm(
        "tokens_for_efficiency_merged",
        "tokens of a batch for a wanted efficiency, transfers on the same stream",
        r"n'_\eta",
        "token",
        sympy.Max(eta * (m0 + fixed) / (m1 - eta * r1), eta * fixed / (m1 - eta * (m1 + r1))),
        "exact",
        "one stream of the pool",
        _SECTION,
        domain=eta * (m1 + r1) < m1,
    )


@cache
def inflection() -> ClosedForm:
    """Tokens at which the plateau ends, ``n* = m0 / m1``."""
    m0, m1 = letters("m0 m1")
    return ClosedForm(
        "inflection",
        "tokens at which the plateau of the experts ends",
        "n^*",
        "token",
        m0 / m1,
        "exact",
        "the plateau law",
        _SECTION,
    )


@cache
def inflection_hardware() -> ClosedForm:
    """The inflection from the hardware: `asapmodel.models.moe.inflection_expression` without padding.

    Hidden size and expert width cancel, and so does the number of devices but for the shared experts.
    """
    r_x = symbols("r_x")[0]
    return ClosedForm(
        "inflection_hardware",
        "tokens at which reading the weights takes as long as multiplying by them",
        "n^*",
        "token",
        sympy.factor(inflection_expression().subs(r_x, 0)),
        "exact",
        "roofline, even routing but for the factor chi, no padded rows",
        _SECTION,
        hardware=True,
    )


EXPERT_FORMS = (
    efficiency(),
    tokens_for_efficiency(),
    efficiency_merged(),
    tokens_merged(),
    inflection(),
    inflection_hardware(),
)
"""All forms of this module."""
