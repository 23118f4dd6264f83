"""The numbers on docs/background/blame.md are those of the code."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.attribution.blame import Blame
from asapmodel.attribution.components import FREE, LOCKSTEP
from asapmodel.verbs.blame import blame

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "background" / "blame.md").read_text(encoding="utf-8")
LINES = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("|")]
ROWS = [[cell.strip().strip("`") for cell in line] for line in LINES]


@cache
def asap(rate: float, changes: str = "") -> Blame:
    return blame(am.Scenario.load("paper-asap").replace(**tomllib.loads(changes)), rate)


def test_every_component_is_explained() -> None:
    for name in {**FREE, **LOCKSTEP}:
        assert f"`{name}`" in PAGE, name


@pytest.mark.parametrize("column", [1, 2, 3])
def test_table_of_the_papers_systems(column: int) -> None:
    head = next(row for row in ROWS if row[0] == "component" and "paper-asap" in row)
    account = blame(am.Scenario.load(head[column]), 8.0)
    means = {name: f"{1e3 * seconds:.0f}" for name, seconds in account.means().items()}
    table = ROWS[ROWS.index(head) + 2 :][:18]
    assert {row[0]: row[column] for row in table if row[column]} == {
        name: text for name, text in means.items() if name not in {"host", "request_latency"}
    } | {"TTFT": f"{1e3 * account.ttft_s.mean():.0f}"}


def test_blame_is_not_saving() -> None:
    table = [row for row in ROWS if row[0] in {"8", "16"}]
    assert len(table) == 4
    for rate, blamed, name, before, change, after in table:
        account = asap(float(rate))
        assert f"{1e3 * account.means()[name]:.0f}" == blamed
        assert f"{1e3 * account.ttft_s.mean():.0f}" == before
        assert f"{1e3 * asap(float(rate), change).ttft_s.mean():.0f}" == after
