"""The worker of an attention device, one generator a stream.

Device j of T in group i owns a T-th of the rows of a batch and computes a T-th of the heads for all of them. A batch
goes from stream to stream of the device by tasks; where a device has one stream, that serves all of them, first come,
first served.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.buffers import Shape, combined
from asapmodel.reference.group import Turns, gather, scatter_sum
from asapmodel.reference.primitives import ASYNC, Primitives
from asapmodel.reference.scheduler import Batch
from asapmodel.reference.steps import AllSet, Channel, Phase, Receive, Send, Spend, Steps

__all__ = ["DONE", "Away", "Member", "Streams", "Task", "attention_stream", "compute_rows", "inbox"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DONE = Channel(("scheduler",), "done")
"""Own final rows of a batch: `(number, j, rows)`."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Which stream serves what: one for all, or three (the triple-stream design, section 3.4.1)."""

    compute: str = "all"
    send: str = "all"
    receive: str = "all"

    @classmethod
    def of(cls, overlap: bool) -> "Streams":
        """Three streams, or one."""
        return cls("compute", "send", "receive") if overlap else cls()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams there are."""
        return tuple(dict.fromkeys((self.compute, self.send, self.receive)))


@dataclass(frozen=True, slots=True, eq=False)
class Away:
    """What a member keeps of its rows while their copies are with the experts."""

    normed: Floats
    experts: Ints
    weights: Floats
    rest: Floats  # residual and shared expert


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be done next for a batch; `own` are the member's rows of hidden states before the layer."""

    batch: Batch
    layer: int
    own: Floats | None = None
    away: Away | None = None
    step: bool = False  # the overhead of a step is still to be paid


class Member(Protocol):
    """The arithmetic of one attention device."""

    shape: Shape
    i: int
    j: int
    layers: int
    dense_layers: int

    def embed(self, batch: Batch) -> Floats:
        """Own rows before the first layer."""
        ...

    def attend(self, batch: Batch, layer: int, rows: Floats) -> Floats:
        """What own heads add to all rows of a batch."""
        ...

    def dense(self, layer: int, own: Floats) -> Floats:
        """Own rows after the feed-forward network of a dense layer."""
        ...

    def route(self, layer: int, own: Floats) -> Away:
        """Experts of own rows."""
        ...

    def combine(self, away: Away, outcome: Floats) -> Floats:
        """Own rows after a layer, with the experts' results (m, K, H)."""
        ...

    def finish(self, own: Floats) -> Floats:
        """Own rows after the last layer."""
        ...


def inbox(i: int, j: int, stream: str) -> Channel:
    """Tasks for a stream of an attention device: of the scheduler, or of its other streams."""
    return Channel(("attention", i, j), f"inbox {stream}")


def attention_stream(member: Member, streams: Streams, stream: str, primitives: Primitives = ASYNC) -> Steps:
    """Serve the tasks of one stream for ever."""
    i, j, shape = member.i, member.j, member.shape
    flight = Channel(("attention", i, j), "flight", local=True)  # batches away, in order
    results_there = (AllSet(combined(i, j), (1 << shape.E) - 1),) if stream == streams.receive else ()
    turns = Turns(i, j, shape.T, stream, inbox(i, j, stream), results_there)
    while True:
        task = yield from turns.take()
        if task is None:
            yield from _receive(member, streams, primitives, (yield Receive(flight)))
        elif task.away is not None:
            yield from _dispatch(member, primitives, task)
            yield Send(flight, task)
        elif task.step:
            yield Spend(Phase("step", task.batch.tokens, task.batch.work, 0, i))
            yield Send(inbox(i, j, streams.compute), Task(task.batch, 0))
        else:
            yield from _compute(member, streams, task)


def compute_rows(member: Member, task: Task) -> Steps:
    """Attention of one layer, with the dense network where the layer has one; returns own rows."""
    batch, shape = task.batch, member.shape
    name = "dense" if task.layer < member.dense_layers else "attention"
    yield Spend(Phase(name, batch.tokens, batch.work, task.layer, member.i))
    own = member.embed(batch) if task.own is None else task.own
    rows = yield from gather(member.i, member.j, shape.T, own)
    partial = member.attend(batch, task.layer, rows)
    own = own + (yield from scatter_sum(member.i, member.j, shape.T, partial))
    return member.dense(task.layer, own) if name == "dense" else own


def _compute(member: Member, streams: Streams, task: Task) -> Steps:
    own = yield from compute_rows(member, task)
    if task.layer < member.dense_layers:
        yield from _go_on(member, streams, task, own)
        return
    away = member.route(task.layer, own)
    yield Send(inbox(member.i, member.j, streams.send), Task(task.batch, task.layer, None, away))


def _dispatch(member: Member, primitives: Primitives, task: Task) -> Steps:
    batch, away = task.batch, task.away
    assert away is not None
    phase = Phase("dispatch_send", batch.tokens, batch.work, task.layer, member.i)
    return primitives.dispatch_send(member.shape, member.i, member.j, batch.slot, phase, away.normed, away.experts)


def _receive(member: Member, streams: Streams, primitives: Primitives, task: Task) -> Steps:
    batch, away = task.batch, task.away
    assert away is not None
    phase = Phase("combine_recv", batch.tokens, batch.work, task.layer, member.i)
    m = len(away.normed)
    outcome = yield from primitives.combine_recv(member.shape, member.i, member.j, batch.slot, phase, m)
    yield from _go_on(member, streams, task, member.combine(away, outcome))


def _go_on(member: Member, streams: Streams, task: Task, own: Floats) -> Steps:
    """Next layer, or the end."""
    if task.layer + 1 < member.layers:
        yield Send(inbox(member.i, member.j, streams.compute), Task(task.batch, task.layer + 1, own))
    else:
        yield Send(DONE, (task.batch.number, member.j, member.finish(own)))
