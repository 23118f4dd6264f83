"""Free execution: D attention groups and one pool of expert devices, every batch at its own pace.

The lanes of the event graph are the groups; a chain is one batch. Positions of a lane::

    0 step overhead | 1 dense layer (attention + dense) | 2..7 the six phases of an MoE layer

Resources: three of the pool (compute, send, receive; one and the same without MoE streams) and one or three a group.
Buffers: one dispatch and one combine region a group (section 3.2 of the paper).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.compiled import arrays_only
from asapmodel.solvers.event_graph import Log, Network, State, advance, launch, new_network
from asapmodel.systems.arrays import (
    COMBINE_RECV,
    COMBINE_SEND,
    RECV,
    SEND,
    STEP,
    Outcome,
    PolicyNumbers,
    Requests,
)
from asapmodel.systems.batching import take_min_tokens
from asapmodel.systems.phases import affine_time, attention_time, dense_layer_time, moe_time

__all__ = ["Groups", "fill_durations", "free_network", "new_groups", "run_free", "start_batch"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Groups(NamedTuple):
    """Bookkeeping of the scheduler: per group active batches and exclusive holding, per chain its requests.

    Batches take consecutive requests: number `b` of all batches ends before request `bound[b]` (noted while there is
    room) and is launch number `b` of the event graph.
    """

    active: Ints
    exclusive: Ints
    used: Ints
    first: Ints
    last: Ints
    tally: Floats  # batches, their tokens
    bound: Ints


def new_groups(groups: int, slots: int, batches: int = 0) -> Groups:
    """Return the bookkeeping of an idle system with room for the bounds of so many batches."""

    def ints(size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)

    chains = groups * slots
    return Groups(ints(groups), ints(groups), ints(chains), ints(chains), ints(chains), np.zeros(2), ints(batches))


def free_network(layout: Layout, policy: Policy, costs: LayerCosts) -> Network:
    """Lay out resources, buffers and segments of the asynchronous system; systems that agree in these share one."""
    steps, dense, sparse = 1 if costs.step_overhead > 0 else 0, costs.dense_layers, costs.moe_layers
    return _network(layout.D, policy.overlap_moe, policy.overlap_attention, (steps, dense, sparse))


@lru_cache(maxsize=256)
def _network(groups: int, overlap_moe: bool, overlap_attention: bool, repeats: tuple[int, int, int]) -> Network:
    pool = np.array([0, 1, 2] if overlap_moe else [0, 0, 0])  # compute, send, receive
    pool_size = int(pool.max()) + 1
    streams = np.array([0, 1, 2] if overlap_attention else [0, 0, 0])
    stream_count = int(streams.max()) + 1
    rows, acquire, release = [], [], []
    for group in range(groups):
        compute, send, receive = pool_size + group * stream_count + streams
        rows.append([compute, compute, compute, send, pool[2], pool[0], pool[1], receive])
        dispatch, combine = 2 * group, 2 * group + 1
        acquire.append([-1, -1, -1, dispatch, -1, -1, combine, -1])
        release.append([-1, -1, -1, -1, dispatch, -1, -1, combine])
    segments = [(0, 0, repeats[0]), (1, 1, repeats[1]), (2, 7, repeats[2])]
    return new_network(np.array(rows), segments, np.array(acquire), np.array(release))


@arrays_only
def fill_durations(net: Network, duration: Floats, cost: Floats, n: float, w: float) -> float:
    """Write the durations of one batch by position; return its time alone on idle resources."""
    duration[0] = cost[STEP]
    duration[1] = dense_layer_time(cost, n, w)
    duration[2] = attention_time(cost, n, w)
    duration[3] = affine_time(cost, SEND, n)
    duration[4] = affine_time(cost, RECV, n)
    duration[5] = moe_time(cost, n)
    duration[6] = affine_time(cost, COMBINE_SEND, n)
    duration[7] = affine_time(cost, COMBINE_RECV, n)
    alone = 0.0
    for segment in range(net.segment_repeats.shape[0]):
        part = 0.0
        for position in range(net.segment_first[segment], net.segment_last[segment] + 1):
            part += duration[position]
        alone += part * net.segment_repeats[segment]
    return alone


@arrays_only
def _find_group(policy: PolicyNumbers, groups: Groups, alone: bool) -> int:
    """The group with the fewest active batches that can take the head (ties: lowest index), or -1."""
    best = -1
    fewest = policy.slots
    for group in range(policy.groups):
        active = groups.active[group]
        if active >= fewest or groups.exclusive[group] > 0:
            continue
        if active > 0 and (policy.locked or alone):
            continue
        best = group
        fewest = active
    return best


@arrays_only
def start_batch(
    net: Network,
    st: State,
    log: Log,
    policy: PolicyNumbers,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
    groups: Groups,
    group: int,
    head: int,
    tail: int,
    now: float,
) -> int:
    """Form the next batch, give it to a free slot of the group and start it; return the new head of the queue."""
    last, n, w = take_min_tokens(policy, requests, head, tail)
    chain = group * policy.slots
    while groups.used[chain] > 0:
        chain += 1
    groups.used[chain] = 1
    groups.active[group] += 1
    groups.exclusive[group] = 1 if requests.prompt[head] > policy.exclusive_tokens else 0
    groups.first[chain] = head
    groups.last[chain] = last
    number = int(groups.tally[0])
    if number < groups.bound.shape[0]:
        groups.bound[number] = last
    groups.tally[0] += 1.0
    groups.tally[1] += n
    alone = fill_durations(net, st.duration[chain], cost, float(n), w)
    for k in range(head, last):
        outcome.start[k] = now
        outcome.kernel[k] = alone
    launch(net, st, log, chain, now)
    return last


@arrays_only
def _schedule(
    net: Network,
    st: State,
    log: Log,
    policy: PolicyNumbers,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
    groups: Groups,
    head: int,
    tail: int,
    queued: int,
    now: float,
) -> tuple[int, int]:
    """Release batches while the rules allow it; return the new head and the queued tokens."""
    while head < tail:
        alone = requests.prompt[head] > policy.exclusive_tokens
        enough = queued >= policy.min_batch_tokens * policy.slots
        if not (enough or alone or now >= requests.arrival[head] + policy.batch_window):
            break
        group = _find_group(policy, groups, alone)
        if group < 0:
            break
        take = policy.slots if policy.locked and not alone else 1
        while take > 0 and head < tail:
            if groups.active[group] > 0 and requests.prompt[head] > policy.exclusive_tokens:
                break  # an exclusive prompt never joins a pair
            new_head = start_batch(net, st, log, policy, cost, requests, outcome, groups, group, head, tail, now)
            for k in range(head, new_head):
                queued -= requests.prompt[k] - requests.cached[k]
            head = new_head
            take -= 1
    return head, queued


@arrays_only
def run_free(
    net: Network,
    st: State,
    log: Log,
    policy: PolicyNumbers,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
    groups: Groups,
) -> None:
    """Run a whole request sequence to its end; the scheduler acts at every arrival, batch end and window expiry.

    At equal instants task ends come before window expiries, those before arrivals; the scheduler acts after each.
    """
    count = requests.arrival.shape[0]
    head = 0  # first request waiting
    tail = 0  # first request yet to arrive
    done = 0
    queued = 0
    now = 0.0
    while done < count:
        arrival = requests.arrival[tail] if tail < count else np.inf
        expiry = np.inf
        if head < tail:
            expiry = requests.arrival[head] + policy.batch_window
            if expiry <= now:  # has expired; the head waits for a group
                expiry = np.inf
        chain = advance(net, st, log, min(arrival, expiry))
        if chain >= 0:
            now = st.clock[0]
            for k in range(groups.first[chain], groups.last[chain]):
                outcome.end[k] = now
            done += groups.last[chain] - groups.first[chain]
            group = st.lane[chain]
            groups.used[chain] = 0
            groups.active[group] -= 1
            groups.exclusive[group] = 0
        elif expiry <= arrival:
            now = expiry
        else:
            now = arrival
            queued += requests.prompt[tail] - requests.cached[tail]
            tail += 1
        head, queued = _schedule(net, st, log, policy, cost, requests, outcome, groups, head, tail, queued, now)
