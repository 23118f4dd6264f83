"""The numbers on docs/background/blame.md are those of the code."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.attribution.blame import Blame
from asapmodel.attribution.components import FREE, FREE_QUEUES, LOCKSTEP, LOCKSTEP_QUEUES
from asapmodel.verbs.blame import blame

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "background" / "blame.md").read_text(encoding="utf-8")
LINES = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("|")]
ROWS = [[cell.strip().strip("`") for cell in line] for line in LINES]


@cache
def asap(rate: float, changes: str = "") -> Blame:
    return blame(am.Scenario.load("paper-asap").replace(**tomllib.loads(changes)), rate)


def test_every_component_is_explained() -> None:
    for name in {**FREE, **LOCKSTEP, **FREE_QUEUES, **LOCKSTEP_QUEUES}:
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


@pytest.mark.parametrize("column", [1, 2])
def test_table_of_the_measured_systems(column: int) -> None:
    head = next(row for row in ROWS if row[0] == "component" and "afd-async" in row)
    account = blame(am.Scenario.load(head[column]), 4.0)
    table = {row[0]: row[column] for row in ROWS[ROWS.index(head) + 2 :][:16] if row[column]}
    assert table.pop("TTFT") == f"{1e3 * account.ttft_s.mean():.0f}"
    means = {name: f"{1e3 * seconds:.0f}" for name, seconds in account.means().items()}
    assert means.pop("request_latency") == "18"
    assert table.items() <= means.items()
    assert {means[name] for name in means.keys() - table.keys()} == {"0"}


def test_own_work_of_halves_is_not_exactly_the_time_alone() -> None:
    scenario = am.Scenario.load("afd-async")
    path, alone = blame(scenario, 4.0).parts(), am.evaluate(scenario, 4.0, engine="graph").parts
    assert f"has {1e3 * path.kernel_s:.1f} ms in place of {1e3 * alone.kernel_s:.1f}" in PAGE


@pytest.mark.parametrize("rate", [4.0, 12.0])
def test_blame_is_not_saving_with_queues_per_group(rate: float) -> None:
    (row,) = (row for row in ROWS if row[0] == f"{rate:.0f}")
    _, blamed, name, before, change, after = row
    scenario = am.Scenario.load("afd-sync")
    account = blame(scenario, rate)
    assert f"{1e3 * account.means()[name]:.0f}" == blamed
    assert f"{1e3 * account.ttft_s.mean():.0f}" == before
    changed = scenario.replace(**tomllib.loads(change))
    assert f"{1e3 * blame(changed, rate).ttft_s.mean():.0f}" == after


def test_blame_is_not_saving() -> None:
    table = [row for row in ROWS if row[0] in {"8", "16"}]
    assert len(table) == 4
    for rate, blamed, name, before, change, after in table:
        account = asap(float(rate))
        assert f"{1e3 * account.means()[name]:.0f}" == blamed
        assert f"{1e3 * account.ttft_s.mean():.0f}" == before
        assert f"{1e3 * asap(float(rate), change).ttft_s.mean():.0f}" == after
