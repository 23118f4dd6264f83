"""Shared memory of a system that runs in one process, and its control links."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.buffers import Shape, places
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

__all__ = ["Memory"]


class Memory:
    """Places, bitmaps and channels; every change of a bitmap or channel is stamped with its turn."""

    def __init__(self, shape: Shape) -> None:
        """Allocate the buffers of a system."""
        kinds = {"ids": np.int64, "rows": np.float64}
        self._places: dict[Place, NDArray[Any]] = {
            name: np.zeros(size, dtype=kinds[kind]) for name, (kind, size) in places(shape).items() if kind != "flags"
        }
        self._bits: dict[Flags, int] = {name: 0 for name, (kind, _) in places(shape).items() if kind == "flags"}
        self._stamp: dict[Flags, int] = {}
        self._channels: dict[Channel, deque[tuple[int, Any]]] = {}
        self._turn = 0

    def count(self) -> int:
        """Number of the next turn."""
        self._turn += 1
        return self._turn

    def since(self, condition: Condition) -> int | None:
        """Turn at which a condition came to hold, or None if it does not."""
        match condition:
            case AllSet(flags, mask):
                return self._stamp[flags] if self._bits[flags] & mask == mask else None
            case Unset(flags, mask):
                return self._stamp.get(flags, 0) if not self._bits[flags] & mask else None
            case Pending(channel):
                queue = self._channels.get(channel)
                return queue[0][0] if queue else None
        raise TypeError(f"{condition} is no condition of memory")

    def carry_out(self, step: Step) -> Any:
        """Carry out a step that touches memory or channels; a channel received from must not be empty."""
        turn = self.count()
        match step:
            case Write(place, value, first):
                self._slots(place, first, len(value))[...] = value
            case Read(place, count, first):
                return self._slots(place, first, count).copy()
            case SetBit(flags, bit):
                self._bits[flags] |= 1 << bit
                self._stamp[flags] = turn
            case Clear(flags):
                self._bits[flags] = 0
                self._stamp[flags] = turn
            case Send(channel, message):
                self._channels.setdefault(channel, deque()).append((turn, message))
            case Receive(channel):
                return self._channels[channel].popleft()[1]
            case Test(condition):
                return self.since(condition) is not None
            case _:
                raise TypeError(f"{step} is no step of memory")
        return None

    def _slots(self, place: Place, first: int, count: int) -> NDArray[Any]:
        row = self._places[place]
        if first < 0 or first + count > len(row):
            raise ValueError(f"slots {first} to {first + count} of {place}, which has {len(row)}")
        return row[first : first + count]
