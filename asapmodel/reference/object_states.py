"""Contents of shared memory as values, and what one step makes of them.

Every step but `Await` touches one object: a place, a bitmap or a channel. The content of a place is a tuple, one entry
a slot: the bytes written, or None once they are read. That of a bitmap is its bits, that of a channel a tuple of
numbers of messages. A step on a content gives a value and a new content, or what it violates.

This says the same as `watched_memory`, and nothing is shared between the two, so that one can check the other.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention_worker import DONE
from asapmodel.reference.buffers import Shape, places
from asapmodel.reference.interning import Interned
from asapmodel.reference.steps import (
    AllSet,
    Channel,
    Clear,
    Condition,
    Flags,
    Pending,
    Place,
    Read,
    Receive,
    Send,
    SetBit,
    Step,
    Test,
    Unset,
    Write,
)

__all__ = ["Content", "Object", "Objects", "Outcome", "holds", "object_of"]

Object = Place | Flags | Channel
Content = Any
"""Hashable; of the kind that suits the object."""


class Outcome(NamedTuple):
    """What a step gives and makes, or the kind of violation that it is."""

    given: Any
    content: Content
    violation: str | None = None


def object_of(step: Step | Condition) -> Object:
    """Return what a step touches, or a condition looks at."""
    match step:
        case Write(place) | Read(place):
            return place
        case SetBit(flags) | Clear(flags) | AllSet(flags) | Unset(flags):
            return flags
        case Send(channel) | Receive(channel) | Pending(channel):
            return channel
        case Test(condition):
            return object_of(condition)
    raise TypeError(f"{step} touches no one object")


def holds(condition: Condition, content: Content) -> bool:
    """Whether a condition on an object of this content holds."""
    match condition:
        case AllSet(_, mask):
            return bool(content & mask == mask)
        case Unset(_, mask):
            return not content & mask
        case Pending():
            return bool(content)
    raise TypeError(f"{condition} is no condition of memory")


class Objects:
    """What steps make of the objects of a system.

    Parameters
    ----------
    shape : Shape
        Sizes.
    values : Interned
        Messages.
    """

    def __init__(self, shape: Shape, values: Interned) -> None:
        self._sizes = {name: size for name, (_, size) in places(shape).items()}
        self._values = values

    def empty(self, thing: Object) -> Content:
        """Content of an object at first."""
        return (None,) * self._sizes[thing][0] if isinstance(thing, Place) else 0 if isinstance(thing, Flags) else ()

    def outcome(self, step: Step, content: Content) -> Outcome:
        """What a step that is possible makes of its object's content."""
        match step:
            case Write(place, value, first):
                rows = [row.tobytes() for row in np.asarray(value, dtype=_kind(place))]
                return _write(content, rows, first)
            case Read(place, count, first):
                return self._read(place, content, first, count)
            case SetBit(_, bit):
                return Outcome(None, content | 1 << bit, "lost signal" if content >> bit & 1 else None)
            case Clear():
                return Outcome(None, 0)
            case Send(channel, message):
                queue = (*content, self._values.number(message))
                return Outcome(None, tuple(sorted(queue)) if channel == DONE else queue)  # batches end in any order
            case Receive():
                return Outcome(self._values.value(content[0]), content[1:])
            case Test(condition):
                return Outcome(holds(condition, content), content)
        raise TypeError(f"{step} is no step of memory")

    def _read(self, place: Place, content: Content, first: int, count: int) -> Outcome:
        last = first + count
        if first < 0 or last > len(content):
            return Outcome(None, content, "slots that do not exist")
        rows = content[first:last]
        if None in rows:
            return Outcome(None, content, "read of incomplete data")
        copy: NDArray[Any] = np.frombuffer(b"".join(rows), dtype=_kind(place)).reshape(count, *self._sizes[place][1:])
        return Outcome(copy, (*content[:first], *(None,) * count, *content[last:]))


def _kind(place: Place) -> type:
    return np.float64 if place.region in ("tokens", "results") else np.int64


def _write(content: Content, rows: list[bytes], first: int) -> Outcome:
    last = first + len(rows)
    if first < 0 or last > len(content):
        return Outcome(None, content, "slots that do not exist")
    taken = any(one is not None for one in content[first:last])
    return Outcome(None, (*content[:first], *rows, *content[last:]), "overwrite of unread data" if taken else None)
