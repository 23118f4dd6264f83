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
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import AsyncSystem
from asapmodel.reference.crew import Crew, WorkerDied, interrupts_held
from asapmodel.reference.device_loop import DeviceLoop, poll
from asapmodel.reference.device_process import Report
from asapmodel.reference.devices import Model
from asapmodel.reference.primitives import ASYNC, Primitives
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.scheduler_worker import Journal
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.super_kernel import Dispatches
from asapmodel.reference.synchronous import SyncSystem
from asapmodel.reference.system import SCHEDULER, Name, System
from asapmodel.reference.virtual_time import Busy, Stuck

__all__ = ["ProcessRun", "WorkerDied", "run_processes"]

ANSWER = 1.0
"""Seconds to wait for the answers of devices when nothing goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessRun:
    """What a run in processes leaves behind; times are seconds since all processes were ready.

    `dispatches` and `orders` have an entry for each expert device: kernels dispatched, and group and layer of every
    batch in the order in which they were computed. `makespan` is the end of the last batch.
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
    """Run a system in processes; MoE devices of an asynchronous one in the fair order (see `expert_worker`).

    Parameters
    ----------
    model, layout, policy, prompts, step, primitives
        As for `AsyncSystem` or `SyncSystem`, as the layout says, and picklable.
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
    make: Callable[[], System]
    if layout.kind == "sync":
        make = partial(SyncSystem, model, layout, policy, prompts)
    else:
        make = partial(AsyncSystem, model, layout, policy, prompts, step=step, order="fair", primitives=primitives)
    system = make()
    devices = system.devices()
    for names in devices.values():  # what does not divide is refused here and not in a process
        system.start(names[0])
    with ExitStack() as stack:
        with interrupts_held():
            memory = stack.enter_context(closing(SharedPlaces(system.shape, context)))
        with interrupts_held():  # again: the resource tracker, which starts with the memory, unblocks them
            crew = stack.enter_context(Crew(make, system, memory, context))
        crew.await_ready()
        memory.unlink()
        start = monotonic()
        workers = {name: system.start(name) for name in devices[SCHEDULER]}
        _drive(DeviceLoop(SCHEDULER, workers, memory, crew.links, start), crew, timeout)
        reports = crew.stop()
    return _put_together(system.journal, reports, start)


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


def _put_together(journal: Journal, reports: dict[Name, Report], start: float) -> ProcessRun:
    log = [
        replace(busy, start=busy.start - start, end=busy.end - start)  # devices do not know when the run began
        for report in reports.values()
        for busy in report.log
    ]
    experts = {e: found for report in reports.values() for e, found in report.experts.items()}
    return ProcessRun(
        journal,
        sorted(log, key=lambda busy: busy.start),
        [experts[e][0] for e in sorted(experts)],
        [experts[e][1] for e in sorted(experts)],
        max(journal.end.values(), default=0.0),
    )
