"""From which length a prompt should have its group to itself.

A long prompt and a partner batch wait for one group. In turn they end after ``S_b`` and ``S_b + S_l`` per layer (the
partner first) or ``S_l`` and ``S_l + S_b``; paired, both go through as many layers and end together after P. With
``x S_l + y S_b`` the mean of the two in turn - x = 1/2, y = 1 with the partner first, 3/4 and 3/4 where either may be -
pairing delays the mean TTFT when ``P > x S_l + y S_b``, and saves less than a share epsilon of the throughput when
``(S_l + S_b) / P - 1 < epsilon``. Each branch of ``P = max(G_l + G_b, S_l, ...)`` gives a condition that is quadratic
in the length s, since attention is and nothing else; it holds beyond its positive root.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm, largest_of
from asapmodel.closed_forms.notation import letters

__all__ = ["EXCLUSIVE_FORMS", "ORDERS", "delay_group", "delay_lone", "expert_share", "saving_group", "saving_lone"]

_SECTION = "When a prompt should be alone"
_PAIR = (
    "P is the largest circuit mean (`pair_bound_pool`), one stream of the group, one prompt of work s^2, many layers"
)

ORDERS = {"partner_first": (sympy.Rational(1, 2), sympy.Integer(1)), "either_first": (sympy.Rational(3, 4),) * 2}
"""Weights x of the long prompt and y of its partner in the mean of the two in turn."""


def _root(a: sympy.Expr, b: sympy.Expr, c: sympy.Expr) -> sympy.Expr:
    """The positive root of ``a s^2 + b s = c`` for a, c > 0, without cancellation where b > 0."""
    return 2 * c / (b + sympy.sqrt(b**2 + 4 * a * c))


def _group_against_way(p: sympy.Expr, r: sympy.Expr, c: sympy.Expr) -> tuple[sympy.Expr, sympy.Basic]:
    """Length beyond which ``p G_l - r O_l > c``, and the domain in which it is the only one.

    ``O_l`` is the larger of two branches, so both conditions must hold: the larger root.
    """
    a2, g0, g1, o0, o1, m0, m1, h = letters("a2 g0 g1 o0 o1 m0 m1 h")
    linear = _root(p * a2, p * g1 - r * (o1 + m1), c + r * (o0 + h) - p * g0)
    floor = _root(p * a2, p * g1 - r * o1, c + r * (o0 + m0 + h) - p * g0)
    return largest_of(floor, linear), sympy.And(a2 > 0, c + r * (o0 + h) > p * g0)


def _lone_cycle_above(c: sympy.Expr) -> tuple[sympy.Expr, sympy.Basic]:
    """Length beyond which ``S_l > c``: either branch suffices, so the smaller root."""
    a2, g0, g1, o0, o1, m0, m1, h = letters("a2 g0 g1 o0 o1 m0 m1 h")
    linear = _root(a2, g1 + o1 + m1, c - g0 - o0 - h)
    floor = _root(a2, g1 + o1, c - g0 - o0 - m0 - h)
    return sympy.Min(floor, linear, evaluate=False), sympy.And(a2 > 0, c > g0 + o0 + m0 + h)


def _form(name: str, meaning: str, left: str, found: tuple[sympy.Expr, sympy.Basic]) -> ClosedForm:
    expression, domain = found
    error = "1 to 7 % too long (paper's costs, partners of 1,024 to 8,192 tokens): P is above its bound"
    return ClosedForm(
        name, meaning, left, "token", expression, "approximation", _PAIR, _SECTION, error=error, domain=domain
    )


@cache
def delay_group(order: str) -> ClosedForm:
    """Length beyond which a pair limited by its group delays the mean TTFT: ``G_l + G_b > x S_l + y S_b``.

    With the partner first that is ``G_l > O_l + 2 O_b``.
    """
    (x, y), (G_b, O_b) = ORDERS[order], letters("G_b O_b")
    found = _group_against_way(sympy.Integer(1), x / (1 - x), ((y - 1) * G_b + y * O_b) / (1 - x))
    return _form(
        f"exclusive_delay_group_{order}",
        f"length beyond which the busy group delays, {order.replace('_', ' ')}",
        r"s_{G}",
        found,
    )


@cache
def delay_lone(order: str) -> ClosedForm:
    """Length beyond which the partner waits too long for the long prompt: ``S_l > x S_l + y S_b``.

    The partner of a locked pair goes at the pace of the long prompt. With the partner first: ``S_l > 2 S_b``.
    """
    (x, y), (G_b, O_b) = ORDERS[order], letters("G_b O_b")
    found = _lone_cycle_above(y * (G_b + O_b) / (1 - x))
    return _form(
        f"exclusive_delay_lone_{order}",
        f"length beyond which the long prompt's pace delays, {order.replace('_', ' ')}",
        "s_S",
        found,
    )


@cache
def saving_group() -> ClosedForm:
    """Length beyond which pairing saves under epsilon where the group limits: ``O_l + O_b < epsilon (G_l + G_b)``."""
    epsilon, G_b, O_b = letters("epsilon G_b O_b")
    found = _group_against_way(epsilon, sympy.Integer(1), O_b - epsilon * G_b)
    meaning = "length beyond which pairing saves less than a share epsilon, the group limits"
    return _form("exclusive_saving_group", meaning, r"s_{\epsilon G}", found)


@cache
def saving_lone() -> ClosedForm:
    """Length beyond which pairing saves under epsilon where the long prompt's cycle limits: ``S_b < epsilon S_l``."""
    epsilon, G_b, O_b = letters("epsilon G_b O_b")
    found = _lone_cycle_above((G_b + O_b) / epsilon)
    meaning = "length beyond which pairing saves less than a share epsilon, the long prompt's cycle limits"
    return _form("exclusive_saving_lone", meaning, r"s_{\epsilon S}", found)


@cache
def expert_share() -> ClosedForm:
    """Length beyond which experts take less than a share theta of attention (section 3.3.2: 15 % above 16k).

    The larger root of ``theta (a0 + a1 s + a2 s^2) = m1 s``; the smaller one is below the plateau's end.
    """
    a0, a1, a2, m1, theta = letters("a0 a1 a2 m1 theta")
    slope = m1 - theta * a1
    root = slope**2 - 4 * theta**2 * a0 * a2
    return ClosedForm(
        "exclusive_expert_share",
        "length beyond which experts take less than a share theta of attention",
        r"s_\theta",
        "token",
        (slope + sympy.sqrt(root)) / (2 * theta * a2),
        "exact",
        "one prompt of work s^2 beyond the plateau",
        _SECTION,
        domain=sympy.And(a2 > 0, slope > 0, root >= 0),
    )


EXCLUSIVE_FORMS = (
    *(form(order) for form in (delay_group, delay_lone) for order in ORDERS),
    saving_group(),
    saving_lone(),
    expert_share(),
)
"""All forms of this module."""
