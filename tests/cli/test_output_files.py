import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from asapmodel.errors import InputError
from asapmodel.files import atomic, check_writable, write_csv, write_text_atomically
from asapmodel.models.trace import read_trace
from tests.cli.helpers import SCENARIO, ask

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    return tmp_path


def commands(out: str) -> list[tuple[str, ...]]:
    return [
        ("evaluate", "mine.toml", "--engine", "graph", "--requests", out),
        ("sweep", "mine.toml", "--rates", "1", "--engine", "graph", "-o", out),
        ("report", "mine.toml", "-o", out),
    ]


@pytest.mark.parametrize("place", range(3))
def test_an_existing_file_is_replaced_only_with_force(capsys: Captured, folder: Path, place: int) -> None:
    out = folder / "out.csv"
    out.write_text("precious")
    arguments = commands("out.csv")[place]
    answer = ask(capsys, *arguments)
    assert answer.status == 2
    assert answer.error == "out.csv: exists already; give --force (force=True) to replace it, or another name"
    assert out.read_text() == "precious"
    if place < 2:  # the report takes seconds, see test_commands
        assert ask(capsys, *arguments, "--force").status == 0
        assert "precious" not in out.read_text()
    assert sorted(os.listdir(folder)) == ["mine.toml", "out.csv"]


@pytest.mark.parametrize("place", range(3))
def test_a_place_that_cannot_be_written_is_refused_before_the_work(capsys: Captured, folder: Path, place: int) -> None:
    for out, message in {
        "nowhere/out.csv": "nowhere/out.csv: there is no folder nowhere; create it, or give another name",
        "mine.toml/out.csv": "mine.toml/out.csv: there is no folder mine.toml; create it, or give another name",
        ".": ".: is a folder; give the name of a file",
        "/dev/null": "/dev/null: is not a regular file; give the name of a file",
        "x" * 300: f"{'x' * 300}: cannot be written (File name too long); give another name",
    }.items():
        answer = ask(capsys, *commands(out)[place], "--force")
        assert answer.status == 2
        assert answer.error == message
    assert os.listdir(folder) == ["mine.toml"]


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
def test_requests_read_back_as_a_trace(capsys: Captured, folder: Path, name: str) -> None:
    assert ask(capsys, "evaluate", "mine.toml", "--engine", "graph", "--requests", name).status == 0
    data = (folder / name).read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
    assert lines[0] == "arrival_s,prompt_tokens,cached_tokens,start_s,end_s,ttft_s"
    start, end, ttft = np.loadtxt(lines[1:], delimiter=",", usecols=(3, 4, 5), unpack=True)
    trace = read_trace(name)
    assert set(trace.prompt_tokens.tolist()) == {4096}
    assert np.all(trace.arrival_s <= start)
    assert np.all(start < end)
    assert np.allclose(ttft, end - trace.arrival_s, rtol=1e-12)
    # Replaying what was written gives the same system the same work.
    (folder / "again.toml").write_text(SCENARIO.partition("[workload]")[0] + f'[workload]\ntrace = "{name}"\n')
    assert ask(capsys, "evaluate", "again.toml", "--engine", "graph", "--requests", "again.csv").status == 0
    assert np.allclose(np.diff(read_trace("again.csv").arrival_s), np.diff(trace.arrival_s))


def test_columns_are_written_in_full_across_blocks(tmp_path: Path) -> None:
    times = np.cumsum(np.random.default_rng(1).random(70_000))
    write_csv(tmp_path / "c.csv", {"arrival_s": times, "prompt_tokens": np.ones(70_000, dtype=np.int64)})
    assert np.array_equal(read_trace(tmp_path / "c.csv").arrival_s, times)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_write_leaves_the_folder_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    old = tmp_path / "old.txt"
    old.write_text("old")

    def write_half(path: Path, force: bool) -> None:
        with atomic(path, force) as stream:
            stream.write("half")
            stream.flush()
            raise error

    for path, force in ((old, True), (tmp_path / "new.txt", False)):
        with pytest.raises(error):
            write_half(path, force)
    assert os.listdir(tmp_path) == ["old.txt"]
    assert old.read_text() == "old"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"

    def write() -> None:
        with atomic(path) as stream:
            stream.write("mine")
            path.write_text("theirs")

    with pytest.raises(InputError, match="exists already"):
        write()
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_without_hard_links_the_file_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_text_atomically(tmp_path / "a.txt", "x")
    assert (tmp_path / "a.txt").read_text() == "x"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_is_followed_and_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text_atomically(tmp_path / "link.txt", "é")
    assert (tmp_path / "real.txt").read_bytes() == "é".encode()
    full = pytest.raises(InputError, match=r"cannot be written \(No space left on device\)")
    with full, atomic(tmp_path / "b.txt"):
        raise OSError(28, "No space left on device")
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="its folder is not writable"):
        check_writable(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "paper-asap", "--rates", "1:24:0.01", "--engine", "graph", "-o", "out.csv"),
        ("report", "paper-asap", "trace-asap", "--engine", "graph", "-o", "out.html"),
    ],
)
def test_ctrl_c_leaves_nothing_and_says_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    # The shell that started the tests may have had SIGINT ignored, which children inherit.
    running = subprocess.Popen(
        [sys.executable, "-m", "asapmodel", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(3.0)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, "", "asapmodel: interrupted\n")
    assert os.listdir(tmp_path) == []
