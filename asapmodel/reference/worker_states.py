"""States of workers: what a worker does next depends on what it has been given, and on nothing else.

A generator cannot be copied. But a worker touches the outside only through its steps, so its state is the list of the
values given to it so far, and any state can be had again by starting the worker and giving it these. States form a
tree (a state and a value give the next state); each knows the step that it waits with.

A worker that serves tasks for ever comes back to where it began. At rest, which is where it was at its first step, it
differs from a fresh one only by what it keeps from task to task. Two states at rest that keep the same are one: the
tree becomes a small graph, and different orders in which a worker did the same things meet again. What is kept is all
local variables of the loop but those of `PASSING`, which it assigns before it reads them.
"""

from collections.abc import Callable, Hashable
from types import FrameType, GeneratorType
from typing import Any

from asapmodel.reference.interning import Interned, content
from asapmodel.reference.steps import Await, Condition, Now, Pending, Receive, Spend, Step, Steps, Test, Unset

__all__ = ["PASSING", "WorkerStates"]

Name = tuple[Any, ...]

PASSING = frozenset({"task", "index", "arrived", "outcome"})
"""Local variables of workers' loops that mean nothing at rest."""


class WorkerStates:
    """The states of workers that have turned up, by number.

    Parameters
    ----------
    start : callable
        Starts a worker by name.
    values : Interned
        Values that workers are given.
    merge : bool
        Whether states at rest that keep the same are one.
    """

    def __init__(self, start: Callable[[Name], Steps], values: Interned, merge: bool = True) -> None:
        self.names: list[Name] = []
        self.steps: list[Step] = []
        """The step that each state waits with."""
        self.guards: list[Condition | None] = []
        """Something that must have held since the worker was last at rest for it to be in each state; None at rest."""
        self._start, self._values, self._merge = start, values, merge
        self._before: list[tuple[int, int] | None] = []  # state and value that gave a state
        self._live: list[Steps | None] = []
        self._after: dict[tuple[int, int], int] = {}
        self._first: dict[Name, int] = {}
        self._rest_at: dict[Name, tuple[Step, tuple[int, ...]]] = {}
        self._rests: dict[Hashable, int] = {}

    def first(self, name: Name) -> int:
        """State of a worker that has just started."""
        if name not in self._first:
            worker = self._start(name)
            step = _next_step(worker, None)
            self._rest_at[name] = step, _positions(worker)
            self._first[name] = self._add(name, step, None, worker)
        return self._first[name]

    def after(self, state: int, value: int) -> int:
        """State after a state is given a value, by its number."""
        key = state, value
        if key not in self._after:
            worker = self._live[state] or self._again(state)
            self._live[state] = None
            step = _next_step(worker, self._values.value(value))
            self._after[key] = self._add(self.names[state], step, key, worker)
        return self._after[key]

    def _add(self, name: Name, step: Step, before: tuple[int, int] | None, worker: Steps) -> int:
        number = len(self.steps)
        rests = self._rest_at[name] == (step, _positions(worker))
        if self._merge and rests:
            kept = {key: one for key, one in _frame(worker).f_locals.items() if key not in PASSING}
            number = self._rests.setdefault((name, content(kept)), number)
        if number == len(self.steps):
            self.names.append(name)
            self.steps.append(step)
            self.guards.append(None if rests or before is None else self._guard(*before))
            self._before.append(before)
            self._live.append(worker)
        return number

    def _guard(self, state: int, value: int) -> Condition | None:
        """What a worker has last seen to hold when it is given a value."""
        step, before, given = self.steps[state], self.guards[state], self._values.value(value)
        match step:
            case Await(conditions):
                seen: Condition = conditions[given]
                return before if isinstance(seen, Unset) else seen
            case Test(condition):
                return condition if given else before
            case Receive(channel) if before is None:
                return Pending(channel)
        return before

    def _again(self, state: int) -> Steps:
        """Bring a worker into a state."""
        values, at = [], self._before[state]
        while at is not None:
            values.append(at[1])
            at = self._before[at[0]]
        worker = self._start(self.names[state])
        _next_step(worker, None)
        for value in reversed(values):
            _next_step(worker, self._values.value(value))
        return worker


def _next_step(worker: Steps, given: Any) -> Step:
    """Let a worker think until its next step that touches anything."""
    step = worker.send(given)
    while isinstance(step, Spend | Now):
        step = worker.send(0.0 if isinstance(step, Now) else None)
    return step


def _positions(worker: Any) -> tuple[int, ...]:
    """Where a worker stands in its code, from the outermost generator in."""
    found = []
    while isinstance(worker, GeneratorType):
        found.append(_frame(worker).f_lasti)
        worker = worker.gi_yieldfrom
    return tuple(found)


def _frame(worker: Any) -> FrameType:
    """Where a worker that has not returned keeps its variables."""
    frame: FrameType = worker.gi_frame
    return frame
