"""The reference system in operating-system processes: right numbers, the order of shared memory, and every bad end."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import run_asynchronous
from asapmodel.reference.buffers import Shape, dispatched
from asapmodel.reference.device_loop import DeviceLoop
from asapmodel.reference.devices import Model, make_model
from asapmodel.reference.links import Links
from asapmodel.reference.primitives import ASYNC, Arrived, async_combine_send, async_dispatch_recv, async_dispatch_send
from asapmodel.reference.processes import ProcessRun, WorkerDied, run_processes
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.shared import SharedPlaces
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Channel,
    Clear,
    Pending,
    Phase,
    Reached,
    Receive,
    Send,
    SetBit,
    Steps,
    Test,
)
from asapmodel.reference.virtual_time import Stuck
from asapmodel.reference.weights import Config
from tests.reference.leftovers import nothing_left

# forking with the threads of a BLAS library around, of which Python warns from 3.12 on
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc and /dev/shm")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONFIG = Config(experts=6, layers=5)
SMALL = Layout("asap", D=1, T=1, E=2)
POLICY = Policy(min_batch_tokens=8, max_batch_tokens=24, exclusive_tokens=30, batch_window=0.01)
SHAPE = Shape(D=1, T=3, E=1, E_total=2, K=1, H=4, S=12)
ROOT = Path(__file__).resolve().parents[2]


def backlog(*lengths: int, at: float = 0.0) -> list[Prompt]:
    """Prompts to compute, every third behind a cached prefix."""
    return [Prompt(k, at, n + k % 3, k % 3) for k, n in enumerate(lengths)]


def run(layout: Layout, policy: Policy, prompts: Sequence[Prompt], **options: object) -> tuple[Model, ProcessRun]:
    model = make_model(CONFIG, prompts, seed=3)
    result = run_processes(model, layout, policy, prompts, timeout=20.0, **options)  # type: ignore[arg-type]
    assert nothing_left()
    return model, result


def error(model: Model, result: ProcessRun, prompts: Sequence[Prompt]) -> float:
    outputs = result.journal.outputs()
    assert outputs.keys() == {prompt.index for prompt in prompts}
    return max(float(np.abs(outputs[one.index] - model.truth(one)).max()) for one in prompts)


@pytest.mark.parametrize(
    ("D", "T", "E", "pairing", "streams", "window", "start_method"),
    [
        (1, 1, 1, "locked", (False, False), 0.0, None),
        (2, 2, 3, "locked", (True, True), 0.01, None),
        (3, 1, 2, "rolling", (False, True), 0.0, None),
        (1, 4, 3, "rolling", (True, False), 0.01, None),
        (1, 2, 1, "locked", (True, True), 0.01, "spawn"),
    ],
)
def test_outputs_are_those_of_the_whole_model(
    D: int, T: int, E: int, pairing: str, streams: tuple[bool, bool], window: float, start_method: str | None
) -> None:
    own, pool = streams
    policy = Policy(8, 24, 30, window, pairing, overlap_attention=own, overlap_moe=pool)  # type: ignore[arg-type]
    prompts = backlog(5, 9, 3, 20, 7, 31, 4, 12, 6, 10)
    model, result = run(Layout("asap", D, T, E), policy, prompts, step=own, start_method=start_method)
    assert error(model, result, prompts) < 1e-10


COSTS = LayerCosts(
    Quadratic(1e-3, 1e-5, 1e-7), Affine(1e-4, 1e-6), Affine(1e-4, 1e-6), Plateau(1e-3, 1e-5), Affine(1e-4, 1e-6),
    Affine(1e-4, 1e-6), layers=CONFIG.layers, dense_layers=CONFIG.dense_layers,
)  # fmt: skip


def test_same_bits_as_in_virtual_time() -> None:
    """Two neighbours make a batch of 16 and four of them fill a group, so batches depend on no clock."""
    policy = Policy(16, 24, 30, batch_window=1000.0)
    prompts = backlog(5, 11, 7, 9, 3, 13, 8, 8, 1, 15, 12, 4, 2, 14, 6, 10)
    layout = Layout("asap", 2, 2, 3)
    model, real = run(layout, policy, prompts)
    virtual = run_asynchronous(model, layout, policy, COSTS, prompts, order="fair")
    made = [
        [[piece.prompt.index for piece in batch.pieces] for batch in one.journal.batches] for one in (real, virtual)
    ]
    assert made[0] == made[1] == [[k, k + 1] for k in range(0, 16, 2)]
    outputs = virtual.journal.outputs()
    assert all(np.array_equal(rows, outputs[index]) for index, rows in real.journal.outputs().items())
    assert error(model, real, prompts) < 1e-10


@pytest.mark.parametrize("super_kernel", [True, False])
def test_layers_out_of_order_and_dispatches(super_kernel: bool) -> None:
    policy = Policy(8, 24, 30, 0.01, super_kernel=super_kernel)
    _, result = run(Layout("asap", 2, 1, 3), policy, backlog(5, 20, 3, 20, 7, 9, 4, 12, 6, 10, 22, 2))
    batches = result.journal.batches
    routed = range(CONFIG.dense_layers, CONFIG.layers)
    due = Counter((batch.group, layer) for batch in batches for layer in routed)
    for order, dispatches in zip(result.orders, result.dispatches, strict=True):
        assert Counter(order) == due  # each batch once in each layer, also where a device has none of its tokens
        assert any(a[0] != b[0] and a[1] > b[1] for a, b in pairwise(order))
        assert dispatches.count == (1 if super_kernel else len(batches) * len(routed))


def test_log_and_journal_keep_wall_time() -> None:
    prompts = [Prompt(0, 0.0, 12), Prompt(1, 0.05, 6), Prompt(2, 0.3, 9)]
    _, result = run(Layout("asap", 1, 2, 3), POLICY, prompts)
    times = result.journal.times()
    assert all(times[one.index][0] >= one.arrival and times[one.index][1] > times[one.index][0] for one in prompts)
    assert result.makespan == max(end for _, end in times.values())
    assert times[1][0] >= 0.05 + POLICY.batch_window  # too few tokens: waits for its window

    batches, routed = len(result.journal.batches), CONFIG.layers - CONFIG.dense_layers
    expected = dict.fromkeys(("attention", "dispatch_send", "combine_recv"), batches * routed * 2)
    expected |= dict.fromkeys(("dispatch_recv", "moe", "combine_send"), batches * routed * 3)
    expected["dense"] = batches * CONFIG.dense_layers * 2
    assert Counter(busy.phase.name for busy in result.log) == expected
    assert [busy.start for busy in result.log] == sorted(busy.start for busy in result.log)
    for worker in {busy.worker for busy in result.log}:
        own = [busy for busy in result.log if busy.worker == worker]
        assert all(0 < busy.start <= busy.end <= result.makespan for busy in own)
        assert all(a.end <= b.start for a, b in pairwise(own))


def test_members_exchange_more_than_a_connection_holds() -> None:
    config = Config(layers=2, hidden=256, experts=2, top=1, index_heads=1)
    prompts = [Prompt(0, 0.0, 600)]
    model = make_model(config, prompts, seed=1)
    result = run_processes(model, Layout("asap", 1, 2, 1), Policy(1, 600, 1000, 0.0), prompts, timeout=20.0)
    assert error(model, result, prompts) < 1e-10


def test_what_came_first_is_served_first_and_time_comes_last() -> None:
    first, second = Channel(("moe", 0), "first"), Channel(("moe", 0), "second")
    given = []

    def worker() -> Steps:
        yield Send(second, "b")
        yield SetBit(dispatched(0, 0), 2)
        yield Send(first, "a")
        conditions = (Reached(0.0), Pending(first), Pending(second), AllSet(dispatched(0, 0), 0b100))
        given.append((yield Await(conditions)))
        given.append((yield Receive(second)))
        given.append((yield Await(conditions)))
        yield Clear(dispatched(0, 0))
        given.append((yield Await(conditions)))
        given.append((yield Receive(first)))
        given.append((yield Await(conditions)))
        given.append((yield Test(Pending(first))))

    memory = SharedPlaces(SHAPE, multiprocessing.get_context())
    loop = DeviceLoop(("moe", 0), {("worker",): worker()}, memory, Links(("moe", 0), {}), time.monotonic())
    assert loop.turn()
    assert loop.ended(("worker",))
    assert not loop.turn()
    assert given == [2, "b", 3, 1, "a", 0, False]
    memory.close()


# bad ends


def raise_on_one(shape: Shape, e: int, arrived: Arrived, outcome: Floats) -> Steps:
    if e == 1 and arrived.layer == 2:
        raise LookupError("broken on purpose")
    return async_combine_send(shape, e, arrived, outcome)


def die_on_one(shape: Shape, e: int, i: int) -> Steps:
    arrived = yield from async_dispatch_recv(shape, e, i)
    if e == 1 and arrived.layer == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return arrived


def forget_a_bit(
    shape: Shape, i: int, j: int, slot: int, phase: Phase, own: Floats, experts: Ints
) -> Steps:  # as a lost update of the bitmap would
    for step in async_dispatch_send(shape, i, j, slot, phase, own, experts):  # no step of it gives anything it uses
        if not (isinstance(step, SetBit) and step.flags.holder == ("moe", 0)):
            yield step


def test_an_exception_in_a_process() -> None:
    with pytest.raises(WorkerDied, match=r"^the process of moe 1 died: LookupError: broken on purpose") as caught:
        run(Layout("asap", 2, 2, 3), POLICY, backlog(9, 9, 9, 9), primitives=ASYNC._replace(combine_send=raise_on_one))
    assert caught.value.device == ("moe", 1)
    assert "in raise_on_one" in caught.value.__notes__[0]
    assert nothing_left()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("start_method", [None, "spawn"])
def test_a_process_that_is_killed(start_method: str | None) -> None:
    primitives = ASYNC._replace(dispatch_recv=die_on_one)
    with pytest.raises(WorkerDied, match=r"^the process of moe 1 died: killed by SIGKILL$"):
        run(SMALL, POLICY, backlog(9, 9, 9, 9), primitives=primitives, start_method=start_method)
    assert nothing_left()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_killed_process_is_noticed_at_once() -> None:
    killed = []

    def kill() -> None:
        while "attention 0 1" not in (there := {one.name: one.pid for one in multiprocessing.active_children()}):
            time.sleep(0.02)
        time.sleep(0.3)
        killed.append(time.monotonic())
        os.kill(there["attention 0 1"] or 0, signal.SIGTERM)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(WorkerDied, match=r"^the process of attention 0 1 died: killed by SIGTERM$"):
        run(Layout("asap", 1, 2, 1), POLICY, backlog(9, at=1000.0))
    assert time.monotonic() - killed[0] < 2.0  # 0.4 s on an idle machine
    thread.join()
    assert nothing_left()


def test_a_run_that_cannot_go_on_says_who_waits() -> None:
    model = make_model(CONFIG, prompts := backlog(9), seed=3)
    primitives = ASYNC._replace(dispatch_send=forget_a_bit)
    with pytest.raises(Stuck, match=r"^nothing has gone on for 0\.5 s:\n") as caught:
        run_processes(model, SMALL, POLICY, prompts, primitives=primitives, timeout=0.5)
    lines = str(caught.value).splitlines()[1:]
    assert "attention 0 0 all: a message in 'inbox all' or bits 11 of attention 0 0 set" in lines
    assert "moe 0 receive: bits 1 of moe 0 0 set or a message in 'inbox receive'" in lines
    assert "scheduler: a message in 'done' or a message in 'arrivals'" in lines
    assert len(lines) == 1 + 2 * 3 + 1  # the source has ended
    assert nothing_left()


def test_what_does_not_divide_is_refused_before_any_process_starts() -> None:
    with pytest.raises(ValueError, match="4 heads do not divide over T = 3"):
        run(Layout("asap", 1, 3, 1), POLICY, backlog(9))
    with pytest.raises(ValueError, match="E_total = 6 experts do not divide over E = 4"):
        run(Layout("asap", 1, 1, 4), POLICY, backlog(9))


SCRIPT = """
from asapmodel.policy import Layout, Policy
from asapmodel.reference.device_loop import DeviceLoop
from asapmodel.reference.devices import make_model
from asapmodel.reference.processes import run_processes
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.weights import Config

if __name__ == "__main__":
    prompts = [Prompt(0, 0.0, 12), Prompt(1, 1000.0, 12)]
    model = make_model(Config(), prompts, 1)
    try:
        run_processes(model, Layout("asap", 1, 2, 2), Policy(1, 24, 30, 0.0), prompts)
    except KeyboardInterrupt:
        print("interrupted")
"""


@linux
@pytest.mark.parametrize(
    ("number", "children", "later", "out"),
    [
        (signal.SIGINT, 2, 0.0, "interrupted\n"),  # while processes are being started
        (signal.SIGINT, 5, 0.3, "interrupted\n"),  # four devices, and the tracker of the standard library
        (signal.SIGKILL, 5, 0.3, ""),
    ],
)
def test_the_caller_is_interrupted_or_killed(
    number: signal.Signals, children: int, later: float, out: str, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    script = subprocess.Popen(
        [sys.executable, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    listed = Path(f"/proc/{script.pid}/task/{script.pid}/children")
    while len(listed.read_text().split()) < children:
        assert script.poll() is None
        time.sleep(0.005)
    time.sleep(later)
    if number == signal.SIGINT:
        os.killpg(script.pid, number)  # as a terminal does
    else:
        script.kill()
    printed = script.communicate(timeout=60)  # ends when the last process with these pipes has ended
    assert printed == (out, "")
    assert nothing_left(script.pid)
