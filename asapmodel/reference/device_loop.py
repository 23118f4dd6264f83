"""The loop in which a process drives all streams of its device, or the scheduler and the source of requests.

Every worker goes on as far as it can, in turn. When none can, the loop looks again after a pause that grows from
nothing to a millisecond: with more processes than processors, those that wait must not get in the way of those that
work.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from asapmodel.reference.links import Links
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Clear,
    Condition,
    Now,
    Pending,
    Phase,
    Reached,
    Read,
    Receive,
    Send,
    SetBit,
    Spend,
    Step,
    Steps,
    Test,
    Unset,
    Write,
)
from asapmodel.reference.system import SCHEDULER
from asapmodel.reference.virtual_time import Busy

__all__ = ["DeviceLoop", "poll"]

Name = tuple[Any, ...]

SPINS = 20
SHORTEST, LONGEST = 50e-6, 1e-3
"""Looks without a pause; then pauses, seconds, each longer than the one before by the shortest."""

_NOT_YET = object()


def poll(done: Callable[[], bool], turn: Callable[[], bool] = lambda: False) -> None:
    """Take turns until `done()`, ever more rarely while `turn()` says that nothing could be done."""
    idle = 0
    while not done():
        idle = 0 if turn() else idle + 1
        if idle:
            time.sleep(min(max(idle - SPINS, 0) * SHORTEST, LONGEST))


class DeviceLoop:
    """Workers of one device, in wall time.

    A phase lasts from its `Spend` until the worker hands the result to another stream of its device or to the
    scheduler, looks for other work, or begins another phase. What it waits for in between, in a collective, belongs to
    the phase.

    Parameters
    ----------
    device : tuple
        Name of the device.
    workers : mapping of name to generator
        Its streams.
    memory : SharedPlaces
        Places and bitmaps of all devices.
    links : Links
        Channels.
    start : float
        When the run began, by `time.monotonic`, which all processes share.

    Attributes
    ----------
    log : list of Busy
        Phases, in order of their ends, seconds since `start`.
    moved : float
        When a worker last could go on, by `time.monotonic`.
    """

    def __init__(
        self, device: Name, workers: Mapping[Name, Steps], memory: SharedPlaces, links: Links, start: float = 0.0
    ) -> None:
        self.log: list[Busy] = []
        self.moved = time.monotonic()
        self._device, self._memory, self._links, self._start = device, memory, links, start
        self._workers = dict(workers)
        self._waiting: dict[Name, Step | None] = dict.fromkeys(workers)  # None: has not begun
        self._busy: dict[Name, tuple[Phase, float]] = {}

    def turn(self) -> bool:
        """Let every worker go on as far as it can; tells whether any could."""
        moved = [self._go_on(name) for name in list(self._workers)]
        if any(moved):
            self.moved = time.monotonic()
        return any(moved)

    def ended(self, name: Name) -> bool:
        """Whether a worker has returned."""
        return name not in self._workers

    def waits_for_time(self) -> bool:
        """Whether a worker waits for a time to come, be it besides other things."""
        steps = self._waiting.values()
        return any(isinstance(one, Reached) for step in steps if isinstance(step, Await) for one in step.conditions)

    def waits(self) -> list[str]:
        """Who waits for what, a line each."""
        return [f"{' '.join(map(str, name))}: {_said(step)}" for name, step in self._waiting.items()]

    def _go_on(self, name: Name) -> bool:
        step = self._waiting[name]
        given = None if step is None else self._attempt(name, step)
        if given is _NOT_YET:
            return False
        while given is not _NOT_YET:
            try:
                step = self._workers[name].send(given)
            except StopIteration:
                self._end_phase(name)
                del self._workers[name], self._waiting[name]
                return True
            given = self._attempt(name, step)
        self._waiting[name] = step
        return True

    def _attempt(self, name: Name, step: Step) -> Any:
        """Carry out a step and return what it gives, or `_NOT_YET`."""
        match step:
            case Await(conditions):
                self._end_phase(name)
                since = [(stamp, k) for k, one in enumerate(conditions) if (stamp := self._since(one)) is not None]
                return min(since)[1] if since else _NOT_YET
            case Test(condition):
                return self._since(condition) is not None
            case Write(place, value, first):
                return self._memory.write(place, value, first)
            case Read(place, count, first):
                return self._memory.read(place, count, first)
            case SetBit(flags, bit):
                return self._memory.set_bit(flags, bit)
            case Clear(flags):
                return self._memory.clear(flags)
            case Receive(channel):
                return _NOT_YET if self._links.since(channel) is None else self._links.take(channel)
            case Send(channel, message):
                if channel.holder in (self._device, SCHEDULER):
                    self._end_phase(name)
                return self._links.send(channel, message)
            case Spend(phase):
                self._end_phase(name)
                self._busy[name] = (phase, self._now())
                return None
            case Now():
                return self._now()

    def _since(self, condition: Condition) -> float | None:
        match condition:
            case Pending(channel):
                return self._links.since(channel)
            case Reached(moment):  # after what memory and links say
                return float("inf") if moment <= self._now() else None
        return self._memory.since(condition)

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _end_phase(self, name: Name) -> None:
        if name in self._busy:
            phase, start = self._busy.pop(name)
            self.log.append(Busy(name, phase, start, self._now()))


def _said(step: Step | Condition | None) -> str:
    """What a step waits for, in words."""
    match step:
        case Await(conditions):
            return " or ".join(map(_said, conditions))
        case AllSet(flags, mask) | Unset(flags, mask):
            state = "set" if isinstance(step, AllSet) else "clear"
            return f"bits {mask:b} of {' '.join(map(str, flags.holder + flags.row))} {state}"
        case Pending(channel) | Receive(channel):
            return f"a message in '{channel.name}'"
        case Reached(moment):
            return f"{moment:g} s"
    return "its first step"
