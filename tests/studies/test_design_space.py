"""The study of the design space: what is explored, bounds against runs of the engine, memory, and the page."""

import re
from pathlib import Path

import pandas as pd
import pytest

from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space
from asapmodel.scenario import Scenario
from asapmodel.studies.design_space import Answers, candidates, page
from asapmodel.studies.design_space_figure import design_space_figure
from asapmodel.studies.design_space_search import (
    OPEN,
    best_rows,
    bounds_of,
    chosen,
    limits,
    needs_gb,
    own_policy,
    settled,
    space,
    with_fit,
)
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.explore import explore

_SMALL = """
scenario = ["paper-asap", "paper-chunked"]
objectives = ["slo_throughput"]
rate = 4.0
[vary]
cluster.memory_bytes = [{memory}]
D = [2, 3, 4, 5, 8]
T = [4]
E = [12, 16, 20, 24]
pairing = ["locked", "rolling"]
min_batch_tokens = [2048, 16384]
exclusive_tokens = [16384, 32768]
chunk_tokens = [8192, 16384]
[constraints]
devices = 32
[confirm]
top = 0
"""


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(Space.parse(_SMALL.format(memory=64e9)), workers=1)


@pytest.fixture(scope="module")
def opened() -> pd.DataFrame:
    return best_rows(explore(Space.parse(_SMALL.format(memory=OPEN)), workers=1).table)


def test_the_space_has_every_split() -> None:
    some = space()
    assert set(some.vary["system.T"]) == {1, 2, 4, 8}
    assert set(some.vary["system.D"]) == set(range(1, 33))
    assert {one.name for one in some.scenarios} == {"paper-asap", "paper-chunked"}
    assert "policy.chunk_tokens" not in space(sync=False).vary


def test_best_of_each_split(found: Exploration, opened: pd.DataFrame) -> None:
    best, own = best_rows(found.table), own_policy(found.table)
    assert sorted(zip(best["D"], best["E"], strict=True)) == [(2, 24), (3, 20), (4, 16)]
    assert best["slo_throughput_rps"].is_monotonic_decreasing
    assert len(own) == 3
    for D in (2, 3, 4):
        rows = found.table[(found.table["D"] == D) & (found.table["system"] == "asap")]
        assert best[best["D"] == D]["slo_throughput_rps"].iloc[0] == rows["slo_throughput_rps"].max()
        assert own[own["D"] == D]["slo_throughput_rps"].iloc[0] <= rows["slo_throughput_rps"].max()
    assert with_fit(opened, best)["fits"].sum() == 3
    assert 5 in set(opened["D"])


def test_the_papers_split_is_the_best_that_fits(found: Exploration) -> None:
    best = best_rows(found.table)
    assert best.iloc[0][["D", "T", "E"]].tolist() == [4, 4, 16]
    assert best.iloc[0]["slo_throughput_rps"] > 1.15 * own_policy(found.table).iloc[0]["slo_throughput_rps"]
    for _, row in best.iterrows():
        bound = limits(chosen(row))
        assert bound.attention < bound.experts  # short of attention devices


def test_rows_become_scenarios(found: Exploration) -> None:
    row = own_policy(found.table).iloc[0]
    assert chosen(row).layout == Scenario.load("paper-asap").layout
    assert chosen(row).policy == Scenario.load("paper-asap").policy
    full = settled(own_policy(found.table).head(1))
    assert full["slo_throughput_rps"].iloc[0] == capacity(Scenario.load("paper-asap")).slo_throughput_rps
    sync = best_rows(found.table, "sync").iloc[0]
    assert chosen(sync).layout.kind == "sync"
    assert chosen(sync).policy.chunk_tokens == sync["chunk_tokens"]


def test_bounds_hold_and_cross(opened: pd.DataFrame) -> None:
    bounds = bounds_of(opened)
    assert list(bounds) == [2, 3, 4, 5]
    for bound, rps in bounds.values():
        assert rps < min(bound.attention, bound.experts, bound.in_flight)
    assert bounds[4][0].attention < bounds[4][0].experts
    assert bounds[5][0].attention > bounds[5][0].experts
    assert 4 < bounds[4][0].best_groups < 5


def test_memory_of_expert_devices() -> None:
    free = Scenario.load("paper-asap").replace(**{"cluster.memory_bytes": OPEN})
    need = needs_gb(free)
    assert need["buffers"] == pytest.approx(4 * 7168 * 8 * 32768 * 2 / 1e9)  # Table 2: D H K S Dsize
    assert need["moe"] == pytest.approx(61.6, abs=0.1)
    assert needs_gb(free.replace(D=5, E=12))["moe"] > 64 > need["moe"]
    assert needs_gb(free, 1.0)["moe"] == pytest.approx(need["moe"] - need["buffers"] / 2)


def test_page_and_figure(found: Exploration, opened: pd.DataFrame, tmp_path: Path) -> None:
    best, own, sync = best_rows(found.table), own_policy(found.table), best_rows(found.table, "sync")
    answers = Answers(best, own, sync, opened, opened)
    graph = capacity(chosen(own.iloc[0]), engine="graph", replications=1)
    runs = {name: (row, graph) for name, row in candidates(answers).items()}
    text = page(found, answers, runs, Ratio(0.98, 0.97, 0.99), bounds_of(opened))
    assert not re.search(r"[{}]|nan", text)
    assert "In 3 of the 3 splits" in text
    assert "-2.0% (-3.0% to -1.0%)" in text
    assert text.count("\n| D4 T4 E16 |") == 1
    figure = design_space_figure(with_fit(opened, best), own, 12.6, bounds_of(opened))
    save_figure(figure, tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
