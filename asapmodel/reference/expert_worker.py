"""The worker of a MoE device, one generator a stream: receive a batch, compute its experts, send the results.

Layers turn up in any order; the super kernel does not mind.

Of several complete rows a device may take any: nobody locks up, because a sender writes to no device before all have
room (`docs/background/reference-system.md` has the proof, and what happens otherwise). Two orders are offered:

* *oldest*: the row that became complete first. This is what the model assumes; it needs a clock that all devices share.
* *fair*: having seen a complete row, look again, from the group least recently served on, and take the first complete.
  No group starves, whatever the executor gives of several that are complete.
"""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention_worker import Streams
from asapmodel.reference.buffers import Shape, dispatched
from asapmodel.reference.primitives import ASYNC, Arrived, Primitives
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Channel,
    Condition,
    Pending,
    Phase,
    Receive,
    Send,
    Spend,
    Steps,
    Test,
)

__all__ = ["Experts", "Order", "expert_stream"]

Floats = NDArray[np.float64]
Order = Literal["oldest", "fair"]


class Experts(Protocol):
    """The arithmetic of one MoE device."""

    shape: Shape
    e: int

    def compute(self, arrived: Arrived) -> Floats:
        """Results of the device's experts, in the order of `arrived.rows`."""
        ...


def expert_stream(
    experts: Experts, streams: Streams, stream: str, order: Order = "oldest", primitives: Primitives = ASYNC
) -> Steps:
    """Serve the tasks of one stream for ever."""
    shape, e = experts.shape, experts.e
    inboxes = {name: Channel(("moe", e), f"inbox {name}", local=True) for name in streams.names}
    groups = range(shape.D) if stream == streams.receive else range(0)
    rows = tuple(AllSet(dispatched(e, i), (1 << shape.T) - 1) for i in groups)
    conditions: tuple[Condition, ...] = (*rows, Pending(inboxes[stream]))
    turn = list(range(len(conditions)))
    while True:
        index = yield Await(conditions)
        if order == "fair":
            index = yield from _fair(conditions, index, turn)
        if index < len(rows):
            arrived = yield from primitives.dispatch_recv(shape, e, index)
            yield Send(inboxes[streams.compute], (arrived, None))
            continue
        arrived, outcome = yield Receive(inboxes[stream])
        if outcome is None:
            yield Spend(Phase("moe", arrived.n, 0, arrived.layer, arrived.group))
            yield Send(inboxes[streams.send], (arrived, experts.compute(arrived)))
        else:
            yield from primitives.combine_send(shape, e, arrived, outcome)


def _fair(conditions: tuple[Condition, ...], seen: int, turn: list[int]) -> Steps:
    """Of the conditions that hold, the one least recently served, looked at after `seen` was found to hold."""
    for index in turn:
        if index == seen or (yield Test(conditions[index])):
            turn.remove(index)
            turn.append(index)
            return index
    raise AssertionError("what was seen to hold no longer does")
