"""Screening against the whole analysis, and what it says where there is no answer."""

import math

import numpy as np
import pytest

import asapmodel as am
from asapmodel.engines.effort import FULL
from asapmodel.engines.screening import screen
from asapmodel.studies.engines_errors import load
from asapmodel.verbs.prepared import prepare

NAMES = ["paper-asap", "paper-default", "paper-chunked"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("objective", [1.5, 3.0, 20.0])
def test_the_full_effort_finds_the_capacity(name: str, objective: float) -> None:
    scenario = am.Scenario.load(name).replace(**{"slo.ttft": objective})
    ready = prepare(scenario)
    found = screen(ready.problem, lambda law: law.mean, objective, effort=FULL)
    assert found.limit_rps == ready.analysis.saturation_rps
    assert found.throughput_rps == pytest.approx(am.capacity(scenario, prepared=ready).slo_throughput_rps, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_effort_is_near(name: str) -> None:
    ready = prepare(am.Scenario.load(name))
    found = screen(ready.problem, lambda law: law.quantile(0.99), 15.0, rate=4.0)
    whole = am.capacity(ready.scenario.replace(**{"slo.ttft": 15.0, "slo.statistic": "p99"}))
    assert found.throughput_rps == pytest.approx(whole.slo_throughput_rps, rel=0.06)
    assert found.at_rate is not None
    assert found.at_rate.rate_rps == pytest.approx(4.0)
    assert found.at_rate.ttft.mean == pytest.approx(am.evaluate(ready.scenario, 4.0).ttft.mean_s, rel=0.12)
    assert max(found.point.utilisation.values()) > 0.3


def test_where_there_is_no_answer() -> None:
    ready = prepare(am.Scenario.load("paper-asap"))
    found = screen(ready.problem, lambda law: law.mean, 1e-3, rate=1e3)
    assert math.isnan(found.throughput_rps)
    assert found.at_rate is None
    lenient = screen(ready.problem, lambda law: law.mean, 1e9)
    assert lenient.throughput_rps == pytest.approx(0.999 * lenient.limit_rps)


def test_throughput_grows_with_the_objective() -> None:
    problem = prepare(am.Scenario.load("paper-chunked")).problem
    rates = [screen(problem, lambda law: law.mean, objective).throughput_rps for objective in np.geomspace(0.8, 30, 12)]
    assert rates == sorted(rates)


@pytest.mark.parametrize("system", ["sync", "asap"])
def test_errors_on_cases_in_view(system: str) -> None:
    """SLO throughput when the objective is the graph engine's mean TTFT at four fifths of saturation and above."""
    errors = [
        abs(screen(case.problem, lambda law: law.mean, row.mean_s).throughput_rps / row.rate_rps - 1)
        for case, rows in load("development", system, slice(0, 60))
        for row in rows
        if row.utilisation >= 0.8 and row.mean_half_width < 0.05
    ]
    assert np.median(errors) < 0.02
    assert np.quantile(errors, 0.95) < 0.08
