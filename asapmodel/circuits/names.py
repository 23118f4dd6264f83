"""Circuits of the event graphs in words."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION

__all__ = ["NEXT_PHASE", "SYMBOLS", "Edge", "Task", "latency_name", "name_circuit"]

NEXT_PHASE = "next phase"
"""Key of the edge from a batch's own phase before."""

SYMBOLS = "AsrMce"
"""The six phases: attention, dispatch send and receive, experts, combine send and receive."""


class Task(NamedTuple):
    """Start of a phase of a batch (1, 2); `turn` counts the times it occurs in a period, from 0."""

    batch: int
    turn: int
    phase: int

    def __str__(self) -> str:
        """Symbol of the phase and number of the batch.

        Examples
        --------
        >>> str(Task(2, 0, 3))
        'M2'
        """
        return f"{SYMBOLS[self.phase]}{self.batch}"


Edge: TypeAlias = tuple[Task, Task, str]
"""Source, target, key."""

_REGIONS = {
    DISPATCH_REGION: ({1, 2}, "dispatch region (receive must end before the next send)"),
    COMBINE_REGION: ({4, 5}, "combine region (receive must end before the next send)"),
}
_GROUP, _MOE = {0, 1, 5}, {2, 3, 4}


def latency_name(batch: int) -> str:
    """Name of the circuit that is one batch's own phases."""
    return f"way of batch {batch} through a layer (latency)"


def name_circuit(circuit: Sequence[Edge]) -> str:
    """What a circuit of a group's event graph is.

    Parameters
    ----------
    circuit
        Edges in order, as `GroupCycle.circuit`.

    Returns
    -------
    str
        The name of a stream, of a buffer region, ``"way of batch 1 through a layer (latency)"``, or for a circuit that
        changes from batch to batch on its way round, at which tasks it does.

    Examples
    --------
    >>> send, receive = Task(1, 0, 1), Task(1, 0, 2)
    >>> other = send._replace(batch=2), receive._replace(batch=2)
    >>> name_circuit([(send, receive, NEXT_PHASE), (receive, other[0], "dispatch region"),
    ...               (other[0], other[1], NEXT_PHASE), (other[1], send, "dispatch region")])
    'dispatch region (receive must end before the next send)'
    """
    keys = {key for _, _, key in circuit} - {NEXT_PHASE}
    batches = {task.batch for task, _, _ in circuit}
    phases = {task.phase for task, _, _ in circuit}
    if len(batches) == 1:
        return latency_name(min(batches))
    if len(keys) == 1:
        (key,) = keys
        if key in _REGIONS:
            inside, name = _REGIONS[key]
            if phases <= inside:
                return name
        elif phases <= _GROUP or phases <= _MOE:
            return key
    waits = [f"{after} behind {before} ({key})" for before, after, key in circuit if key != NEXT_PHASE]
    return f"way round with waits: {', '.join(waits)}"
