"""Lockstep execution: D groups step together through all layers, with barriers before and after the experts.

Since all layers of one kind cost the same, an iteration of `L` layers is evaluated in closed form::

    step_overhead + dense_layers max_g(A_g + dense(n_g))
                  + moe_layers (max_g A_g + transfers(max_g n_g) + MoE(sum_g n_g))

with `A_g` the attention of group `g` on its own batch, 0 for a group without work. The event graph with barriers gives
the same numbers (a test compares them).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from asapmodel.systems.arrays import ATTENTION, STEP, Outcome, PolicyNumbers, Requests
from asapmodel.systems.batching import piece_work
from asapmodel.systems.phases import attention_time, dense_layer_time, moe_time, transfer_time

__all__ = [
    "ATTENTION_OWN",
    "ATTENTION_PACE",
    "BATCHES",
    "BATCH_TOKENS",
    "ENGINE",
    "EXPERTS",
    "TRANSFERS",
    "GroupQueues",
    "new_group_queues",
    "route",
    "run_iteration",
    "run_lockstep",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Entries of `GroupQueues.tally`: engine busy; sum over groups of own attention; the slowest group's attention;
# transfers; experts (seconds); batches, their tokens.
ENGINE, ATTENTION_OWN, ATTENTION_PACE, TRANSFERS, EXPERTS, BATCHES, BATCH_TOKENS = range(7)


class GroupQueues(NamedTuple):
    """FIFO queue per group as linked lists over requests, with what is left to compute."""

    first: Ints  # (D,) index of the head, -1 when empty
    last: Ints  # (D,)
    next: Ints  # (requests,)
    done: Ints  # (requests,) tokens present: cached prefix and computed pieces
    queued_tokens: Floats  # (D,)
    queued_work: Floats  # (D,)
    batch_tokens: Floats  # (D,) this iteration
    batch_work: Floats  # (D,)
    tally: Floats


def new_group_queues(groups: int, requests: Requests) -> GroupQueues:
    """Return empty queues."""
    count = len(requests.arrival)
    return GroupQueues(
        first=np.full(groups, -1, dtype=np.int64),
        last=np.full(groups, -1, dtype=np.int64),
        next=np.full(count, -1, dtype=np.int64),
        done=requests.cached.copy(),
        queued_tokens=np.zeros(groups),
        queued_work=np.zeros(groups),
        batch_tokens=np.zeros(groups),
        batch_work=np.zeros(groups),
        tally=np.zeros(7),
    )


@njit(cache=True, nogil=True)
def route(policy: PolicyNumbers, cost: Floats, requests: Requests, queues: GroupQueues, k: int) -> None:
    """Send a request to the group with the least queued (tokens, or attention work); ties: lowest index."""
    best = 0
    least = np.inf
    for group in range(policy.groups):
        load = queues.queued_tokens[group]
        if policy.balance_work:
            load = cost[ATTENTION + 1] * load + cost[ATTENTION + 2] * queues.queued_work[group]
        if load < least:
            best = group
            least = load
    tokens = float(requests.prompt[k] - requests.cached[k])
    queues.queued_tokens[best] += tokens
    queues.queued_work[best] += piece_work(tokens, float(requests.cached[k]))
    if queues.first[best] < 0:
        queues.first[best] = k
    else:
        queues.next[queues.last[best]] = k
    queues.last[best] = k


@njit(cache=True, nogil=True)
def _form_batch(policy: PolicyNumbers, requests: Requests, queues: GroupQueues, group: int) -> None:
    """Size of the group's batch from the head of its queue: whole prompts, or up to `chunk_tokens` tokens."""
    n = 0
    w = 0.0
    k = queues.first[group]
    while k >= 0:
        left = requests.prompt[k] - queues.done[k]
        if policy.chunk_tokens > 0:
            if n >= policy.chunk_tokens:
                break
            left = min(left, policy.chunk_tokens - n)
        elif n > 0 and n + left > policy.max_batch_tokens:
            break
        n += left
        w += piece_work(float(left), float(queues.done[k]))
        k = queues.next[k]
    queues.batch_tokens[group] = n
    queues.batch_work[group] = w


@njit(cache=True, nogil=True)
def _finish_batch(
    requests: Requests,
    outcome: Outcome,
    queues: GroupQueues,
    group: int,
    start: float,
    end: float,
    alone: float,
) -> int:
    """Account for the group's batch; return the prompts that have their first token."""
    n = int(queues.batch_tokens[group])
    queues.queued_tokens[group] -= n
    queues.queued_work[group] -= queues.batch_work[group]
    finished = 0
    while n > 0:
        k = queues.first[group]
        if queues.done[k] == requests.cached[k]:
            outcome.start[k] = start
        piece = min(n, requests.prompt[k] - queues.done[k])
        n -= piece
        queues.done[k] += piece
        outcome.kernel[k] += alone
        if queues.done[k] == requests.prompt[k]:
            outcome.end[k] = end
            finished += 1
            queues.first[group] = queues.next[k]
    return finished


@njit(cache=True, nogil=True)
def run_iteration(
    policy: PolicyNumbers,
    cost: Floats,
    dense_layers: int,
    moe_layers: int,
    requests: Requests,
    outcome: Outcome,
    queues: GroupQueues,
    start: float,
) -> tuple[float, int]:
    """Run one iteration from `start`; return its end and the number of prompts finished."""
    largest = 0.0
    total = 0.0
    slowest = 0.0
    slowest_dense = 0.0
    own = 0.0
    for group in range(policy.groups):
        _form_batch(policy, requests, queues, group)
        n = queues.batch_tokens[group]
        if n > 0:
            w = queues.batch_work[group]
            attention = attention_time(cost, n, w)
            own += attention
            largest = max(largest, n)
            total += n
            slowest = max(slowest, attention)
            slowest_dense = max(slowest_dense, dense_layer_time(cost, n, w))
            queues.tally[BATCHES] += 1
    transfers = transfer_time(cost, largest)
    experts = moe_time(cost, total)
    time = cost[STEP] + dense_layers * slowest_dense + moe_layers * (slowest + transfers + experts)
    end = start + time
    queues.tally[ENGINE] += time
    queues.tally[ATTENTION_OWN] += own * (dense_layers + moe_layers)
    queues.tally[ATTENTION_PACE] += slowest * (dense_layers + moe_layers)
    queues.tally[TRANSFERS] += transfers * moe_layers
    queues.tally[EXPERTS] += experts * moe_layers
    queues.tally[BATCH_TOKENS] += total
    finished = 0
    for group in range(policy.groups):
        n = queues.batch_tokens[group]
        if n > 0:
            w = queues.batch_work[group]
            layer = attention_time(cost, n, w) + transfer_time(cost, n) + moe_time(cost, n)
            alone = cost[STEP] + dense_layers * dense_layer_time(cost, n, w) + moe_layers * layer
            finished += _finish_batch(requests, outcome, queues, group, start, end, alone)
    return end, finished


@njit(cache=True, nogil=True)
def run_lockstep(
    policy: PolicyNumbers,
    cost: Floats,
    dense_layers: int,
    moe_layers: int,
    requests: Requests,
    outcome: Outcome,
    queues: GroupQueues,
) -> None:
    """Run a whole request sequence to its end.

    The idle engine starts `batch_window` after the next arrival; between iterations it does not wait. At each start
    all that has arrived is routed, in arrival order.
    """
    count = requests.arrival.shape[0]
    arrived = 0
    done = 0
    now = -np.inf
    while done < count:
        if arrived == done and requests.arrival[arrived] > now:  # idle
            now = requests.arrival[arrived] + policy.batch_window
        while arrived < count and requests.arrival[arrived] <= now:
            route(policy, cost, requests, queues, arrived)
            arrived += 1
        now, finished = run_iteration(policy, cost, dense_layers, moe_layers, requests, outcome, queues, now)
        done += finished
