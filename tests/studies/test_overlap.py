"""The study of communication streams: scaling, bounds, exact pairs, the break-even, and the page."""

import re
from pathlib import Path

import numpy as np
import pytest

from asapmodel.costing import layer_costs
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import FACTORS, STREAMS, Row, backlog, measure, page, paid_back, scaled
from asapmodel.studies.overlap_figure import overlap_figure
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import prepare

ASAP = Scenario.load("paper-asap")


@pytest.fixture(scope="module")
def rows() -> dict[tuple[float, str], Row]:
    return {(x, name): measure(ASAP, x, name) for x in (1.0, 8.0) for name in STREAMS}


def test_scaling_changes_transfers_and_nothing_else() -> None:
    one, three = layer_costs(ASAP).costs, layer_costs(scaled(ASAP, 3.0)).costs
    before, after = one.phases(2000.0, 4e6), three.phases(2000.0, 4e6)
    assert np.array(after) / np.array(before) == pytest.approx([1, 3, 3, 1, 3, 3])
    assert capacity(scaled(ASAP, 1.0)).slo_throughput_rps == capacity(ASAP).slo_throughput_rps


def test_limits_obey_their_bounds(rows: dict[tuple[float, str], Row]) -> None:
    for row in rows.values():
        assert row.slo_rps < row.limit_rps < row.bound_rps
        assert row.ttft_s[0] < row.ttft_s[1]


def test_streams_help_and_those_of_the_pool_most(rows: dict[tuple[float, str], Row]) -> None:
    neither, attention, moe, both = STREAMS
    for x in (1.0, 8.0):
        at = {name: rows[x, name].slo_rps for name in STREAMS}
        assert at[neither] < at[attention] < at[moe] < at[both]
        assert at[moe] / at[neither] - 1 > 4 * (at[both] / at[moe] - 1)
        assert rows[x, neither].constraint == "stream of the MoE devices"
    assert rows[8.0, moe].slo_rps / rows[8.0, neither].slo_rps > rows[1.0, moe].slo_rps / rows[1.0, neither].slo_rps
    assert abs(rows[1.0, moe].ttft_s[0] / rows[1.0, neither].ttft_s[0] - 1) < 0.01  # nothing at low load


def test_a_pair_with_all_streams_is_the_known_maximum(rows: dict[tuple[float, str], Row]) -> None:
    for x in (1.0, 8.0):
        ready = prepare(scaled(ASAP, x))
        batches = backlog(ready)
        A, s, r, M, c, e = ready.costing.costs.phases(float(batches.n.mean()), float(batches.w.mean()))
        expected = max(2 * A, 2 * M, 2 * (s + r), 2 * (c + e), A + s + r + M + c + e)
        assert rows[x, "both"].layer_s == pytest.approx(expected, rel=1e-9)


def test_at_the_break_even_attention_streams_bring_nothing() -> None:
    slower = paid_back(ASAP, 2.0)
    assert 0.02 < slower < 0.2
    base = scaled(ASAP, 2.0)
    law = layer_costs(base).costs.attention
    attention = {"fixed": law.fixed, "per_token": law.per_token, "per_token2": law.per_token2}
    attention = {name: (1 + slower) * value for name, value in attention.items()}
    with_streams = capacity(base.replace(overlap_attention=True, **{"costs.attention": attention}))
    assert with_streams.slo_throughput_rps == pytest.approx(capacity(base).slo_throughput_rps, rel=2e-3)


def test_page_and_figure(tmp_path: Path) -> None:
    some = [
        Row(x, name, 10.0 + k - x, 12.0, 15.0 + k, "constraint", "circuit", 8e-3, (0.3, float("nan")))
        for x in FACTORS
        for k, name in enumerate(STREAMS)
    ]
    ratio = Ratio(1.1, 1.05, 1.15)
    names = ("MoE streams", "attention streams, beside MoE streams", "attention streams alone")
    text = page(some, dict.fromkeys((0.5, 1.0, 2.0, 4.0, 8.0), 0.05), dict.fromkeys(names, ratio), {"neither": 1.0})
    assert not re.search(r"[{}]", text)
    assert text.count("| circuit |") == 5 * len(STREAMS)
    assert "beyond its limit" in text
    assert "worth 22.2%" in text  # 11 requests/s against 9
    save_figure(overlap_figure(some), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
