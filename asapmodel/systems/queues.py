"""First-in first-out queues of prompts, one a group: routing on arrival, batches from the head, what a step leaves.

A queue is a linked list over requests. A prompt is *waiting* until a batch takes its first tokens and *running* from
then to its end. Tokens and work are *outstanding* until the step that computes them ends. A batch is formed when its
step starts or, with `schedule_ahead`, when the step before it starts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.systems.batching import piece_work
from asapmodel.systems.queue_rules import (
    CHUNKS,
    MIN_TOKENS,
    REQUESTS,
    REQUESTS_OF_STEP,
    ROUND_ROBIN,
    TOKENS,
    QueueRules,
)

__all__ = [
    "Batches",
    "Queues",
    "begin",
    "form",
    "join",
    "new_batches",
    "new_queues",
    "note_step",
    "settle",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WAITING_WEIGHT = 4  # of a waiting prompt in the count by which vLLM routes, against 1 of a running one


class Batches(NamedTuple):
    """Batches by slot: first request and its tokens that were there before, prompts, how many end, tokens, work.

    `paced` is the work that a layer takes the time of: `w` if it is shared evenly by the devices of a group, else more.
    """

    first: Ints
    before: Ints
    prompts: Ints
    ending: Ints
    n: Floats
    w: Floats
    paced: Floats


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


def new_batches(slots: int) -> Batches:
    """Return so many empty batches."""
    first, before, prompts, ending = np.zeros((4, slots), dtype=np.int64)
    return Batches(first, before, prompts, ending, *np.zeros((3, slots)))


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
    """Note the counts of requests as they stand now that a step has started."""
    if rules.routing != REQUESTS_OF_STEP:
        return
    groups = q.head.shape[0]
    for group in range(groups):
        q.seen[group] = _WAITING_WEIGHT * q.waiting[group] + q.running[group]
    q.turn[0] = 0 if q.turn[0] + 1 == groups else q.turn[0] + 1


@arrays_only
def form(q: Queues, rules: QueueRules, requests: Requests, batches: Batches, slot: int, group: int) -> None:
    """Form a batch at the head of a group's queue and write it down in a slot; an empty queue gives an empty batch.

    A prompt that was cut is the new head. Prompts that have begun and not ended count towards `max_seqs`, those of a
    step that still runs among them.
    """
    prompts = ending = n = 0
    w = 0.0
    k = q.head[group]
    batches.first[slot] = k
    batches.before[slot] = q.done[k] if k >= 0 else 0
    while k >= 0:
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
            if q.running[group] >= rules.max_seqs:
                break
            q.waiting[group] -= 1
            q.running[group] += 1
        w += piece_work(float(tokens), float(q.done[k]))
        n += tokens
        prompts += 1
        q.done[k] += tokens
        if q.done[k] < requests.prompt[k]:
            break
        ending += 1
        k = q.follow[k]
        if exclusive:
            break
    q.head[group] = k
    batches.prompts[slot], batches.ending[slot] = prompts, ending
    batches.n[slot], batches.w[slot], batches.paced[slot] = float(n), w, w


@arrays_only
def begin(
    q: Queues, requests: Requests, outcome: Outcome, batches: Batches, slot: int, now: float, kernel: float
) -> None:
    """Start the step of a batch: note the start of prompts whose first tokens it has, add to all their own time."""
    k = batches.first[slot]
    for i in range(batches.prompts[slot]):
        if i > 0 or batches.before[slot] == requests.cached[k]:
            outcome.start[k] = now
        outcome.kernel[k] += kernel
        k = q.follow[k]


@arrays_only
def settle(q: Queues, outcome: Outcome, batches: Batches, slot: int, group: int, now: float) -> int:
    """Account for a batch whose step has ended; return the requests that are complete."""
    q.tokens[group] -= batches.n[slot]
    q.work[group] -= batches.w[slot]
    q.running[group] -= batches.ending[slot]
    k = batches.first[slot]
    for _ in range(batches.ending[slot]):
        outcome.end[k] = now
        k = q.follow[k]
    return int(batches.ending[slot])
