"""Study of dual batching: gains against formulas and by hand, where it pays and where not, and the page."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asapmodel.circuits.group import group_cycle
from asapmodel.costing import layer_costs
from asapmodel.studies import dual_batching_runs
from asapmodel.studies.dp_imbalance_runs import OTHERS
from asapmodel.studies.dual_batching import page
from asapmodel.studies.dual_batching_figures import draw_figure, dual_figure
from asapmodel.studies.dual_batching_runs import MODES, Curve, Row, curve, gain_of_prompts, measure, system
from asapmodel.verbs.capacity import capacity


@pytest.fixture(scope="module", autouse=True)
def fewer_pairs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dual_batching_runs, "_WAITING", 300)
        yield


@pytest.fixture(scope="module")
def own() -> Row:
    """The paper's system."""
    return measure(OTHERS[0])


@pytest.fixture(scope="module")
def groups() -> list[Row]:
    """One group, and more than the MoE devices can serve."""
    return [measure(OTHERS[0], groups=D) for D in (1, 12)]


def test_two_batches_pay_and_cost_ttft_at_light_load(own: Row) -> None:
    assert 0.1 < own.gain("locked") < own.gain("rolling") < 0.3
    assert 1.02 < own.light_ttft_s["locked"] / own.light_ttft_s["single"] < 1.15


def test_they_beat_one_batch_of_twice_the_tokens(own: Row) -> None:
    assert own.slo_rps["locked"] > 1.05 * measure(OTHERS[0], 4096).slo_rps["single"]


def test_one_group_gains_what_exact_pairs_say(groups: list[Row]) -> None:
    one = groups[0]
    assert one.limit_gain("locked") == pytest.approx(one.pairs, abs=0.06)
    assert one.limit_gain("locked") < one.pairs < one.form  # exclusive prompts wait; unequal batches hide less


def test_nothing_is_gained_where_the_experts_are_short(groups: list[Row]) -> None:
    few, many = groups
    assert few.moe_load < 0.3 < 0.95 < many.moe_load
    assert abs(many.limit_gain("locked")) < 0.01
    assert few.limit_gain("locked") > 0.1


def test_the_exclusive_rule_costs_gain(own: Row) -> None:
    free = measure(OTHERS[0], exclusive=32768)
    assert free.exclusive_share == 0 < own.exclusive_share
    assert free.gain("locked") > own.gain("locked")
    assert free.slo_rps["locked"] > own.slo_rps["locked"]


def test_equal_prompts_by_hand() -> None:
    """Batches are single prompts of 5000 tokens: form and exact pairs are one cycle, computed here once more."""
    row = measure(0.0)
    costs = layer_costs(system(0.0)).costs
    phases = costs.phases(5000.0, 5000.0**2)
    assert row.pairs == pytest.approx(2 * sum(phases) / group_cycle([phases, phases]).layer_s - 1, rel=1e-9)
    assert row.form == pytest.approx(row.pairs, rel=1e-9)
    assert row.exclusive_share == 0


def test_curve_is_exact_and_halves_of_few_tokens_lose() -> None:
    curves = [curve(tokens) for tokens in (256, 1024, 8192, 32768)]
    for one in curves:
        assert one.form == pytest.approx(one.exact, abs=1e-9)
        assert one.halving < one.form
    assert curves[0].halving < 0 < curves[1].halving
    assert 0 < gain_of_prompts(32768) < gain_of_prompts(16384) < 0.5


def test_costs_stay_with_the_number_of_groups() -> None:
    assert layer_costs(system(OTHERS[0], groups=9)).costs == layer_costs(system(OTHERS[0])).costs
    assert system(OTHERS[0], mode="single").policy.slots == 1
    assert system(OTHERS[0], mode="rolling").policy.pairing == "rolling"


def test_page_and_figure(own: Row, groups: list[Row], tmp_path: Path) -> None:
    sizes = [own, measure(OTHERS[0], 4096)]
    laws = [own, measure(OTHERS[0], exclusive=32768)]
    laws += [replace(row, law=name) for name in OTHERS[1:] for row in laws[:2]]
    curves: list[Curve] = [curve(tokens) for tokens in (256, 2048)]
    runs = {mode: capacity(system(OTHERS[0], mode=mode).replace(duration=40), "graph", 2) for mode in MODES}
    text = page(sizes, groups, laws, curves, runs)
    assert "{" not in text
    assert "nan" not in text.split("## Answer")[1]
    assert text.count("| mooncake_conversation |") == 2
    draw_figure(sizes, curves, groups, tmp_path / "figure.svg")
    ElementTree.parse(tmp_path / "figure.svg")
    json.dumps(dual_figure(sizes, curves, groups))
