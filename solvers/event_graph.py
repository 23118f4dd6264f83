"""Timed event graph of task chains on first-come first-served resources, evaluated exactly.

A *chain* runs through the positions of its *lane* one after another; consecutive positions form *segments* that are
repeated. Each task occupies one resource for a given time. A resource serves tasks in the order in which they became
ready, one at a time, without preemption. A task may *acquire* a capacity-one buffer when it starts (its resource is
blocked while the buffer is taken) and a later task of the chain *releases* it when it ends. A position may stand
behind a *barrier* that opens when a fixed number of chains have reached it.

Order at equal instants: task ends in the order in which the tasks started; at one end first the buffer is released,
then the chain moves on, then the freed resource serves its next task. Nothing here is random and nothing approximate:
the result is the schedule that the rules define, up to rounding of the sums.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.solvers.event_graph_parts import Log, Network, State, new_log, new_network, new_state

__all__ = ["Log", "Network", "State", "advance", "launch", "launch_part", "new_log", "new_network", "new_state"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_SIZE, _SEQUENCE, _TASKS, _TODO, _LAUNCHES = 0, 1, 2, 3, 4  # entries of State.counter


@arrays_only
def _push(end_time: Floats, end_sequence: Ints, end_resource: Ints, counter: Ints, time: float, resource: int) -> None:
    """Add a pending task end; of equal times the earlier pushed comes first."""
    k = counter[_SIZE]
    sequence = counter[_SEQUENCE]
    counter[_SIZE] = k + 1
    counter[_SEQUENCE] = sequence + 1
    while k > 0:
        parent = (k - 1) >> 1
        if end_time[parent] <= time:
            break
        end_time[k] = end_time[parent]
        end_sequence[k] = end_sequence[parent]
        end_resource[k] = end_resource[parent]
        k = parent
    end_time[k] = time
    end_sequence[k] = sequence
    end_resource[k] = resource


@arrays_only
def _pop(end_time: Floats, end_sequence: Ints, end_resource: Ints, counter: Ints) -> int:
    """Remove the first pending task end and return its resource."""
    resource = end_resource[0]
    size = counter[_SIZE] - 1
    counter[_SIZE] = size
    time, sequence, last = end_time[size], end_sequence[size], end_resource[size]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        other = child + 1
        if other < size:
            sooner = end_time[other] < end_time[child]
            tie = end_time[other] == end_time[child] and end_sequence[other] < end_sequence[child]
            if sooner or tie:
                child = other
        if time < end_time[child] or (time == end_time[child] and sequence < end_sequence[child]):
            break
        end_time[k] = end_time[child]
        end_sequence[k] = end_sequence[child]
        end_resource[k] = end_resource[child]
        k = child
    end_time[k] = time
    end_sequence[k] = sequence
    end_resource[k] = last
    return resource


@arrays_only
def _serve(
    buffer: int,
    holder: Ints,
    blocked: Ints,
    current: Ints,
    due: Floats,
    todo: Ints,
    counter: Ints,
    chain: int,
    resource: int,
    time: float,
) -> None:
    """Put a chain's task on an idle resource: due to start now, unless its buffer is taken."""
    current[resource] = chain
    due[resource] = time
    if buffer >= 0:
        if holder[buffer] >= 0:
            blocked[buffer] = resource
            return
        holder[buffer] = chain
    todo[counter[_TODO]] = resource
    counter[_TODO] += 1


@arrays_only
def _gather(barrier: int, width: Ints, gathered: Ints, gathered_count: Ints, chain: int) -> int:
    """Bring a chain to a barrier; return how many chains go on: all of them when it opens, else none."""
    count = gathered_count[barrier]
    gathered[barrier, count] = chain
    if count + 1 < width[barrier]:
        gathered_count[barrier] = count + 1
        return 0
    gathered_count[barrier] = 0
    return count + 1


@arrays_only
def _run(net: Network, st: State, log: Log, entering: int, until: float) -> int:
    """Let chain `entering` (or -1) reach its position at `until`, else process task ends up to `until`.

    One long function: the state of a task end passes through all of its steps.
    """
    resource_of, acquire, release, barrier_of = net.resource, net.acquire, net.release, net.barrier
    first, last, repeats, width = net.segment_first, net.segment_last, net.segment_repeats, net.barrier_width
    lane, position, segment, stop, left, duration = st.lane, st.position, st.segment, st.stop, st.left, st.duration
    current, waiting, head, length = st.current, st.waiting, st.head, st.length
    busy, stalled, due, ready = st.busy, st.stalled, st.due, st.ready
    holder, blocked, gathered, gathered_count = st.holder, st.blocked, st.gathered, st.gathered_count
    end_time, end_sequence, end_resource = st.end_time, st.end_sequence, st.end_resource
    todo, clock, counter = st.todo, st.clock, st.counter
    log_start, log_end, log_count = log.start, log.end, log.recorded
    log_resource, log_chain, log_position = log.resource, log.chain, log.position
    log_run, log_repetition, log_ready, log_due = log.run, log.repetition, log.ready, log.due
    window, serial = log.window, st.serial
    capacity = waiting.shape[1]
    time = until
    while True:
        counter[_TODO] = 0
        freed = -1
        finished = -1
        launching = entering >= 0
        if not launching:
            if counter[_SIZE] == 0 or end_time[0] > until:
                return -1
            time = end_time[0]
            clock[0] = time
            freed = _pop(end_time, end_sequence, end_resource, counter)
            counter[_TASKS] += 1
            entering = current[freed]
            current[freed] = -1
            place = position[entering]
            buffer = release[lane[entering], place]
            if buffer >= 0:
                holder[buffer] = -1
                other = blocked[buffer]
                if other >= 0:
                    blocked[buffer] = -1
                    stalled[other] += time - due[other]
                    holder[buffer] = current[other]
                    todo[counter[_TODO]] = other
                    counter[_TODO] += 1
            part = segment[entering]
            if place < last[part]:
                position[entering] = place + 1
            else:
                left[entering] -= 1
                if left[entering] == 0:
                    part += 1
                    while part < stop[entering] and repeats[part] == 0:
                        part += 1
                    if part == stop[entering]:
                        finished = entering
                        entering = -1
                    else:
                        segment[entering] = part
                        left[entering] = repeats[part]
                        position[entering] = first[part]
                else:
                    position[entering] = first[part]
        if entering >= 0:
            going = 1
            barrier = barrier_of[lane[entering], position[entering]]
            if barrier >= 0:
                going = _gather(barrier, width, gathered, gathered_count, entering)
            for k in range(going):
                chain = entering if barrier < 0 else gathered[barrier, k]
                resource = resource_of[lane[chain], position[chain]]
                ready[chain] = time
                if current[resource] < 0 and length[resource] == 0:
                    buffer = acquire[lane[chain], position[chain]]
                    _serve(buffer, holder, blocked, current, due, todo, counter, chain, resource, time)
                else:
                    slot = head[resource] + length[resource]
                    waiting[resource, slot - capacity if slot >= capacity else slot] = chain
                    length[resource] += 1
        if freed >= 0 and current[freed] < 0 and length[freed] > 0:
            slot = head[freed]
            head[freed] = 0 if slot + 1 == capacity else slot + 1
            length[freed] -= 1
            chain = waiting[freed, slot]
            buffer = acquire[lane[chain], position[chain]]
            _serve(buffer, holder, blocked, current, due, todo, counter, chain, freed, time)
        for k in range(counter[_TODO]):
            resource = todo[k]
            chain = current[resource]
            span = duration[chain, position[chain]]
            busy[resource] += span
            _push(end_time, end_sequence, end_resource, counter, time + span, resource)
            count = log_count[0]
            if count < log_start.shape[0] and time + span > window[0] and due[resource] < window[1]:
                log_start[count] = time
                log_end[count] = time + span
                log_resource[count] = resource
                log_chain[count] = chain
                log_position[count] = position[chain]
                log_run[count] = serial[chain]
                log_repetition[count] = repeats[segment[chain]] - left[chain]
                log_ready[count] = ready[chain]
                log_due[count] = due[resource]
                log_count[0] = count + 1
        if launching or finished >= 0:
            return finished
        entering = -1


@arrays_only
def launch_part(net: Network, st: State, log: Log, chain: int, time: float, first: int, stop: int) -> None:
    """Start a chain that runs the segments `first` to `stop - 1` only, at least one of which has repeats."""
    st.serial[chain] = st.counter[_LAUNCHES]
    st.counter[_LAUNCHES] += 1
    segment = first
    while net.segment_repeats[segment] == 0:
        segment += 1
    st.segment[chain] = segment
    st.stop[chain] = stop
    st.left[chain] = net.segment_repeats[segment]
    st.position[chain] = net.segment_first[segment]
    _run(net, st, log, chain, time)


@arrays_only
def launch(net: Network, st: State, log: Log, chain: int, time: float) -> None:
    """Start a chain whose row of `State.duration` has been filled, at `time >= clock`."""
    launch_part(net, st, log, chain, time, 0, net.segment_repeats.shape[0])


@arrays_only
def advance(net: Network, st: State, log: Log, until: float) -> int:
    """Process task ends up to and including `until`.

    Returns the first chain that finished (the clock then stands at its end; other ends of the same instant may be
    pending) or -1 when nothing is left up to `until`.
    """
    return _run(net, st, log, -1, until)
