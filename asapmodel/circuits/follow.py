"""One or two batches of one attention group followed layer by layer until what they do repeats.

A stream serves first come, first served, so in which order it serves different phases of the two batches depends on
times, and is found by following the rules (`asapmodel.solvers.event_graph`). Durations are rounded to whole multiples
of a power of two, small enough that no sum is ever rounded: the state of one layer and of a later one can then be
compared for equality, and if they are equal the system repeats itself for ever.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.event_graph import advance, launch, new_log, new_network, new_state

__all__ = ["COMBINE_REGION", "DISPATCH_REGION", "Steady", "as_durations", "follow", "stream_names"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DISPATCH_REGION, COMBINE_REGION = "dispatch region", "combine region"

_ACQUIRE, _RELEASE = [-1, 0, -1, -1, 1, -1], [-1, -1, 0, -1, -1, 1]
_SHORT, _LONG = 64, 4096  # layers followed at first, and at most
_EXACT_BITS = 52


@dataclass(frozen=True, slots=True, eq=False)
class Steady:
    """What repeats: `turns` layers of every batch take `period_s` seconds, again and again.

    `rank[batch, layer, phase]` is the place of a task among all starts; a period begins with the task at place `cut`.
    """

    rank: Ints
    cut: int
    turns: int
    period_s: float


def stream_names(overlap_attention: bool, overlap_moe: bool) -> tuple[str, ...]:
    """Name of the stream that serves each of the six phases.

    Examples
    --------
    >>> stream_names(False, True)[:3]
    ('attention stream of the group', 'attention stream of the group', 'receiving stream of the MoE devices')
    """
    compute = send = receive = "attention stream of the group"
    if overlap_attention:
        compute, send, receive = "attention compute", "sending stream of the group", "receiving stream of the group"
    experts = back = take = "stream of the MoE devices"
    if overlap_moe:
        experts, back, take = "MoE compute", "sending stream of the MoE devices", "receiving stream of the MoE devices"
    return compute, send, take, experts, back, receive


def as_durations(durations: Sequence[Sequence[float]] | Floats) -> Floats:
    """Check durations of the six phases, seconds, and return them as an array of shape (batches, 6).

    Raises
    ------
    ValueError
        If there are not one or two rows of six finite numbers, none negative and in every row one positive.
    """
    rows = np.array(durations, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] not in (1, 2) or rows.shape[1] != 6:
        raise ValueError(f"durations have shape {rows.shape}: give one or two batches with six phases each")
    if not np.all(np.isfinite(rows)) or np.any(rows < 0) or np.any(rows.sum(axis=1) == 0):
        raise ValueError(f"durations are {rows.tolist()}: every batch needs finite seconds >= 0, not all of them 0")
    return rows


def follow(durations: Floats, overlap_attention: bool = False, overlap_moe: bool = True, offset: float = 0.0) -> Steady:
    """Follow the batches until a layer repeats an earlier one.

    Parameters
    ----------
    durations : array, shape (1 or 2, 6)
        Seconds of the phases, see `as_durations`.
    overlap_attention, overlap_moe : bool
        Whether a side has three streams or one.
    offset : float
        Seconds by which the second batch starts after the first. Alone, the first repeats itself, so what counts is
        the remainder of the offset by the time of its layer.

    Raises
    ------
    ValueError
        If the offset is negative or not finite, or nothing has repeated within 4096 layers.

    Notes
    -----
    Exact for the rounded durations, which are off by less than `2**-39` of the time of a layer of all batches.
    Equal starts of two layers of both batches mean an equal state: with two batches at most one waits at a stream.
    """
    if not (math.isfinite(offset) and offset >= 0):
        raise ValueError(f"offset is {offset}: give the seconds between the two starts, 0 or more")
    total = float(durations.sum())
    unit = 2.0 ** (math.ceil(math.log2(_LONG * total)) - _EXACT_BITS)
    whole = np.rint(durations / unit)
    gap = math.fmod(float(np.rint(offset / unit)), float(whole[0].sum()))
    layers = _SHORT
    while layers <= _LONG:
        start, rank = _run(whole, overlap_attention, overlap_moe, layers, gap)
        found = _repetition(start, rank)
        if found is not None:
            cut, turns, period = found
            return Steady(rank, cut, turns, period * unit)
        layers *= 4
    raise ValueError(f"no layer repeats another within {_LONG} layers of durations {durations.tolist()}")


def _run(whole: Floats, overlap_attention: bool, overlap_moe: bool, layers: int, gap: float) -> tuple[Floats, Ints]:
    """Start and place of every task, shape (batches, layers, 6)."""
    names = stream_names(overlap_attention, overlap_moe)
    row = np.array([[sorted(set(names)).index(name) for name in names]])
    network = new_network(row, [(0, 5, layers)], np.array([_ACQUIRE]), np.array([_RELEASE]))
    count = whole.shape[0]
    state, log = new_state(network, count), new_log(6 * layers * count)
    state.duration[:] = whole
    launch(network, state, log, 0, 0.0)
    if count == 2:
        advance(network, state, log, gap)
        launch(network, state, log, 1, gap)
    while advance(network, state, log, np.inf) >= 0:
        pass
    rank = np.empty((count, layers, 6), dtype=np.int64)
    for batch in range(count):
        for phase in range(6):
            rank[batch, :, phase] = np.flatnonzero((log.chain == batch) & (log.position == phase))
    return log.start[rank], rank


def _repetition(start: Floats, rank: Ints) -> tuple[int, int, float] | None:
    """Place at which a period begins, its layers and its length; None if nothing has repeated by half-time."""
    layers = start.shape[1]
    cut = int(rank[0, layers // 2, 0])
    base = [int(np.searchsorted(one[:, 0], cut)) for one in rank]  # the layer each batch begins next
    for turns in range(1, layers // 4):
        if max(base) + turns + 1 > layers:
            return None
        pairs = [(start[k, b - 1 : b + 1], start[k, b - 1 - turns : b + 1 - turns]) for k, b in enumerate(base)]
        shift = np.concatenate([(late - early).ravel() for late, early in pairs])
        if np.all(shift == shift[0]):
            return cut, turns, float(shift[0])
    return None
