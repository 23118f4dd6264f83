"""Free execution with queues per group: vLLM-like asynchronous systems, steps in one piece, in two halves, or in pairs.

The event graph is that of `asapmodel.systems.free`; routing and batching are those of `asapmodel.systems.queues`. A
group forms its next step as soon as it has none: no window, no minimum to wait for. With `schedule_ahead` a group that
starts a step also forms the batch of the next one, which then has no overhead (`hide_overhead = false`: it has); if it
finds nothing, it forms a batch when the step has ended.

With micro-batches by `split` a step of `n >= 2` tokens is cut behind its token `n // 2`. Its overhead and dense layers
run in one piece before the cut; then two chains pass the MoE layers, the first half ready first; the step is done when
both are. Work of the halves: pieces of `c` tokens behind `q` others are `c**2 + 2 c q`, so the second half of a prompt
attends to the first, and the halves add up to the whole.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.solvers.event_graph import Log, Network, State, advance, launch_part
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.systems.batching import piece_work
from asapmodel.systems.free import fill_durations
from asapmodel.systems.logs import StepLog, note_taken
from asapmodel.systems.queue_rules import MIN_TOKENS, QueueRules
from asapmodel.systems.queues import Queues, begin, form, join, note_step, settle
from asapmodel.systems.steps import StepRules, Steps

__all__ = ["Alone", "run_free_queues"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BEFORE = 2  # segments before the MoE layers: overhead, dense layers


class Alone(NamedTuple):
    """A system of one group, in which a step in two halves runs alone to be measured."""

    net: Network
    st: State
    log: Log
    noted: StepLog


@arrays_only
def _first_half(q: Queues, requests: Requests, k: int, before: int, n: float) -> tuple[float, float]:
    """Tokens and work of the first `n // 2` tokens of a batch of `n` that has just been taken.

    Its first request is `k`, of which `before` tokens were there; the others begin at their cached prefix.
    """
    half = int(n) // 2
    left = half
    w = 0.0
    while left > 0:
        piece = min(left, q.done[k] - before)
        w += piece_work(float(piece), float(before))
        left -= piece
        k = q.follow[k]
        if left > 0:
            before = requests.cached[k]
    return float(half), w


@arrays_only
def _start(
    net: Network, st: State, log: Log, noted: StepLog, chain: int, chains: int, now: float, first: int, stop: int
) -> None:
    """Start so many chains of a group, one behind the other, on segments `first` to `stop - 1`."""
    for one in range(chain, chain + chains):
        launch_part(net, st, log, one, now, first, stop)
        serial = st.serial[one]
        if serial < noted.launch.shape[0]:
            noted.launch[serial] = noted.step[st.lane[one]]


@arrays_only
def _time_alone(alone: Alone, before: float, duration: Floats, lead: int) -> float:
    """Time of a step in two halves on idle resources: `before` its cut, then both through the MoE layers."""
    net, st, log, noted = alone
    stop = net.segment_repeats.shape[0]
    for half in range(2):
        for position in range(duration.shape[1]):
            st.duration[half, position] = duration[lead + half, position]
    _start(net, st, log, noted, 0, 2, 0.0, _BEFORE, stop)
    for _ in range(2):
        advance(net, st, log, np.inf)
    return float(before + st.clock[0])


@arrays_only
def _may_take(
    q: Queues, rules: QueueRules, how: StepRules, steps: Steps, requests: Requests, group: int, fresh: bool
) -> bool:
    """Whether a group can take another batch now; `fresh` if it had none when the scheduler came to it."""
    active = steps.active[group]
    if active == 0 and steps.batches.prompts[steps.used.shape[0] + group] > 0:
        return True
    if q.head[group] < 0:
        return False
    if active == 0:
        return True
    if active >= how.together or steps.exclusive[group] > 0 or (how.locked and not fresh):
        return False
    return not (rules.batching == MIN_TOKENS and requests.prompt[q.head[group]] > rules.exclusive_tokens)


@arrays_only
def _take_step(
    net: Network,
    st: State,
    alone: Alone,
    q: Queues,
    rules: QueueRules,
    how: StepRules,
    steps: Steps,
    noted: StepLog,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
    group: int,
    now: float,
) -> int:
    """Start a group's next batch and write down its durations; return its chain.

    `steps.opening` is 1 where a second half follows, which is chain + 1.
    """
    chain = group * how.slots
    while steps.used[chain] > 0:
        chain += 1
    batches = steps.batches
    ahead = steps.used.shape[0] + group
    prepared = batches.prompts[ahead] > 0
    if not prepared:
        form(q, rules, requests, batches, ahead, group)
    first, before = batches.first[ahead], batches.before[ahead]
    n, w = batches.n[ahead], batches.w[ahead]
    repeats = net.segment_repeats
    kernel = fill_durations(net, st.duration[chain], cost, n, w)
    if prepared and rules.hidden:
        kernel -= st.duration[chain, 0] * repeats[0]
        st.duration[chain, 0] = 0.0
    if how.split and n >= 2 and repeats[_BEFORE] > 0:
        overhead, dense = st.duration[chain, 0], st.duration[chain, 1]
        half, half_work = _first_half(q, requests, first, before, n)
        fill_durations(net, st.duration[chain], cost, half, half_work)
        st.duration[chain, 0], st.duration[chain, 1] = overhead, dense
        fill_durations(net, st.duration[chain + 1], cost, n - half, w - half_work)
        kernel = _time_alone(alone, overhead * repeats[0] + dense * repeats[1], st.duration, chain)
        steps.opening[group] = 1
    steps.used[chain] = 1
    batches.first[chain], batches.before[chain] = first, before
    batches.prompts[chain], batches.ending[chain] = batches.prompts[ahead], batches.ending[ahead]
    batches.n[chain], batches.w[chain] = n, w
    steps.exclusive[group] = rules.batching == MIN_TOKENS and requests.prompt[first] > rules.exclusive_tokens
    note_taken(noted, batches, chain, int(steps.tally[0]), group)
    steps.tally[0] += 1.0
    steps.tally[1] += n
    begin(q, requests, outcome, batches, chain, now, kernel)
    batches.prompts[ahead] = 0
    if rules.ahead:
        form(q, rules, requests, batches, ahead, group)
    note_step(q, rules)
    return chain


@arrays_only
def run_free_queues(
    net: Network,
    st: State,
    log: Log,
    alone: Alone,
    q: Queues,
    rules: QueueRules,
    how: StepRules,
    steps: Steps,
    noted: StepLog,
    cost: Floats,
    requests: Requests,
    outcome: Outcome,
) -> None:
    """Run a whole request sequence to its end; a group acts when a prompt joins it and when a batch of it ends.

    `noted` is filled with the steps, as far as it has room.
    """
    count = requests.arrival.shape[0]
    stop = net.segment_repeats.shape[0]
    whole_first = net.segment_repeats[0] + net.segment_repeats[1] > 0  # there is something before the cut
    arrived = 0
    done = 0
    while done < count:
        arrival = requests.arrival[arrived] if arrived < count else np.inf
        chain = advance(net, st, log, arrival)
        if chain >= 0:
            now = st.clock[0]
            group = st.lane[chain]
            if steps.opening[group] > 0:  # the cut
                steps.opening[group] = 0
                steps.active[group] = 2
                _start(net, st, log, noted, chain, 2, now, _BEFORE, stop)
                continue
            steps.active[group] -= 1
            if how.split and steps.active[group] > 0:
                continue
            lead = group * how.slots if how.split else chain
            steps.used[lead] = 0
            steps.exclusive[group] = 0
            done += settle(q, outcome, steps.batches, lead, group, now)
        else:
            now = arrival
            group = join(q, rules, requests, arrived)
            arrived += 1
        fresh = steps.active[group] == 0
        while _may_take(q, rules, how, steps, requests, group, fresh):
            chain = _take_step(net, st, alone, q, rules, how, steps, noted, cost, requests, outcome, group, now)
            chains, begin, end = 1, 0, stop
            if steps.opening[group] > 0:
                if whole_first:
                    end = _BEFORE
                else:
                    steps.opening[group] = 0
                    chains, begin = 2, _BEFORE
            steps.active[group] += chains
            _start(net, st, log, noted, chain, chains, now, begin, end)
