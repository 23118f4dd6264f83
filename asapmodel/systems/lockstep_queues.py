"""Lockstep execution with queues per group: vLLM-like synchronous systems, and a limit on the prompts of an iteration.

Iterations cost what they cost in `asapmodel.systems.lockstep_iteration`; routing and batching are those of
`asapmodel.systems.queues`. With routing by iteration and no limit it is `asapmodel.systems.lockstep`, more slowly.

With `schedule_ahead` a group that takes part in an iteration forms the batch of the next when this one starts. If it
finds nothing then, it sits out the next iteration, whatever arrives meanwhile, and forms a batch at the start of the
one after. An iteration in which all sit out has only its overhead, and the fixed times of transfers and experts. One
whose batches were all formed ahead has no overhead: they were prepared while the iteration before ran (with
`hide_overhead = false` it has).

With `padded` groups all compute as many tokens as the largest, idle ones too: attention per token, dense layers and
experts are those of `D` times the largest batch. Attention work stays each group's own. Cut into `slices`
(`asapmodel.systems.slices`), a batch has the work of its hardest slice times their number; slices of padded groups are
as wide as those of the largest batch, so the tokens of a smaller one lie on the first devices.

A `restless` engine that has no work runs empty iterations, and what arrives waits for the end of the one that runs.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.systems.lockstep_batches import cut_slices, start_batches
from asapmodel.systems.lockstep_iteration import (
    A0,
    A1,
    A2,
    DENSE0,
    DENSE1,
    DENSE2,
    DENSE_LAYERS,
    EXPERT,
    FLOOR,
    MOE_LAYERS,
    MOVE0,
    MOVE1,
    STEP,
)
from asapmodel.systems.logs import IterationLog, note_iteration
from asapmodel.systems.queue_rules import QueueRules
from asapmodel.systems.queues import Batches, Queues, join, note_step, settle

__all__ = ["run_backlogged_queues", "run_lockstep_queues"]

Floats = NDArray[np.float64]


@arrays_only
def _woken(c: Floats, rules: QueueRules, now: float, first: float) -> float:
    """When an engine that became idle at `now` starts for a prompt it may start at `first`."""
    empty = c[STEP] + c[MOE_LAYERS] * (c[MOVE0] + c[FLOOR])
    if not rules.restless or now == -np.inf or empty == 0.0:
        return first
    return float(max(first, now + empty * np.ceil((first - now) / empty)))


@arrays_only
def _iterate(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    requests: Requests,
    outcome: Outcome,
    batches: Batches,
    now: float,
    tally: Floats,
) -> float:
    """Start the next iteration, add it to the tally and return its time."""
    total = widest = slowest = slowest_dense = own = 0.0
    groups = q.head.shape[0]
    hidden, largest = start_batches(c, q, rules, requests, outcome, batches, now)
    for group in range(groups):
        if batches.prompts[group] == 0:
            continue
        if rules.padded:
            cut_slices(q, rules, requests, batches, group, largest)
        n, w = batches.n[group], batches.paced[group]
        attention = c[A0] + c[A1] * n + c[A2] * w
        own += attention
        total += n
        widest = max(widest, w)
        slowest = max(slowest, attention)
        slowest_dense = max(slowest_dense, c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w)
        tally[5] += 1.0
    note_step(q, rules)
    tokens = total
    if rules.padded and total > 0:
        total = groups * largest
        slowest = c[A0] + c[A1] * largest + c[A2] * widest
        slowest_dense = c[DENSE0] + c[DENSE1] * largest + c[DENSE2] * widest
    moves = c[MOVE0] + c[MOVE1] * largest
    experts = max(c[FLOOR], c[EXPERT] * total)
    overhead = 0.0 if hidden and total > 0 else c[STEP]
    time: float = overhead + c[DENSE_LAYERS] * slowest_dense + c[MOE_LAYERS] * (slowest + moves + experts)
    layers = c[DENSE_LAYERS] + c[MOE_LAYERS]
    tally[0] += time
    tally[1] += own * layers
    tally[2] += slowest * layers
    tally[3] += moves * c[MOE_LAYERS]
    tally[4] += experts * c[MOE_LAYERS]
    tally[6] += tokens
    return time


@arrays_only
def _finish(q: Queues, outcome: Outcome, batches: Batches, now: float) -> int:
    """Account for the batches of an iteration that ended; return the requests that are complete."""
    finished = 0
    for group in range(q.head.shape[0]):
        if batches.prompts[group] > 0:
            finished += settle(q, outcome, batches, group, group, now)
    return finished


def run_lockstep_queues(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    batches: Batches,
    window: float,
    requests: Requests,
    outcome: Outcome,
    log: IterationLog,
) -> Floats:
    """Run a request sequence to its end.

    The idle engine starts `window` after the next arrival (restless: at the next end of an empty iteration). A prompt
    is routed when it arrives (at equal instants before the iteration ends), or, with `rules.at_start`, when the next
    iteration starts.

    Parameters
    ----------
    c : array
        `asapmodel.systems.lockstep_iteration.coefficients`.
    q, rules
        Empty queues of all groups, and their rules.
    batches : Batches
        Two empty ones a group.
    window : float
        The idle engine's wait, seconds.
    requests, outcome
        In the order of arrival; the outcome is filled, its `kernel` must be 0.
    log : IterationLog
        Filled.

    Returns
    -------
    array
        See `asapmodel.systems.lockstep.TALLY`.
    """
    tally = np.zeros(7)
    _run(c, q, rules, batches, float(window), requests, outcome, log, tally)
    return tally


@arrays_only
def _run(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    batches: Batches,
    window: float,
    requests: Requests,
    outcome: Outcome,
    log: IterationLog,
    tally: Floats,
) -> None:
    count = requests.arrival.shape[0]
    arrived = finished = 0
    now = -np.inf
    while finished < count:
        if arrived == finished and requests.arrival[arrived] > now:
            now = _woken(c, rules, now, requests.arrival[arrived] + window)
            batches.prompts[:] = 0
        while arrived < count and requests.arrival[arrived] <= now:
            join(q, rules, requests, arrived)
            arrived += 1
        time = _iterate(c, q, rules, requests, outcome, batches, now, tally)
        note_iteration(log, batches, now, time)
        now += time
        while not rules.at_start and arrived < count and requests.arrival[arrived] <= now:
            join(q, rules, requests, arrived)
            arrived += 1
        finished += _finish(q, outcome, batches, now)


def run_backlogged_queues(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    batches: Batches,
    requests: Requests,
    outcome: Outcome,
    table: Floats,
) -> int:
    """Run iterations that find work in every group, from all requests dealt out in turn, until a group has none left.

    Returns the iterations; rows of `table` receive their time, tokens, work and finished requests.
    """
    return _run_backlogged(c, q, rules, batches, requests, outcome, np.zeros(7), table)


@arrays_only
def _run_backlogged(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    batches: Batches,
    requests: Requests,
    outcome: Outcome,
    tally: Floats,
    table: Floats,
) -> int:
    groups = q.head.shape[0]
    for k in range(requests.arrival.shape[0]):
        join(q, rules, requests, k)
    for i in range(table.shape[0]):
        for group in range(groups):
            if q.head[group] < 0:
                return i
        table[i, 0] = _iterate(c, q, rules, requests, outcome, batches, 0.0, tally)
        table[i, 1] = batches.n[:groups].sum()
        table[i, 2] = batches.w[:groups].sum()
        table[i, 3] = _finish(q, outcome, batches, 0.0)
    return int(table.shape[0])
