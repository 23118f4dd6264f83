"""Shared memory that watches how it is used, slot by slot.

A slot is *empty*, or *full* with what was written and has not been read. Whoever reads an empty slot gets incomplete
data, whoever writes a full one destroys data that nobody has read, and whoever sets a bit that is set already raises a
signal that nobody will see. Each is a `Violation`, told in words.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from asapmodel.reference.attention_worker import Task
from asapmodel.reference.buffers import Shape, places
from asapmodel.reference.memory import Memory
from asapmodel.reference.steps import Channel, Flags, Place, Read, Receive, Send, SetBit, Step, Write

__all__ = ["Subject", "Violation", "WatchedMemory", "device_name", "place_name", "slots_name"]

Name = tuple[Any, ...]


class Violation(RuntimeError):
    """The protocol is broken; the message says where."""


class Subject(NamedTuple):
    """What a worker is busy with, as far as memory can tell."""

    batch: int
    layer: int

    def __str__(self) -> str:
        return f"batch {self.batch} in layer {self.layer}"


_OUTSIDE = Subject(-1, -1)


class WatchedMemory(Memory):
    """Memory that raises `Violation`, and knows what every worker is busy with.

    That follows the data: a task names its batch and layer, what a worker writes or sends is about the same, and who
    reads or receives it goes on with that.
    """

    def __init__(self, shape: Shape) -> None:
        """Allocate the buffers of a system, all slots empty."""
        super().__init__(shape)
        sizes = {name: size[0] for name, (kind, size) in places(shape).items() if kind != "flags"}
        self._full: dict[Place, list[Subject | None]] = {name: [None] * size for name, size in sizes.items()}
        self._sent: dict[Channel, deque[Subject]] = {}
        self._busy: dict[Name, Subject] = {}

    def carry_out(self, step: Step, by: Name = ("outside",)) -> Any:
        """Carry out a step of the worker `by`.

        Raises
        ------
        Violation
            If it breaks the protocol.
        """
        match step:
            case Write(place, value, first):
                self._fill(by, place, range(first, first + len(value)))
            case Read(place, count, first):
                self._empty(by, place, range(first, first + count))
            case SetBit(flags, bit) if self._bits[flags] >> bit & 1:
                raise Violation(
                    f"lost signal: {device_name(by)} sets bit {bit} of {flags_name(flags)}{self._reason(by)}, "
                    "but it is set already"
                )
            case Send(channel, message):
                about = Subject(message.batch.number, message.layer) if isinstance(message, Task) else None
                self._sent.setdefault(channel, deque()).append(about or self._busy.get(by, _OUTSIDE))
            case Receive(channel):
                self._busy[by] = self._sent[channel].popleft()
        return super().carry_out(step)

    def subject(self, by: Name) -> Subject | None:
        """What a worker is busy with; None before it has had anything to do."""
        return self._busy.get(by)

    def left_over(self, but: Sequence[Channel] = ()) -> list[str]:
        """What is not as it was at the start, in words; channels of `but` may hold anything."""
        slots = [(place, [k for k, one in enumerate(full) if one]) for place, full in self._full.items()]
        found = [f"unread: {slots_name(which)} of {place_name(place)}" for place, which in slots if which]
        found += [f"bits {bits:b} set in {flags_name(flags)}" for flags, bits in self._bits.items() if bits]
        queues = [(channel, len(queue)) for channel, queue in self._channels.items() if channel not in but and queue]
        return found + [
            f"{count} messages in {channel.name} of {device_name(channel.holder)}" for channel, count in queues
        ]

    def _reason(self, by: Name) -> str:
        return f" for {self._busy[by]}" if by in self._busy else ""

    def _fill(self, by: Name, place: Place, slots: range) -> None:
        full = self._full[place]
        for k in slots:
            if k < len(full) and (unread := full[k]) is not None:
                raise Violation(
                    f"overwrite of unread data: {device_name(by)} writes {slots_name(slots)} of {place_name(place)}"
                    f"{self._reason(by)}, but slot {k} holds {unread}, not yet read"
                )
        full[slots.start : slots.stop] = [self._busy.get(by, _OUTSIDE)] * len(slots)

    def _empty(self, by: Name, place: Place, slots: range) -> None:
        full = self._full[place]
        for k in slots:
            if k < len(full) and full[k] is None:
                raise Violation(
                    f"read of incomplete data: {device_name(by)} reads {slots_name(slots)} of {place_name(place)}"
                    f"{self._reason(by)}, but slot {k} has not been written"
                )
        if slots and (found := full[slots.start]) is not None:
            self._busy[by] = found
        full[slots.start : slots.stop] = [None] * len(slots)


def device_name(holder: Name) -> str:
    """A device, or one of its streams, in words."""
    match holder:
        case ("attention", i, j, *stream):
            name = f"attention {i}.{j}"
        case ("moe", e, *stream):
            name = f"MoE device {e}"
        case _:
            return " ".join(map(str, holder))
    return name if not stream or stream == ["all"] else f"{name} ({stream[0]})"


def place_name(place: Place) -> str:
    """A row of shared memory in words."""
    row = ".".join(map(str, place.row))
    return f"{place.region}{' ' if row else ''}{row} of {device_name(place.holder)}"


def flags_name(flags: Flags) -> str:
    """A bitmap in words."""
    row = ".".join(map(str, flags.row))
    return f"the bitmap {row}{' ' if row else ''}of {device_name(flags.holder)}"


def slots_name(slots: Sequence[int]) -> str:
    """Some slots in words."""
    return f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}" if slots else "no slots"
