"""Lockstep execution with queues per group: vLLM-like synchronous systems, and a limit on the prompts of an iteration.

Iterations cost what they cost in `asapmodel.systems.lockstep_iteration`; routing and batching are those of
`asapmodel.systems.queues`. With routing by iteration and no limit it is `asapmodel.systems.lockstep`, more slowly.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only, njit
from asapmodel.systems.arrays import Outcome, Requests
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
from asapmodel.systems.queues import QueueRules, Queues, join, note_step, settle, take

__all__ = ["run_backlogged_queues", "run_lockstep_queues"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@arrays_only
def _alone(c: Floats, n: float, w: float) -> float:
    """Time of an iteration in which only one group has work."""
    layer = c[A0] + c[A1] * n + c[A2] * w + c[MOVE0] + c[MOVE1] * n + max(c[FLOOR], c[EXPERT] * n)
    dense = c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w
    return float(c[STEP] + c[DENSE_LAYERS] * dense + c[MOE_LAYERS] * layer)


@arrays_only
def _form(
    c: Floats,
    q: Queues,
    rules: QueueRules,
    requests: Requests,
    outcome: Outcome,
    batch: Floats,
    first: Ints,
    prompts: Ints,
    now: float,
    tally: Floats,
) -> float:
    """Take the batches of an iteration (tokens, work by group in `batch`), add to the tally; return its time."""
    largest = total = slowest = slowest_dense = own = 0.0
    for group in range(q.head.shape[0]):
        prompts[group] = 0
        batch[:, group] = 0.0
        if q.head[group] < 0:
            continue
        first[group] = q.head[group]
        prompts[group], n, w = take(q, rules, requests, outcome, group, now)
        batch[0, group], batch[1, group] = n, w
        k = first[group]
        for _ in range(prompts[group]):
            outcome.kernel[k] += _alone(c, n, w)
            k = q.follow[k]
        attention = c[A0] + c[A1] * n + c[A2] * w
        own += attention
        total += n
        largest = max(largest, n)
        slowest = max(slowest, attention)
        slowest_dense = max(slowest_dense, c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w)
        tally[5] += 1.0
    note_step(q, rules)
    moves = c[MOVE0] + c[MOVE1] * largest
    experts = max(c[FLOOR], c[EXPERT] * total)
    time: float = c[STEP] + c[DENSE_LAYERS] * slowest_dense + c[MOE_LAYERS] * (slowest + moves + experts)
    layers = c[DENSE_LAYERS] + c[MOE_LAYERS]
    tally[0] += time
    tally[1] += own * layers
    tally[2] += slowest * layers
    tally[3] += moves * c[MOE_LAYERS]
    tally[4] += experts * c[MOE_LAYERS]
    tally[6] += total
    return time


@arrays_only
def _finish(
    q: Queues, requests: Requests, outcome: Outcome, batch: Floats, first: Ints, prompts: Ints, now: float
) -> int:
    """Account for the batches of an iteration that ended; return the requests that are complete."""
    finished = 0
    for group in range(q.head.shape[0]):
        if prompts[group] > 0:
            n, w = batch[0, group], batch[1, group]
            finished += settle(q, requests, outcome, group, first[group], prompts[group], n, w, now)
    return finished


@njit(cache=True, nogil=True)
def run_lockstep_queues(
    c: Floats, q: Queues, rules: QueueRules, window: float, requests: Requests, outcome: Outcome
) -> Floats:
    """Run a request sequence to its end.

    The idle engine starts `window` after the next arrival. A prompt is routed when it arrives (at equal instants before
    the iteration ends), or, with `rules.at_start`, when the next iteration starts.

    Parameters
    ----------
    c : array
        `asapmodel.systems.lockstep_iteration.coefficients`.
    q, rules
        Empty queues of all groups, and their rules.
    window : float
        The idle engine's wait, seconds.
    requests, outcome
        In the order of arrival; the outcome is filled, its `kernel` must be 0.

    Returns
    -------
    array
        See `asapmodel.systems.lockstep.TALLY`.
    """
    count = requests.arrival.shape[0]
    groups = q.head.shape[0]
    batch, tally = np.zeros((2, groups)), np.zeros(7)
    first, prompts = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    arrived = finished = 0
    now = -np.inf
    while finished < count:
        if arrived == finished and requests.arrival[arrived] > now:
            now = requests.arrival[arrived] + window
        while arrived < count and requests.arrival[arrived] <= now:
            join(q, rules, requests, arrived)
            arrived += 1
        now += _form(c, q, rules, requests, outcome, batch, first, prompts, now, tally)
        while not rules.at_start and arrived < count and requests.arrival[arrived] <= now:
            join(q, rules, requests, arrived)
            arrived += 1
        finished += _finish(q, requests, outcome, batch, first, prompts, now)
    return tally


@njit(cache=True, nogil=True)
def run_backlogged_queues(
    c: Floats, q: Queues, rules: QueueRules, requests: Requests, outcome: Outcome, table: Floats
) -> int:
    """Run iterations that find work in every group, from all requests dealt out in turn, until a group has none left.

    Returns the iterations; rows of `table` receive their time, tokens, work and finished requests.
    """
    groups = q.head.shape[0]
    batch, tally = np.zeros((2, groups)), np.zeros(7)
    first, prompts = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    for k in range(requests.arrival.shape[0]):
        join(q, rules, requests, k)
    for i in range(table.shape[0]):
        if q.head.min() < 0:
            return i
        table[i, 0] = _form(c, q, rules, requests, outcome, batch, first, prompts, 0.0, tally)
        table[i, 1] = batch[0].sum()
        table[i, 2] = batch[1].sum()
        table[i, 3] = _finish(q, requests, outcome, batch, first, prompts, 0.0)
    return int(table.shape[0])
