"""Verbs with the queueing engine, whose analysis is that of an M/M/1 queue here: every number is known."""

import json
import math
from typing import Any

import numpy as np
import pytest

import asapmodel as am
from asapmodel.errors import InputError, NoAnswer
from asapmodel.solvers.queue_errors import NoConvergence
from asapmodel.verbs.evaluate import prepare

pytestmark = pytest.mark.usefixtures("single_server")

ASAP = am.Scenario.load("paper-asap")
SYNC = am.Scenario.load("paper-default")
LIMIT = 10.0


def finite(value: Any) -> bool:
    """Whether a JSON object holds no NaN."""
    json.dumps(value, allow_nan=False)
    return True


def test_a_result_is_the_law_s() -> None:
    result = am.evaluate(ASAP, rate=5.0)
    assert (result.engine, result.law, result.stable, result.saturation_rps) == ("queueing", "stationary", True, LIMIT)
    assert (result.requests, result.duration_s, result.batches, result.records) == (None, None, None, None)
    assert result.ttft.mean_s == pytest.approx(0.2)
    assert result.ttft.p99_s == pytest.approx(0.2 * math.log(100), rel=1e-3)
    assert result.ttft.mean_interval_s is None
    assert result.slo.met
    assert result.slo.attainment == pytest.approx(1.0)
    assert result.parts.queueing_s + result.parts.kernel_s + result.parts.waiting_s == pytest.approx(0.2)
    assert result.bottleneck == "attention"
    assert am.evaluate(SYNC, rate=5.0).bottleneck == "attention"
    assert list(result.length_table()["tokens"]) == [512.0, 4096.0]


def test_json_leaves_the_distribution_out_unless_asked() -> None:
    result = am.evaluate(ASAP, rate=5.0)
    plain, full = result.to_dict(), result.to_dict(distribution=True)
    assert finite(full)
    assert full.keys() - plain.keys() == {"distribution"}
    assert "records" not in full
    assert plain["requests"] is None
    assert plain["by_length"][0] == {"tokens": 512.0, "share": 0.75, "mean_s": 0.2, "p95_s": pytest.approx(0.599, 0.01)}
    assert len(full["distribution"]["time_s"]) == len(full["distribution"]["cdf"])


@pytest.mark.parametrize("rate", [LIMIT, 1.5 * LIMIT, 1e9])
def test_no_answer_at_or_above_the_stability_limit(rate: float) -> None:
    with pytest.raises(NoAnswer, match=r"not below the stability limit, 10 requests/s, set by attention.*--horizon"):
        am.evaluate(ASAP, rate=rate)


def test_a_finite_run_has_an_answer_at_every_rate() -> None:
    result = am.evaluate(ASAP, rate=2 * LIMIT, horizon="5 min")
    assert (result.law, result.stable) == ("run of 300 s", False)
    assert math.isfinite(result.ttft.mean_s)
    same = am.evaluate(ASAP.replace(horizon=300.0), rate=2 * LIMIT)
    assert same.ttft == result.ttft
    assert am.evaluate(ASAP.replace(horizon=300.0), rate=4.0, horizon=60).law == "run of 60 s"


@pytest.mark.parametrize(
    ("horizon", "message"),
    [
        (-1.0, "give a time greater than 0"),
        (0, "give a time greater than 0"),
        (math.nan, "not a finite time"),
        (math.inf, "not a finite time"),
        ("300", "has no unit"),
        ("3 parsec", "unknown unit"),
        ("5 GB", "is a size"),
    ],
)
def test_horizons_that_are_no_time(horizon: float | str, message: str) -> None:
    for ask in (lambda: am.evaluate(ASAP, 4.0, horizon=horizon), lambda: am.capacity(ASAP, horizon=horizon)):
        with pytest.raises(InputError, match=message) as error:
            ask()
        assert error.value.where == "--horizon"


def test_what_belongs_to_the_other_engine_is_refused() -> None:
    with pytest.raises(InputError, match="lasts workload"):
        am.evaluate(ASAP, 4.0, "graph", horizon=300)
    with pytest.raises(InputError, match="--engine graph"):
        am.capacity(ASAP, replications=2)
    assert am.evaluate(ASAP.replace(horizon="10 s", duration="5 s"), 4.0, "graph").law == "run of 5 s"


@pytest.mark.parametrize("objective", [0.11, 0.2, 1.0, 5.0, 9.0])
@pytest.mark.parametrize(("statistic", "factor"), [("mean", 1.0), ("p50", math.log(2)), ("p99", math.log(100))])
def test_capacity_is_where_the_statistic_meets_the_objective(objective: float, statistic: str, factor: float) -> None:
    """M/M/1: the statistic is `factor / (limit - rate)`."""
    exact = LIMIT - factor / objective
    scenario = ASAP.replace(ttft=objective, statistic=statistic)
    if exact <= 0:
        with pytest.raises(NoAnswer, match=r"is missed at every rate: .* even at"):
            am.capacity(scenario)
        return
    found = am.capacity(scenario)
    assert found.slo_throughput_rps == pytest.approx(exact, rel=2e-4)
    low, high = found.bracket_rps
    assert low <= exact * 1.0001
    assert high >= exact * 0.9999
    assert high - low <= 1e-4 * high
    assert len(found.points) <= 12
    assert (found.interval_rps, found.run_std_rps, found.replications) == (None, None, 0)
    assert found.limited_by == ("stability" if found.slo_throughput_rps >= 0.99 * LIMIT else "attention")
    assert finite(found.to_dict())


def test_a_lenient_objective_is_limited_by_stability() -> None:
    found = am.capacity(ASAP.replace(ttft="1 h"))
    assert 0.99 * LIMIT < found.slo_throughput_rps < LIMIT
    assert (found.limited_by, found.bottleneck, found.stability_limit_rps) == ("stability", "attention", LIMIT)


def test_capacity_of_a_finite_run_may_lie_above_the_limit() -> None:
    found = am.capacity(ASAP.replace(ttft=20.0), horizon="100 s")
    assert found.law == "run of 100 s"
    assert found.slo_throughput_rps > LIMIT
    assert (found.stability_limit_rps, found.limited_by) == (LIMIT, "attention")
    with pytest.raises(NoAnswer, match="raise the horizon"):
        am.capacity(ASAP.replace(ttft="1000 h"), horizon="1 s")


def test_a_sweep_ends_in_rows_without_numbers() -> None:
    table = am.sweep(ASAP, [2.0, 8.0, LIMIT, 12.0])
    assert list(table["stable"]) == [True, True, False, False]
    assert list(np.isfinite(table["ttft_mean_s"])) == [True, True, False, False]
    assert list(np.isfinite(table["attainment"])) == [True, True, False, False]
    assert list(table["slo_met"]) == [True, True, False, False]
    assert set(table["law"]) == {"stationary"}
    assert np.isfinite(am.sweep(ASAP, [12.0], horizon=60)["ttft_mean_s"]).all()
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="positive number"):
            am.sweep(ASAP, [1.0, bad])


def test_compare_says_where_a_system_has_no_answer() -> None:
    found = am.compare([SYNC, ASAP], rates=[4.0, 12.0])
    assert [one.stable for one in found.results[0]] == [True, True]
    assert [one.stable for one in found.results[1]] == [False, False]
    table = found.table()
    assert list(table["gain"]) == [1.0, 1.0]
    assert table["ttft_mean_s_at_12"].isna().all()
    assert table["interval_low_rps"].isna().all()


def test_a_replayed_trace_is_its_laws_and_says_so() -> None:
    result = am.evaluate(am.Scenario.load("trace-asap"))
    assert result.rate_rps == pytest.approx(3.16566, rel=1e-4)
    (said,) = [one for one in result.assumptions if one.name == "trace replaced by its laws"]
    assert "cv 2." in said.value
    assert not [one for one in am.evaluate(ASAP, 4.0).assumptions if "trace" in one.name]


def test_grid_is_the_sweeps_in_one_table() -> None:
    scenarios = [ASAP, SYNC.replace(ttft="1 s")]
    table = am.grid(iter(scenarios), [2.0, 8.0, 12.0])
    assert list(table["place"]) == [0, 0, 0, 1, 1, 1]
    assert list(table["scenario"]) == ["paper-asap"] * 3 + ["paper-default"] * 3
    for place, scenario in enumerate(scenarios):
        block = table[table["place"] == place]
        curve = am.sweep(scenario, [2.0, 8.0, 12.0])
        for name in ("ttft_mean_s", "ttft_std_s", "ttft_p50_s", "ttft_p99_s", "attainment", "queueing_s", "stable"):
            np.testing.assert_allclose(np.array(block[name], dtype=float), np.array(curve[name], dtype=float))
    shares = am.grid([prepare(ASAP)], utilisations=[0.5, 1.0])
    assert list(shares["rate_rps"]) == [0.5 * LIMIT, LIMIT]
    assert list(shares["stable"]) == [True, False]
    assert list(shares["bottleneck"]) == ["attention", "attention"]
    assert am.grid([], [1.0]).empty
    assert am.grid([ASAP], []).empty


def test_grid_refuses_bad_questions() -> None:
    for wrong in ({}, {"rates": [1.0], "utilisations": [0.5]}):
        with pytest.raises(InputError, match="either rates or utilisations"):
            am.grid([ASAP], **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="positive number"):
        am.grid([ASAP], [1.0, math.nan])


@pytest.mark.parametrize("engine", ["queueing", "graph"])
@pytest.mark.parametrize("tolerance", [0.0, -0.1, math.nan])
def test_a_tolerance_that_no_search_can_reach_is_refused(engine: str, tolerance: float) -> None:
    with pytest.raises(InputError, match="tolerance"):
        am.capacity(ASAP, engine, tolerance=tolerance)


def test_a_limit_that_the_engine_cannot_find_is_no_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is computed when first asked for, after the analysis: the user is told which engine has an answer."""

    class NoLimit:
        @property
        def saturation_rps(self) -> float:
            raise NoConvergence("no backlog")

    ready = prepare(ASAP)
    monkeypatch.setitem(ready.__dict__, "analysis", NoLimit())
    for ask in (lambda: am.capacity(ASAP, prepared=ready), lambda: ready.limit_bottleneck):
        with pytest.raises(
            NoAnswer, match=r"<paper-asap>: beyond the queueing engine \(no backlog\); give --engine graph"
        ):
            ask()
