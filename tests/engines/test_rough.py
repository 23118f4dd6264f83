"""A first look at many systems: its curve by hand, what it shares, and that its margins hold."""

import math

import numpy as np
import pytest

import asapmodel as am
from asapmodel.engines import rough
from asapmodel.engines.effort import ROUGH
from asapmodel.engines.queueing import analyse
from asapmodel.engines.rough import RoughLook
from asapmodel.engines.screening import Screened
from asapmodel.studies.engines_cases import draw
from asapmodel.studies.engines_errors import slo_rate
from asapmodel.studies.engines_rows import SEEDS
from asapmodel.verbs.prepared import prepare


def look(
    scenario: am.Scenario, objective: float, rate: float | None = None, with_: RoughLook | None = None
) -> Screened:
    """What a rough look finds of a scenario, by the mean TTFT."""
    problem = prepare(scenario).problem
    one = with_ or RoughLook(problem.prompts, problem.gap_cv)
    found = one.screen(problem.layout, problem.policy, problem.costs, lambda law: law.mean, objective, rate)
    assert found is not None
    return found


def test_the_curve_by_hand() -> None:
    """1 s alone and 2 s at half load: straight in the logarithms between, doubled where 1 - load is halved beyond."""
    values = {0.0: 1.0, 0.5: 2.0}
    assert rough._meeting(values, 2.0) == pytest.approx(0.5)
    assert rough._meeting(values, 4.0) == pytest.approx(0.75)
    assert rough._meeting(values, math.sqrt(2.0)) == pytest.approx(1.0 - math.sqrt(0.5))
    assert math.isnan(rough._meeting(values, 0.99))
    assert rough._meeting(values, 1e9) == 0.999


def test_the_last_crossing_counts_where_the_time_falls_first() -> None:
    values = {0.0: 3.0, 0.2: 1.0, 0.5: 4.0}
    assert 0.2 < rough._meeting(values, 2.0) < 0.5


@pytest.mark.parametrize("name", ["paper-asap", "paper-default", "paper-chunked"])
@pytest.mark.parametrize(("objective", "error"), [(1.5, 0.3), (5.0, 0.06)])
def test_near_the_capacity_and_never_below_by_more_than_the_margin(name: str, objective: float, error: float) -> None:
    """Where batches fill up the TTFT hardly rises with the rate, and the rate that meets an objective is uncertain."""
    scenario = am.Scenario.load(name).replace(**{"slo.ttft": objective})
    ready = prepare(scenario)
    whole = am.capacity(scenario, prepared=ready).slo_throughput_rps
    found = look(scenario, objective, rate=4.0)
    assert found.throughput_rps == pytest.approx(whole, rel=error)
    assert whole <= found.most_rps <= (1.3 + error) * whole
    assert found.at_rate is not None
    assert found.at_rate.ttft.mean == pytest.approx(am.evaluate(scenario, 4.0, prepared=ready).ttft.mean_s, rel=0.2)


def test_what_is_missed_by_a_lone_prompt_needs_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rough, "_search", None)
    found = look(am.Scenario.load("paper-asap"), 1e-3, rate=1e3)
    assert math.isnan(found.throughput_rps)
    assert math.isnan(found.most_rps)
    assert found.at_rate is None
    assert found.limit_rps > 0


def test_it_does_not_say_missed_where_company_shortens_the_wait() -> None:
    """Alone every short prompt waits for the window, in company it need not: what meets the objective is not known."""
    scenario = am.Scenario.load("paper-asap").replace(batch_window="2 s", min_batch_tokens=16384)
    problem = prepare(scenario).problem
    alone = analyse(problem, effort=ROUGH).at(1e-6).ttft.mean
    found = RoughLook(problem.prompts, problem.gap_cv).screen(
        problem.layout, problem.policy, problem.costs, lambda law: law.mean, 0.9 * alone
    )
    assert found is None or found.throughput_rps > 0


@pytest.mark.parametrize("name", ["paper-asap", "paper-chunked"])
def test_windows_share_a_backlog_and_change_nothing_by_it(name: str) -> None:
    base = am.Scenario.load(name)
    problem = prepare(base).problem
    shared = RoughLook(problem.prompts, problem.gap_cv)
    windows = ["0.1 s", "0 s", "0.02 s"]
    rows = [look(base.replace(batch_window=window), 3.0, 4.0, shared) for window in windows]
    assert shared._without_window.cache_info().misses == 1
    assert len({row.limit_rps for row in rows}) == 1
    assert len({row.throughput_rps for row in rows}) == 3
    for window, row in zip(windows, rows, strict=True):
        alone = look(base.replace(batch_window=window), 3.0, 4.0)
        assert (alone.throughput_rps, alone.most_rps, alone.limit_rps) == (
            row.throughput_rps,
            row.most_rps,
            row.limit_rps,
        )
        assert alone.at_rate is not None
        assert row.at_rate is not None
        np.testing.assert_array_equal(alone.at_rate.ttft.time, row.at_rate.ttft.time)


def test_walks_are_as_long_as_many_prompts_in_service_need() -> None:
    """A thousand prompts in service: a walk of 500 would end before the first of them does."""
    problem = draw(SEEDS["development"], 114)[113].problem
    full = analyse(problem)
    assert problem.layout.D * problem.policy.slots * 30 > 800
    rate = 0.6 * full.saturation_rps
    one = RoughLook(problem.prompts, problem.gap_cv)
    found = one.screen(problem.layout, problem.policy, problem.costs, lambda law: law.mean, 0.5, rate)
    assert found is not None
    assert found.at_rate is not None
    assert found.at_rate.ttft.mean == pytest.approx(full.at(rate).ttft.mean, rel=0.2)


@pytest.mark.slow
def test_margins_hold_on_cases_in_view() -> None:
    """Of the random cases in view; objectives are what the full effort says at a load."""
    broken = rows = 0
    for case in draw(SEEDS["development"], 40):
        problem, full = case.problem, analyse(case.problem)
        one = RoughLook(problem.prompts, problem.gap_cv)
        for load in (0.3, 0.6, 0.9):
            rate = load * full.saturation_rps
            objective = full.at(rate).ttft.mean
            system = problem.layout, problem.policy, problem.costs
            found = one.screen(*system, lambda law: law.mean, objective, rate)
            if found is None:
                continue
            rows += 1
            broken += found.most_rps < slo_rate(full, objective)
            assert found.limit_rps * ROUGH.limit_margin > full.saturation_rps
            if found.at_rate is not None:
                least = found.at_rate.ttft.mean / ROUGH.time_margin
                own = rate / found.limit_rps
                assert least * (1 - own) / (1 - own / ROUGH.limit_margin) < objective
    assert rows > 110
    assert broken == 0
