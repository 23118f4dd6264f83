"""Primitives that look right and are not, each with one mistake, to show that the checks notice.

`BROKEN` has them by name. All but *hasty dispatch* corrupt data. That one waits for each MoE device just before it
writes to it, in place of waiting for all of them before it writes to any. Let the second batch of group 0 reach MoE
device 0 before MoE device 1 has taken the first one; let device 0 take it before the first batch of group 1, and
device 1 the second batch of group 1 before the first of group 0. Then both wait to send the results of a second batch,
for which there is no room until the other has sent those of the first, which it has behind.

With the dispatch that waits for all this cannot be, in whatever order MoE devices take complete rows. For take devices
that wait for each other in a circle. Each has a batch B at the head of its queue, and there is no room for its results
as the next device has the same group's batch A before it in its own queue, behind its own head. What is behind was
taken later than the head; and A was taken there before B was dispatched, hence before B was taken. So each device took
its head later than the next one did, all the way round.
"""

from collections.abc import Callable, Iterator
from typing import Any

from asapmodel.reference.buffers import combined, dispatched
from asapmodel.reference.primitives import (
    ASYNC,
    async_combine_recv,
    async_combine_send,
    async_dispatch_recv,
    async_dispatch_send,
)
from asapmodel.reference.steps import Await, Clear, Flags, SetBit, Step, Steps, Unset, Write

__all__ = ["BROKEN"]

Primitive = Callable[..., Steps]


def _without(steps: Steps, kind: type[Step]) -> Steps:
    """Leave out steps of a kind."""
    given: Any = None
    try:
        while True:
            step = steps.send(given)
            given = None if isinstance(step, kind) else (yield step)
    except StopIteration as end:
        return end.value


def _no_wait(send: Primitive) -> Primitive:
    """Send without looking whether there is room."""
    return lambda *arguments: _without(send(*arguments), Await)


def _flag_first(send: Primitive) -> Primitive:
    """Set the flag, then write what it stands for."""

    def broken(*arguments: Any) -> Iterator[Step]:
        held = []
        for step in send(*arguments):
            if isinstance(step, Write) and step.place.region != "ids":
                held.append(step)
                continue
            yield step
            if isinstance(step, SetBit):
                yield from held
                held.clear()

    return broken  # type: ignore[return-value]  # nobody looks at what a sender's steps give


def _clear_first(receive: Primitive, flags: Callable[..., Flags]) -> Primitive:
    """Clear the flags, then copy what they stand for; `flags` are told by the first two arguments after the shape."""

    def broken(*arguments: Any) -> Steps:
        yield Clear(flags(*arguments[1:3]))
        return (yield from _without(receive(*arguments), Clear))

    return broken


def _one_flag(shape: Any, i: int, j: int, *arguments: Any) -> Steps:
    """Dispatch, and set the bits of all members whoever sends first."""
    for step in async_dispatch_send(shape, i, j, *arguments):
        yield step
        if isinstance(step, SetBit):
            for k in range(shape.T):
                if k != j:
                    yield SetBit(step.flags, k)


def _hasty(*arguments: Any) -> Steps:
    """Dispatch to a device as soon as there is room on it, and wait for the next one then."""
    waits = {}
    for step in async_dispatch_send(*arguments):
        if isinstance(step, Await) and isinstance(step.conditions[0], Unset):
            waits[step.conditions[0].flags.holder] = step
            continue
        if isinstance(step, Write) and step.place.holder in waits:
            yield waits.pop(step.place.holder)
        yield step


BROKEN = {
    "dispatch flag before payload": ASYNC._replace(dispatch_send=_flag_first(async_dispatch_send)),
    "combine flag before payload": ASYNC._replace(combine_send=_flag_first(async_combine_send)),
    "dispatch cleared before copy": ASYNC._replace(dispatch_recv=_clear_first(async_dispatch_recv, dispatched)),
    "combine cleared before copy": ASYNC._replace(combine_recv=_clear_first(async_combine_recv, combined)),
    "dispatch without back-pressure": ASYNC._replace(dispatch_send=_no_wait(async_dispatch_send)),
    "combine without back-pressure": ASYNC._replace(combine_send=_no_wait(async_combine_send)),
    "one flag for all members": ASYNC._replace(dispatch_send=_one_flag),
    "hasty dispatch": ASYNC._replace(dispatch_send=_hasty),
}
"""Broken primitives by their mistake."""
