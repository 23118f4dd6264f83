"""Executor in virtual time: workers run one at a time, and a clock moves on as phases take what the cost models say.

Everything but a phase takes no time. Of what happens at one instant, phases end in the order in which they began, each
followed by what it sets in motion; then windows end, then requests arrive.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asapmodel.reference.memory import Memory
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Channel,
    Clear,
    Condition,
    Flags,
    Now,
    Pending,
    Phase,
    Reached,
    Receive,
    Send,
    SetBit,
    Spend,
    Step,
    Steps,
    Unset,
)

__all__ = ["Busy", "Stuck", "VirtualTime"]

Name = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Busy:
    """A phase on a stream: who, what, and from when to when, seconds."""

    worker: Name
    phase: Phase
    start: float
    end: float


class Stuck(RuntimeError):
    """Nobody can go on, and the system is not done."""


class VirtualTime:
    """Workers, their memory, and a clock.

    Parameters
    ----------
    workers : mapping of name to generator
        Run in this order at first.
    memory : Memory
        What they share.
    seconds : callable
        Duration of a phase.
    """

    def __init__(self, workers: Mapping[Name, Steps], memory: Memory, seconds: Callable[[Phase], float]) -> None:
        self.time = 0.0
        self._rank = 0
        self.log: list[Busy] = []
        self._workers = dict(workers)
        self._memory = memory
        self._seconds = seconds
        self._pending: dict[Name, Step] = {}  # what a worker waits with
        self._watch: dict[Flags | Channel, dict[Name, None]] = {}
        self._ready: deque[Name] = deque()
        self._events: list[tuple[float, int, int, Name]] = []
        self._ends: dict[Name, int] = {}  # the event that ends a worker's phase

    def run(self, last: Name) -> None:
        """Run until the worker `last` returns.

        Raises
        ------
        Stuck
            If nobody can go on before that.
        """
        for name in list(self._workers):
            self._advance(name, None)
        while last in self._workers:
            if self._ready:
                self._retry(self._ready.popleft())
                continue
            if not self._events:
                names = ", ".join(" ".join(map(str, name)) for name in self._pending)
                raise Stuck(f"nobody can go on after {self.time:g} s: {names} wait")
            self.time, self._rank, number, name = heapq.heappop(self._events)
            if self._ends.get(name) == number:
                del self._ends[name]
                self._advance(name, None)
            elif name in self._pending:
                self._retry(name)
        for worker in self._workers.values():
            worker.close()

    def _advance(self, name: Name, given: Any) -> None:
        """Let a worker go on until it is busy, waits, or returns."""
        worker = self._workers[name]
        while True:
            try:
                step = worker.send(given)
            except StopIteration:
                del self._workers[name]
                return
            if isinstance(step, Spend):
                end = self.time + self._seconds(step.phase)
                self.log.append(Busy(name, step.phase, self.time, end))
                self._ends[name] = self._later(end, 0, name)
                return
            if not self._possible(step):
                self._wait(name, step)
                return
            given = self._carry_out(step)

    def _retry(self, name: Name) -> None:
        """Let a waiting worker go on, if what it waits for holds."""
        step = self._pending.get(name)
        if step is None or not self._possible(step):
            return
        del self._pending[name]
        for condition in _conditions(step):
            if not isinstance(condition, Reached):
                self._watch[_object(condition)].pop(name, None)
        self._advance(name, self._carry_out(step))

    def _wait(self, name: Name, step: Step) -> None:
        self._pending[name] = step
        for condition in _conditions(step):
            if isinstance(condition, Reached):
                self._later(condition.time, condition.rank, name)
            else:
                self._watch.setdefault(_object(condition), {})[name] = None

    def _later(self, time: float, rank: int, name: Name) -> int:
        number = self._memory.count()
        heapq.heappush(self._events, (time, rank, number, name))
        return number

    def _possible(self, step: Step) -> bool:
        conditions = _conditions(step)
        return not conditions or any(self._since(condition) is not None for condition in conditions)

    def _since(self, condition: Condition) -> float | None:
        if isinstance(condition, Reached):  # rank: after what memory says of the same instant
            passed = (condition.time, condition.rank) <= (self.time, self._rank)
            return float("inf") if passed else None
        return self._memory.since(condition)

    def _carry_out(self, step: Step) -> Any:
        if isinstance(step, Await):
            since = [(stamp, k) for k, one in enumerate(step.conditions) if (stamp := self._since(one)) is not None]
            return min(since)[1]
        if isinstance(step, Now):
            return self.time
        given = self._memory.carry_out(step)
        if isinstance(step, SetBit | Clear | Send):
            changed = step.channel if isinstance(step, Send) else step.flags
            self._ready.extend(self._watch.get(changed, ()))
        return given


def _conditions(step: Step) -> tuple[Condition, ...]:
    """What a step waits for."""
    if isinstance(step, Await):
        return step.conditions
    return (Pending(step.channel),) if isinstance(step, Receive) else ()


def _object(condition: AllSet | Unset | Pending) -> Flags | Channel:
    return condition.channel if isinstance(condition, Pending) else condition.flags
