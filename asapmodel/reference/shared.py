"""Places and bitmaps in one segment of memory that operating-system processes share.

The segment holds every place of `buffers.places`, and for every bitmap its bits and the time of its last change. A
process that is told the segment's name maps the same memory; nothing else of this module is common to processes but one
lock for each bitmap.

**Why a lock.** A bitmap has several writers, and to set a bit is to read, change and write: without a lock one of two
writers at a time could lose its bit. The lock also gives the order on which the primitives rely, *payload before flag*
and *flag before payload*. A processor may carry out its own reads and writes of memory in another order than the
program's. On x86 (total store order) writes become visible in program order and reads are done in program order, so
whoever sees a flag sees what was written before it, even without a lock. ARM promises nothing of the kind: a flag may
become visible before the payload, and a payload may be read before the flag. To take a lock is an *acquire* (what
follows stays behind it), to release it a *release* (what precedes stays before it), on every processor; POSIX names
`sem_wait` and `sem_post`, of which these locks are made, among the functions that synchronise memory. So:

* the writer writes the payload, takes the lock, sets the bit, releases the lock;
* the reader looks at the bit without the lock, as often as it likes, for that costs the others nothing; having seen it
  the reader takes the lock once. It gets the lock after the writer's release, and so the payload is complete;
* in the other direction likewise: the reader copies the payload, and clears the bits under the lock; a writer that has
  seen its bit clear takes the lock once before it writes the next payload.

The look without the lock may find bits of several moments. That does no harm: a bit that somebody waits for changes
but once until he acts, and it is looked at again under the lock.
"""

import os
import secrets
from multiprocessing.context import BaseContext
from multiprocessing.shared_memory import SharedMemory
from time import monotonic_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.buffers import Shape, places
from asapmodel.reference.steps import AllSet, Flags, Place, Unset

__all__ = ["SEGMENT", "SharedPlaces"]

SEGMENT = "asapmodel"
"""Names of segments are this, the process that made it, and a random number."""

_LINE = 64  # bytes: no two places or bitmaps in one cache line
_WORD = 8  # bytes of every kind of number, and of a stamp


class _Spot(NamedTuple):
    """Where something is in the segment: bytes, and the shape of the array there."""

    offset: int
    size: int
    shape: tuple[int, ...]
    dtype: type


class SharedPlaces:
    """Shared buffers of a system; picklable as an argument of a new process, which then has the same memory.

    Whoever makes it must `unlink` it, and may do so as soon as all processes that need it have it: the memory lives
    until the last of them ends, however it ends, and there is no name left that anybody could forget to remove.

    Parameters
    ----------
    shape : Shape
        Sizes of the system.
    context : multiprocessing context
        Of the processes that will share the places.
    """

    def __init__(self, shape: Shape, context: BaseContext) -> None:
        self._spots: dict[Place | Flags, _Spot] = {}
        end = 0
        for name, (kind, size) in places(shape).items():
            count = int(np.prod(size)) + (kind == "flags")  # a stamp behind the bits
            dtype = np.float64 if kind == "rows" else np.int64
            self._spots[name] = _Spot(end, count * _WORD, size, dtype)
            end += -(-count * _WORD // _LINE) * _LINE
        self._locks = {name: context.Lock() for name in self._spots if isinstance(name, Flags)}
        self._segment = SharedMemory(f"{SEGMENT}_{os.getpid()}_{secrets.token_hex(3)}", create=True, size=end)
        self._named = True

    @property
    def name(self) -> str:
        """Of the segment."""
        return self._segment.name

    def unlink(self) -> None:
        """Remove the name of the segment; the memory goes when nobody has it any more."""
        if self._named:
            self._named = False
            self._segment.unlink()

    def close(self) -> None:
        """Let go of the memory, and remove the name if it is still there."""
        self.unlink()
        self._segment.close()

    def write(self, place: Place, value: Any, first: int = 0) -> None:
        """Write rows or integers from slot `first` on; ValueError if they do not fit."""
        self._slots(place, first, len(value))[...] = value

    def read(self, place: Place, count: int, first: int = 0) -> NDArray[Any]:
        """Copy `count` slots from `first` on; ValueError if there are not as many."""
        return self._slots(place, first, count).copy()

    def set_bit(self, flags: Flags, bit: int) -> None:
        """Set one bit: what this process wrote before is seen by whoever sees the bit."""
        with self._locks[flags]:
            self._change(flags, self._bits(flags) | 1 << bit)

    def clear(self, flags: Flags) -> None:
        """Clear all bits: what this process read before is not overwritten by whoever sees them clear."""
        with self._locks[flags]:
            self._change(flags, 0)

    def since(self, condition: AllSet | Unset) -> int | None:
        """When a condition came to hold, nanoseconds of `monotonic_ns`, or None if it does not hold."""
        if not self._holds(condition):
            return None
        with self._locks[condition.flags]:
            return self._stamp(condition.flags) if self._holds(condition) else None

    @property
    def _buffer(self) -> memoryview:
        buffer = self._segment.buf
        assert buffer is not None, "closed"
        return buffer

    def _holds(self, condition: AllSet | Unset) -> bool:
        bits = self._bits(condition.flags) & condition.mask
        return bits == condition.mask if isinstance(condition, AllSet) else not bits

    def _bits(self, flags: Flags) -> int:
        spot = self._spots[flags]
        return int.from_bytes(self._buffer[spot.offset : spot.offset + spot.size - _WORD], "little")

    def _stamp(self, flags: Flags) -> int:
        spot = self._spots[flags]
        return int.from_bytes(self._buffer[spot.offset + spot.size - _WORD : spot.offset + spot.size], "little")

    def _change(self, flags: Flags, bits: int) -> None:
        spot = self._spots[flags]
        content = bits.to_bytes(spot.size - _WORD, "little") + monotonic_ns().to_bytes(_WORD, "little")
        self._buffer[spot.offset : spot.offset + spot.size] = content

    def _slots(self, place: Place, first: int, count: int) -> NDArray[Any]:
        spot = self._spots[place]
        if first < 0 or first + count > spot.shape[0]:
            raise ValueError(f"slots {first} to {first + count} of {place}, which has {spot.shape[0]}")
        row: NDArray[Any] = np.ndarray(spot.shape, spot.dtype, self._buffer, spot.offset)
        return row[first : first + count]
