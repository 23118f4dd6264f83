"""The study of two kinds of hardware: whose laws are whose, prices, and the page."""

import re
from pathlib import Path

import pytest

from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.hardware_mix import fitting, measured, page
from asapmodel.studies.hardware_mix_devices import (
    KINDS,
    Point,
    best_value,
    break_even,
    mixed,
    paying,
    speeds,
    splits,
)
from asapmodel.studies.hardware_mix_figure import hardware_mix_figure
from asapmodel.studies.pages import save_figure
from asapmodel.verbs.capacity import capacity

PLAIN, FAST, BAND = KINDS


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], list[Point]]:
    return measured(list(splits(groups=(4, 6), experts=(12, 20), batches=(16384,))))


def test_each_stage_has_its_own_device() -> None:
    base = Scenario.load("paper-asap")
    plain, mix = layer_costs(base).costs, layer_costs(mixed(base, FAST, BAND)).costs
    assert layer_costs(mixed(base, PLAIN, PLAIN)).costs == plain
    assert mix.attention.per_token2 == pytest.approx(plain.attention.per_token2 / 2)
    assert mix.attention.fixed == plain.attention.fixed
    assert mix.moe.floor == pytest.approx(plain.moe.floor / 2)  # twice the bandwidth
    assert mix.moe.per_token > 1.7 * plain.moe.per_token  # half the arithmetic
    assert mix.dispatch_send == plain.dispatch_send
    assert mix.combine_send == plain.combine_send
    assert mix.combine_recv == plain.combine_recv
    assert mix.dispatch_recv.per_token <= plain.dispatch_recv.per_token


def test_prices_of_hand_made_splits() -> None:
    scenario = Scenario.load("paper-asap")
    points = [Point(scenario, 10, 10, 30.0, True), Point(scenario, 20, 10, 40.0, True)]
    assert best_value(points, 1.0, 1.0) is points[0]
    assert best_value(points, 0.1, 1.0) is points[1]
    price = break_even(points, 1.0, "attention")
    assert price == pytest.approx(2.0)  # (30 / 1 - 10) / 10
    assert best_value(points, price, 1.0).value(price, 1.0) == pytest.approx(1.0)
    assert break_even(points, 1.0, "experts") == pytest.approx(2.0)  # (30 - 10) / 10 and (40 - 20) / 10


def test_compute_pays_in_prefill(found: dict[tuple[str, str], list[Point]]) -> None:
    def each(*pair: str) -> float:
        return best_value(found[pair[0], pair[1]], 1, 1).value(1, 1)

    plain = each("plain", "plain")
    assert each(FAST.name, FAST.name) > each(FAST.name, "plain") > plain > each("plain", BAND.name)
    assert 1 < break_even(found[FAST.name, "plain"], plain, "attention") < 2
    for kind in (FAST.name, BAND.name):
        span = paying(found, kind, "experts")
        assert span is None or 0.2 <= span[0] <= span[1] < 3


def test_fits_and_speeds(found: dict[tuple[str, str], list[Point]]) -> None:
    fits = fitting(found)["plain", "plain"]
    assert {(one.attention, one.experts) for one in fits} == {(16, 20), (24, 20)}
    group, experts = speeds(FAST, 16384)
    assert 1.5 < group < experts <= 2.0  # transfers do not get faster
    assert speeds(FAST, 2048)[1] < experts  # small batches read weights


def test_page_and_figure(found: dict[tuple[str, str], list[Point]], tmp_path: Path) -> None:
    fits = fitting(found)
    one = capacity(best_value(fits["plain", "plain"], 1, 1).scenario, engine="graph", replications=1)
    text = page(found, {("plain", "plain"): one}, {2048: (1.7, 1.72), 16384: (1.69, 2.0)})
    assert not re.search(r"[{}]|nan", text)
    assert "1.70 times as fast with batches from 2k, 1.69 with 16k" in text
    assert text.count("| any memory | compute-rich |") == 3
    save_figure(hardware_mix_figure(fits, found), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
