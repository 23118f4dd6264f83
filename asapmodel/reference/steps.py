"""What a worker may do besides thinking: the steps at which it yields.

A worker is a generator. Everything it shares with others it touches through these steps, one at a time; an executor
carries each one out and sends back what it gives. So the same worker code runs in virtual time, in any chosen
interleaving, and in operating-system processes, and between two steps nothing of the outside can change.

Places, flags and channels are named by tuples. A *place* is a row of shared memory with one writer and one reader at a
time; *flags* are a bitmap; a *channel* is a first-in first-out control link.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "AllSet",
    "Await",
    "Channel",
    "Clear",
    "Condition",
    "Flags",
    "Now",
    "Pending",
    "Phase",
    "Place",
    "Reached",
    "Read",
    "Receive",
    "Send",
    "SetBit",
    "Spend",
    "Step",
    "Steps",
    "Test",
    "Unset",
    "Write",
]


class Place(NamedTuple):
    """A row of shared memory: the device that holds it, the region, the row in it."""

    holder: tuple[Any, ...]
    region: str
    row: tuple[int, ...]


class Flags(NamedTuple):
    """A bitmap in the memory of a device."""

    holder: tuple[Any, ...]
    row: tuple[int, ...]


class Channel(NamedTuple):
    """A control link to a device; `local` ones connect the streams of one device and carry its private data."""

    holder: tuple[Any, ...]
    name: str
    local: bool = False


class Phase(NamedTuple):
    """What a stream is busy with: a name, tokens and work of the batch, layer, and whose batch (-1: everybody's)."""

    name: str
    n: int
    w: int
    layer: int
    group: int = -1


@dataclass(frozen=True, slots=True)
class AllSet:
    """All bits of `mask` are set."""

    flags: Flags
    mask: int


@dataclass(frozen=True, slots=True)
class Unset:
    """No bit of `mask` is set."""

    flags: Flags
    mask: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A message waits in the channel."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Reached:
    """The clock has reached `time`, seconds; at one instant those of lower `rank` come first."""

    time: float
    rank: int = 0


Condition = AllSet | Unset | Pending | Reached


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until a condition holds; gives the index of one that does (of several the one that came to hold first)."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """Look once; gives whether the condition holds."""

    __test__ = False  # not a test case, whatever its name

    condition: Condition


@dataclass(frozen=True, slots=True)
class Write:
    """Write rows of an array, or a whole row of integers, to a place from slot `first` on."""

    place: Place
    value: Any
    first: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """Copy `count` slots of a place from `first` on to private memory; gives the copy."""

    place: Place
    count: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class SetBit:
    """Set one bit: what was written before is seen by whoever sees the bit."""

    flags: Flags
    bit: int


@dataclass(frozen=True, slots=True)
class Clear:
    """Clear all bits: what was read before is not overwritten by whoever sees them clear."""

    flags: Flags


@dataclass(frozen=True, slots=True)
class Spend:
    """Be busy with a phase: in virtual time for as long as the cost models say; elsewhere the work takes its time."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message into a channel, without waiting."""

    channel: Channel
    message: Any


@dataclass(frozen=True, slots=True)
class Receive:
    """Take the first message of a channel; waits while there is none."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Now:
    """Gives the time, seconds."""


Step = Await | Test | Write | Read | SetBit | Clear | Spend | Send | Receive | Now
Steps = Generator[Step, Any, Any]
