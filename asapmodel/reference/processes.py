"""Executor in wall time: one operating-system process for each device, with real shared memory between them.

Attention devices and MoE devices exchange tensors through shared buffers alone (`shared`); tensor-parallel collectives,
tasks and results go over control links (`links`). The scheduler and the source of requests run in the calling process,
which also watches the others (`crew`). What the phases take is what they take here; the log says from when to when.

Processes are started the way that is usual on the platform, or as `start_method` says. Forking takes milliseconds a
process and is what tests on Linux use; spawning starts Python and NumPy afresh, about half a second of processor time
each, and is the only way on some platforms. Nothing relies on what a forked process inherits: all that a process needs
is picklable and handed to it. As always with spawning, a script calls `run_processes` under
``if __name__ == "__main__"``.

After the start nothing has a name that could be left behind: the segment's is removed once all processes have the
memory. If the caller is killed before that, or spawns and is killed at any time (locks have names then), the standard
library's resource tracker removes what is left, and says so.
"""

import multiprocessing
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import SCHEDULER, AsyncSystem
from asapmodel.reference.crew import Crew, WorkerDied, interrupts_held
from asapmodel.reference.device_loop import DeviceLoop, poll
from asapmodel.reference.device_process import Report
from asapmodel.reference.devices import Model
from asapmodel.reference.primitives import ASYNC, Primitives
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.scheduler_worker import Journal
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.super_kernel import Dispatches
from asapmodel.reference.virtual_time import Busy, Stuck

__all__ = ["ProcessRun", "WorkerDied", "run_processes"]

Name = tuple[Any, ...]

ANSWER = 1.0
"""Seconds to wait for the answers of devices when nothing goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessRun:
    """What a run in processes leaves behind; times are seconds since all processes were ready.

    `dispatches` and `orders` have an entry for each MoE device: kernels dispatched, and group and layer of every batch
    in the order in which they were computed. `makespan` is the end of the last batch.
    """

    journal: Journal
    log: list[Busy]
    dispatches: list[Dispatches]
    orders: list[list[tuple[int, int]]]
    makespan: float


def run_processes(
    model: Model,
    layout: Layout,
    policy: Policy,
    prompts: Sequence[Prompt],
    *,
    step: bool = False,
    primitives: Primitives = ASYNC,
    timeout: float = 60.0,
    start_method: str | None = None,
) -> ProcessRun:
    """Run the asynchronous system in processes, MoE devices in the fair order (see `expert_worker`).

    Parameters
    ----------
    model, layout, policy, prompts, step, primitives
        As for `AsyncSystem`, and picklable.
    timeout : float
        Seconds without an arrival or an end of a batch after which the run is given up, unless an arrival or the end of
        the head's window is still to come.
    start_method : str, optional
        Of processes, as in `multiprocessing`.

    Raises
    ------
    ValueError
        If experts, heads or tokens do not divide over the devices.
    WorkerDied
        If a process raises or is killed.
    Stuck
        If nothing goes on for `timeout` seconds: who waits for what.
    """
    context = multiprocessing.get_context(start_method)
    make = partial(AsyncSystem, model, layout, policy, prompts, step=step, order="fair", primitives=primitives)
    system = make()
    devices = system.devices()
    for device in (("attention", 0, 0), ("moe", 0)):  # what does not divide is refused here and not in a process
        system.start(devices[device][0])
    with ExitStack() as stack:
        with interrupts_held():
            memory = stack.enter_context(closing(SharedPlaces(system.shape, context)))
        with interrupts_held():  # again: the resource tracker, which starts with the memory, unblocks them
            crew = stack.enter_context(Crew(make, devices, memory, context))
        crew.await_ready()
        memory.unlink()
        start = monotonic()
        workers = {name: system.start(name) for name in devices[SCHEDULER]}
        _drive(DeviceLoop(SCHEDULER, workers, memory, crew.links, start), crew, timeout)
        reports = crew.stop()
    return _put_together(system.journal, reports, start, layout.E)


def _drive(loop: DeviceLoop, crew: Crew, timeout: float) -> None:
    """Run the scheduler to its end."""

    def done() -> bool:
        crew.check()
        if monotonic() - loop.moved > timeout and not loop.waits_for_time():
            raise Stuck(f"nothing has gone on for {timeout:g} s:\n" + "\n".join(_waits(loop, crew)))
        return loop.ended(SCHEDULER)

    poll(done, loop.turn)


def _waits(loop: DeviceLoop, crew: Crew) -> list[str]:
    """Who waits for what, a line for each worker."""
    reports = crew.stop(ANSWER)
    silent = [
        f"{' '.join(map(str, device))}: busy, gives no answer" for device in crew.devices if device not in reports
    ]
    return [*loop.waits(), *(line for report in reports.values() for line in report.waits), *silent]


def _put_together(journal: Journal, reports: dict[Name, Report], start: float, E: int) -> ProcessRun:
    log = [
        replace(busy, start=busy.start - start, end=busy.end - start)  # devices do not know when the run began
        for report in reports.values()
        for busy in report.log
    ]
    experts = [reports["moe", e] for e in range(E)]
    return ProcessRun(
        journal,
        sorted(log, key=lambda busy: busy.start),
        [report.dispatches for report in experts],
        [report.order for report in experts],
        max(journal.end.values(), default=0.0),
    )
