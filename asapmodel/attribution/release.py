"""Replay of the asynchronous scheduler: which requests made each batch, what released it, why the queue stood still.

The graph engine records tasks but not decisions. Given when batches end, the decisions follow from the rules of
release alone (docs/background/semantics.md), so the scheduler is run once more without executing any task.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from asapmodel.systems.arrays import PolicyNumbers, Requests
from asapmodel.systems.batching import take_min_tokens

__all__ = ["ARRIVAL", "CAUSES", "WINDOW", "Release", "replay"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CAUSES = ("formation", "locked", "exclusive", "group_slots")
"""Why the head of the queue is not taken, in the order of the columns of `Release.queueing`."""
FORMATION, LOCKED, EXCLUSIVE, GROUP_SLOTS = range(4)

ARRIVAL, WINDOW = -1, -2
"""What released a batch, where it was not the end of another: an arrival, or the expiry of a window."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Batches in order of launch (B of them), and the time each request queued by cause.

    `first:last` are a batch's requests, `trigger` is the batch whose end released it, `ARRIVAL` or `WINDOW`; `tasks`
    are its entries in the log, shape (B, tasks of a batch). `queueing` has shape (requests, causes), seconds.
    """

    group: Ints
    first: Ints
    last: Ints
    launch: Floats
    trigger: Ints
    tasks: Ints
    queueing: Floats


def replay(policy: PolicyNumbers, requests: Requests, rows: list[Ints], end: Floats) -> Release:
    """Run the rules of release over a request sequence.

    Parameters
    ----------
    policy : PolicyNumbers
        The rules.
    requests : Requests
        In arrival order.
    rows : list of int array
        Per slot (slot k of group g is entry `g slots + k`) the entries in the log of its first, second ... batch,
        shape (batches of the slot, tasks of a batch).
    end : array
        End of every task in the log, seconds.

    Returns
    -------
    Release
        Every second that a request queues has one cause, that of the head of the queue: release is strictly first in,
        first out, so what holds the head up holds up all behind it.
    """
    scheduler = _Scheduler(policy, requests, rows, end)
    while scheduler.head < len(requests.arrival):
        scheduler.release(scheduler.next_event())
    group, first, last, trigger, launch = (np.array(column) for column in zip(*scheduler.batches, strict=True))
    return Release(group, first, last, launch, trigger, np.array(scheduler.tasks), scheduler.queueing)


class _Scheduler:
    """The queue and the groups at one instant, `now`."""

    def __init__(self, policy: PolicyNumbers, requests: Requests, rows: list[Ints], end: Floats) -> None:
        self.policy, self.requests, self.rows, self.end = policy, requests, rows, end
        self.now = 0.0
        self.head = self.tail = self.queued = 0  # first waiting, first yet to arrive, tokens waiting
        self.active = [0] * policy.groups
        self.exclusive = [False] * policy.groups
        self.used = [False] * len(rows)
        self.launched = [0] * len(rows)
        self.running: list[tuple[float, int, int, int]] = []  # heap: end, its place in the log, batch, slot
        self.batches: list[tuple[int, int, int, int, float]] = []
        self.tasks: list[Ints] = []
        self.cause = FORMATION
        self.stood = np.zeros(len(CAUSES))  # seconds in which the queue was not empty, by cause
        self.queueing = np.zeros((len(requests.arrival), len(CAUSES)))

    def next_event(self) -> int:
        """Move on to the next batch end, window expiry or arrival (that order at one instant); say which it was."""
        arrivals = self.requests.arrival
        arrival = float(arrivals[self.tail]) if self.tail < len(arrivals) else np.inf
        expiry = np.inf
        if self.head < self.tail:
            expiry = float(arrivals[self.head]) + self.policy.batch_window
            if expiry <= self.now:
                expiry = np.inf
        if self.running and self.running[0][0] <= min(arrival, expiry):
            time, _, batch, slot = heappop(self.running)
            self._pass(time)
            group = slot // self.policy.slots
            self.used[slot] = self.exclusive[group] = False
            self.active[group] -= 1
            return batch
        if expiry <= arrival:
            self._pass(expiry)
            return WINDOW
        self._pass(arrival)
        self.queueing[self.tail] = -self.stood
        self.queued += int(self.requests.prompt[self.tail] - self.requests.cached[self.tail])
        self.tail += 1
        return ARRIVAL

    def _pass(self, time: float) -> None:
        if self.head < self.tail:
            self.stood[self.cause] += time - self.now
        self.now = time

    def release(self, trigger: int) -> None:
        """Launch what the rules allow, then note why the head, if there is one, has to wait."""
        policy = self.policy
        while self.head < self.tail:
            alone = self._head_is_exclusive()
            group = self._group_for(alone, policy.locked)
            if group < 0 or not self._is_due(alone):
                self.cause = self._cause(alone)
                return
            self._launch(group, trigger)
            for _ in range(policy.slots - 1 if policy.locked and not alone else 0):
                if self.head < self.tail and not self._head_is_exclusive():
                    self._launch(group, trigger)

    def _head_is_exclusive(self) -> bool:
        return bool(self.requests.prompt[self.head] > self.policy.exclusive_tokens)

    def _is_due(self, alone: bool) -> bool:
        enough = self.queued >= self.policy.min_batch_tokens * self.policy.slots
        return alone or enough or self.now >= self.requests.arrival[self.head] + self.policy.batch_window

    def _group_for(self, alone: bool, locked: bool) -> int:
        """The group with the fewest active batches that may take the head (ties: lowest index), or -1."""
        limit = 1 if locked or alone else self.policy.slots
        able = [g for g, active in enumerate(self.active) if active < limit and not self.exclusive[g]]
        return min(able, key=lambda g: self.active[g], default=-1)

    def _cause(self, alone: bool) -> int:
        """Which rule keeps the head out: the first of `CAUSES` without which it could go."""
        if self._group_for(alone, self.policy.locked) >= 0:
            return FORMATION
        if self._group_for(alone, locked=False) >= 0:
            return LOCKED
        return EXCLUSIVE if min(self.active) < self.policy.slots else GROUP_SLOTS

    def _launch(self, group: int, trigger: int) -> None:
        head, exclusive = self.head, self._head_is_exclusive()
        self.head = take_min_tokens(self.policy, self.requests, head, self.tail)[0]
        self.queueing[head : self.head] += self.stood
        taken = slice(head, self.head)
        self.queued -= int(self.requests.prompt[taken].sum() - self.requests.cached[taken].sum())
        slot = group * self.policy.slots
        while self.used[slot]:
            slot += 1
        self.used[slot] = True
        self.active[group] += 1
        self.exclusive[group] = exclusive
        tasks = self.rows[slot][self.launched[slot]]
        self.launched[slot] += 1
        heappush(self.running, (float(self.end[tasks[-1]]), int(tasks[-1]), len(self.batches), slot))
        self.batches.append((group, head, self.head, trigger, self.now))
        self.tasks.append(tasks)
