"""Throughput of a stream of equal batches on D groups that never run dry, and what limits it.

In the time of one layer a group's stream is asked for G by every batch, each stream of the pool for its phase, a
group's dispatch and combine regions for the phases they are held, and a batch itself for S. None can give more than
its number times the time, which bounds the batches per time from above. The batch size at which one limit takes over
from another solves a linear equation, since all limits are linear in the tokens on either side of the plateau.
"""

from functools import cache

import sympy

from asapmodel.closed_forms.form import ClosedForm, largest, largest_of
from asapmodel.closed_forms.notation import letters

__all__ = [
    "SATURATION_FORMS",
    "group_limit_tokens",
    "groups_at_balance",
    "hidden_pool_tokens",
    "layer_limits",
    "prompt_rate",
    "saturation",
]

_SECTION = "Saturation of a stream of equal batches"
_ERROR = "rolling: met but for interleaving; locked: see the table of the section"
_NAMES = {(True, False): "pool", (True, True): "separate", (False, True): "group", (False, False): "merged"}
_WORDS = {
    (True, True): "three streams on either side",
    (True, False): "three streams of the pool, one of the group",
    (False, True): "one stream of the pool, three of the group",
    (False, False): "one stream on either side",
}
_LINEAR = "tokens q n of attention work a batch: the same mix of lengths at every size"


def layer_limits(pool: bool = True, group: bool = False) -> dict[str, sympy.Expr]:
    """Time per batch and layer that each part asks for, by the name of the part.

    Parameters
    ----------
    pool, group : bool
        Whether the side has three streams of its own.
    """
    A, t1, t2, M, t4, t5, D, N_s = letters("A t1 t2 M t4 t5 D N_s")
    own = {"attention": A, "dispatch send": t1, "combine receive": t5} if group else {"attention": A + t1 + t5}
    shared = {"moe": M, "dispatch receive": t2, "combine send": t4} if pool else {"moe": t2 + M + t4}
    regions = {"dispatch region": t1 + t2, "combine region": t4 + t5}
    once = {"latency": (A + t1 + t2 + M + t4 + t5) / N_s}
    return {name: time / D for name, time in (own | regions | once).items()} | shared


@cache
def saturation(pool: bool = True, group: bool = False) -> ClosedForm:
    """Batches per layer time: the reciprocal of the largest of `layer_limits`.

    An upper bound. With `rolling` pairing and all streams of their own it is met: batches settle at even distances.
    With one stream of the group 97 % of random systems meet it; with `locked` pairing pairs end and start together,
    and their queues in the pool cost up to 4 % for costs like the paper's (61 layers, median 0.4 %), 30 to 50 %
    where results block a stream of the pool.
    """
    limits = layer_limits(pool, group)
    return ClosedForm(
        f"saturation_{_NAMES[pool, group]}",
        f"batches per layer time at saturation, {_WORDS[pool, group]}",
        r"X_{\max}",
        "1/s",
        1 / largest_of(*limits.values()),
        "upper bound",
        "equal batches, groups never dry",
        _SECTION,
        _ERROR,
        conditions=largest(limits),
    )


@cache
def prompt_rate(pool: bool = True, group: bool = False) -> ClosedForm:
    """Prompts per second of batches of k prompts over L MoE layers and F of dense layers and step overhead.

    The group's compute and the latency pay F once a batch, the pool never.
    """
    D, N_s, L, F, k = letters("D N_s L F k")
    before = {"attention": F / D, "latency": F / (N_s * D)}
    limits = {name: L * time + before.get(name, 0) for name, time in layer_limits(pool, group).items()}
    return ClosedForm(
        f"prompt_rate_{_NAMES[pool, group]}",
        f"prompts per second at saturation, {_WORDS[pool, group]}",
        r"\lambda_{\max}",
        "1/s",
        k / largest_of(*limits.values()),
        "upper bound",
        "equal batches, groups never dry",
        _SECTION,
        _ERROR,
        conditions=largest(limits),
    )


@cache
def groups_at_balance() -> ClosedForm:
    """Groups beyond which the pool limits and not the groups, ``D = G / max(t2, M, t4)``. Exact for the two limits."""
    A, t1, t2, M, t4, t5 = letters("A t1 t2 M t4 t5")
    return ClosedForm(
        "groups_at_balance",
        "groups that keep the pool just busy",
        r"D_{=}",
        "1",
        (A + t1 + t5) / sympy.Max(t2, M, t4),
        "exact",
        "one stream of the group, three of the pool; latency does not limit",
        _SECTION,
    )


@cache
def group_limit_tokens() -> ClosedForm:
    """Batch tokens above which the groups limit and not the experts, of ``(g0 + g1 n)/D >= max(m0, m1 n) + h``.

    Domain ``g1 > D m1``: else the experts limit every large batch. Above both crossings of the line with the two
    branches the line is above both. ``g0 = a0 + alpha_1 + alpha_5``, ``g1 = a1 + a2 q + beta_1 + beta_5``.
    """
    g0, g1, m0, m1, h, D = letters("g0 g1 m0 m1 h D")
    return ClosedForm(
        "group_limit_tokens",
        "tokens of a batch above which the groups limit",
        r"n_{G}",
        "token",
        sympy.Max(0, (D * (m0 + h) - g0) / g1, (D * h - g0) / (g1 - D * m1)),
        "exact",
        f"{_LINEAR}; transfers of the pool below its experts",
        _SECTION,
        domain=g1 > D * m1,
    )


@cache
def hidden_pool_tokens() -> ClosedForm:
    """Batch tokens above which the way through the pool hides behind the partner, of ``G(n) >= O(n)``.

    There ``2 G >= S`` and a pair is limited by its group. ``O = o0 + o1 n + max(m0, m1 n) + h`` with ``o0 = alpha_2 +
    alpha_4`` and ``o1 = beta_2 + beta_4``. Domain ``g1 > o1 + m1``: else no large batch hides it.
    """
    g0, g1, o0, o1, m0, m1, h = letters("g0 g1 o0 o1 m0 m1 h")
    return ClosedForm(
        "hidden_pool_tokens",
        "tokens of a batch above which latency does not limit a pair",
        r"n_{S}",
        "token",
        sympy.Max(0, (o0 + m0 + h - g0) / (g1 - o1), (o0 + h - g0) / (g1 - o1 - m1)),
        "exact",
        _LINEAR,
        _SECTION,
        domain=g1 > o1 + m1,
    )


SATURATION_FORMS = (
    *(saturation(pool, group) for pool in (True, False) for group in (False, True)),
    *(prompt_rate(pool, group) for pool in (True, False) for group in (False, True)),
    groups_at_balance(),
    group_limit_tokens(),
    hidden_pool_tokens(),
)
"""All forms of this module."""
