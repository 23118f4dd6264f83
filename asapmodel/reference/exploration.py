"""Exhaustive check of the protocol: all interleavings of the workers' own code in a small system.

Every state that can be reached is looked at once. The check fails where a step violates the protocol (see
`watched_memory`), where nobody can go on and not all batches have ended, where all have ended and something is left
over or the final rows are wrong, and where a state comes back, for then the system need not end.

Depth first needs the least and sees states come back; breadth first finds the shortest way to what is wrong.
"""

import time
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from asapmodel.reference.attention_worker import DONE
from asapmodel.reference.controlled import Choice
from asapmodel.reference.small_system import SmallSystem
from asapmodel.reference.stubborn_sets import StubbornSets
from asapmodel.reference.transitions import State, Transitions, Wider

__all__ = ["Exploration", "Search", "Verdict"]

Search = Literal["depth", "breadth"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an exploration has found.

    Attributes
    ----------
    states, transitions : int
        Looked at.
    seconds : float
        That it took.
    exhausted : bool
        Whether every state was looked at that needs to be; not so where the search stopped at a violation or a limit.
    violation : str or None
        The first one found.
    schedule : list of choices
        The way there, for `controlled.replayed`.
    ends : frozenset
        Every state in which nobody can go on: states of workers, and contents.
    """

    states: int
    transitions: int
    seconds: float
    exhausted: bool
    violation: str | None
    schedule: list[Choice] = field(default_factory=list)
    ends: frozenset[Hashable] = frozenset()

    def __str__(self) -> str:
        found = self.violation or ("no violation" if self.exhausted else "no violation so far, NOT EXHAUSTED")
        return f"{found} ({self.states} states, {self.transitions} transitions, {self.seconds:.1f} s)"


Move = tuple[State, int, int]
"""A state, and the step (worker and way) that leads there or on from there."""


@dataclass(slots=True)
class _Seen:
    """Notes of a search: how each state was first reached, and what was wrong."""

    parents: dict[State, Move | None]
    transitions: int = 0
    violation: str | None = None
    last: Move | None = None
    ends: set[Hashable] = field(default_factory=set)

    def fail(self, violation: str, last: Move | None) -> None:
        """Note the first violation, and the step to it."""
        if self.violation is None:
            self.violation, self.last = violation, last


class Exploration:
    """Explorations of one small system.

    Parameters
    ----------
    small : SmallSystem
        The system.
    any_condition : bool
        Whether an `Await` may give any condition that holds, or gives the one that came to hold first.
    merge : bool
        Of `WorkerStates`.
    """

    def __init__(self, small: SmallSystem, *, any_condition: bool, merge: bool = True) -> None:
        self._small = small
        self._system = Transitions(small, any_condition, merge)

    def run(
        self,
        search: Search = "depth",
        *,
        reduce: bool = True,
        stop: bool = True,
        max_states: int = 1_000_000,
        max_seconds: float = 600.0,
    ) -> Verdict:
        """Explore.

        Parameters
        ----------
        search : {"depth", "breadth"}
            Where to go on first.
        reduce : bool
            Whether to leave out interleavings by `stubborn_sets`.
        stop : bool
            Whether to stop at a violation, or to look at what else there is.
        max_states, max_seconds
            Where to give up.
        """
        start = time.perf_counter()
        while True:
            try:
                seen, exhausted = self._search(search, reduce, stop, max_states, start + max_seconds)
                break
            except Wider:
                continue
        names = self._system.names
        schedule: list[Choice] = []
        at = seen.last
        while at is not None:
            schedule.append((names[at[1]], at[2]))
            at = seen.parents[at[0]]
        took = time.perf_counter() - start
        found = seen.violation, schedule[::-1], frozenset(seen.ends)
        return Verdict(len(seen.parents), seen.transitions, took, exhausted and not (found[0] and stop), *found)

    def _search(self, search: Search, reduce: bool, stop: bool, most: int, end: float) -> tuple[_Seen, bool]:
        first = self._system.first()
        sets = StubbornSets(self._system) if reduce else None
        seen = _Seen({first: None})
        todo = deque([(first, self._next(first, seen, sets))])
        path = {first}  # from the first state to the one looked at, if depth first
        while todo and not (stop and seen.violation):
            state, moves = todo[-1] if search == "depth" else todo[0]
            move = next(moves, None)
            if move is None:
                path.discard(state)
                _ = todo.pop() if search == "depth" else todo.popleft()
                continue
            after, w, way = move
            if after not in seen.parents:
                if len(seen.parents) >= most or time.perf_counter() > end:
                    return seen, False
                seen.parents[after] = state, w, way
                todo.append((after, self._next(after, seen, sets)))
                path.add(after)
            elif search == "depth" and after in path:
                seen.fail("livelock: the same state comes back", (state, w, way))
        return seen, True

    def _next(self, state: State, seen: _Seen, sets: StubbornSets | None) -> Iterator[Move]:
        """Go on from a state in all ways that are to be tried."""
        tried = self._tried(state, sets)
        if not tried:
            self._end(state, seen)
        for w, way in tried:
            after, violation = self._system.take(state, w, way)
            seen.transitions += 1
            if violation:
                seen.fail(violation, (state, w, way))
            else:
                yield after, w, way

    def _tried(self, state: State, sets: StubbornSets | None) -> list[tuple[int, int]]:
        """Workers and ways to try in a state."""
        system = self._system
        ways = {w: found for w in range(len(system.names)) if (found := system.ways(state, w))}
        return [(w, way) for w in (sets.smallest(state, ways) if sets else ways) for way in ways[w]]

    def _end(self, state: State, seen: _Seen) -> None:
        """Judge a state in which nobody can go on."""
        at, contents = seen.parents[state], self._system.contents(state)
        seen.ends.add((state[: len(self._system.names)], frozenset(contents.items())))
        answers = [self._system.values.value(number) for number in contents.pop(DONE, ())]
        if len(answers) < self._small.answers:
            seen.fail(f"deadlock: {len(answers)} of {self._small.answers} answers are there, nobody can go on", at)
        elif wrong := self._small.wrong_rows(answers):
            seen.fail("; ".join(wrong), at)
        elif contents:
            seen.fail(f"left over: {contents}", at)
