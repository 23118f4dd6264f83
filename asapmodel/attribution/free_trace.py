"""What bound the start of every task of an asynchronous run, read off the graph engine's log.

The log holds start and end of each task in the order of the starts. The rest follows from it::

    ready   end of the batch's task before, or the launch of the batch
    turn    max(ready, end of the task before on the resource): first come, first served
    start   turn, or later: the end of the task that gave the region back

A resource that is blocked on a region has the task already, so the next one's turn comes after it. A region belongs to
one group and holds one batch, so whoever took it before gives it back. Every start therefore *equals*, to the bit, the
end of a task or the launch of the batch: that is its `cause`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.release import Release, replay
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import Run, run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests, policy_numbers

__all__ = [
    "ATTENTION",
    "COMBINE_RECV",
    "COMBINE_SEND",
    "MOE",
    "RECV",
    "SEND",
    "FreeTrace",
    "last_with_same",
    "region_released",
    "trace_free",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ATTENTION, SEND, RECV, MOE, COMBINE_SEND, COMBINE_RECV = range(2, 8)
"""Positions of the six phases in a lane of the event graph; 0 is the step overhead, 1 a dense layer."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeTrace:
    """One entry per task in the order of the starts; seconds.

    `batch` counts batches in the order of launch. `cause` is the task whose end is this one's start (where several
    end at that instant: the batch's own, else the one before on the resource); for a batch's first task, unless it
    had to queue, the last task of the batch whose end released it, or `ARRIVAL` or `WINDOW`.
    """

    done: Run
    release: Release
    resource: Ints
    position: Ints
    batch: Ints
    ready: Floats
    turn: Floats
    start: Floats
    end: Floats
    cause: Ints


def trace_free(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> FreeTrace:
    """Run the graph engine and find out what bound each task.

    Parameters
    ----------
    layout, policy, costs, requests
        As for `asapmodel.engines.graph.run`; free execution, at least one request.

    Returns
    -------
    FreeTrace
        About 150 bytes a task; a batch has six tasks a layer.
    """
    tasks = run(layout, policy, costs, requests).tasks
    done = run(layout, policy, costs, requests, log_tasks=tasks)
    log = done.log
    start, end, resource, position = log.start, log.end, log.resource, log.position
    per_batch = done.tasks // done.batches
    rows = [np.flatnonzero(log.chain == slot).reshape(-1, per_batch) for slot in range(layout.D * policy.slots)]
    release = replay(policy_numbers(layout, policy), requests, rows, end)
    batch, previous, following = _neighbours(release)
    ready = end[previous]
    ready[release.tasks[:, 0]] = release.launch
    before = last_with_same(resource)
    freed = np.where(before >= 0, end[before], -np.inf)
    turn = np.maximum(ready, freed)
    cause = np.where(freed > ready, before, previous)
    blocked = start > turn
    cause[blocked] = region_released(position, release.group[batch], following)[blocked]
    return FreeTrace(done, release, resource, position, batch, ready, turn, start, end, cause)


def _neighbours(release: Release) -> tuple[Ints, Ints, Ints]:
    """Of every task: its batch, what came before (for a first task: what released it), the batch's next task."""
    tasks, trigger = release.tasks, release.trigger
    batch, previous, following = (np.full(tasks.size, -1, dtype=np.int64) for _ in range(3))
    batch[tasks] = np.arange(len(tasks))[:, None]
    previous[tasks[:, 1:]] = tasks[:, :-1]
    previous[tasks[:, 0]] = np.where(trigger >= 0, tasks[np.maximum(trigger, 0), -1], trigger)
    following[tasks[:, :-1]] = tasks[:, 1:]
    return batch, previous, following


def last_with_same(key: Ints) -> Ints:
    """Index of the entry before with the same key, or -1."""
    order = np.argsort(key, kind="stable")
    same = np.diff(key[order]) == 0
    before = np.full(len(key), -1, dtype=np.int64)
    before[order[1:][same]] = order[:-1][same]
    return before


def region_released(position: Ints, group: Ints, following: Ints) -> Ints:
    """The task that gave back the region this one takes: the receive after the send that took it before; or -1."""
    out = np.full(len(position), -1, dtype=np.int64)
    taking = np.flatnonzero((position == SEND) | (position == COMBINE_SEND))
    before = last_with_same(2 * group[taking] + (position[taking] == SEND))
    known = before >= 0
    out[taking[known]] = following[taking[before[known]]]
    return out
