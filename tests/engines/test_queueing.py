"""What holds for the queueing engine whatever its accuracy, which `docs/engines.md` is about."""

import math
from functools import cache

import numpy as np
import pytest

import asapmodel as am
from asapmodel.engines.queueing import operating_point
from asapmodel.errors import NoAnswer
from asapmodel.solvers.queue_errors import UnstableError
from asapmodel.verbs.evaluate import Prepared, prepare
from asapmodel.verbs.sweep import sweep_results

NAMES = ["paper-default", "paper-chunked", "paper-asap", "trace-asap"]
LOADS = [0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.998]


@cache
def ready(name: str) -> Prepared:
    return prepare(am.Scenario.load(name))


def curve(name: str, horizon: float | None = None) -> list[am.Result]:
    one = ready(name)
    rates = [load * one.analysis.saturation_rps for load in LOADS]
    return sweep_results(one.scenario, rates, prepared=one, horizon=horizon)


@pytest.mark.parametrize("name", NAMES)
def test_ttft_grows_with_the_rate(name: str) -> None:
    results = curve(name)
    for statistic in ("mean_s", "p50_s", "p90_s", "p99_s"):
        values = [getattr(one.ttft, statistic) for one in results]
        assert values == sorted(values), statistic
    assert all(one.stable for one in results)


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_consistent(name: str) -> None:
    latency = ready(name).costing.costs.request_latency
    for one in curve(name):
        ttft, parts, law = one.ttft, one.parts, one.distribution
        assert law is not None
        assert 0 < ttft.p50_s <= ttft.p90_s <= ttft.p95_s <= ttft.p99_s
        assert min(parts.queueing_s, parts.kernel_s, parts.waiting_s) > -1e-9
        assert parts.queueing_s + parts.kernel_s + parts.waiting_s + latency == pytest.approx(ttft.mean_s, rel=1e-6)
        assert np.all(np.diff(law.time) >= 0)
        assert np.all(np.diff(law.cdf) >= 0)
        assert law.cdf[-1] == pytest.approx(1.0, abs=2e-3)
        assert float(np.interp(np.linspace(0, 1, 20_001), law.cdf, law.time).mean()) == pytest.approx(
            law.mean, rel=0.05
        )
        assert all(-1e-9 <= share <= 1 + 1e-6 for share in one.utilisation.values()), one.utilisation
        assert one.by_length is not None
        assert one.by_length.weight.sum() == pytest.approx(1.0)
        assert one.by_length.weight @ one.by_length.mean_s == pytest.approx(ttft.mean_s, rel=0.05)
        assert np.all(one.by_length.p95_s >= one.by_length.mean_s * 0.9)
        assert one.bottleneck


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [1.0, 1.0001, 1.2, 1e6])
def test_no_finite_answer_at_or_above_the_stability_limit(name: str, factor: float) -> None:
    one = ready(name)
    rate = factor * one.analysis.saturation_rps
    with pytest.raises(UnstableError):
        one.analysis.at(rate)
    assert operating_point(one.analysis, rate) is None
    with pytest.raises(NoAnswer, match="not below the stability limit"):
        am.evaluate(one.scenario, rate, prepared=one)


@pytest.mark.parametrize("name", NAMES)
def test_runs_of_any_length_have_an_answer_at_every_rate(name: str) -> None:
    one = ready(name)
    limit = one.analysis.saturation_rps
    for horizon in (30.0, 300.0, 36_000.0):
        rates = [0.5 * limit, 0.9 * limit, limit, 1.5 * limit]
        means = [am.evaluate(one.scenario, rate, prepared=one, horizon=horizon).ttft.mean_s for rate in rates]
        assert all(map(math.isfinite, means))
        assert means == sorted(means)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_question_has_the_same_answer(name: str) -> None:
    scenario, rate = ready(name).scenario, 0.6 * ready(name).analysis.saturation_rps
    assert am.evaluate(scenario, rate) == am.evaluate(scenario, rate)
    assert am.evaluate(scenario.replace(seed=99), rate).ttft == am.evaluate(scenario, rate).ttft


@pytest.mark.parametrize("name", NAMES[:3])
def test_capacity_is_on_the_curve_and_near_the_graph_engine_s(name: str) -> None:
    one = ready(name)
    found = am.capacity(one.scenario, prepared=one)
    at = am.evaluate(one.scenario, found.slo_throughput_rps, prepared=one)
    assert at.slo.value_s == pytest.approx(found.slo_ttft_s, rel=0.01)
    run = am.capacity(one.scenario, "graph", replications=2, tolerance=0.02)
    assert found.slo_throughput_rps == pytest.approx(run.slo_throughput_rps, rel=0.1)
    assert found.stability_limit_rps == pytest.approx(run.stability_limit_rps, rel=0.05)
