"""Workers of the synchronous baseline: all devices go through all layers together, with blocking all-to-all exchanges.

Device j of T in attention group i is at the same time expert device `e = i T + j` of `E = D T`. In a layer with experts
every device sends every other its rows for that one's experts and waits for all of them (a barrier), computes, and
sends the results back the same way (another). A group without a batch takes part with no rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention_worker import DONE, Away, Member, Task, compute_rows
from asapmodel.reference.buffers import Shape
from asapmodel.reference.expert_worker import Experts
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.primitives import Arrived
from asapmodel.reference.scheduler import Batch
from asapmodel.reference.scheduler_worker import ARRIVALS, Journal
from asapmodel.reference.steps import (
    Await,
    Channel,
    Condition,
    Now,
    Pending,
    Phase,
    Reached,
    Receive,
    Send,
    Spend,
    Steps,
)

__all__ = ["device_name", "iteration_worker", "lockstep_device"]

Floats = NDArray[np.float64]

_START = 3  # after all that arrives in the same instant


def device_name(shape: Shape, e: int) -> tuple[Any, ...]:
    """Name of expert device e, which is a device of an attention group."""
    return ("attention", *divmod(e, shape.T))


def _orders(shape: Shape, e: int) -> Channel:
    """Batches of a device, one an iteration, None for none."""
    return Channel(device_name(shape, e), "iteration")


def lockstep_device(member: Member, experts: Experts) -> Steps:
    """Go through iteration after iteration, for ever."""
    e = experts.e
    while True:
        batch = yield Receive(_orders(member.shape, e))
        n, w = (0, 0) if batch is None else (batch.tokens, batch.work)
        yield Spend(Phase("step", n, w, 0))
        own: Floats | None = None
        for layer in range(member.layers):
            if batch is not None:
                own = yield from compute_rows(member, Task(batch, layer, own))
            if layer < member.dense_layers:
                yield from _barrier(member.shape, e, layer, "dense", None)
            else:
                own = yield from _expert_layer(member, experts, layer, n, own)
        yield Send(DONE, (member.i, member.j, None if own is None else member.finish(own)))


def _exchange(shape: Shape, e: int, name: str, messages: list[Any]) -> Steps:
    """All-to-all: send each device its message, wait for theirs; returns them in the order of the devices."""
    for k in range(shape.E):
        if k != e:
            yield Send(Channel(device_name(shape, k), f"{name} {e}"), messages[k])
    found = []
    for k in range(shape.E):
        found.append(messages[e] if k == e else (yield Receive(Channel(device_name(shape, e), f"{name} {k}"))))
    return found


def _barrier(shape: Shape, e: int, layer: int, name: str, message: Any) -> Steps:
    """Wait for all devices; returns what each of them says. A phase that takes no time but that of waiting."""
    yield Spend(Phase("barrier", 0, 0, layer))
    return (yield from _exchange(shape, e, name, [message] * shape.E))


def _expert_layer(member: Member, experts: Experts, layer: int, n: int, own: Floats | None) -> Steps:
    """Dispatch, experts and combine; returns own rows after the layer."""
    shape, e = member.shape, experts.e
    away = None if own is None else member.route(layer, own)
    parcels, order = _pack(shape, away)
    sizes = yield from _barrier(shape, e, layer, "sizes", n)
    largest, total = max(sizes), sum(sizes[:: shape.T])
    yield Spend(Phase("dispatch_send", largest, 0, layer))
    received = yield from _exchange(shape, e, "dispatch", parcels)
    yield Spend(Phase("dispatch_recv", largest, 0, layer))
    counts = np.array([one[0] for one in received])
    arrived = Arrived(0, layer, total, counts, np.zeros(0, np.int64), np.concatenate([one[1] for one in received]))
    ends = np.cumsum([0, *counts.sum(axis=1)])
    yield Spend(Phase("moe", total, 0, layer))
    outcome = experts.compute(arrived)
    yield from _barrier(shape, e, layer, "experts", None)
    yield Spend(Phase("combine_send", largest, 0, layer))
    results = yield from _exchange(shape, e, "combine", [outcome[ends[k] : ends[k + 1]] for k in range(shape.E)])
    yield Spend(Phase("combine_recv", largest, 0, layer))
    if away is None:
        return None
    rows = np.empty((len(order), shape.H))
    rows[order] = np.concatenate(results)
    return member.combine(away, rows.reshape(-1, shape.K, shape.H))


def _pack(shape: Shape, away: Away | None) -> tuple[list[tuple[Any, Floats]], Any]:
    """Counts by local expert and rows for every device, and the order in which copies were packed."""
    if away is None:
        nothing = (np.zeros(shape.experts, np.int64), np.zeros((0, shape.H)))
        return [nothing] * shape.E, np.zeros(0, np.int64)
    flat = away.experts.ravel()
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=shape.E_total).reshape(shape.E, shape.experts)
    ends = np.cumsum([0, *counts.sum(axis=1)])
    copies = away.normed[order // shape.K]
    return [(counts[k], copies[ends[k] : ends[k + 1]]) for k in range(shape.E)], order


def iteration_worker(scheduler: IterationScheduler, shape: Shape, count: int, journal: Journal) -> Steps:
    """Start iterations until `count` prompts are done."""
    batches: tuple[Batch | None, ...] = ()
    parts: dict[tuple[int, int], Floats] = {}
    start: float | None = None
    done = 0
    while done < count:
        waits: tuple[Condition, ...] = (Pending(DONE), Pending(ARRIVALS))
        index = yield Await(waits if start is None else (*waits, Reached(start, _START)))
        now = yield Now()
        if index == 0:
            i, j, rows = yield Receive(DONE)
            parts[i, j] = rows
            if len(parts) == shape.E:
                done += _finish(batches, parts, shape, journal, now)
                batches, parts, start = (), {}, now
        elif index == 1:
            scheduler.arrive((yield Receive(ARRIVALS)))
            start = start if batches else scheduler.start_at() if start is None else start
        else:
            batches = scheduler.begin(now)
            start = None
            if not any(batches):
                batches = ()
                start = scheduler.start_at()
            for i, batch in enumerate(batches):
                if batch is not None:
                    journal.begin(batch, now)
                for j in range(shape.T):
                    yield Send(_orders(shape, i * shape.T + j), batch)


def _finish(
    batches: tuple[Batch | None, ...],
    parts: dict[tuple[int, int], Floats],
    shape: Shape,
    journal: Journal,
    now: float,
) -> int:
    """Note the batches of an iteration; return the prompts that are complete."""
    complete = 0
    for i, batch in enumerate(batches):
        if batch is not None:
            journal.finish(batch, [parts[i, j] for j in range(shape.T)], now)
            complete += sum(piece.completes for piece in batch.pieces)
    return complete
