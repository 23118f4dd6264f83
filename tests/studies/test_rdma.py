"""The study of slower networks: what is changed, the two laws of latency, monotony, and the page."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.costing import layer_costs
from asapmodel.studies.overlap import backlog
from asapmodel.studies.pages import save_figure
from asapmodel.studies.paired_runs import Ratio
from asapmodel.studies.rdma import BANDWIDTHS, LATENCIES, VARIANTS, Cell, changed, page, slo
from asapmodel.studies.rdma_figure import rdma_figure
from asapmodel.studies.rdma_laws import Laws, laws_of
from asapmodel.verbs.evaluate import prepare

PLAIN, ONE_SIDED, RECEIVE, STREAMS, EFFICIENT = VARIANTS
LAW = Laws(group_s=5e-3, lone_s=7e-3, experts_s=1.1e-3, send_s=0.3e-3, groups=4)


def test_latency_and_bandwidth_go_where_they_should() -> None:
    costs = layer_costs(changed("paper-asap", 300.0, 98.0)).costs
    home = layer_costs(changed("paper-asap", 52.0, 196.0)).costs
    assert costs.dispatch_send.fixed == pytest.approx(300e-6)
    assert costs.combine_send.fixed == pytest.approx(300e-6)
    assert costs.dispatch_recv.fixed == costs.combine_recv.fixed == pytest.approx(10e-6)
    assert costs.dispatch_send.per_token == pytest.approx(2 * home.dispatch_send.per_token)
    assert costs.combine_recv.per_token == home.combine_recv.per_token  # a copy on the device
    blocking = layer_costs(changed("paper-chunked", 300.0, 98.0)).costs
    assert blocking.dispatch_send.fixed == blocking.combine_send.fixed == pytest.approx(300e-6)


def test_variants_change_one_side() -> None:
    point = (500.0, 50.0)
    kept = layer_costs(changed("paper-chunked", *point, ONE_SIDED)).costs
    assert kept.dispatch_send.fixed == pytest.approx(52e-6)
    assert layer_costs(changed("paper-asap", *point, RECEIVE)).costs.combine_recv.fixed == pytest.approx(500e-6)
    assert changed("paper-asap", *point, STREAMS).policy.overlap_attention
    plain, better = (layer_costs(changed("paper-chunked", *point, name)).costs for name in (PLAIN, EFFICIENT))
    assert better.combine_send.per_token == pytest.approx(plain.combine_send.per_token * 0.5 / 0.9)


@given(st.floats(0, 5e-3))
def test_laws_bind_where_they_say(latency: float) -> None:
    delay = LAW.rate(latency, occupied=False)
    assert (delay == pytest.approx(4 / 5e-3)) is (latency <= LAW.delay_limit(2) * (1 + 1e-6))
    assert LAW.rate(latency, occupied=True) <= delay * (1 + 1e-12)
    group = 4 / (5e-3 + latency)
    assert (LAW.rate(latency, occupied=True) == pytest.approx(group)) is (latency <= LAW.send_limit() * (1 + 1e-6))
    assert LAW.rate(latency, occupied=False, batches=3) >= delay


def test_laws_are_of_the_mean_batch() -> None:
    scenario = changed("paper-asap", 0.0, 196.0)
    ready = prepare(scenario)
    batches = backlog(ready)
    phases = np.stack(ready.costing.costs.phases(batches.n, batches.w)).mean(axis=1)
    law = laws_of(scenario)
    assert law.lone_s == pytest.approx(phases.sum())
    assert law.group_s == pytest.approx(phases[[0, 1, 5]].sum())
    assert [law.experts_s, law.send_s, law.groups] == pytest.approx([phases[3], phases[4], 4])
    with pytest.raises(ValueError, match=r"send latency 5\.2e-05 s"):
        laws_of(changed("paper-asap", 52.0, 196.0))


def test_a_slower_network_never_helps_and_the_gain_survives() -> None:
    for bandwidth in (50.0, 196.0):
        asap = [slo("paper-asap", latency, bandwidth) for latency in (52.0, 500.0, 1000.0)]
        chunked = [slo("paper-chunked", latency, bandwidth) for latency in (52.0, 500.0, 1000.0)]
        assert np.all(np.diff(asap) < 0)
        assert np.all(np.diff(chunked) < 0)
        gain = np.array(asap) / np.array(chunked)
        assert np.all(np.diff(gain) < 0)  # latency costs the asynchronous system more
        assert np.all(gain > 1.2)
    assert slo("paper-asap", 500.0, 50.0, STREAMS) > slo("paper-asap", 500.0, 50.0)


def test_page_and_figure(tmp_path: Path) -> None:
    cells = [Cell(x, y, 18.0 - 4e-3 * x, 10.0, 5.0) for y in BANDWIDTHS for x in LATENCIES]
    variants = {name: [1.4, 1.3, 1.2, 1.1, 1.5, 1.25, 1.05] for name in VARIANTS}
    confirmed = {point: Ratio(1.3, 1.2, 1.4) for point in ((52.0, 196.0), (500.0, 196.0))}
    text = page(cells, variants, confirmed, dict.fromkeys(BANDWIDTHS, LAW), (300.0, 200.0))
    assert not re.search(r"[{}]", text)
    assert "+78% on the supernode, +60% at 500 us" in text
    assert "1500 us with two batches" in text
    assert text.count("\n| 50 |") == 5
    save_figure(rdma_figure(cells, LAW), tmp_path / "some.svg")
    assert (tmp_path / "some.svg").stat().st_size > 5000
