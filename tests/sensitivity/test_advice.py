"""Improvements and other choices, against evaluating the changed scenario."""

import math

import pytest

import asapmodel as am
from asapmodel.sensitivity.elasticities import Point, elasticities
from asapmodel.sensitivity.improvements import improvements
from asapmodel.sensitivity.knobs import knobs_of, scaled_costs
from asapmodel.sensitivity.local import Curve
from asapmodel.sensitivity.options import options
from asapmodel.verbs.prepared import prepare

ASAP = am.Scenario.load("paper-asap")


def test_improvements_are_what_the_changed_scenario_gives() -> None:
    ready = prepare(ASAP)
    line = Curve(ready.analysis, lambda law: law.mean)
    rate = line.limit * line.load_at(5.0)
    found = elasticities(ready.problem, line, Point(5.0, rate, 0.8 * rate), knobs_of(ready.problem), range(2))
    ranked = improvements(ASAP, ready.costing.costs, found)
    assert [one.throughput for one in ranked] == sorted((one.throughput for one in ranked), reverse=True)
    worth = {one.words: one for one in ranked}
    cases = {
        "more link bandwidth": ASAP.replace(**{"cluster.link_bandwidth": 1.1 * 196e9}),
        "faster grouped GEMM": ASAP.replace(**{"cluster.profile.grouped_gemm": 0.77}),
        "more compute of every device": ASAP.replace(
            **{
                f"cluster.{name}": 1.1 * getattr(ASAP.device.value, name)
                for name in ("bf16_flops", "int8_flops", "vector_flops")
            }
        ),
    }
    for words, better in cases.items():
        gain = am.capacity(better).slo_throughput_rps / rate - 1
        assert worth[words].throughput == pytest.approx(gain, abs=0.012), words
    attention = sum(one.throughput for one in found if one.name.startswith("costs.attention."))
    assert worth["faster attention"].throughput == pytest.approx(math.expm1(-attention * math.log(1.1)))


def test_choices_are_what_the_changed_scenario_gives() -> None:
    found = {one.words: one for one in options(ASAP)}
    assert found["streams on attention devices"].devices == 32
    base = am.capacity(ASAP).slo_throughput_rps
    for words in ("4 MoE devices more", "without dual batch"):
        one = found[words]
        assert one.throughput is not None
        gain = am.capacity(ASAP.replace(**one.changes)).slo_throughput_rps / base - 1
        assert one.throughput == pytest.approx(gain, abs=0.03), words
        assert one.per_device == pytest.approx((1 + one.throughput) * 32 / one.devices - 1)
    impossible = found["4 MoE devices as one more attention group"]
    assert impossible.throughput is None
    assert "expert device" in impossible.problem


def test_choices_of_a_synchronous_system() -> None:
    found = {one.words: one for one in options(am.Scenario.load("paper-chunked"))}
    assert set(found) == {
        "groups balanced by work",
        "whole prompts in place of chunks",
        "chunks half as long",
        "one group more",
        "one group less",
    }
    assert (found["whole prompts in place of chunks"].throughput or 0) < -0.05


def test_coefficients_are_scaled_by_name() -> None:
    costs = prepare(ASAP).costing.costs
    twice = scaled_costs(costs, {"moe.floor": 2.0, "host_dispatch": 3.0})
    assert twice.moe.floor == 2 * costs.moe.floor
    assert twice.moe.per_token == costs.moe.per_token
    assert twice.host_dispatch == 3 * costs.host_dispatch
    assert {one.name for one in knobs_of(prepare(ASAP).problem)} >= {"costs.moe.floor", "policy.exclusive_tokens"}
    assert not any("host" in one.name for one in knobs_of(prepare(ASAP).problem))  # hidden by the super kernel
