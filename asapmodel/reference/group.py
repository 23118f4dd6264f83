"""What the T devices of an attention group do together: exchange rows, and agree on the next task.

The collectives are those of tensor-parallel attention and not the paper's subject; they run over control links.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.buffers import share
from asapmodel.reference.steps import Await, Channel, Condition, Pending, Receive, Send, Steps

__all__ = ["Turns", "gather", "scatter_sum"]

Floats = NDArray[np.float64]


def _link(i: int, j: int, what: str) -> Channel:
    return Channel(("attention", i, j), what)


def gather(i: int, j: int, T: int, own: Floats) -> Steps:
    """All-gather: returns the rows of all members, in their order."""
    for k in range(T):
        if k != j:
            yield Send(_link(i, k, f"rows {j}"), own)
    parts = []
    for k in range(T):
        parts.append(own if k == j else (yield Receive(_link(i, j, f"rows {k}"))))
    return np.concatenate(parts)


def scatter_sum(i: int, j: int, T: int, partial: Floats) -> Steps:
    """Reduce-scatter: returns own rows of the sum over all members, added in their order."""
    rows = [share(len(partial), T, k) for k in range(T)]
    for k in range(T):
        if k != j:
            yield Send(_link(i, k, f"sum {j}"), partial[rows[k].start : rows[k].stop])
    parts = []
    for k in range(T):
        own = partial[rows[j].start : rows[j].stop]
        parts.append(own if k == j else (yield Receive(_link(i, j, f"sum {k}"))))
    return np.sum(parts, axis=0)


class Turns:
    """Order of tasks on one stream of a group, the same on all members.

    The first member takes what became ready first, a task out of its inbox or results that have arrived, and tells the
    others. Were each to choose for itself, a MoE device could find rows of one batch from one member and rows of
    another batch from the next, and take them for one.
    """

    def __init__(self, i: int, j: int, T: int, stream: str, inbox: Channel, conditions: tuple[Condition, ...]) -> None:
        """Serve `inbox`, and `conditions` besides."""
        self._leads = j == 0
        self._inbox = inbox
        self._conditions: tuple[Condition, ...] = (Pending(inbox), *conditions)
        self._orders = _link(i, j, f"order {stream}")
        self._others = [_link(i, k, f"order {stream}") for k in range(1, T)] if self._leads else []
        self._early: dict[int, Any] = {}  # tasks by batch that came before their turn

    def take(self) -> Steps:
        """Return the next task, or None when it is the turn of what the conditions stand for."""
        if self._leads:
            index = yield Await(self._conditions)
            task = (yield Receive(self._inbox)) if index == 0 else None
            for other in self._others:
                yield Send(other, None if task is None else task.batch.number)
            return task
        number = yield Receive(self._orders)
        if number is None:
            yield Await(self._conditions[1:])
            return None
        while number not in self._early:
            task = yield Receive(self._inbox)
            self._early[task.batch.number] = task
        return self._early.pop(number)
