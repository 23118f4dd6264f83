"""Verbs with the graph engine: what they promise, on quick scenarios and on limits that are known."""

import math

import numpy as np
import pytest

import asapmodel as am
from asapmodel.costing import layer_costs
from asapmodel.errors import InputError, NoAnswer
from asapmodel.verbs.evaluate import prepare, saturation_throughput

GRAPH = "graph"
QUICK = am.Scenario.load("paper-asap").replace(duration="30 s")

# One group, one batch at a time, no transfers: a single server whose service time is known.
SINGLE = am.Scenario.parse(
    """
[system]
kind = "asap"
D = 1
T = 1
E = 1
[policy]
dual_batch = false
min_batch_tokens = 1
batch_window = 0
[workload]
lengths = { constant = 1000 }
duration = "4000 s"
[slo]
ttft = "1 s"
[costs]
attention = { fixed = 0, per_token = 1e-4, per_token2 = 0 }
dispatch_send = { fixed = 0, per_token = 0 }
dispatch_recv = { fixed = 0, per_token = 0 }
moe = { floor = 0, per_token = 0 }
combine_send = { fixed = 0, per_token = 0 }
combine_recv = { fixed = 0, per_token = 0 }
host_dispatch = 0
layers = 1
"""
)


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.8])
def test_md1_mean_response(rho: float) -> None:
    """M/D/1: mean wait rho d / (2 (1 - rho)) (Pollaczek-Khinchine), service d = 0.1 s."""
    d = 0.1
    values = [am.evaluate(SINGLE.replace(seed=seed), rho / d, GRAPH).ttft.mean_s for seed in range(6)]
    exact = d + rho * d / (2 * (1 - rho))
    half = 3 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    assert abs(float(np.mean(values)) - exact) < max(half, 0.002)


def test_md1_capacity() -> None:
    """Mean response 1 s at d = 0.1 s: rho = 2 (W - d)/(2 W - d) with W the response, 18/19."""
    found = am.capacity(SINGLE.replace(duration="2000 s"), GRAPH, replications=6)
    exact = 10 * 18 / 19
    assert found.interval_rps is not None
    assert found.interval_rps[0] <= exact <= found.interval_rps[1]
    assert found.stability_limit_rps == pytest.approx(10.0)
    assert found.bracket_rps[1] - found.bracket_rps[0] <= 0.005 * found.bracket_rps[1]
    assert found.limited_by == "attention"


def test_md1_chance_of_no_wait() -> None:
    """M/D/1 at rho 0.5: P(W = 0) = 0.5."""
    result = am.evaluate(SINGLE, 5.0, GRAPH)
    assert result.records is not None
    assert np.mean(result.records.ttft_s < 0.1 + 1e-9) == pytest.approx(0.5, abs=0.02)
    assert result.parts.kernel_s == pytest.approx(0.1)
    assert result.utilisation["attention"] == pytest.approx(0.5, rel=0.05)


def test_result_adds_up() -> None:
    result = am.evaluate(QUICK, 6.0, GRAPH)
    records = result.records
    assert records is not None
    assert result.requests == len(records.arrival_s)
    assert result.ttft.mean_s == pytest.approx(records.ttft_s.mean())
    parts = result.parts
    assert parts.queueing_s + parts.kernel_s + parts.waiting_s == pytest.approx(result.ttft.mean_s)
    assert result.slo.attainment == pytest.approx(np.mean(records.ttft_s <= 5.0))
    assert list(records.table().columns) == [
        "arrival_s",
        "prompt_tokens",
        "cached_tokens",
        "start_s",
        "end_s",
        "ttft_s",
    ]
    assert all(0 <= value <= 1 for value in result.utilisation.values())
    assert result.law == "run of 30 s"
    assert result.distribution is not None
    assert result.distribution.quantile(0.95) == pytest.approx(result.ttft.p95_s)
    assert result.by_length is not None
    assert result.by_length.weight.sum() == pytest.approx(1.0)
    assert result.by_length.weight @ result.by_length.mean_s == pytest.approx(result.ttft.mean_s)
    assert {a.kind for a in result.assumptions} <= {"stated", "measured", "fitted", "assumed", "derived", "override"}


def test_unstable_rate_is_said() -> None:
    result = am.evaluate(QUICK, 60.0, GRAPH)
    assert not result.stable
    assert result.saturation_rps < 60
    assert am.evaluate(QUICK, 2.0, GRAPH).stable


def test_saturation_is_the_rate_of_a_backlog() -> None:
    """Twice the requests take twice as long, up to the edges."""
    ready = prepare(am.Scenario.load("paper-asap"))
    one, two = (ready.run(ready.traffic.backlog(count)).makespan_s for count in (5_000, 15_000))
    assert ready.saturation_rps == pytest.approx(10_000 / (two - one), rel=0.05)
    assert saturation_throughput(ready, ready.traffic.backlog(15_000)) == pytest.approx(10_000 / (two - one), rel=0.03)


def test_sweep_is_monotone_and_shares_numbers() -> None:
    scenario = QUICK.replace(duration="300 s")
    table = am.sweep(scenario, [4.0, 10.0, 16.0], GRAPH)
    assert list(table["rate_rps"]) == [4.0, 10.0, 16.0]
    assert list(table["requests"]) == sorted(table["requests"])
    assert list(table["ttft_mean_s"]) == sorted(table["ttft_mean_s"])
    assert am.evaluate(scenario, 10.0, GRAPH).ttft.mean_s == table["ttft_mean_s"][1]


def test_compare_needs_one_workload() -> None:
    sync = am.Scenario.load("paper-default").replace(duration="30 s")
    found = am.compare([sync, QUICK], [4.0], GRAPH, replications=2)
    table = found.table()
    assert list(table["system"]) == ["sync", "asap"]
    assert table["gain"][1] > 1
    assert len(found.results[0]) == 2
    with pytest.raises(InputError, match="workload: differs"):
        am.compare([sync, QUICK.replace(seed=2)])


def test_questions_without_an_answer() -> None:
    with pytest.raises(NoAnswer, match="missed at every rate"):
        am.capacity(QUICK.replace(**{"slo.ttft": "1 ms"}), GRAPH, replications=2)
    with pytest.raises(InputError, match="no engine 'steam'"):
        am.evaluate(QUICK, rate=1.0, engine="steam")
    with pytest.raises(InputError, match="rate: is missing"):
        am.evaluate(QUICK, engine=GRAPH)
    with pytest.raises(InputError, match="positive number"):
        am.evaluate(QUICK, float("nan"), GRAPH)


def test_quantile_objective_is_harder() -> None:
    mean = am.capacity(QUICK, GRAPH, replications=2)
    tail = am.capacity(QUICK.replace(statistic="p99"), GRAPH, replications=2)
    assert tail.statistic == "p99"
    assert tail.slo_throughput_rps < mean.slo_throughput_rps


def test_layout_that_does_not_fit_its_memory() -> None:
    with pytest.raises(InputError, match=r"needs .* GB on an expert device"):
        layer_costs(QUICK.replace(E=4))
    with pytest.raises(InputError, match="128 heads"):
        layer_costs(QUICK.replace(T=3))
    with pytest.raises(InputError, match="256 experts"):
        layer_costs(QUICK.replace(E=300))


def test_costs_given_in_full_need_no_model() -> None:
    costs = layer_costs(SINGLE).costs
    assert costs.layers == 1
    assert costs.attention(1000.0, 1e6) == pytest.approx(0.1)
    assert {a.kind for a in layer_costs(SINGLE).assumptions} == {"override"}


def test_paper_order_of_systems_and_ablations() -> None:
    """ASAP > without super kernel, overlap, dual batch > chunked > Default, and within 25 % of the paper."""
    asap = am.Scenario.load("paper-asap")
    found = {
        "asap": asap,
        "no super kernel": asap.replace(super_kernel=False),
        "no overlap": asap.replace(overlap_moe=False),
        "no dual batch": asap.replace(dual_batch=False),
        "chunked": am.Scenario.load("paper-chunked"),
        "default": am.Scenario.load("paper-default"),
    }
    rps = {
        name: am.capacity(one, GRAPH, replications=4, tolerance=0.02).slo_throughput_rps for name, one in found.items()
    }
    for name in ("no super kernel", "no overlap", "no dual batch"):
        assert rps["asap"] > rps[name] > rps["chunked"]
    assert rps["chunked"] > rps["default"]
    for name, stated in (("default", 6.8), ("chunked", 10.5), ("asap", 20.0)):
        assert rps[name] == pytest.approx(stated, rel=0.25)
    for name, stated in (("default", 0.533), ("chunked", 0.388), ("asap", 0.350)):
        ttft = np.mean([prepare(found[name], seed).ttft(1.0).mean() for seed in range(1, 17)])
        assert ttft == pytest.approx(stated, rel=0.25)
