"""One attention group with one or two batches as a timed event graph: its exact cycle time and what sets it.

Nodes are starts of tasks, an edge says what a task waits for:

==================  ===================================================  =============================
key of the edge     from                                                 time
==================  ===================================================  =============================
``next phase``      the batch's own phase before                         duration of that phase
name of a stream    the task that the stream served before               duration of that task
dispatch region     the receive before a send (of the region's holder)   duration of the receive
combine region      likewise                                             duration of the receive
==================  ===================================================  =============================

Edges carry a token if they lead from one period to the next. The service order is the one that the rules settle into
(`asapmodel.circuits.follow`). With it given the graph is linear in the max-plus sense, and its cycle time is the
largest mean over circuits (Baccelli, Cohen, Olsder, Quadrat 1992). `docs/background/event-graphs.md` has the theory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION, Steady, as_durations, follow, stream_names
from asapmodel.circuits.names import NEXT_PHASE, Edge, Task, name_circuit
from asapmodel.solvers.cycle_ratio import cycle_time

__all__ = ["GroupCycle", "group_cycle", "group_graph", "regimes"]

Floats = NDArray[np.float64]

_SEND, _RECV, _BACK, _END = 1, 2, 4, 5  # phases that take and free the two regions


@dataclass(frozen=True, slots=True, eq=False)
class GroupCycle:
    """Exact steady state of one group.

    `layer_s` seconds are taken by one layer of every batch; the order of service repeats every `turns` layers.
    `circuit` is a critical circuit of `graph` and `name` what it is in words.
    """

    layer_s: float
    turns: int
    graph: nx.MultiDiGraph
    circuit: list[Edge]
    name: str


def group_graph(
    durations: Sequence[Sequence[float]] | Floats,
    steady: Steady,
    overlap_attention: bool = False,
    overlap_moe: bool = True,
) -> nx.MultiDiGraph:
    """Event graph of one period of a steady state.

    Parameters
    ----------
    durations
        Seconds of the six phases, one row a batch.
    steady : Steady
        Order of service, from `follow` of the same durations.
    overlap_attention, overlap_moe
        Streams, as there.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes `Task`, `6 turns` a batch; edges with `time` in s and `tokens` (0 or 1, rarely more).

    Notes
    -----
    An edge that says no more than another (the stream's task before is the batch's own phase before) is left out.
    """
    times = as_durations(durations)
    names = stream_names(overlap_attention, overlap_moe)
    rank, turns = steady.rank, steady.turns
    base = [[int(np.searchsorted(one[:, phase], steady.cut)) for phase in range(6)] for one in rank]
    graph = nx.MultiDiGraph()
    last: dict[int | str, tuple[Task, int]] = {}  # last task of a batch, of a stream, and last to free a region
    batch_of, layer_of, phase_of = np.unravel_index(np.argsort(rank, axis=None), rank.shape)
    for batch, layer, phase in zip(batch_of.tolist(), layer_of.tolist(), phase_of.tolist(), strict=True):
        period, turn = divmod(layer - base[batch][phase], turns)
        task = Task(batch + 1, turn, phase)
        causes = {NEXT_PHASE: last.get(batch), names[phase]: last.get(names[phase])}
        if phase in (_SEND, _BACK):
            region = DISPATCH_REGION if phase == _SEND else COMBINE_REGION
            causes[region] = last.get(region)
        if period == 0:
            for key, cause in causes.items():
                if cause is None or (key != NEXT_PHASE and cause == causes[NEXT_PHASE]):
                    continue
                before, earlier = cause
                graph.add_edge(before, task, key, time=float(times[before.batch - 1, before.phase]), tokens=-earlier)
        for place in (batch, names[phase]):
            last[place] = (task, period)
        if phase in (_RECV, _END):
            last[DISPATCH_REGION if phase == _RECV else COMBINE_REGION] = (task, period)
    return graph


def group_cycle(
    durations: Sequence[Sequence[float]] | Floats,
    overlap_attention: bool = False,
    overlap_moe: bool = True,
    offset: float = 0.0,
) -> GroupCycle:
    """Cycle time of a group with one or two batches that pass equal layers for ever, and its critical circuit.

    Parameters
    ----------
    durations
        Seconds of the six phases (`LayerCosts.phases`), one row a batch.
    overlap_attention, overlap_moe
        Whether the group and the MoE devices have three streams or one.
    offset : float
        Seconds by which the second batch enters its first layer after the first. With a side of one stream the steady
        state may depend on it, see `regimes`.

    Notes
    -----
    Exact, up to rounding. A few ms.

    Raises
    ------
    ValueError
        See `as_durations` and `follow`.

    Examples
    --------
    Attention is the bottleneck of two batches whose transfers take next to nothing:

    >>> found = group_cycle([[3.0, 0.05, 0.0, 1.0, 0.05, 0.0], [2.0, 0.05, 0.0, 1.0, 0.05, 0.0]])
    >>> round(found.layer_s, 9), found.turns, found.name
    (5.1, 1, 'attention stream of the group')
    """
    rows = as_durations(durations)
    steady = follow(rows, overlap_attention, overlap_moe, offset)
    graph = group_graph(rows, steady, overlap_attention, overlap_moe)
    found = cycle_time(graph)
    assert found.circuit is not None  # every batch passes through its own layers
    return GroupCycle(found.time / steady.turns, steady.turns, graph, found.circuit, name_circuit(found.circuit))


def regimes(
    durations: Sequence[Sequence[float]] | Floats,
    overlap_attention: bool = False,
    overlap_moe: bool = True,
    offsets: int = 8,
) -> dict[float, float]:
    """Seconds a layer for evenly spaced offsets over the first batch's layer, to see whether the start matters.

    Returns
    -------
    dict
        Offset in s to seconds a layer (of the rounded durations, see `follow`).

    Examples
    --------
    Two equal batches that start together get into each other's way for ever; half a layer apart they do not:

    >>> found = regimes([[2.0, 1.0, 1.0, 1.0, 2.0, 2.0]] * 2, offsets=4)
    >>> {offset: round(layer, 9) for offset, layer in found.items()}
    {0.0: 11.0, 2.25: 11.0, 4.5: 10.0, 6.75: 11.0}
    """
    rows = as_durations(durations)
    found = {}
    for offset in np.arange(offsets) * rows[0].sum() / offsets:
        steady = follow(rows, overlap_attention, overlap_moe, float(offset))
        found[float(offset)] = steady.period_s / steady.turns
    return found
