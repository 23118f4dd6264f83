"""Lockstep execution: D groups step together through all layers, with barriers before and after the experts.

Compiled loops over plain arrays, an iteration at a time (`asapmodel.systems.lockstep_iteration`): one takes 0.2 us. The
loops make no arrays; theirs are made here before they start.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.lockstep_iteration import coefficients, count_prompts, finish, form, join

__all__ = ["TALLY", "coefficients", "record_iterations", "run_backlog", "run_lockstep"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TALLY = ("engine", "own", "pace", "transfers", "experts", "batches", "tokens")
"""Entries of the tally: busy engine, own attention of all groups, attention of the slowest group, transfers, experts
(seconds); batches, their tokens."""


class _Room(NamedTuple):
    """What changes: heads and tails of queues, who follows and tokens done by request, queued and batch by group."""

    ends: Ints
    follow: Ints
    done: Ints
    queued: Floats
    batch: Floats
    tally: Floats


def _room(groups: int, cached: Ints) -> _Room:
    ends, follow = np.full((2, groups), -1), np.full(len(cached), -1)
    return _Room(ends, follow, cached.copy(), np.zeros((2, groups)), np.zeros((2, groups)), np.zeros(len(TALLY)))


def run_lockstep(
    c: Floats,
    groups: int,
    budget: int,
    chunked: bool,
    by_work: bool,
    window: float,
    arrival: Floats,
    prompt: Ints,
    cached: Ints,
    out: Floats,
) -> Floats:
    """Run a request sequence to its end.

    The idle engine starts `window` after the next arrival; between iterations it does not wait. At each start all that
    has arrived is routed, in arrival order, to the group with the least queued (tokens, or attention work; ties: lowest
    index).

    Parameters
    ----------
    c : array
        `coefficients`.
    groups, budget, chunked, by_work, window
        D; tokens of a batch, cut to (`chunked`) or filled with whole prompts; routing; the idle engine's wait.
    arrival, prompt, cached : array
        Requests in the order of arrival.
    out : array, shape (requests, 3)
        Receives start, end, and own batches alone; the last column must be 0.

    Returns
    -------
    array
        See `TALLY`.
    """
    room = _room(groups, cached)
    _run(c, budget, chunked, by_work, float(window), arrival, prompt, cached, room, out)
    return room.tally


@arrays_only
def _run(
    c: Floats,
    budget: int,
    chunked: bool,
    by_work: bool,
    window: float,
    arrival: Floats,
    prompt: Ints,
    cached: Ints,
    room: _Room,
    out: Floats,
) -> None:
    ends, follow, done, queued, batch, tally = room
    count = arrival.shape[0]
    arrived = finished = 0
    now = -np.inf
    while finished < count:
        if arrived == finished and arrival[arrived] > now:
            now = arrival[arrived] + window
        while arrived < count and arrival[arrived] <= now:
            join(arrived, c, by_work, prompt, cached, ends, follow, queued)
            arrived += 1
        time = form(c, budget, chunked, prompt, done, ends, follow, batch, tally)
        finished += finish(c, now, time, prompt, cached, done, ends, follow, queued, batch, out)
        now += time


def record_iterations(
    c: Floats,
    groups: int,
    budget: int,
    chunked: bool,
    by_work: bool,
    window: float,
    arrival: Floats,
    prompt: Ints,
    cached: Ints,
    first: float,
    last: float,
    table: Floats,
    batches: Floats,
) -> int:
    """Run a request sequence as `run_lockstep` does, and note the iterations that overlap `first` to `last`, seconds.

    Parameters
    ----------
    c, groups, budget, chunked, by_work, window, arrival, prompt, cached
        See `run_lockstep`.
    first, last : float
        Iterations that end after `first` and start before `last` are noted.
    table : array, shape (room, 3)
        Receives the iteration's number, counted from 0, its start and its time.
    batches : array, shape (room, 3, groups)
        Receives prompts, tokens and work of the groups' batches.

    Returns
    -------
    int
        The iterations that overlap, also where there is not room for all of them.
    """
    room, out = _room(groups, cached), np.zeros((len(arrival), 3))
    span = (float(first), float(last))
    return _record(
        c, budget, chunked, by_work, float(window), arrival, prompt, cached, room, out, *span, table, batches
    )


@arrays_only
def _record(
    c: Floats,
    budget: int,
    chunked: bool,
    by_work: bool,
    window: float,
    arrival: Floats,
    prompt: Ints,
    cached: Ints,
    room: _Room,
    out: Floats,
    first: float,
    last: float,
    table: Floats,
    batches: Floats,
) -> int:
    ends, follow, done, queued, batch, tally = room
    groups, count = ends.shape[1], arrival.shape[0]
    arrived = finished = iteration = noted = 0
    now = -np.inf
    while finished < count and now < last:
        if arrived == finished and arrival[arrived] > now:
            now = arrival[arrived] + window
        while arrived < count and arrival[arrived] <= now:
            join(arrived, c, by_work, prompt, cached, ends, follow, queued)
            arrived += 1
        time = form(c, budget, chunked, prompt, done, ends, follow, batch, tally)
        if now < last and now + time > first:
            if noted < table.shape[0]:
                table[noted, 0], table[noted, 1], table[noted, 2] = iteration, now, time
                for group in range(groups):
                    batches[noted, 1, group], batches[noted, 2, group] = batch[0, group], batch[1, group]
                    batches[noted, 0, group] = count_prompts(ends[0, group], follow, prompt, done, batch[0, group])
            noted += 1
        finished += finish(c, now, time, prompt, cached, done, ends, follow, queued, batch, out)
        now += time
        iteration += 1
    return noted


def run_backlog(
    c: Floats,
    groups: int,
    budget: int,
    chunked: bool,
    by_work: bool,
    target: float,
    prompt: Ints,
    cached: Ints,
    table: Floats,
) -> int:
    """Top a backlog up to `target` tokens before every iteration until the requests are used up.

    Returns the iterations; rows of `table` receive their time, tokens, work and finished requests.
    """
    room, out = _room(groups, cached), np.zeros((len(prompt), 3))
    return _top_up(c, budget, chunked, by_work, float(target), prompt, cached, room, out, table)


@arrays_only
def _top_up(
    c: Floats,
    budget: int,
    chunked: bool,
    by_work: bool,
    target: float,
    prompt: Ints,
    cached: Ints,
    room: _Room,
    out: Floats,
    table: Floats,
) -> int:
    ends, follow, done, queued, batch, tally = room
    count = prompt.shape[0]
    used = 0
    waiting = 0.0
    for i in range(table.shape[0]):
        while waiting < target and used < count:
            waiting += join(used, c, by_work, prompt, cached, ends, follow, queued)
            used += 1
        if waiting < target:
            return i
        table[i, 0] = form(c, budget, chunked, prompt, done, ends, follow, batch, tally)
        table[i, 1] = batch[0].sum()
        table[i, 2] = batch[1].sum()
        waiting -= table[i, 1]
        table[i, 3] = finish(c, 0.0, table[i, 0], prompt, cached, done, ends, follow, queued, batch, out)
    return int(table.shape[0])
