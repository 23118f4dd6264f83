"""What runs with queues per group write down, if there is room: the steps of free execution, iterations in lockstep."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.queues import Batches

__all__ = ["IterationLog", "StepLog", "new_iteration_log", "new_step_log", "note_iteration", "note_taken"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class StepLog(NamedTuple):
    """What the steps hold, in the order in which they are taken, as far as there is room.

    By step: its group, its first request and that one's tokens that were there before, its tokens. By launch of the
    event graph: its step; a step in two halves has one launch before its cut, if anything is before it, and one a half.
    `step` is the present one by group.
    """

    group: Ints
    first: Ints
    before: Ints
    n: Floats
    launch: Ints
    step: Ints


class IterationLog(NamedTuple):
    """Iterations that end after `window[0]` and start before `window[1]`, seconds, as far as there is room.

    Rows of `table` are the iteration's number, counted from 0, its start and its time; `batches` has prompts, tokens
    and the work that paces a layer by group, `first` the batch's first request (-1 without a batch). `counts`:
    iterations of the run, and those that overlap the window, also where there is no room.
    """

    window: Floats
    table: Floats
    batches: Floats
    counts: Ints
    first: Ints


def new_step_log(groups: int, steps: int = 0) -> StepLog:
    """Return an empty log with room for so many steps; without room nothing is kept."""
    group, first, before = np.zeros((3, steps), dtype=np.int64)
    launch, step = np.full(3 * steps, -1, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    return StepLog(group, first, before, np.zeros(steps), launch, step)


def new_iteration_log(groups: int, room: int = 0, window: tuple[float, float] = (np.inf, -np.inf)) -> IterationLog:
    """Return an empty log; without room nothing is kept."""
    counts, first = np.zeros(2, dtype=np.int64), np.full((room, groups), -1, dtype=np.int64)
    return IterationLog(np.array(window), np.zeros((room, 3)), np.zeros((room, 3, groups)), counts, first)


@arrays_only
def note_taken(log: StepLog, batches: Batches, slot: int, number: int, group: int) -> None:
    """Write down a step that is taken."""
    log.step[group] = number
    if number < log.group.shape[0]:
        log.group[number], log.first[number], log.before[number] = group, batches.first[slot], batches.before[slot]
        log.n[number] = batches.n[slot]


@arrays_only
def note_iteration(log: IterationLog, batches: Batches, now: float, time: float) -> None:
    """Write down an iteration if it overlaps the window."""
    if now < log.window[1] and now + time > log.window[0]:
        row = log.counts[1]
        if row < log.table.shape[0]:
            log.table[row, 0], log.table[row, 1], log.table[row, 2] = log.counts[0], now, time
            for group in range(log.batches.shape[2]):
                log.batches[row, 0, group] = batches.prompts[group]
                if batches.prompts[group] > 0:
                    log.first[row, group] = batches.first[group]
                    log.batches[row, 1, group], log.batches[row, 2, group] = batches.n[group], batches.paced[group]
        log.counts[1] += 1
    log.counts[0] += 1
