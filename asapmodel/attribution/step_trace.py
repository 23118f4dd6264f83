"""Asynchronous system with queues per group: the tasks of its steps, what bound each of them, whose steps they are.

As in `asapmodel.attribution.free_trace` every start *equals* the end of a task, its cause, or the launch of a step.
What a step holds the engine writes down, so nothing is replayed here. A step in two halves has up to three launches,
one of its overhead and dense layers and one a half: the first task of a half comes after the last one before the cut.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.free_trace import last_with_same, region_released
from asapmodel.attribution.pieces import groups_along, steps_of
from asapmodel.attribution.release import ARRIVAL
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import Run, run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests
from asapmodel.systems.logs import StepLog

__all__ = ["StepTrace", "trace_steps"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StepTrace:
    """Tasks in the order of their starts, steps group by group in the order of their launch, requests; seconds.

    By task: its `step`, `ready`, `turn`, `start` and `end` (see `asapmodel.attribution.free_trace`). `previous` is the
    step's task before on its way, `cause` the task whose end is this one's start (where several end at that instant:
    the previous one, else the one before on the resource). Of a step's first tasks `previous` is the last task of the
    step whose end launched it, or `ARRIVAL`.

    By step: its group, its first request (`head`), its tokens, `launch` and end, and the task that ends it.

    By request: steps `first:last` compute it.
    """

    done: Run
    resource: Ints
    position: Ints
    step: Ints
    ready: Floats
    turn: Floats
    start: Floats
    end: Floats
    previous: Ints
    cause: Ints
    group: Ints
    head: Ints
    tokens: Floats
    launch: Floats
    step_end: Floats
    last_task: Ints
    first: Ints
    last: Ints


def trace_steps(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> StepTrace:
    """Run the graph engine and find out what bound each task.

    Parameters
    ----------
    layout, policy, costs, requests
        As for `asapmodel.engines.graph.run`; free execution with queues per group, at least one request.
    """
    tasks = run(layout, policy, costs, requests).tasks
    done = run(layout, policy, costs, requests, log_tasks=tasks)
    log, noted = done.log, done.steps
    assert noted is not None
    number = np.argsort(noted.group[: done.batches], kind="stable")
    row = np.empty(done.batches, dtype=np.int64)
    row[number] = np.arange(done.batches)
    step = row[noted.launch[log.run]]
    group, head, tokens = noted.group[number], noted.first[number], noted.n[number]
    launch, last_task = _ends(step, log.ready, log.end, done.batches)
    step_end = log.end[last_task]
    released_by = _released_by(requests, noted, number, launch, step_end)
    trigger = np.where(released_by >= 0, last_task[released_by], ARRIVAL)
    previous, following = _neighbours(step, log.run, trigger)
    before = last_with_same(log.resource)
    freed = np.where(before >= 0, log.end[before], -np.inf)
    cause = np.where(freed > log.ready, before, previous)
    blocked = log.start > log.due
    cause[blocked] = region_released(log.position, group[step], following)[blocked]
    first, last = _own_steps(requests, done, group, head, tokens)
    return StepTrace(
        done, log.resource, log.position, step, log.ready, log.due, log.start, log.end, previous, cause,
        group, head, tokens, launch, step_end, last_task, first, last,
    )  # fmt: skip


def _ends(step: Ints, ready: Floats, end: Floats, steps: int) -> tuple[Floats, Ints]:
    """Launch of each step, and the task that ends it (of two at one instant the later started)."""
    launch = np.full(steps, np.inf)
    np.minimum.at(launch, step, ready)
    order = np.lexsort((np.arange(len(step)), end, step))
    last_task = order[np.append(np.flatnonzero(np.diff(step[order])), len(step) - 1)]
    return launch, last_task.astype(np.int64)


def _released_by(requests: Requests, noted: StepLog, number: Ints, launch: Floats, end: Floats) -> Ints:
    """The step of the same group whose end launched each, or -1 where its first request did by arriving.

    Ends come before arrivals of the same instant, and a prompt that arrives launches a step only as its head.
    """
    head = noted.first[number]
    fresh = noted.before[number] == requests.cached[head]
    by_arrival = fresh & (requests.arrival[head] == launch)
    out = np.full(len(number), -1, dtype=np.int64)
    ended: dict[tuple[int, float], int] = {}
    keys = zip(noted.group[number].tolist(), launch.tolist(), end.tolist(), strict=True)
    for k, (group, begin, finish) in enumerate(keys):
        if not by_arrival[k]:
            out[k] = ended[group, begin]
        ended[group, finish] = k
    return out


def _neighbours(step: Ints, launched: Ints, trigger: Ints) -> tuple[Ints, Ints]:
    """Of every task the step's task before, and the one after within its launch (-1: none)."""
    previous = last_with_same(launched)
    following = np.full(len(step), -1, dtype=np.int64)
    known = previous >= 0
    following[previous[known]] = np.flatnonzero(known)
    earliest = np.full(len(trigger), np.iinfo(np.int64).max)
    np.minimum.at(earliest, step, launched)
    tail = np.flatnonzero((following < 0) & (launched == earliest[step]))
    before_cut = np.empty(len(trigger), dtype=np.int64)
    before_cut[step[tail]] = tail
    opening = np.flatnonzero(~known)
    mine = step[opening]
    behind_cut = (np.bincount(mine)[mine] == 3) & (launched[opening] > earliest[mine])
    previous[opening] = np.where(behind_cut, before_cut[mine], trigger[mine])
    return previous, following


def _own_steps(requests: Requests, done: Run, group: Ints, head: Ints, tokens: Floats) -> tuple[Ints, Ints]:
    """Steps `first:last` of each request: groups one behind the other, as the steps are."""
    assert done.follow is not None
    order = np.argsort(groups_along(group, head, done.follow), kind="stable")
    first, last = np.zeros((2, len(order)), dtype=np.int64)
    first[order], last[order] = steps_of(tokens, (requests.prompt - requests.cached)[order])
    return first, last
