"""States of a whole system as tuples of numbers, and what can happen in each.

A state has one entry a worker (its state), one an object (the number of its content; a bitmap's bits are their own
number), and, where an `Await` gives the condition that came to hold first, one a worker that awaits several: the
objects of the conditions that hold, in the order in which they came to.

What a step does depends on two entries and changes two. It is worked out once, by running the worker's own code, and
looked up from then on.

Which objects there are, and who ever does what to which, shows as workers' steps turn up. If one turns up that is new,
`Wider` is raised, and the exploration begins again with what is known now.
"""

from collections.abc import Iterator
from typing import Any

from asapmodel.reference.interning import Interned
from asapmodel.reference.object_states import Object, Objects, object_of
from asapmodel.reference.small_system import SmallSystem
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Clear,
    Condition,
    Flags,
    Pending,
    Receive,
    Send,
    SetBit,
    Step,
    Test,
    Unset,
)
from asapmodel.reference.worker_states import WorkerStates

__all__ = ["State", "Transitions", "Use", "Wider"]

State = tuple[Any, ...]
Use = tuple[str, Object, int]
"""What is done to an object, and to which bits of a bitmap."""


class Wider(Exception):
    """Somebody does something that was not known before."""


class Transitions:
    """What can happen in a small system.

    Parameters
    ----------
    small : SmallSystem
        The system.
    any_condition : bool
        Whether an `Await` may give any condition that holds, or gives the one that came to hold first.
    merge : bool
        Of `WorkerStates`.

    Attributes
    ----------
    names
        Workers, in the order of their entries.
    uses
        What each worker is known to do, ever, and the number of the guard (see `WorkerStates`) under which it does.
    conditions
        By number.
    waits, guards
        Of each state of a worker, the conditions that its step waits for, of which one is enough, and its guard or -1.
    watched
        Of each worker that awaits several conditions in order, their objects, with the mask of a bitmap.
    """

    def __init__(self, small: SmallSystem, any_condition: bool, merge: bool = True) -> None:
        self.values = Interned()
        self.states = WorkerStates(small.start, self.values, merge)
        self.names = small.names
        self.uses: list[set[tuple[Use, int]]] = [set() for _ in self.names]
        self.watched: dict[int, dict[Object, int]] = {}
        self.objects: list[Object] = []
        self.conditions: list[Condition] = []
        self.waits: dict[int, tuple[int, ...]] = {}
        self.guards: dict[int, int] = {}
        self._small = small
        self.any_condition = any_condition
        self._memory = Objects(small.shape, self.values)
        self._contents = Interned()
        self._at: dict[Object, int] = {}
        self._looks: list[tuple[int, str, int]] = []
        self._numbers: dict[Condition, int] = {}
        self._nothing = self._contents.number(())
        self._settled = False
        self._steps: dict[tuple[int, int], tuple[int, int, str | None]] = {}

    def first(self) -> State:
        """Return the state in which the system starts."""
        self._settled = False
        start = [self.states.first(name) for name in self.names]
        for w, state in enumerate(start):
            self._learn(w, state)
        for channel, _ in self._small.messages:
            self._place(channel)
        self._settled = True
        self._watchers = {w: len(self.names) + len(self.objects) + k for k, w in enumerate(self.watched)}
        contents = {thing: self._memory.empty(thing) for thing in self.objects}
        order: dict[int, tuple[Object, ...]] = dict.fromkeys(self._watchers, ())
        for channel, task in self._small.messages:
            contents[channel] = self._memory.outcome(Send(channel, task), contents[channel]).content
            for w in order:
                order[w] += (channel,) if channel in self.watched[w] else ()
        return (*start, *(self._number(thing, one) for thing, one in contents.items()), *order.values())

    def ways(self, state: State, w: int) -> list[int]:
        """Ways in which a worker can go on: indices of conditions of an `Await`, 0 for another step."""
        waits = self.waits[state[w]]
        if not waits:
            return [0]
        found = [k for k, number in enumerate(waits) if self.holds(state, number)]
        if len(found) > 1 and not self.any_condition:
            order = state[self._watchers[w]]
            return [min(found, key=lambda k: order.index(object_of(self.conditions[waits[k]])))]
        return found

    def holds(self, state: State, number: int) -> bool:
        """Whether a condition holds."""
        entry, kind, mask = self._looks[number]
        there = state[entry]
        if kind == "pending":
            return bool(there != self._nothing)
        return there & mask == mask if kind == "all set" else not there & mask

    def missing(self, state: State, number: int) -> int:
        """Return the bits that are wanting for a bitmap to be complete; 0 for another condition."""
        entry, kind, mask = self._looks[number]
        return mask & ~int(state[entry]) if kind == "all set" else 0

    def take(self, state: State, w: int, way: int) -> tuple[State, str | None]:
        """State after a worker has gone on, and the kind of violation that its step was."""
        step = self.states.steps[state[w]]
        changed = list(state)
        if isinstance(step, Await):
            key = state[w], ~way
            if key not in self._steps:
                self._steps[key] = self._after(w, state[w], way), 0, None
            changed[w] = self._steps[key][0]
            return tuple(changed), None
        at = self._at[object_of(step)]
        key = state[w], state[at]
        if key not in self._steps:
            self._steps[key] = self._work_out(w, state, step, at)
        changed[w], changed[at], violation = self._steps[key]
        for watcher, place in self._watchers.items():
            if self.objects[at - len(self.names)] in self.watched[watcher]:
                changed[place] = self._reorder(state[place], watcher, step, changed)
        return tuple(changed), violation

    def contents(self, state: State) -> dict[Object, Any]:
        """Contents of all objects that are not as at the start."""
        found = {thing: self.content(state, thing) for thing in self.objects}
        return {thing: one for thing, one in found.items() if one != self._memory.empty(thing)}

    def _work_out(self, w: int, state: State, step: Step, at: int) -> tuple[int, int, str | None]:
        thing = object_of(step)
        result = self._memory.outcome(step, self.content(state, thing))
        if result.violation:
            return state[w], state[at], result.violation
        after = self._after(w, state[w], result.given)
        return after, self._number(thing, result.content), None

    def _after(self, w: int, state: int, given: Any) -> int:
        after = self.states.after(state, self.values.number(given))
        self._learn(w, after)
        return after

    def content(self, state: State, thing: Object) -> Any:
        """Content of an object."""
        entry = state[self._at[thing]]
        return entry if isinstance(thing, Flags) else self._contents.value(entry)

    def _number(self, thing: Object, content: Any) -> int:
        return content if isinstance(thing, Flags) else self._contents.number(content)

    def _reorder(self, order: tuple[Object, ...], watcher: int, step: Step, state: list[Any]) -> tuple[Object, ...]:
        """Objects that a worker watches, in the order in which their conditions came to hold."""
        thing = object_of(step)
        if isinstance(step, Send):
            return (*order, thing)
        if isinstance(step, Receive | Clear):
            at = order.index(thing) if thing in order else len(order)
            return (*order[:at], *order[at + 1 :])
        mask = self.watched[watcher].get(thing, 0)
        complete = isinstance(step, SetBit) and state[self._at[thing]] & mask == mask
        return (*order, thing) if complete and thing not in order else order

    def _learn(self, w: int, state: int) -> None:
        """Note what the step of a worker's state touches and waits for."""
        if state in self.waits:
            return
        step, guard = self.states.steps[state], self.states.guards[state]
        for _, thing, _ in uses(step):
            self._place(thing)
        conditions = step.conditions if isinstance(step, Await) else ()
        if isinstance(step, Receive):
            conditions = (Pending(step.channel),)
        self.waits[state] = tuple(map(self._number_of, conditions))
        self.guards[state] = -1 if guard is None else self._number_of(guard)
        known = len(self.uses[w]), len(self.watched.get(w, ()))
        self.uses[w] |= {(each, self.guards[state]) for each in uses(step)}
        if len(conditions) > 1 and not self.any_condition:
            if any(isinstance(one, Unset) for one in conditions):
                raise ValueError(f"{step}: bits that are clear are awaited alone only, if what came first counts")
            self.watched.setdefault(w, {}).update((thing, mask) for _, thing, mask in uses(step))
        if self._settled and known != (len(self.uses[w]), len(self.watched.get(w, ()))):
            raise Wider

    def _number_of(self, condition: Condition) -> int:
        if condition not in self._numbers:
            self._numbers[condition] = len(self.conditions)
            self.conditions.append(condition)
            kind, thing, mask = use(condition)
            self._looks.append((self._at[thing], kind, mask))
        return self._numbers[condition]

    def _place(self, thing: Object) -> None:
        if thing not in self._at:
            self._at[thing] = len(self.names) + len(self.objects)
            self.objects.append(thing)


def uses(step: Step) -> Iterator[Use]:
    """What a step does to which objects."""
    match step:
        case Await(conditions):
            for condition in conditions:
                yield use(condition)
        case Test(condition):
            kind, thing, mask = use(condition)
            yield f"test {kind}", thing, mask
        case _:
            yield use(step)


def use(step: Step | Condition) -> Use:
    """What a step, or the wait for a condition, does to its object."""
    names = {SetBit: "set", AllSet: "all set", Unset: "unset"}
    mask = 1 << step.bit if isinstance(step, SetBit) else step.mask if isinstance(step, AllSet | Unset) else 0
    return names.get(type(step), type(step).__name__.lower()), object_of(step), mask
