"""The command `plan`, as a user types it."""

import json
from pathlib import Path

import pytest

import asapmodel as am
from tests.cli.helpers import ask, process
from tests.planning.texts import DEMAND, SYSTEM

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SYSTEM)
    (tmp_path / "day.toml").write_text(DEMAND)
    return tmp_path


def test_tables(capsys: Captured, folder: Path) -> None:
    answer = ask(capsys, "plan", "day.toml")
    assert (answer.status, answer.err) == (0, "")
    plan = am.plan("day.toml")
    assert f"day: {plan.instances} instances, {plan.devices} devices" in answer.out
    assert f"{plan.supernodes} supernodes" in answer.out
    for heading in ("Least devices: no fleet of", "Pool", "predicted (s)", "By hour (%)"):
        assert heading in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_json_as_a_process_equals_the_file_and_python(folder: Path) -> None:
    answer = process(["plan", "day.toml", "--json", "-o", "plan.json"], folder)
    assert (answer.status, answer.err) == (0, "asapmodel: wrote plan.json\n")
    printed = json.loads(answer.out)
    assert printed == json.loads((folder / "plan.json").read_text())
    assert printed == json.loads(json.dumps(am.plan("day.toml").to_dict()))
    assert all(one["met"] for pool in printed["pools"] for one in pool["ttft"])
    assert printed["gap"] <= 0.01


def test_what_if(capsys: Captured, folder: Path) -> None:
    answer = ask(capsys, "plan", "day.toml", "--what-if")
    assert answer.status == 0
    assert "1 s more for class 'chat'" in answer.out
    assert "10 % more traffic" in answer.out


def test_a_file_is_not_replaced_unasked(capsys: Captured, folder: Path) -> None:
    (folder / "plan.json").write_text("mine")
    answer = ask(capsys, "plan", "day.toml", "-o", "plan.json")
    assert answer.status == 2
    assert answer.error.startswith("plan.json: exists already; give --force")
    assert (folder / "plan.json").read_text() == "mine"


def test_infeasible(capsys: Captured, folder: Path) -> None:
    (folder / "day.toml").write_text(DEMAND.replace("price = 2.0", "available = 1"))
    answer = ask(capsys, "plan", "day.toml")
    assert answer.status == 1
    assert answer.error.startswith("day.toml: no fleet within the limits; enough would be ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan",), "missing argument 'DEMAND'; see 'asapmodel plan --help'"),
        (
            ("plan", "dya.toml"),
            "dya.toml: no such file or shipped demand; give a file or a shipped demand; `asapmodel list demands` names",
        ),
        (("plan", "day.toml", "--gap", "1"), "gap: is 1; give a share from 0 to below 1"),
        (("plan", "day.toml", "--gap", "x"), "--gap: is 'x'; give a number"),
        (("plan", "day.toml", "--time-limit", "0"), "time_limit: is 0; give a positive number of seconds"),
        (("plan", "day.toml", "--what"), "no option '--what'; the nearest is '--what-if'"),
    ],
)
def test_bad_input(capsys: Captured, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    answer = ask(capsys, *arguments)
    assert answer.status == 2
    assert answer.error.startswith(message)


def test_shipped_demands_are_listed(capsys: Captured) -> None:
    answer = ask(capsys, "list", "demands")
    assert answer.status == 0
    assert "three-classes" in answer.out
    assert "A day of chat, code and long documents" in answer.out
