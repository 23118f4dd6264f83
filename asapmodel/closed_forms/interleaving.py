"""When two batches on a group pay: against one batch at a time, and against one batch of twice the tokens.

A pair never takes longer than its two batches in turn. Against one batch of all tokens it has two costs: fixed parts
are paid twice, and experts on their plateau read the same weights twice; what it buys is that the way through the pool
hides behind the other half.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm, largest, largest_of
from asapmodel.closed_forms.notation import letters

__all__ = ["INTERLEAVING_FORMS", "dual_gain", "halving_gain", "halving_pays_tokens", "pool_cost_of_halving"]

_SECTION = "When dual batching pays"


@cache
def dual_gain() -> ClosedForm:
    """Throughput of a pair over one batch of the same size at a time, ``2 S / P``, between 1 and 2.

    For the paper's streams, in the serial order. In the interleaved order (`pair_cycle`) it is at least
    ``2 S / (S + t5)``.
    """
    A, t1, t2, M, t4, t5 = letters("A t1 t2 M t4 t5")
    S = A + t1 + t2 + M + t4 + t5
    # 2 S / P as the smallest of the ratios; 2 t4 + 2 t5 belongs to the combine region.
    limits = {"attention": A + t1 + t5, "moe": M, "combine region": t4 + t5, "latency": S / 2}
    return ClosedForm(
        "dual_gain",
        "throughput of a pair over one batch at a time",
        r"\gamma",
        "1",
        S / largest_of(*limits.values()),
        "exact",
        "one group, equal batches in the serial order, one stream of the group, three of the pool, many layers",
        _SECTION,
        domain=sympy.And(t2 <= A, sympy.Or(t1 > t5, sympy.Max(M, t4 + t5) > A + t5)),
        conditions=largest(limits),
    )


def _laws() -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    """Group's stream and way through the pool of n tokens, and the way of 2 n tokens."""
    g0, g1, o0, o1, m0, m1, h, n = letters("g0 g1 o0 o1 m0 m1 h n")
    group = g0 + g1 * n
    way = o0 + o1 * n + sympy.Max(m0, m1 * n) + h
    return group, way, way.subs(n, 2 * n)


@cache
def halving_gain() -> ClosedForm:
    """Throughput of a pair of n tokens each over one batch of 2 n at a time, ``S(2n) / P(n)``.

    ``G(n) = g0 + g1 n``, ``O(n) = o0 + o1 n + max(m0, m1 n) + h``; one batch of 2 n takes ``g0 + 2 g1 n + O(2n)``.
    The pair is limited by its group, its lone cycle, or the experts. Streams of the transfers are taken to be shorter.
    """
    g0, g1, m0, m1, h, n = letters("g0 g1 m0 m1 h n")
    group, way, twice = _laws()
    limits = {"attention": 2 * group, "moe": 2 * (sympy.Max(m0, m1 * n) + h), "latency": group + way}
    return ClosedForm(
        "halving_gain",
        "throughput of a pair over one batch of all its tokens",
        r"\gamma_2",
        "1",
        (g0 + 2 * g1 * n + twice) / largest_of(*limits.values()),
        "exact",
        "one group, serial order, transfers of the pool below its experts, many layers",
        _SECTION,
        conditions=largest(limits),
    )


@cache
def halving_pays_tokens() -> ClosedForm:
    """Tokens n of a half above which the pair beats one batch of 2 n, where the group limits: ``O(2n) > g0``.

    ``S(2n) > 2 G(n)`` is ``g0 + 2 g1 n + O(2n) > 2 g0 + 2 g1 n``: the way of the whole batch through the pool must be
    longer than the fixed time that a second batch costs the group. ``O`` is the larger of two lines, so the smaller
    of two roots is where it passes g0.
    """
    g0, o0, o1, m0, m1, h = letters("g0 o0 o1 m0 m1 h")
    floor, linear = (g0 - o0 - m0 - h) / (2 * o1), (g0 - o0 - h) / (2 * (o1 + m1))
    return ClosedForm(
        "halving_pays_tokens",
        "tokens of a half above which a pair beats one batch of both",
        r"n_2",
        "token",
        sympy.Max(0, sympy.Min(floor, linear)),
        "exact",
        "the group limits the pair: 2 G(n) is the largest limit",
        _SECTION,
        domain=o1 > 0,
    )


@cache
def pool_cost_of_halving() -> ClosedForm:
    """What two halves cost the experts over one batch of both, ``2 M(n) / M(2n)``: 2 on the plateau, 1 far above.

    Where the experts limit the throughput of D groups, this is what halving costs.
    """
    m0, m1, h, n = letters("m0 m1 h n")
    half = sympy.Max(m0, m1 * n) + h
    return ClosedForm(
        "pool_cost_of_halving",
        "time of the experts for two halves over that for both at once",
        r"\gamma_M",
        "1",
        2 * half / half.subs(n, 2 * n),
        "exact",
        "experts have a stream of their own",
        _SECTION,
        conditions={
            "both on the plateau": 2 * n * m1 <= m0,
            "halves on the plateau": sympy.And(n * m1 <= m0, m0 <= 2 * n * m1),
            "both above": m0 <= n * m1,
        },
    )


INTERLEAVING_FORMS = (dual_gain(), halving_gain(), halving_pays_tokens(), pool_cost_of_halving())
"""All forms of this module."""
