"""Study of imbalance: what must hold of the waste, the perfectly balanced system and the accounts, and the page."""

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asapmodel.models.distributions import TruncatedLognormal
from asapmodel.scenario import Scenario
from asapmodel.studies.dp_imbalance import page
from asapmodel.studies.dp_imbalance_figures import draw_figure, waste_figure
from asapmodel.studies.dp_imbalance_idle import Shares, device_shares, scenarios, shares_of
from asapmodel.studies.dp_imbalance_runs import (
    CAP,
    CHUNK,
    MEAN,
    OTHERS,
    Row,
    law,
    measure,
    perfectly_balanced,
    system,
)
from asapmodel.verbs.evaluate import evaluate
from asapmodel.verbs.prepared import prepare


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Even, uneven and the paper's lengths, whole and in chunks, on eight groups."""
    return [measure(name, 8, chunk, runs=name == OTHERS[0]) for chunk in (0, CHUNK) for name in (0.0, 1.0, OTHERS[0])]


@pytest.fixture(scope="module")
def shares() -> list[Shares]:
    """Device time of the paper's three systems."""
    return [one for scenario in scenarios(OTHERS[0]).values() for one in shares_of(scenario)]


@pytest.mark.parametrize("sigma", [0.25, 1.0, 2.0])
def test_laws_have_the_same_mean(sigma: float) -> None:
    lengths = law(sigma)["lengths"]
    assert TruncatedLognormal(lengths["mu"], sigma, 1, CAP).mean == pytest.approx(MEAN, rel=1e-9)


def test_what_must_hold_of_every_row(rows: list[Row]) -> None:
    for row in rows:
        assert 0 <= row.waste_waiting < row.waste < 1  # with every prompt waiting no group is idle
        assert row.slo_rps < row.perfect_rps
        assert 0 <= row.loss < 1
        assert row.barrier_share <= row.waste_waiting  # attention is a part of the time
        if not math.isnan(row.waste_of_runs):
            assert row.waste_of_runs == pytest.approx(row.waste, abs=0.03)


def test_equal_prompts_wait_only_for_want_of_prompts(rows: list[Row]) -> None:
    for row in (rows[0], rows[3]):
        assert row.waste_waiting == row.predicted_waste == 0
        assert row.waste > 0.2


def test_uneven_lengths_waste_more_and_chunks_less(rows: list[Row]) -> None:
    for even, uneven in (rows[:2], rows[3:5]):
        assert uneven.waste > even.waste
        assert uneven.loss > even.loss
        assert uneven.predicted_waste == pytest.approx(uneven.waste_waiting, abs=0.05)
    for whole, chunks in zip(rows[1:3], rows[4:6], strict=True):
        assert chunks.waste < whole.waste
        assert chunks.loss < whole.loss


def test_more_groups_wait_more() -> None:
    few, many = measure(1.0, 2, CHUNK), measure(1.0, 16, CHUNK)
    assert few.waste < many.waste
    assert few.waste_waiting < many.waste_waiting
    assert few.predicted_waste < many.predicted_waste
    assert few.normal_waste == pytest.approx(few.waste_waiting, abs=0.05)


def test_work_balancing_changes_little() -> None:
    by_tokens, by_work = measure(OTHERS[0], 8, CHUNK), measure(OTHERS[0], 8, CHUNK, "work")
    assert by_work.slo_rps == pytest.approx(by_tokens.slo_rps, rel=0.02)


def test_perfect_balance_of_one_group_is_the_group_itself() -> None:
    scenario = system(OTHERS[0], 1, CHUNK)
    one = perfectly_balanced(scenario, prepare(scenario))
    mean = evaluate(scenario, 0.5).ttft.mean_s
    assert evaluate(one, 0.5).ttft.mean_s == pytest.approx(mean, rel=1e-12)


def test_perfect_balance_does_not_waste_and_takes_the_mean_time() -> None:
    scenario = system(0.0, 8, CHUNK)
    ready = prepare(scenario)
    even = prepare(perfectly_balanced(scenario, ready))
    own, other = ready.costing.costs, even.costing.costs
    n, w = 8192.0, 3e7  # of each of eight groups
    assert other.attention(8 * n, 8 * w) == pytest.approx(own.attention(n, w), rel=1e-12)
    assert other.dispatch_send(8 * n) == pytest.approx(own.dispatch_send(n), rel=1e-12)
    assert other.moe(8 * n) == own.moe(8 * n)
    with pytest.raises(ValueError, match="synchronous"):
        perfectly_balanced(Scenario.load("paper-asap"), ready)


def test_shares_add_up_and_a_backlog_is_idle_less() -> None:
    for scenario in scenarios(OTHERS[0]).values():
        ready = prepare(scenario)
        some = [device_shares(ready, "light", 1.0), device_shares(ready, "waiting", None)]
        for one in some:
            assert one.compute + one.transfers + one.idle == pytest.approx(1)
            assert min(one.compute, one.transfers, one.idle) > 0
        assert some[1].idle < some[0].idle
        assert some[1].compute > some[0].compute


def test_asynchronous_devices_wait_no_less_than_chunked_ones(shares: list[Shares]) -> None:
    """The page says that disaggregation moves the waiting; and that computing grows since transfers do not block."""
    waiting = {one.system: one for one in shares if one.place == "all prompts waiting"}
    asap, chunked = waiting["ASAP"], waiting["ChunkedPrefill"]
    assert asap.idle > chunked.idle
    assert asap.transfers < chunked.transfers
    assert asap.compute > chunked.compute


def test_page_and_figure(rows: list[Row], shares: list[Shares], tmp_path: Path) -> None:
    sweep = [measure(sigma, groups, 0) for sigma in (0.0, 1.5) for groups in (2, 4)]
    trace = measure("azure2023_conv", 8, 0)
    text = page(sweep, [*rows, trace], [*rows, trace], {OTHERS[0]: shares})
    assert "{" not in text
    assert "nan" not in text.split("## Answer")[1]
    assert text.count("| ChunkedPrefill |") == 2
    draw_figure(sweep, tmp_path / "figure.svg")
    ElementTree.parse(tmp_path / "figure.svg")
    json.dumps(waste_figure(sweep))
