"""The four asynchronous primitives (section 3.2 of the paper), step by step.

Each is a generator of steps. Attention device j of group i *sends* its tokens to all MoE devices (1 to N), each MoE
device *receives* from the T devices of a group (N to 1), *sends* results back to them (1 to N), and each of those
*receives* from all MoE devices (N to 1). A sender that finds its flag still set waits (back-pressure); a receiver
copies to private memory first and clears the flags then.

Every MoE device answers every batch, also with no rows. If only those with tokens of the batch answered, one of them
could write results of a group's second batch over results of the first that have not been read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.buffers import (
    HEADER,
    Shape,
    combined,
    dispatched,
    expert_ids,
    metadata,
    results,
    tokens,
)
from asapmodel.reference.steps import Await, Clear, Phase, Read, SetBit, Spend, Steps, Unset, Write

__all__ = [
    "ASYNC",
    "Arrived",
    "Primitives",
    "async_combine_recv",
    "async_combine_send",
    "async_dispatch_recv",
    "async_dispatch_send",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """What a MoE device has received of one batch in one layer.

    `counts[j, x]` rows of member j are for local expert x; `rows` has them member by member, each member's by expert;
    member j wants its results from slot `first[j]` on.
    """

    group: int
    layer: int
    n: int
    counts: Ints
    first: Ints
    rows: Floats


def async_dispatch_send(shape: Shape, i: int, j: int, slot: int, phase: Phase, own: Floats, experts: Ints) -> Steps:
    """Send own tokens to the devices of their experts.

    Parameters
    ----------
    shape : Shape
        Sizes of the system.
    i, j : int
        Group and member that send.
    slot : int
        Of the batch in the group.
    phase : Phase
        Layer, and tokens of the whole batch.
    own : array (m, H)
        Normalised hidden states of the tokens that the member owns.
    experts : array (m, K)
        Expert of each copy, ascending in a row.
    """
    flat = experts.ravel()
    order = np.argsort(flat, kind="stable")  # copies by expert, hence by device
    counts = np.bincount(flat, minlength=shape.E_total).reshape(shape.E, shape.experts)
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    copies = own[order // experts.shape[1]]
    yield Write(expert_ids(i, j, slot), flat)
    # Room on all devices before the first row is written: waiting row by row, the system can lock up
    # (docs/background/reference-system.md, "Why a sender waits for all rows first").
    for e in range(shape.E):
        yield Await((Unset(dispatched(e, i), 1 << j),))
    yield Spend(phase)
    for e in range(shape.E):
        header = [phase.layer, phase.n, ends[e]]
        yield Write(metadata(e, i, j), np.concatenate([header, counts[e]]))
        yield Write(tokens(e, i, j), copies[ends[e] : ends[e + 1]])
        yield SetBit(dispatched(e, i), j)


def async_dispatch_recv(shape: Shape, e: int, i: int) -> Steps:
    """Receive a group's batch whose T flags are all set; returns `Arrived`."""
    headers = []
    for j in range(shape.T):
        headers.append((yield Read(metadata(e, i, j), HEADER + shape.experts)))
    table = np.array(headers)
    layer, n = int(table[0, 0]), int(table[0, 1])
    counts = table[:, HEADER:]
    yield Spend(Phase("dispatch_recv", n, 0, layer, i))
    rows = []
    for j in range(shape.T):
        rows.append((yield Read(tokens(e, i, j), int(counts[j].sum()))))
    yield Clear(dispatched(e, i))
    return Arrived(i, layer, n, counts, table[:, 2], np.concatenate(rows))


def async_combine_send(shape: Shape, e: int, arrived: Arrived, outcome: Floats) -> Steps:
    """Send results, in the order in which their tokens arrived, back to the members of the group."""
    i = arrived.group
    for j in range(shape.T):
        yield Await((Unset(combined(i, j), 1 << e),))
    yield Spend(Phase("combine_send", arrived.n, 0, arrived.layer, i))
    ends = np.concatenate([[0], np.cumsum(arrived.counts.sum(axis=1))])
    for j in range(shape.T):
        yield Write(results(i, j), outcome[ends[j] : ends[j + 1]], int(arrived.first[j]))
        yield SetBit(combined(i, j), e)


def async_combine_recv(shape: Shape, i: int, j: int, slot: int, phase: Phase, m: int) -> Steps:
    """Receive the results of all MoE devices, whose E flags are set; returns them as (m, K, H), by token and copy."""
    yield Spend(phase)
    flat = yield Read(expert_ids(i, j, slot), m * shape.K)
    sorted_rows = yield Read(results(i, j), m * shape.K)
    yield Clear(combined(i, j))
    rows = np.empty_like(sorted_rows)
    rows[np.argsort(flat, kind="stable")] = sorted_rows
    return rows.reshape(m, shape.K, shape.H)


class Primitives(NamedTuple):
    """The four primitives that workers use; others than `ASYNC` are for showing what goes wrong with them."""

    dispatch_send: Callable[..., Steps] = async_dispatch_send
    dispatch_recv: Callable[..., Steps] = async_dispatch_recv
    combine_send: Callable[..., Steps] = async_combine_send
    combine_recv: Callable[..., Steps] = async_combine_recv


ASYNC = Primitives()
