"""What the event graph is made of: the lanes (`Network`), what changes (`State`), and a record of tasks (`Log`).

Plain tuples of arrays, so that compiled code can read them; `asapmodel.solvers.event_graph` gives them their meaning.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Log", "Network", "State", "new_log", "new_network", "new_state"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Network(NamedTuple):
    """What does not change: shapes (lanes, positions) and (segments,); -1 stands for none."""

    resource: Ints
    acquire: Ints
    release: Ints
    barrier: Ints
    segment_first: Ints
    segment_last: Ints
    segment_repeats: Ints
    barrier_width: Ints


class State(NamedTuple):
    """What changes; one entry per chain, resource, buffer or barrier as the group comments say."""

    # chains: (chains,), durations (chains, positions)
    lane: Ints
    position: Ints
    segment: Ints
    stop: Ints
    left: Ints
    serial: Ints
    ready: Floats
    duration: Floats
    # resources: (resources,), waiting (resources, chains)
    current: Ints
    waiting: Ints
    head: Ints
    length: Ints
    busy: Floats
    stalled: Floats
    due: Floats
    # buffers: (buffers,)
    holder: Ints
    blocked: Ints
    # barriers: (barriers,), gathered (barriers, chains)
    gathered: Ints
    gathered_count: Ints
    # pending task ends, a binary heap on (time, sequence): (resources,)
    end_time: Floats
    end_sequence: Ints
    end_resource: Ints
    # resources whose tasks start at this instant: (resources,)
    todo: Ints
    # clock (1,) in the unit of the durations; counter: heap size, tasks started, tasks ended, due to start, launches
    clock: Floats
    counter: Ints


class Log(NamedTuple):
    """Tasks that overlap a window, in the order in which they started, up to the capacity of the arrays.

    `recorded[0]` counts them. A task becomes `ready` when its chain has reached it (behind its barrier), is `due` when
    its resource has come to it, and starts then unless its buffer is taken: `ready <= due <= start <= end`. It is
    recorded if it ends after `window[0]` and is due before `window[1]`. Its chain was launched as number `run` of all
    launches, counted from 0; its segment had been repeated `repetition` times before.
    """

    start: Floats
    end: Floats
    resource: Ints
    chain: Ints
    position: Ints
    run: Ints
    repetition: Ints
    ready: Floats
    due: Floats
    recorded: Ints
    window: Floats


def new_network(
    resource: Ints,
    segments: list[tuple[int, int, int]],
    acquire: Ints | None = None,
    release: Ints | None = None,
    barrier: Ints | None = None,
    barrier_width: list[int] | None = None,
) -> Network:
    """Describe the lanes.

    Parameters
    ----------
    resource : int array, shape (lanes, positions)
        Resource of each position.
    segments : list of (first, last, repeats)
        Consecutive positions `first..last` run `repeats` times, segment after segment; `repeats` may be 0.
    acquire, release, barrier : int arrays of the same shape, optional
        Buffer taken at the start, buffer freed at the end, barrier stood behind; -1 for none.
    barrier_width : list of int, optional
        Chains that must gather at each barrier before all of them go on.

    Raises
    ------
    ValueError
        If no task would ever run, or one buffer is acquired on two resources (the order in which the two would
        get it is not defined here).
    """
    table = np.ascontiguousarray(resource, dtype=np.int64)
    none = np.full_like(table, -1)
    taken = none if acquire is None else np.ascontiguousarray(acquire, dtype=np.int64)
    for buffer in range(int(taken.max(initial=-1)) + 1):
        if len(set(table[taken == buffer].tolist())) > 1:
            raise ValueError(f"buffer {buffer} is acquired on more than one resource")
    if not any(repeats > 0 for _, _, repeats in segments):
        raise ValueError("every segment is repeated 0 times: there is no task to run")
    columns = np.array(segments, dtype=np.int64).reshape(-1, 3).T.copy()
    return Network(
        resource=table,
        acquire=taken,
        release=none if release is None else np.ascontiguousarray(release, dtype=np.int64),
        barrier=none if barrier is None else np.ascontiguousarray(barrier, dtype=np.int64),
        segment_first=columns[0].copy(),
        segment_last=columns[1].copy(),
        segment_repeats=columns[2].copy(),
        barrier_width=np.array(barrier_width or [], dtype=np.int64),
    )


def new_state(network: Network, chains_per_lane: int) -> State:
    """Return an idle state; chain `lane * chains_per_lane + k` belongs to `lane`."""
    lanes, positions = network.resource.shape
    chains = lanes * chains_per_lane
    resources = int(network.resource.max()) + 1
    buffers = max(int(network.acquire.max()), int(network.release.max())) + 1
    barriers = len(network.barrier_width)

    def ints(*shape: int, value: int = 0) -> Ints:
        return np.full(shape, value, dtype=np.int64)

    return State(
        lane=np.repeat(np.arange(lanes, dtype=np.int64), chains_per_lane),
        position=ints(chains, value=-1),
        segment=ints(chains),
        stop=ints(chains),
        left=ints(chains),
        serial=ints(chains),
        ready=np.zeros(chains),
        duration=np.zeros((chains, positions)),
        current=ints(resources, value=-1),
        waiting=ints(resources, chains),
        head=ints(resources),
        length=ints(resources),
        busy=np.zeros(resources),
        stalled=np.zeros(resources),
        due=np.zeros(resources),
        holder=ints(buffers, value=-1),
        blocked=ints(buffers, value=-1),
        gathered=ints(barriers, chains),
        gathered_count=ints(barriers),
        end_time=np.zeros(resources),
        end_sequence=ints(resources),
        end_resource=ints(resources),
        todo=ints(resources),
        clock=np.zeros(1),
        counter=ints(5),
    )


def new_log(capacity: int = 0, window: tuple[float, float] = (-np.inf, np.inf)) -> Log:
    """Return an empty log; capacity 0 records nothing and costs nothing.

    Parameters
    ----------
    capacity : int
        The most tasks to record; those that start later are left out.
    window : (float, float)
        Tasks to record, by time; see `Log`.
    """

    def ints() -> Ints:
        return np.zeros(capacity, dtype=np.int64)

    def floats() -> Floats:
        return np.zeros(capacity)

    return Log(
        start=floats(),
        end=floats(),
        resource=ints(),
        chain=ints(),
        position=ints(),
        run=ints(),
        repetition=ints(),
        ready=floats(),
        due=floats(),
        recorded=np.zeros(1, dtype=np.int64),
        window=np.array(window),
    )
