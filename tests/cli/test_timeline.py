"""The command `timeline`, as a user types it."""

import json
from pathlib import Path

import pytest

from tests.cli.helpers import SCENARIO, ask, process

Captured = pytest.CaptureFixture[str]
WINDOW = ("timeline", "mine.toml", "--from", "10s", "--for", "50ms")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    return tmp_path


def test_table(capsys: Captured, folder: Path) -> None:
    answer = ask(capsys, *WINDOW[:-1], "2s")
    assert (answer.status, answer.err) == (0, "")
    assert "10 to 12 s of a run that ends at" in answer.out
    rows = {line[:22].strip(): line[22:].split() for line in answer.out.splitlines() if line[:5] in ("group", "MoE d")}
    assert list(rows) == ["group 0", "group 1", *(f"MoE devices, {one}" for one in ("receive", "compute", "send"))]
    for busy, blocked, idle, _ in rows.values():
        assert float(busy) + float(blocked) + float(idle) == pytest.approx(100, abs=0.2)
    assert max(map(len, answer.out.splitlines())) <= 80


def test_a_trace_as_a_process(folder: Path) -> None:
    answer = process([*WINDOW, "--rate", "4", "-o", "trace.json", "--json"], folder)
    assert (answer.status, answer.err) == (0, "asapmodel: wrote trace.json\n")
    result = json.loads(answer.out)
    assert (result["rate_rps"], result["start_s"], result["end_s"]) == (4.0, 10.0, 10.05)
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == sum(one["tasks"] for one in result["streams"])


@pytest.mark.parametrize("name", ["a.svg", "a.png", "a.json.gz"])
def test_other_files(capsys: Captured, folder: Path, name: str) -> None:
    assert ask(capsys, *WINDOW, "--engine", "graph", "-o", name).status == 0
    old = (folder / name).read_bytes()
    answer = ask(capsys, *WINDOW, "-o", name)
    assert answer.status == 2
    assert answer.error == f"{name}: exists already; give --force (force=True) to replace it, or another name"
    assert ask(capsys, *WINDOW, "-o", name, "--force").status == 0
    assert (folder / name).read_bytes() == old


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "a.pdf"), "a.pdf: is neither a trace nor a picture; end the name in .json, .json.gz, .svg or .png"),
        (("-o", "no/a.json"), "no/a.json: there is no folder no; create it, or give another name"),
        (("--engine", "queueing"), "--engine: 'queueing' has no timeline; leave --engine out"),
        (("--from", "1 h"), "--from: 3600 s is not before the end of the run, 29.776 s; give an earlier"),
        (("--from", "10 parsec"), "--from: '10 parsec' has the unknown unit 'parsec'; give seconds"),
        (("--for", "0"), "--for: is 0; give a time greater than 0"),
        (("--for", "inf"), "--for: is inf, not a finite time"),
        (("--rate", "-1"), "--rate: is '-1'; give a positive number"),
        (
            ("--for", "20s", "-o", "a.png"),
            "--for: 19.78 s are 7,320 boxes on a lane, more than a picture can show; give 1s or less",
        ),
    ],
)
def test_bad_input(capsys: Captured, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    answer = ask(capsys, *WINDOW, *arguments)
    assert answer.status == 2
    assert answer.error.startswith(message)
    assert [path.name for path in folder.iterdir()] == ["mine.toml"]
