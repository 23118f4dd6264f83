"""Executor in a controlled order: somebody chooses, step by step, whose turn it is.

The chooser may be random, or a schedule recorded before. Time plays no part: phases take none, and the clock counts
steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from asapmodel.reference.steps import Await, Condition, Now, Pending, Reached, Receive, Spend, Step, Steps
from asapmodel.reference.watched_memory import WatchedMemory

__all__ = ["Choice", "Chooser", "Controlled", "at_random", "by_rank", "replayed"]

Name = tuple[Any, ...]
Choice = tuple[Name, int]
"""Whose turn it is, and which condition of an `Await` is taken as the one that holds (0 for other steps)."""
Chooser = Callable[[Sequence[Choice]], Choice]


class Controlled:
    """Workers, their memory, and a chooser.

    Parameters
    ----------
    workers : mapping of name to generator
        Who takes part.
    memory : WatchedMemory
        What they share.
    choose : callable
        Given all choices there are, gives one.
    any_condition : bool
        Whether an `Await` may be given any condition that holds, or the one that came to hold first.
    see : callable
        Told of every step, with the worker's name and what the step gave.

    Attributes
    ----------
    schedule
        Choices made so far; `replayed` takes it.
    """

    def __init__(
        self,
        workers: Mapping[Name, Steps],
        memory: WatchedMemory,
        choose: Chooser,
        *,
        any_condition: bool = False,
        see: Callable[[Name, Step, Any], None] | None = None,
    ) -> None:
        self.schedule: list[Choice] = []
        self._workers = dict(workers)
        self._memory = memory
        self._choose = choose
        self._any = any_condition
        self._see = see
        self._pending: dict[Name, Step] = {}

    def run(self) -> list[Name]:
        """Run until nobody can go on; returns who has not returned."""
        for name in list(self._workers):
            self._advance(name, None)
        while choices := self.choices():
            self.turn(*self._choose(choices))
        return list(self._workers)

    def choices(self) -> list[Choice]:
        """Return whose turn it can be."""
        return [(name, index) for name, step in self._pending.items() for index in self._ways(step)]

    def waiting(self) -> dict[Name, Step]:
        """Steps with which the workers wait for their turn."""
        return dict(self._pending)

    def turn(self, name: Name, index: int) -> None:
        """Let a worker take its step."""
        self.schedule.append((name, index))
        step = self._pending.pop(name)
        given = index if isinstance(step, Await) else self._memory.carry_out(step, name)
        if self._see is not None:
            self._see(name, step, given)
        self._advance(name, given)

    def _advance(self, name: Name, given: Any) -> None:
        """Let a worker think until its next step."""
        try:
            step = self._workers[name].send(given)
            while isinstance(step, Spend | Now):
                step = self._workers[name].send(float(self._memory.count()) if isinstance(step, Now) else None)
        except StopIteration:
            del self._workers[name]
            return
        self._pending[name] = step

    def _ways(self, step: Step) -> list[int]:
        if isinstance(step, Receive):
            return [0] if self._memory.since(Pending(step.channel)) is not None else []
        if not isinstance(step, Await):
            return [0]
        since = [(stamp, k) for k, one in enumerate(step.conditions) if (stamp := self._since(one)) is not None]
        if self._any:
            return [k for _, k in since]
        return [min(since)[1]] if since else []

    def _since(self, condition: Condition) -> float | None:
        return float("inf") if isinstance(condition, Reached) else self._memory.since(condition)


def at_random(random: np.random.Generator) -> Chooser:
    """Every choice is as likely."""
    return lambda choices: choices[int(random.integers(len(choices)))]


def by_rank(random: np.random.Generator, changes: float = 0.05) -> Chooser:
    """Whoever ranks highest goes on while it can; at each turn the ranks are dealt anew with probability `changes`.

    Some workers run far ahead of others, which drawing every turn hardly ever brings about.
    """
    ranks: dict[Choice, float] = {}

    def choose(choices: Sequence[Choice]) -> Choice:
        if random.random() < changes:
            ranks.clear()
        return max(choices, key=lambda one: ranks.setdefault(one, random.random()))

    return choose


def replayed(schedule: Sequence[Choice]) -> Chooser:
    """Make the choices of a schedule again.

    Raises
    ------
    ValueError
        By the chooser, if a choice is not there, or the schedule is at its end and somebody can go on.
    """
    left = iter(schedule)

    def choose(choices: Sequence[Choice]) -> Choice:
        choice = next(left, None)
        if choice is None or choice not in choices:
            raise ValueError(f"the schedule's next choice is {choice}, but there are {list(choices)}; start it afresh")
        return choice

    return choose
