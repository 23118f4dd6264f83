"""The tasks of lockstep execution, rebuilt from the iterations that overlap a window.

All layers of an iteration take the same time, so each of its instants is a product: with `u` its start, `b` the longest
attention and dense network of a dense layer, and `c` the time of an MoE layer, MoE layer `l` starts at

    u + step_overhead + dense_layers b + l c            (formed ahead: without the overhead, if that is hidden)

Within a layer all groups wait for the longest attention, and then go through transfers and experts together, groups
without a batch as well: the experts are on their devices, too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import lockstep_arguments, lockstep_run
from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import is_vllm_like
from asapmodel.systems.arrays import Requests
from asapmodel.systems.lockstep import record_iterations
from asapmodel.systems.logs import new_iteration_log
from asapmodel.timelines.tasks import PHASES, Batches, Tasks, group_track

__all__ = ["lockstep_tasks", "tasks_per_iteration"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STEP, _DENSE, _ATTENTION, _TOGETHER = 0, 1, 2, range(3, len(PHASES))  # the last: the same for all groups


class _Iterations(NamedTuple):
    """Start, end and overhead by iteration; tokens and work that are computed by iteration and group; seconds."""

    start: Floats
    end: Floats
    overhead: Floats
    n: Floats
    w: Floats


class _Piece(NamedTuple):
    """Tasks of one phase, axes: layer (the first of them `layer`), iteration, group; `there` says which exist."""

    phase: int
    layer: int
    ready: Floats
    start: Floats
    end: Floats
    there: Bools


def tasks_per_iteration(layout: Layout, costs: LayerCosts) -> int:
    """The most tasks of an iteration, all groups together."""
    return layout.D * (1 + costs.dense_layers + 6 * costs.moe_layers)


def lockstep_tasks(
    layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, window: tuple[float, float], room: int
) -> tuple[Tasks, int]:
    """Rebuild what the groups did in a window.

    Parameters
    ----------
    layout, policy, costs, requests
        What is run; requests in order of arrival.
    window : (float, float)
        Seconds; tasks that end after the first and are due before the last are kept.
    room : int
        Iterations to rebuild at most, the first of the window.

    Returns
    -------
    tasks : Tasks
        A stream per group. A task behind a barrier is ready and due when its group has arrived there.
    count : int
        Iterations that overlap the window.
    """
    table, known, count = _recorded(layout, policy, costs, requests, window, room)
    number, start, time = table[:count].T
    prompts, n, w = np.moveaxis(known[:count], 1, 0)
    iteration, group = np.indices(n.shape)
    which = number[iteration.ravel()].astype(np.int64)
    batches = Batches(
        number=which,
        group=group.ravel(),
        shade=which % 2,
        prompts=prompts.ravel().astype(np.int64),
        tokens=n.ravel().astype(np.int64),
        work=w.ravel(),
    )
    computed = _padded(n) if policy.pad_groups else n
    hidden = policy.schedule_ahead and policy.hide_overhead
    overhead = _overheads(costs, time, computed, w) if hidden else np.full_like(start, costs.step_overhead)
    pieces = _pieces(costs, _Iterations(start, start + time, overhead, computed, w))
    return _tasks(pieces, batches, layout.D, window), count


def _recorded(
    layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, window: tuple[float, float], room: int
) -> tuple[Floats, Floats, int]:
    """Number, start and time of the iterations; prompts, tokens and work by group; how many overlap the window."""
    if is_vllm_like(policy):
        log = new_iteration_log(layout.D, room, window)
        lockstep_run(layout, policy, costs, requests, log)
        return log.table, log.batches, int(log.counts[1])
    table, known = np.zeros((room, 3)), np.zeros((room, 3, layout.D))
    count = record_iterations(*lockstep_arguments(layout, policy, costs), *requests, *window, table, known)
    return table, known, count


def _padded(n: Floats) -> Floats:
    """Tokens that groups compute if all are padded to the largest, those without a batch too."""
    return np.broadcast_to(n.max(axis=1, keepdims=True, initial=0.0), n.shape)


def _overheads(costs: LayerCosts, time: Floats, n: Floats, w: Floats) -> Floats:
    """What of the iterations' times is no layer's: all of the overhead, or nothing where batches were formed ahead."""
    works = n > 0
    dense = np.where(works, costs.dense_layer(n, w), 0.0).max(axis=1)
    own = np.where(works, costs.attention(n, w), 0.0).max(axis=1)
    largest = n.max(axis=1, initial=0.0)
    moved = sum(costs.phases(largest, largest)[k] for k in (1, 2, 4, 5))
    layers = costs.dense_layers * dense + costs.moe_layers * (own + moved + costs.moe(n.sum(axis=1)))
    return np.where(time - layers > 0.5 * costs.step_overhead, costs.step_overhead, 0.0)


def _pieces(costs: LayerCosts, run: _Iterations) -> list[_Piece]:
    """All tasks of the iterations."""
    works, everyone = run.n > 0, np.ones_like(run.n, dtype=np.bool_)
    own = np.where(works, costs.attention(run.n, run.w), 0.0)
    dense = np.where(works, costs.dense_layer(run.n, run.w), 0.0)
    low = _dense_starts(costs, run, dense.max(axis=1))
    edges = _moe_edges(costs, run, low[-1], own.max(axis=1))

    dense_start, attention_start = low[:-1, :, None], edges[0][:, :, None]
    dense_end = np.minimum(dense_start + dense, low[1:, :, None])
    attention_end = np.minimum(attention_start + own, edges[1][:, :, None])
    # A group is ready when its own task before is done: behind a barrier it may have to wait.
    dense_ready = np.concatenate([np.broadcast_to(low[:1, :, None], (1, *works.shape)), dense_end])
    attention_ready = np.broadcast_to(attention_start, attention_end.shape).copy()
    attention_ready[:1] = dense_ready[-1:]
    meeting = attention_end.copy()  # when groups come to the barrier before dispatch: those without a batch at once
    meeting[:1] = np.where(works, attention_end[:1], low[:1, :, None])
    pieces = []
    if costs.step_overhead > 0:
        begin, paid = run.start[None, :, None], everyone & (run.overhead > 0)[:, None]
        pieces.append(_Piece(_STEP, 0, begin, begin, low[:1, :, None], paid))
    pieces.append(_Piece(_DENSE, 0, dense_ready[:-1], dense_start, dense_end, works))
    pieces.append(_Piece(_ATTENTION, costs.dense_layers, attention_ready, attention_start, attention_end, works))
    for phase, start, end in zip(_TOGETHER, edges[1:], edges[2:], strict=False):
        ready = meeting if phase == _TOGETHER.start else start[:, :, None]
        pieces.append(_Piece(phase, costs.dense_layers, ready, start[:, :, None], end[:, :, None], everyone))
    return pieces


def _dense_starts(costs: LayerCosts, run: _Iterations, longest: Floats) -> Floats:
    """Starts of the dense layers and of what follows them, by layer and iteration."""
    low: Floats = run.start + run.overhead + np.arange(costs.dense_layers + 1)[:, None] * longest
    return np.minimum(low, run.end)


def _moe_edges(costs: LayerCosts, run: _Iterations, begin: Floats, pace: Floats) -> list[Floats]:
    """Instants at which the phases of MoE layers begin, and at which the last ends, by layer and iteration."""
    largest = run.n.max(axis=1, initial=0.0)
    _, send, receive, _, back, home = costs.phases(largest, largest)
    experts = costs.moe(run.n.sum(axis=1))
    marks = np.cumsum([np.zeros_like(pace), pace, send, receive, experts, back, home], axis=0)
    layers = np.arange(costs.moe_layers)[:, None]
    ends = begin + (layers + 1) * marks[-1]
    ends[-1:] = run.end  # summed in another order: the same but for rounding
    starts = np.concatenate([begin[None], ends])[:-1]
    return [*(np.minimum(starts + mark, ends) for mark in marks[:-1]), ends]


def _tasks(pieces: list[_Piece], batches: Batches, groups: int, window: tuple[float, float]) -> Tasks:
    """The tasks of all pieces that overlap the window, in order of starts."""
    columns: list[list[NDArray[Any]]] = []
    for piece in pieces:
        ready, start, end, there = np.broadcast_arrays(piece.ready, piece.start, piece.end, piece.there)
        kept = there & (end > window[0]) & (ready < window[1])
        depth, iteration, group = np.nonzero(kept)
        kind, row = np.full(len(group), piece.phase), iteration * groups + group
        columns.append([group, kind, depth + piece.layer, row, ready[kept], start[kept], end[kept]])
    joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.lexsort((joined[1], joined[2], joined[5]))
    track, phase, layer, row, ready, start, end = (one[order] for one in joined)
    tracks = tuple(group_track(group, "all") for group in range(groups))
    return Tasks(tracks, batches, track, phase, layer, row, ready, ready, start, end)
