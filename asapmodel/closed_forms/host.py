"""What host dispatch costs where the super kernel does not hide it: nothing, until it lengthens what limits.

Without the super kernel every layer's experts take h longer. M is their time without it.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm, largest_of
from asapmodel.closed_forms.notation import letters

__all__ = ["HOST_FORMS", "dispatch_cost", "dispatch_free", "dispatch_loss", "dispatch_loss_tokens", "dispatch_ttft"]

_SECTION = "Super kernel against host dispatch"
_PAIR = "two equal batches on one group in the serial order, one stream of the group, three of the pool"


def _cycle(extra: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Limits of a pair in the serial order with experts of M + extra."""
    A, t1, t2, M, t4, t5 = letters("A t1 t2 M t4 t5")
    return 2 * (A + t1 + t5), 2 * (t4 + t5), 2 * (M + extra), A + t1 + t2 + M + extra + t4 + t5


def _serial() -> sympy.Basic:
    """No interleaved order (`pair_cycle`) without host dispatch; longer experts keep it so."""
    A, t1, t2, M, t4, t5 = letters("A t1 t2 M t4 t5")
    return sympy.And(t2 <= A, sympy.Or(t1 > t5, t4 > A, M > A + t5))


@cache
def dispatch_free() -> ClosedForm:
    """Host dispatch that a pair hides, ``min(P(0)/2 - M, P(0) - S)``: the slack of experts and of the lone cycle."""
    none = sympy.Integer(0)
    *_, twice, lone = _cycle(none)
    cycle = largest_of(*_cycle(none))
    return ClosedForm(
        "dispatch_free",
        "host dispatch at which it begins to cost a pair anything",
        "h_0",
        "s",
        sympy.Min((cycle - twice) / 2, cycle - lone),
        "exact",
        _PAIR,
        _SECTION,
        domain=_serial(),
    )


@cache
def dispatch_cost() -> ClosedForm:
    """What host dispatch adds to the cycle of a pair, ``P(h) - P(0) = max(0, 2 (M + h) - P(0), S + h - P(0))``."""
    (h,) = letters("h")
    cycle = largest_of(*_cycle(sympy.Integer(0)))
    *_, twice, lone = _cycle(h)
    return ClosedForm(
        "dispatch_cost",
        "what host dispatch adds to the cycle of a pair",
        r"P(h) - P(0)",
        "s",
        largest_of(sympy.S.Zero, twice - cycle, lone - cycle),
        "exact",
        _PAIR,
        _SECTION,
        domain=_serial(),
        conditions={
            "hidden": sympy.And(twice <= cycle, lone <= cycle),
            "moe": sympy.And(twice >= lone, twice >= cycle),
            "latency": sympy.And(lone >= twice, lone >= cycle),
        },
    )


@cache
def dispatch_loss() -> ClosedForm:
    """Share of the throughput of D groups lost to host dispatch, ``1 - X(h) / X(0)`` of the saturation bound."""
    A, t1, t2, M, t4, t5, D, N_s, h = letters("A t1 t2 M t4 t5 D N_s h")
    rest = ((A + t1 + t5) / D, t2, t4, (t1 + t2) / D, (t4 + t5) / D)
    lone = A + t1 + t2 + M + t4 + t5
    before = largest_of(*rest, M, lone / (N_s * D))
    after = largest_of(*rest, M + h, (lone + h) / (N_s * D))
    return ClosedForm(
        "dispatch_loss",
        "share of the saturation throughput lost to host dispatch",
        r"1 - X(h)/X(0)",
        "1",
        1 - before / after,
        "approximation",
        "equal batches, groups never dry, one stream of the group, three of the pool",
        _SECTION,
        "equal batches: 1 point; mixes: 2 points low (100 us) to 11 high (1 ms, 41 for 30 %), 7.9 for 5.7 % at 220 us",
    )


@cache
def dispatch_loss_tokens() -> ClosedForm:
    """Tokens above which host dispatch costs less than a share epsilon where the experts limit.

    ``h / (max(m0, m1 n) + h) <= epsilon`` is ``max(m0, m1 n) >= h (1 - epsilon) / epsilon``. Elsewhere it costs less.
    """
    m0, m1, h, epsilon = letters("m0 m1 h epsilon")
    needed = h * (1 - epsilon) / epsilon
    return ClosedForm(
        "dispatch_loss_tokens",
        "tokens of a batch above which host dispatch costs the experts less than a share epsilon",
        r"n_h",
        "token",
        sympy.Piecewise((sympy.Integer(0), needed <= m0), (needed / m1, True)),
        "exact",
        "the experts limit before and after",
        _SECTION,
        domain=epsilon < 1,
        conditions={"any batch": needed <= m0, "large batches": needed > m0},
    )


@cache
def dispatch_ttft() -> ClosedForm:
    """What host dispatch adds to a lone batch, ``L h`` (section 5.5.3: 61 layers of 220 us are 13.4 ms)."""
    L, h = letters("L h")
    return ClosedForm(
        "dispatch_ttft",
        "what host dispatch adds to the time of a lone batch",
        r"\Delta",
        "s",
        L * h,
        "exact",
        "one batch in the system",
        _SECTION,
    )


HOST_FORMS = (dispatch_free(), dispatch_cost(), dispatch_loss(), dispatch_loss_tokens(), dispatch_ttft())
"""All forms of this module."""
