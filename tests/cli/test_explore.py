"""`asapmodel explore`: the answer in words and as JSON, exit statuses, and one line for each mistake."""

import json
from pathlib import Path

import pandas as pd
import pytest

from asapmodel.exploration.space import Space
from asapmodel.verbs.explore import explore
from tests.cli.helpers import ask
from tests.exploration.spaces import SMALL, write

TINY = """
scenario = ["paper-asap", "paper-chunked"]
objectives = ["slo_throughput_per_device", "devices"]
[vary]
D = [2, 4, 8]
E = [16, 20]
pairing = ["locked", "rolling"]
[constraints]
devices = { max = 40 }
[confirm]
top = 1
replications = 1
"""


def test_answer_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = write(tmp_path, TINY)
    answer = ask(capsys, "explore", str(path))
    assert answer.status == 0
    assert answer.err == ""
    assert max(map(len, answer.out.splitlines())) <= 80
    found = explore(path)
    text = " ".join(answer.out.split())
    assert f"{found.combinations} points, {len(found.table)} feasible" in text
    for words in (
        "Why points were left out",
        "memory of a device",
        "constraint devices <= 40",
        f"Pareto front, {len(found.front)} points",
        "asap D4 T4 E16",
        "pairing=rolling",
        "confirmed by runs of the graph engine",
    ):
        assert words in text


def test_json_and_output_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path, TINY), tmp_path / "out.parquet"
    answer = ask(capsys, "explore", str(path), "-o", str(out), "--json")
    assert answer.status == 0
    assert answer.err == f"asapmodel: wrote {out}\n"
    shown = json.loads(answer.out)
    table = pd.read_parquet(out)
    assert shown == {**json.loads(json.dumps(explore(path).to_dict())), "source": str(path)}
    assert shown["feasible"] == len(table)
    assert sorted(row["point"] for row in shown["front"]) == table.loc[table["on_front"], "point"].tolist()
    again = ask(capsys, "explore", str(path), "-o", str(out), "--json")
    assert again.err == f"asapmodel: {out} is finished, nothing was computed\n"
    assert json.loads(again.out) == {**shown, "reused": True}


def test_only_some_of_the_front(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, TINY.replace("top = 1", "top = 0"))
    answer = ask(capsys, "explore", str(path), "--top", "1")
    front = answer.out.split("Pareto front")[1]
    assert ", the first 1" in front
    assert front.count(" D") == 1
    assert "confirmed" not in answer.out


def test_nothing_feasible_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, TINY.replace("max = 40", "max = 3"))
    answer = ask(capsys, "explore", str(path))
    assert answer.status == 1
    assert answer.error.endswith("is feasible; left out by constraint devices <= 3 (15)")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (None, (), "no such file"),
        ("scenario = ", (), "line 1: not valid TOML"),
        (TINY.replace("E =", "EE ="), (), "vary.EE: unknown key; the nearest valid key is 'E'"),
        (TINY, ("--top", "0"), "--top: is '0'"),
        (TINY, ("--workers", "none"), "--workers: is 'none'"),
        (TINY, ("-o", "none/out.parquet"), "there is no folder none"),
        (TINY, ("--scheduler", "nonsense"), "--scheduler: no scheduler answers at nonsense"),
        (TINY, ("--worker", "2"), "the nearest is '--workers'"),
    ],
)
def test_mistakes_are_status_2(
    text: str | None,
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        write(tmp_path, text)
    answer = ask(capsys, "explore", "space.toml", *options)
    assert answer.status == 2
    assert words in answer.error


def test_results_of_another_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.parquet")
    first, other = write(tmp_path, SMALL), write(tmp_path, TINY.replace("top = 1", "top = 0"), "other.toml")
    assert ask(capsys, "explore", str(first), "-o", out).status == 0
    answer = ask(capsys, "explore", str(other), "-o", out)
    assert answer.status == 2
    assert answer.error.startswith(f"{out}: holds results of another space; give --force")
    assert ask(capsys, "explore", str(other), "-o", out, "--force").status == 0
    assert len(pd.read_parquet(out)) == len(explore(Space.load(other)).table)
