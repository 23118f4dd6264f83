"""First-in first-out queues of prompts, one a group: routing on arrival, batches from the head, what a step leaves.

A queue is a linked list over requests. A prompt is *waiting* until a step computes its first token and *running* from
then to its end. Tokens and work are *outstanding* until the step that computes them ends.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import batching_of
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.systems.batching import piece_work

__all__ = ["QueueRules", "Queues", "join", "new_queues", "note_step", "queue_rules", "settle", "take"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ROUND_ROBIN, REQUESTS, REQUESTS_OF_STEP, TOKENS, WORK = range(5)
PROMPTS, CHUNKS, MIN_TOKENS = range(3)

_BATCHING = {"prompts": PROMPTS, "chunks": CHUNKS, "min_tokens": MIN_TOKENS}
_UNLIMITED = 2**62
_WAITING_WEIGHT = 4  # of a waiting prompt in the count by which vLLM routes, against 1 of a running one


class QueueRules(NamedTuple):
    """Routing and batching as numbers a compiled function can read; `budget` is what a batch may hold, tokens.

    `at_start`: prompts are routed when an iteration starts, not when they arrive.
    """

    routing: int
    at_start: bool
    batching: int
    budget: int
    min_tokens: int
    exclusive_tokens: int
    max_seqs: int
    per_token: float
    per_token2: float


class Queues(NamedTuple):
    """The queues and what is known of them.

    Per group: head and tail of the queue, outstanding tokens and work, prompts waiting and running, and what they
    counted when the last step was formed. Per request: who follows in the queue, tokens taken (cached ones included).
    `turn` is the group to begin with where the rule is a turn, or breaks ties by one.
    """

    head: Ints
    tail: Ints
    tokens: Floats
    work: Floats
    waiting: Ints
    running: Ints
    seen: Ints
    turn: Ints
    follow: Ints
    done: Ints


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
        per_token=per_token,
        per_token2=per_token2,
    )


def new_queues(groups: int, requests: Requests) -> Queues:
    """Return empty queues for the prompts of a run."""

    def ints(value: int = 0) -> Ints:
        return np.full(groups, value, dtype=np.int64)

    return Queues(
        head=ints(-1),
        tail=ints(-1),
        tokens=np.zeros(groups),
        work=np.zeros(groups),
        waiting=ints(),
        running=ints(),
        seen=ints(),
        turn=np.zeros(1, dtype=np.int64),
        follow=np.full(len(requests.arrival), -1, dtype=np.int64),
        done=requests.cached.copy(),
    )


@arrays_only
def _load(q: Queues, rules: QueueRules, group: int) -> float:
    """What a group has the least of when it is chosen."""
    if rules.routing == REQUESTS:
        return float(_WAITING_WEIGHT * q.waiting[group] + q.running[group])
    if rules.routing == REQUESTS_OF_STEP:
        return float(q.seen[group])
    if rules.routing == TOKENS:
        return float(q.tokens[group])
    return float(rules.per_token * q.tokens[group] + rules.per_token2 * q.work[group])


@arrays_only
def join(q: Queues, rules: QueueRules, requests: Requests, k: int) -> int:
    """Send request `k` to a group and return it.

    Ties: counted requests go to the first group from `turn` on, which is the one behind the group chosen last
    (`counts = "exact"`) or moves on by one a step (``"step"``); tokens and work to the lowest index.
    """
    groups = q.head.shape[0]
    turns = rules.routing <= REQUESTS_OF_STEP
    best = q.turn[0] if turns else 0
    if rules.routing != ROUND_ROBIN:
        first = best
        least = np.inf
        for step in range(groups):
            group = first + step
            if group >= groups:
                group -= groups
            load = _load(q, rules, group)
            if load < least:
                best = group
                least = load
    if turns and rules.routing != REQUESTS_OF_STEP:
        q.turn[0] = 0 if best + 1 == groups else best + 1
    tokens = float(requests.prompt[k] - requests.cached[k])
    q.tokens[best] += tokens
    q.work[best] += piece_work(tokens, float(requests.cached[k]))
    q.waiting[best] += 1
    if q.head[best] < 0:
        q.head[best] = k
    else:
        q.follow[q.tail[best]] = k
    q.tail[best] = k
    return best


@arrays_only
def note_step(q: Queues, rules: QueueRules) -> None:
    """Note the counts of requests as they stand now that a step has been formed."""
    if rules.routing != REQUESTS_OF_STEP:
        return
    groups = q.head.shape[0]
    for group in range(groups):
        q.seen[group] = _WAITING_WEIGHT * q.waiting[group] + q.running[group]
    q.turn[0] = 0 if q.turn[0] + 1 == groups else q.turn[0] + 1


@arrays_only
def take(
    q: Queues, rules: QueueRules, requests: Requests, outcome: Outcome, group: int, now: float
) -> tuple[int, float, float]:
    """Take a batch from the head of a group's queue, which is not empty.

    Returns
    -------
    (prompts, n, w)
        The batch is of so many prompts from the head on, with `n` tokens and work `w`. A prompt that was cut is the new
        head.
    """
    prompts = 0
    n = 0
    w = 0.0
    k = q.head[group]
    while k >= 0 and prompts < rules.max_seqs:
        tokens = requests.prompt[k] - q.done[k]
        exclusive = rules.batching == MIN_TOKENS and requests.prompt[k] > rules.exclusive_tokens
        if rules.batching == CHUNKS:
            if n >= rules.budget:
                break
            tokens = min(tokens, rules.budget - n)
        elif prompts > 0 and (
            n + tokens > rules.budget or exclusive or (rules.batching == MIN_TOKENS and n >= rules.min_tokens)
        ):
            break
        if q.done[k] == requests.cached[k]:
            outcome.start[k] = now
            q.waiting[group] -= 1
            q.running[group] += 1
        w += piece_work(float(tokens), float(q.done[k]))
        n += tokens
        prompts += 1
        q.done[k] += tokens
        if q.done[k] < requests.prompt[k]:
            break
        k = q.follow[k]
        if exclusive:
            break
    q.head[group] = k
    return prompts, float(n), w


@arrays_only
def settle(
    q: Queues,
    requests: Requests,
    outcome: Outcome,
    group: int,
    first: int,
    prompts: int,
    n: float,
    w: float,
    now: float,
) -> int:
    """Account for a batch that ended, `prompts` requests from `first` on; return those that are complete."""
    q.tokens[group] -= n
    q.work[group] -= w
    complete = 0
    k = first
    for _ in range(prompts):
        if q.done[k] == requests.prompt[k]:
            outcome.end[k] = now
            q.running[group] -= 1
            complete += 1
        k = q.follow[k]
    return complete
