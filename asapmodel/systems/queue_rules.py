"""Routing and batching of prompts in queues, one a group, as numbers that compiled loops can read."""

from typing import NamedTuple

from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import batching_of

__all__ = ["QueueRules", "queue_rules"]

ROUND_ROBIN, REQUESTS, REQUESTS_OF_STEP, TOKENS, WORK = range(5)
PROMPTS, CHUNKS, MIN_TOKENS = range(3)

_BATCHING = {"prompts": PROMPTS, "chunks": CHUNKS, "min_tokens": MIN_TOKENS}
_UNLIMITED = 2**62


class QueueRules(NamedTuple):
    """Routing and batching as numbers a compiled function can read; `budget` is what a batch may hold, tokens.

    `at_start`: prompts are routed when an iteration starts, not when they arrive. `ahead`: batches are formed when the
    step before starts; `hidden`: then they have no overhead. `padded`, `restless`: groups in lockstep compute as many
    tokens as the largest; they run empty iterations while idle. `slices` into which the tokens of a batch are cut for
    attention, 1 where its work is shared evenly.
    """

    routing: int
    at_start: bool
    batching: int
    budget: int
    min_tokens: int
    exclusive_tokens: int
    max_seqs: int
    ahead: bool
    hidden: bool
    padded: bool
    restless: bool
    slices: int
    per_token: float
    per_token2: float


def queue_rules(layout: Layout, policy: Policy, per_token: float, per_token2: float) -> QueueRules:
    """Translate a policy for one layout; `per_token`, `per_token2` are those of attention (s/token, s/token^2)."""
    by_work = policy.routing == "least_work" or (not policy.queue_per_group and policy.balance == "work")
    counted = REQUESTS if policy.counts == "exact" else REQUESTS_OF_STEP
    routing = {"round_robin": ROUND_ROBIN, "fewest_requests": counted}.get(policy.routing, WORK if by_work else TOKENS)
    return QueueRules(
        routing=routing,
        at_start=not policy.queue_per_group,
        batching=_BATCHING[batching_of(layout.kind, policy)],
        budget=policy.chunk_tokens or policy.max_batch_tokens,
        min_tokens=policy.min_batch_tokens,
        exclusive_tokens=policy.exclusive_tokens,
        max_seqs=policy.max_seqs or _UNLIMITED,
        ahead=policy.schedule_ahead,
        hidden=policy.schedule_ahead and policy.hide_overhead,
        padded=policy.pad_groups,
        restless=policy.idle_steps,
        slices=layout.T if policy.context_parallel else 1,
        per_token=per_token,
        per_token2=per_token2,
    )
