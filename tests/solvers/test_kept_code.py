"""Loops called through kept machine code: the numbers of numba, without numba, whatever happens to the files."""

import importlib.util
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from asapmodel.engines import graph
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.compiled import arrays_only, njit
from asapmodel.solvers.kept_arguments import Unkept, kinds_of
from asapmodel.solvers.kept_arrays import readable_arrays
from asapmodel.solvers.kept_code import contents_of, file_name, kept
from asapmodel.systems import free, free_queues, lockstep, lockstep_queues
from tests.strategies import random_costs, random_requests

LOOPS = """
from typing import NamedTuple
import numpy as np
from asapmodel.solvers.compiled import arrays_only

SCALE = 0.5

class Inner(NamedTuple):
    table: object
    flags: object

class Given(NamedTuple):
    number: int
    rate: float
    on: bool
    inner: Inner

@arrays_only
def scaled(x):
    return SCALE * np.exp(x)

@arrays_only
def loop(given, counts, out):
    table, flags = given.inner
    total = 0
    for i in range(table.shape[0]):
        if flags[i] or given.on:
            total += counts[i] * given.number
        for j in range(table.shape[1]):
            out[i, j] = scaled(table[i, j]) / given.rate
    return total, table[0, 0] * given.rate, given.on
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where code is kept during a test."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def load(path: Path, text: str = LOOPS) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def arguments(module: ModuleType, on: bool = False) -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    inner = module.Inner(rng.normal(size=(7, 3)), rng.random(7) < 0.5)
    return module.Given(3, 0.7, on, inner), rng.integers(0, 100, 7), np.zeros((7, 3))


def answer(loop: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*loop(*given), given[-1].tobytes())


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any use of numba a failure."""

    def fail(*_: Any) -> None:
        raise AssertionError("numba was asked")

    monkeypatch.setattr("asapmodel.solvers.compiled._load_numba", fail)


def test_arrays_are_where_the_loops_look() -> None:
    assert readable_arrays()


def test_numbers_are_those_of_numba_and_python(tmp_path: Path, folder: Path) -> None:
    module = load(tmp_path / "loops_a.py")
    for on in (False, True):
        found = answer(module.loop, arguments(module, on))
        assert [type(one) for one in found[:3]] == [int, float, bool]
        assert found == answer(module.loop.dispatcher, arguments(module, on))
        given = arguments(module, on)
        assert found[:3] == module.loop.py_func(*given)
        np.testing.assert_allclose(np.frombuffer(found[3]), given[2].ravel(), rtol=1e-15)
    assert len(list(folder.glob("kept-*.bin"))) == 2  # the loop, and the one it calls when it runs as Python


def test_a_later_process_needs_no_numba_and_a_damaged_file_is_made_anew(
    tmp_path: Path, folder: Path, request: pytest.FixtureRequest
) -> None:
    first = load(tmp_path / "loops_b.py")
    found = answer(first.loop, arguments(first))
    (file,) = folder.glob("kept-*.bin")
    whole = file.read_bytes()
    damages = [whole[:-9], whole[:20], b"", whole[:900] + bytes([whole[900] ^ 1]) + whole[901:], b"{}\n" + whole]
    for damage in damages:
        file.write_bytes(damage)
        assert kept(file.name) is None
    again = load(tmp_path / "loops_b.py")
    assert answer(again.loop, arguments(again)) == found
    assert kept(file.name) is not None
    request.getfixturevalue("uncompiled")
    later = load(tmp_path / "loops_b.py")
    assert answer(later.loop, arguments(later)) == found


def test_without_a_folder_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    module = load(tmp_path / "loops_c.py")
    assert module.scaled(1.0) == 0.5 * np.exp(1.0)
    assert module.scaled._last is not None
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".bin") == []


def test_two_processes_at_once(tmp_path: Path, folder: Path) -> None:
    load(tmp_path / "loops_d.py")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import loops_d; print(loops_d.scaled(1.0))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert {one.communicate()[0].strip() for one in running} == {repr(0.5 * np.exp(1.0).item())}
    (file,) = folder.iterdir()
    assert kept(file.name) is not None


def test_the_digest_sees_what_a_loop_reads_and_calls(tmp_path: Path) -> None:
    def contents(text: str) -> str:
        return contents_of(load(tmp_path / "loops_e.py", text).loop.py_func)

    known = contents(LOOPS)
    assert contents("# a remark\n\n" + LOOPS) == known
    changes = [("SCALE = 0.5", "SCALE = 0.25"), ("SCALE = 0.5", "SCALE = 1"), ("np.exp(x)", "np.exp(-x)")]
    changes += [("range(table.shape[0])", "range(1, table.shape[0])"), ("+= counts[i] *", "+= 2 * counts[i] *")]
    changed = [contents(LOOPS.replace(*change)) for change in changes]
    assert len({known, *changed}) == 6
    with pytest.raises(Unkept, match="no digest sees"):
        contents(LOOPS.replace("SCALE = 0.5", "SCALE = [0.5]"))


def test_the_name_of_a_file_has_the_machine_and_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from asapmodel.solvers.kept_code import _machine

    module = load(tmp_path / "loops_f.py")
    kinds = kinds_of(arguments(module))
    name = file_name(module.loop.py_func, kinds)
    assert file_name(module.loop.py_func, kinds[1:]) != name
    monkeypatch.setenv("NUMBA_OPT", "1")
    _machine.cache_clear()
    changed = file_name(module.loop.py_func, kinds)
    _machine.cache_clear()
    assert changed != name


@arrays_only
def total(values: Any, power: Any) -> Any:
    """Sum of powers, in the type of the numbers."""
    found = values[0] * 0
    for i in range(values.shape[0]):
        found += values[i] ** power
    return found


def test_arguments_of_any_kind_are_taken_as_numba_takes_them(folder: Path) -> None:
    values = np.arange(1.0, 7.0)
    locked = values.copy()
    locked.flags.writeable = False
    cases: list[tuple[Any, Any]] = [
        (values, 2),
        (values, 2.0),
        (values, True),
        (values, np.int64(3)),
        (values.astype(np.int64), 2),
        (locked, 2),
        (values[::2], 2),
        (values.astype(np.float32), 2),
        (values, np.int32(2)),
    ]
    expected = [total.py_func(*case) for case in cases]  # type: ignore[attr-defined]
    for _ in range(2):  # the second time each case comes behind another one
        for case, right in zip(cases, expected, strict=True):
            found = total(*case)
            assert found == right
            assert isinstance(found, int) == (case[0].dtype == np.int64)
    assert len(list(folder.glob("kept-*"))) == 5  # of the first six; numba has the others, np.int64 is as int
    with pytest.raises(Exception, match="Unsupported array dtype"):
        total(values.astype(">f8"), 2)


def test_arrays_that_change_between_calls(folder: Path) -> None:
    values = np.arange(1.0, 5.0)
    assert total(values, 1) == 10.0
    values.shape = (2, 2)
    with pytest.raises(Exception, match="Only accept returning of array passed"):
        total(values, 1)
    values.shape = (4,)
    values *= 2.0
    assert total(values, 1) == 20.0


@arrays_only
def divided(a: float, b: float) -> float:
    """A quotient, or an error."""
    if a < 0.0:
        raise ValueError("a is negative")
    return a / b


def test_errors_of_a_loop(folder: Path) -> None:
    assert divided(1.0, 2.0) == 0.5
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        divided(1.0, 0.0)
    with pytest.raises(ValueError, match="a is negative"):
        divided(-1.0, 2.0)
    assert divided._last is not None  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        divided(1.0)  # type: ignore[call-arg]


@njit(cache=True, nogil=True, inline="always")
def inlined(x: float) -> float:
    """Part of a loop of numba."""
    return x + 1.0


@njit(cache=True, nogil=True)
def listed(x: float) -> Any:
    """A loop that makes an array and calls others."""
    return np.full(3, divided(inlined(x), 2.0))


def test_loops_of_numba_call_kept_ones(folder: Path) -> None:
    assert listed(2.0).tolist() == [1.5, 1.5, 1.5]


def test_a_loop_that_makes_an_array_is_refused(folder: Path) -> None:
    def making(count: int) -> Any:
        return np.zeros(count).sum()

    with pytest.raises(Exception, match="Only accept returning of array passed"):
        arrays_only(making)(3)


def test_without_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(x: float) -> float:
        return x

    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert arrays_only(plain) is plain
    assert njit(cache=True)(plain) is plain


def test_threads_share_a_loop(tmp_path: Path, folder: Path) -> None:
    module = load(tmp_path / "loops_g.py")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda on: answer(module.loop, arguments(module, on)), [False, True] * 50))
    assert found == [answer(module.loop, arguments(module, on)) for on in [False, True]] * 50


def test_every_system_is_kept() -> None:
    for module, name in LOOPS_OF_SYSTEMS:
        assert contents_of(getattr(module, name).py_func)


@pytest.mark.parametrize("command", ["evaluate paper-default --rate 2", "capacity paper-asap"])
def test_commands_answer_without_numba(command: str) -> None:
    code = f"""
        import sys
        from asapmodel.cli import main
        status = main({command.split()!r})
        print("numba" in sys.modules, status, file=sys.stderr)
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    answers = [subprocess.run(run, capture_output=True, text=True, check=True, env=environment) for _ in range(2)]
    assert answers[0].stdout == answers[1].stdout
    assert answers[1].stderr.split() == ["False", "0"]


LOOPS_OF_SYSTEMS: list[tuple[ModuleType, str]] = [
    (free, "run_free"),
    (free_queues, "run_free_queues"),
    (lockstep, "_run"),
    (lockstep_queues, "_run"),
]
SYSTEMS = [
    (Layout("asap", 3, 1, 8), Policy()),
    (Layout("asap", 3, 1, 8), Policy(routing="fewest_tokens", dual_batch=False, chunk_tokens=512)),
    (Layout("sync", 3, 1, 3), Policy(batch_window=0.0)),
    (Layout("sync", 3, 1, 3), Policy(batch_window=0.0, routing="fewest_requests", chunk_tokens=512, max_seqs=4)),
]


@pytest.mark.slow
def test_runs_are_those_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    cases = [(*system, random_costs(rng), random_requests(rng, 60, 0.05)) for system in SYSTEMS for _ in range(3)]

    def answers() -> list[bytes]:
        return [times.tobytes() for case in cases for times in graph.run(*case).outcome]

    found = answers()
    for module, name in LOOPS_OF_SYSTEMS:
        loop = getattr(module, name)
        assert loop._last is not None
        monkeypatch.setattr(graph if hasattr(graph, name) else module, name, loop.dispatcher)
    assert answers() == found
