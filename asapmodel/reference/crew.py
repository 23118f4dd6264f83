"""The processes of all devices, watched by their parent: started together, ended together, whatever happens.

A run can end in three ways that nobody planned: a worker raises, a process is killed, or the parent dies. In the first
two the parent notices, by a message or by the process's exit status, and kills the others; in the third every process
notices by itself (`links`). No process holds anything that would outlive it, so killing is safe.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, Self

from asapmodel.reference.device_loop import poll
from asapmodel.reference.device_process import FAILURES, READY, REPORTS, Failure, Report, device_main, stop
from asapmodel.reference.links import Links, connect
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.steps import Channel
from asapmodel.reference.system import SCHEDULER, Name, System

__all__ = ["Crew", "WorkerDied", "interrupts_held"]

CHECK = 0.05
"""Seconds between two looks at whether all processes live."""
LAST_WORDS = 0.3
"""Seconds to wait for the message of a process that has ended."""
FOREVER = float("inf")


class WorkerDied(RuntimeError):
    """The process of a device has ended before the run has: its name, and an exception or a signal."""

    def __init__(self, device: Name, why: str) -> None:
        self.device, self.why = device, why
        super().__init__(device, why)

    def __str__(self) -> str:
        return f"the process of {' '.join(map(str, self.device))} died: {self.why}"


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Put off an interrupt from the keyboard until the end of the block, so that nothing is left half made.

    A process started in the block is not interrupted while it starts: it inherits the blocked signal, where the
    platform can block signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts go to the main thread
        return
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: caught.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if caught:
            signal.raise_signal(signal.SIGINT)


class Crew:
    """One process for each device except the scheduler, and the scheduler's links to them.

    Parameters
    ----------
    make : callable
        Makes the system; called in every process.
    system : System
        Made by it, for the names of devices and workers.
    memory : SharedPlaces
        Places and bitmaps.
    context : multiprocessing context
        How processes are started.
    """

    def __init__(
        self,
        make: Callable[[], System],
        system: System,
        memory: SharedPlaces,
        context: BaseContext,
    ) -> None:
        devices = system.devices()
        ends = connect(devices, system.linked, context)
        own = ends.pop(SCHEDULER)
        self._processes: dict[Name, BaseProcess] = {}
        self._stopping = False
        self._checked = monotonic()
        try:
            for device, peers in ends.items():
                self._processes[device] = _start(context, device, (device, devices[device], make, memory, peers))
        except BaseException:
            self._kill()
            raise
        for peers in ends.values():
            for connection in peers.values():
                connection.close()  # the processes have them
        self.links = Links(SCHEDULER, own)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with interrupts_held():
            self._kill()
            self.links.close()

    @property
    def devices(self) -> list[Name]:
        """Devices with a process."""
        return list(self._processes)

    def await_ready(self) -> None:
        """Wait until every process has the shared memory; `WorkerDied` if one cannot."""
        self._collect(READY, FOREVER)

    def check(self) -> None:
        """Raise `WorkerDied` if a process has ended; looks every `CHECK` seconds, however often it is called."""
        if monotonic() - self._checked < CHECK:
            return
        self._checked = monotonic()
        ended = [(device, process.exitcode) for device, process in self._processes.items()]
        dead = [(device, code) for device, code in ended if code is not None and not (self._stopping and code == 0)]
        if dead:
            end = monotonic() + LAST_WORDS
            poll(lambda: self.links.since(FAILURES) is not None or monotonic() > end)
        if self.links.since(FAILURES) is not None:
            failure: Failure = self.links.take(FAILURES)
            error = WorkerDied(failure.device, failure.why)
            error.add_note(failure.text)
            raise error
        if dead:
            raise WorkerDied(dead[0][0], _how(dead[0][1]))

    def stop(self, within: float = FOREVER) -> dict[Name, Report]:
        """Tell all to stop; returns the reports of those who answer within some seconds."""
        self._stopping = True
        for device in self._processes:
            self.links.send(stop(device), None)
        reports = self._collect(REPORTS, within)
        for device in reports:
            self._processes[device].join()
        return reports

    def _collect(self, channel: Channel, within: float) -> dict[Name, Any]:
        """One message of every device, or of those that send one in time."""
        found: dict[Name, Any] = {}
        end = monotonic() + within

        def done() -> bool:
            while self.links.since(channel) is not None:
                device, message = self.links.take(channel)
                found[device] = message
            self.check()
            return len(found) == len(self._processes) or monotonic() > end

        poll(done)
        return found

    def _kill(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.join()
            process.close()


def _start(context: BaseContext, device: Name, arguments: tuple[Any, ...]) -> BaseProcess:
    name = " ".join(map(str, device))
    process: BaseProcess = context.Process(target=device_main, args=arguments, name=name, daemon=True)  # type: ignore[attr-defined]
    process.start()
    return process


def _how(code: int) -> str:
    """How a process ended, by its exit status."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
