"""Shared memory between processes: no bit lost, no row torn, nothing overlaps, and what outlives its name."""

import multiprocessing
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.reference.buffers import Shape, dispatched, places, tokens
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.steps import (
    AllSet,
    Flags,
    Unset,
)
from tests.reference.leftovers import nothing_left

# forking with the threads of a BLAS library around, of which Python warns from 3.12 on
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc and /dev/shm")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHAPE = Shape(D=1, T=3, E=1, E_total=2, K=1, H=4, S=12)


def write_rounds(memory: SharedPlaces, j: int, rounds: int) -> None:
    for k in range(rounds):
        while memory.since(Unset(dispatched(0, 0), 1 << j)) is None:
            time.sleep(0)
        memory.write(tokens(0, 0, j), np.full((4, 4), 10.0 * k + j))
        memory.set_bit(dispatched(0, 0), j)


def test_no_bit_is_lost_and_no_row_torn() -> None:
    context = multiprocessing.get_context()
    memory = SharedPlaces(SHAPE, context)
    writers = [context.Process(target=write_rounds, args=(memory, j, 300), daemon=True) for j in range(3)]
    for writer in writers:
        writer.start()
    end = time.monotonic() + 20
    for k in range(300):
        while memory.since(AllSet(dispatched(0, 0), 0b111)) is None:
            assert time.monotonic() < end, f"a bit was lost in round {k}"
            time.sleep(0)
        rows = [memory.read(tokens(0, 0, j), 4) for j in range(3)]
        memory.clear(dispatched(0, 0))
        assert all((rows[j] == 10.0 * k + j).all() for j in range(3))
    for writer in writers:
        writer.join(5)
        writer.close()
    memory.close()
    assert nothing_left()


def test_every_place_has_its_own_memory() -> None:
    shape = Shape(D=2, T=2, E=2, E_total=130, K=2, H=3, S=4)
    memory = SharedPlaces(shape, multiprocessing.get_context())
    sizes = {name: size for name, (kind, size) in places(shape).items() if kind != "flags"}
    for value, (name, size) in enumerate(sizes.items()):
        memory.write(name, np.full(size, value))
    bitmaps = [name for name in places(shape) if isinstance(name, Flags)]
    for flags in bitmaps:
        memory.set_bit(flags, 1)
    for value, (name, size) in enumerate(sizes.items()):
        assert (memory.read(name, size[0]) == value).all()
    with pytest.raises(ValueError, match=r"slots 3 to 5 .* which has 4"):
        memory.read(tokens(0, 0, 0), 2, first=3)
    assert all(memory.since(AllSet(flags, 0b10)) is not None for flags in bitmaps)
    assert all(memory.since(AllSet(flags, 0b11)) is None for flags in bitmaps)
    memory.close()


def test_bitmaps_of_more_than_a_word_and_their_times() -> None:
    memory = SharedPlaces(Shape(D=1, T=1, E=70, E_total=70, K=1, H=1, S=1), multiprocessing.get_context())
    flags = Flags(("attention", 0, 0), ())
    assert memory.since(Unset(flags, 1)) == 0
    before = time.monotonic_ns()
    for bit in range(70):
        assert memory.since(AllSet(flags, (1 << 70) - 1)) is None
        memory.set_bit(flags, bit)
    since = memory.since(AllSet(flags, (1 << 70) - 1))
    assert since is not None
    assert before <= since <= time.monotonic_ns()
    assert memory.since(Unset(flags, 1 << 69)) is None
    memory.clear(flags)
    cleared = memory.since(Unset(flags, (1 << 70) - 1))
    assert cleared is not None
    assert cleared >= since
    memory.close()


@linux
def test_memory_outlives_its_name() -> None:
    memory = SharedPlaces(SHAPE, multiprocessing.get_context())
    assert Path("/dev/shm", memory.name).exists()
    memory.unlink()
    assert not Path("/dev/shm", memory.name).exists()
    memory.write(tokens(0, 0, 1), np.ones((4, 4)))
    assert memory.read(tokens(0, 0, 1), 4).sum() == 16
    memory.close()
