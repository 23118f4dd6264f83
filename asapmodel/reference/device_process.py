"""What runs in the process of one device, and what it tells the parent process."""

import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from asapmodel.reference.device_loop import DeviceLoop, poll
from asapmodel.reference.links import Links, Peers
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.steps import Channel
from asapmodel.reference.super_kernel import Dispatches
from asapmodel.reference.system import SCHEDULER, Name, System
from asapmodel.reference.virtual_time import Busy

__all__ = ["FAILURES", "READY", "REPORTS", "Failure", "Report", "device_main", "stop"]

READY = Channel(SCHEDULER, "ready")
"""`(device, None)` of a device whose process has the shared memory and its workers."""
REPORTS = Channel(SCHEDULER, "reports")
"""`(device, Report)` of a device that was told to stop."""
FAILURES = Channel(SCHEDULER, "failures")
"""A `Failure` of a device."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a device has done, and which of its workers wait for what.

    `experts` has, where the device is expert device e, kernels dispatched, and group and layer of every batch in order.
    """

    log: list[Busy]
    waits: list[str]
    experts: dict[int, tuple[Dispatches, list[tuple[int, int]]]]


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception in the process of a device: its last line, and all of it."""

    device: Name
    why: str
    text: str


def stop(device: Name) -> Channel:
    """The channel in which a message tells a device to stop."""
    return Channel(device, "stop")


def device_main(
    device: Name, names: Sequence[Name], make: Callable[[], System], memory: SharedPlaces, peers: Peers
) -> None:
    """Serve a device until it is told to stop: the main function of its process.

    An interrupt from the keyboard reaches all processes of a terminal; it is for the parent to act on it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    links = Links(device, peers, None if parent is None else parent.sentinel)
    try:
        system = make()
        loop = DeviceLoop(device, {name: system.start(name) for name in names}, memory, links)
        links.send(READY, (device, None))
        poll(lambda: links.since(stop(device)) is not None, loop.turn)
        experts = {e: (one.kernel.dispatches, one.order) for e, one in system.experts.items()}
        links.send(REPORTS, (device, Report(loop.log, loop.waits(), experts)))
    except Exception as error:
        why = "".join(traceback.format_exception_only(error)).strip()
        links.send(FAILURES, Failure(device, why, traceback.format_exc()))
        sys.exit(1)
