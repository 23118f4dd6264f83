"""The command `blame`, as a user types it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.helpers import SCENARIO, ask, process

Captured = pytest.CaptureFixture[str]
SYNC = SCENARIO.replace('kind = "asap"\nD = 2', 'kind = "sync"\nD = 8').replace("E = 16\n", "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SCENARIO)
    (tmp_path / "sync.toml").write_text(SYNC)
    return tmp_path


def test_json_as_a_process(folder: Path) -> None:
    answer = process(["blame", "mine.toml", "--rate", "4", "--json"], folder)
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["system"] == "asap"
    assert sum(found["components_s"].values()) == pytest.approx(found["ttft_mean_s"])
    assert set(found["paths_s"]) >= {"own_attention", "others_moe", "arrivals", "window"}
    totals = [sum(row.values()) for row in found["devices_s"].values()]
    assert totals == pytest.approx([totals[0]] * len(totals))
    assert found["straggler_waste"] == 0


@pytest.mark.parametrize(("name", "words"), [("mine.toml", "Critical paths"), ("sync.toml", "is lost at barriers")])
def test_table(capsys: Captured, folder: Path, name: str, words: str) -> None:
    answer = ask(capsys, "blame", name)
    assert (answer.status, answer.err) == (0, "")
    assert words in answer.out
    assert "Device time (%)" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "words"), [("afd-sync", "is lost at barriers or to padding"), ("afd-async", "Critical paths")]
)
def test_queues_per_group(capsys: Captured, folder: Path, name: str, words: str) -> None:
    answer = ask(capsys, "blame", name, "--rate", "4", "--requests", "out.csv")
    assert (answer.status, answer.err) == (0, "asapmodel: wrote out.csv\n")
    assert words in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    table = pd.read_csv(folder / "out.csv")
    components = table.drop(columns=["arrival_s", "prompt_tokens", "cached_tokens", "ttft_s"])
    assert components.sum(axis=1).to_numpy() == pytest.approx(table.ttft_s.to_numpy(), rel=1e-9)


def test_requests_add_up(capsys: Captured, folder: Path) -> None:
    answer = ask(capsys, "blame", "sync.toml", "--requests", "out.csv")
    assert (answer.status, answer.err) == (0, "asapmodel: wrote out.csv\n")
    table = pd.read_csv(folder / "out.csv")
    components = table.drop(columns=["arrival_s", "prompt_tokens", "cached_tokens", "ttft_s"])
    assert components.sum(axis=1).to_numpy() == pytest.approx(table.ttft_s.to_numpy(), rel=1e-9)
    again = ask(capsys, "blame", "sync.toml", "--requests", "out.csv")
    assert again.status == 2
    assert again.error == "out.csv: exists already; give --force (force=True) to replace it, or another name"
    assert ask(capsys, "blame", "sync.toml", "--requests", "out.csv", "--force").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rate", "0"), "--rate: is '0'; give a positive number"),
        (("--requests", "no/a.csv"), "no/a.csv: there is no folder no; create it, or give another name"),
    ],
)
def test_bad_input(capsys: Captured, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    answer = ask(capsys, "blame", "mine.toml", *arguments)
    assert answer.status == 2
    assert answer.error.startswith(message)
