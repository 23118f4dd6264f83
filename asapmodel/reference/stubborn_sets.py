"""Which workers need to be tried in a state: partial-order reduction by stubborn sets.

Many interleavings differ only in the order of steps that have nothing to do with each other; of those one is enough.
In a state we therefore try only the workers of a set T. Besides T there is a set N of *deeds*, things that somebody
may do:

1. If a worker of T can go on, then for every way in which it can, all deeds of others that depend on its step are in
   N.
2. For every way in which a worker of T waits in vain, those deeds are in N that would open it; where several things
   are missing, those that bring about one of them: setting one bit that a bitmap lacks.
3. For every deed in N there is a reason why nobody outside T can be the first to do one: its worker is in T, or it
   does so only after it has seen a condition hold (its guard), the condition does not hold, the worker has not passed
   it since it was last at rest, and all deeds that would make it hold (one bit of a bitmap again) are in N.

So as long as nobody of T acts, no deed of N is done: the first one would need its guard, and that another one before.

Two steps *depend* on each other if their order matters to what either gives or to the state after both, or if one can
close the way of the other. Setting two bits does not, nor does setting a bit and awaiting it: that only opens the way,
which is what rule 2 is about. Sending to a channel and receiving from it does not either, if it is not empty. Setting
and clearing does, as do a read and any access to the same place, two sends to one channel, and a look (`Test`) and
whatever changes what it sees. Two writes of one slot violate the protocol in either order, and so does setting a bit
twice; they need not be tried in both. Where an `Await` gives what came to hold first, the events for which it looks
depend on each other, and once it can go on there is one way and no other to come.

**No deadlock is missed, nor a violation.** Let u1 ... un be steps that lead from a state to a deadlock or a violation.
*If a worker of T is among them*, let ui be the first step of such a one. No deed of N comes before it. So its way was
open in the state by rule 2, and by rule 1 nothing before depends on it. It can go first, and the others after it do
what they did and lead to where they led, in as many steps; and this first step is one that we try. *If nobody of T is
among them*, take a worker of T that can go on (T has one). No step depends on what it does, so it still can at the
end, which is no deadlock then; and if un is a violation it is one after that worker's step as well. We try that step,
and have u1 ... un before us again. This can be repeated only finitely often unless a state comes back, which a search
depth first reports by itself. Induction over n does the rest.

A deadlock is thus found in as many steps as the shortest way to it takes. The way to a violation may be longer than
the shortest, by steps of others.

Who does what, ever, and under which guard is collected while exploring. A deed is noted when it is the next step of
its worker, done or not; the proof needs no more, for it speaks of steps that are known up to the last, and that one is
next in a state that is reached.
"""

from asapmodel.reference.attention_worker import DONE
from asapmodel.reference.object_states import Object
from asapmodel.reference.transitions import State, Transitions, Use, use, uses

__all__ = ["StubbornSets", "depend"]

Deed = tuple[int, Use, int]
"""What a worker ever does, and under which guard."""

_CHANGES = {"set", "clear", "send", "receive"}
_EVENTS = {"set", "send"}


def depend(one: Use, other: Use) -> bool:
    """Whether two uses of the same object depend on each other.

    Examples
    --------
    >>> from asapmodel.reference.steps import Flags
    >>> flags = Flags(("moe", 0), (0,))
    >>> depend(("set", flags, 1), ("clear", flags, 0)), depend(("set", flags, 1), ("set", flags, 2))
    (True, False)
    """
    (kind, thing, mask), (other_kind, _, other_mask) = one, other
    kinds = {kind, other_kind}
    if any(each.startswith("test") for each in kinds):
        return bool(kinds & _CHANGES)
    if kinds == {"set", "unset"}:
        return bool(mask & other_mask)
    if kinds == {"send"}:
        return thing != DONE
    return kinds in ({"set", "clear"}, {"clear", "all set"}, {"read"}, {"read", "write"}, {"receive"}) or (
        kinds == {"receive", "pending"}
    )


class StubbornSets:
    """Workers to try in each state.

    Parameters
    ----------
    transitions : Transitions
        What is known of the workers so far; to be made afresh when that is more.
    """

    def __init__(self, transitions: Transitions) -> None:
        self._system = transitions
        self._deeds: list[Deed] = [(w, *each) for w, known in enumerate(transitions.uses) for each in known]
        self._doing: dict[Object, list[int]] = {}
        for number, (_, (_, thing, _), _) in enumerate(self._deeds):
            self._doing.setdefault(thing, []).append(number)
        self._rivals: dict[tuple[int, int], list[int]] = {}
        self._openers: dict[tuple[int, int], list[list[int]]] = {}

    def smallest(self, state: State, ways: dict[int, list[int]]) -> list[int]:
        """Return who is to be tried of the workers that can go on, which are the keys of `ways`."""
        best, fewest = list(ways), sum(map(len, ways.values()))
        for w in ways:
            tried = [b for b in self._closed(state, w, ways) if b in ways]
            count = sum(len(ways[b]) for b in tried)
            if count < fewest:
                best, fewest = tried, count
            if fewest == 1:
                break
        return best

    def _closed(self, state: State, first: int, ways: dict[int, list[int]]) -> set[int]:
        """Smallest set with a worker that obeys the rules (or nearly, where a rule leaves a choice)."""
        system = self._system
        found, todo, seen = {first}, [first], set()
        while todo:
            b = todo.pop()
            needed = self._needed(state, b, ways.get(b, []))
            while needed:
                number = needed.pop()
                w, _, guard = self._deeds[number]
                if w in found or number in seen:
                    continue
                seen.add(number)
                if guard < 0 or guard == system.guards[state[w]] or system.holds(state, guard):
                    found.add(w)
                    todo.append(w)
                else:
                    needed += self._opening(state, guard, found)
        return found

    def _needed(self, state: State, b: int, ways: list[int]) -> list[int]:
        """What others may do that matters to a worker of the set."""
        needed: list[int] = []
        for way in ways:
            needed += self._depending(b, state[b], way)
        if not ways or self._system.any_condition:  # otherwise what came to hold first stays first
            for way, number in enumerate(self._system.waits[state[b]]):
                if way not in ways:
                    needed += self._opening(state, number, {b})
        return needed

    def _depending(self, b: int, at: int, way: int) -> list[int]:
        """What others ever do that depends on what b does."""
        key = at, way
        if key not in self._rivals:
            each = list(uses(self._system.states.steps[at]))[way]
            rivals = [number for number in self._doing[each[1]] if depend(each, self._deeds[number][1])]
            if each[0] in _EVENTS:  # of things that one worker watches for what comes first
                watched = [things for things in self._system.watched.values() if each[1] in things]
                others = {one for things in watched for one in things if one != each[1]}
                rivals += [deed for one in others for deed in self._doing[one] if self._deeds[deed][1][0] in _EVENTS]
            self._rivals[key] = [deed for deed in rivals if self._deeds[deed][0] != b]
        return self._rivals[key]

    def _opening(self, state: State, closed: int, found: set[int]) -> list[int]:
        """What opens a way, or brings about one of several things that it takes."""
        key = closed, self._system.missing(state, closed)
        if key not in self._openers:
            self._openers[key] = self._all_openers(*key)
        openers = self._openers[key]
        if len(openers) == 1:
            return openers[0]
        return min(openers, key=lambda deeds: len({self._deeds[deed][0] for deed in deeds} - found))

    def _all_openers(self, closed: int, missing: int) -> list[list[int]]:
        """What opens a way, one list for each thing that it takes."""
        kind, thing, _ = use(self._system.conditions[closed])
        doing = [(number, self._deeds[number][1]) for number in self._doing[thing]]
        if kind != "all set":
            opener = "clear" if kind == "unset" else "send"
            return [[number for number, (done, _, _) in doing if done == opener]]
        bits = [1 << k for k in range(missing.bit_length()) if missing >> k & 1]
        return [[number for number, (done, _, mask) in doing if done == "set" and mask == bit] for bit in bits]
