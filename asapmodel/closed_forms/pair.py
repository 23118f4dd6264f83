"""Cycle time of two batches on one group: how long a layer takes when the group works on both.

Both batches visit the same servers in turn, first come, first served, so neither overtakes the other and both go
through as many layers: the pair has one cycle time P per layer. With streams of their own for compute, sending and
receiving XX order, in which each layer waits for one task of the other batch although the stream is not busy.
Derivation: docs/background/closed-forms.md, "Cycle of a pair".
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm, largest, largest_of
from asapmodel.closed_forms.notation import letters

__all__ = ["PAIR_FORMS", "lone_cycle", "pair_bound", "pair_cycle", "pair_limits"]

_SECTION = "Cycle of a pair"
_EXCESS = {
    (True, True): "",
    (True, False): "the cycle is up to 39 % longer (random costs), 3.6 % (the paper's)",
    (False, True): "the cycle is up to 39 % longer (random costs)",
    (False, False): "the cycle is up to 65 % longer (random costs)",
}
_EQUAL = "two equal batches on one group, the pool to themselves, many layers, released together"


def _phases(second: bool = False) -> tuple[sympy.Symbol, ...]:
    return letters("A_b t1_b t2_b M_b t4_b t5_b" if second else "A t1 t2 M t4 t5")


@cache
def lone_cycle() -> ClosedForm:
    """One batch alone: ``S = A + t1 + t2 + M + t4 + t5``, the sum of its phases. Exact."""
    return ClosedForm(
        "lone_cycle",
        "cycle time of one batch alone",
        "S",
        "s",
        sum(_phases()),
        "exact",
        "one batch in the system",
        _SECTION,
    )


def pair_limits(
    one: tuple[sympy.Expr, ...], two: tuple[sympy.Expr, ...], pool: bool, group: bool
) -> dict[str, sympy.Expr]:
    """Means of the circuits that bound the cycle of a pair from below, by what limits it.

    Parameters
    ----------
    one, two : tuple of sympy.Expr
        The six phases of the two batches.
    pool, group : bool
        Whether the side has three streams of its own.
    """
    A, t1, t2, M, t4, t5 = (x + y for x, y in zip(one, two, strict=True))
    attention = {"attention": A} if group else {"attention": A + t1 + t5}
    experts = {"moe": M} if pool else {"moe": M + t2 + t4}
    lone = {"latency": sum(one)} if one == two else {"latency": sum(one), "latency of the second": sum(two)}
    return attention | experts | {"dispatch region": t1 + t2, "combine region": t4 + t5} | lone


@cache
def pair_bound(pool: bool, group: bool) -> ClosedForm:
    """Cycle of two different batches: the largest circuit mean.

    Parameters
    ----------
    pool, group : bool
        Whether the side has three streams of its own. With both the cycle is exact, else a lower bound: of 4,000
        random systems with one stream of the group 70 % are met exactly, and the worst takes 39 % longer; with the
        costs of the paper and batches of 64 to 32,768 tokens a third, and 3.6 %.
    """
    limits = pair_limits(_phases(), _phases(second=True), pool, group)
    exact = pool and group
    return ClosedForm(
        f"pair_bound_{_streams(pool, group)}",
        f"cycle time of two different batches, {_words(pool, group)}",
        "P" if exact else r"P_{\min}",
        "s",
        largest_of(*limits.values()),
        "exact" if exact else "lower bound",
        "two batches on one group, the pool to themselves, many layers",
        _SECTION,
        _EXCESS[pool, group],
        conditions=largest(limits),
    )


@cache
def pair_cycle(pool: bool = True, group: bool = False) -> ClosedForm:
    """Cycle of two equal batches, exact, with the regimes of the order in which they settle.

    Parameters
    ----------
    pool, group : bool
        Whether the side has three streams of its own; the default is the paper's (section 4.3).

    Notes
    -----
    Domain: a merged stream must not be blocked by a buffer region, which takes ``t2 <= A`` on the group's side and
    ``t5 <= M`` on the pool's. Outside of it P is larger by up to a factor 2; use `pair_bound`.
    """
    A, t1, t2, M, t4, t5 = phases = _phases()
    limits = tuple(pair_limits(phases, phases, pool, group).values())
    bound = largest_of(*limits)
    S = sum(phases)
    at_group = sympy.And(t1 <= t5, sympy.Max(M if pool else t2 + M + t4, t4 + t5) <= A + t5)
    at_pool = sympy.And(t4 <= t2, sympy.Max(A if group else t5 + A + t1, t1 + t2) <= M + t2)
    orders: list[tuple[sympy.Expr, sympy.Basic]] = []
    if not (pool or group):
        orders.append((S + t5 + t2, sympy.And(A + t1 <= M + t2, M + t4 <= A + t5)))
    if not group:
        orders.append((S + t5, at_group))
    if not pool:
        orders.append((S + t2, at_pool))
    pieces = [(largest_of(*limits, longer), condition) for longer, condition in orders]
    conditions = _orders([condition for _, condition in orders], pool, group)
    domain = sympy.And(*([] if group else [t2 <= A]), *([] if pool else [t5 <= M]))
    return ClosedForm(
        f"pair_cycle_{_streams(pool, group)}",
        f"cycle time of two equal batches, {_words(pool, group)}",
        "P",
        "s",
        sympy.Piecewise(*pieces, (bound, True)),
        "exact",
        _EQUAL,
        _SECTION,
        domain=domain,
        conditions=conditions,
    )


def _orders(found: list[sympy.Basic], pool: bool, group: bool) -> dict[str, sympy.Basic]:
    """Names of the orders and when they hold, those before an order excluded."""
    names = [
        *([] if pool or group else ["interleaved on both sides"]),
        *([] if group else ["interleaved on the group"]),
        *([] if pool else ["interleaved on the pool"]),
    ]
    conditions = {}
    for k, name in enumerate(names):
        conditions[name] = sympy.And(found[k], *(sympy.Not(one) for one in found[:k]))
    return conditions | {"serial": sympy.And(*(sympy.Not(one) for one in found))}


def _streams(pool: bool, group: bool) -> str:
    return {(True, True): "separate", (True, False): "pool", (False, True): "group", (False, False): "merged"}[
        pool, group
    ]


def _words(pool: bool, group: bool) -> str:
    return {
        (True, True): "three streams on either side",
        (True, False): "three streams of the pool, one of the group",
        (False, True): "one stream of the pool, three of the group",
        (False, False): "one stream on either side",
    }[pool, group]


PAIR_FORMS = (
    lone_cycle(),
    *(pair_cycle(pool, group) for pool in (True, False) for group in (False, True)),
    *(pair_bound(pool, group) for pool in (True, False) for group in (False, True)),
)
"""All forms of this module."""
