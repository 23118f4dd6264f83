"""Drawn throughputs after a few of them were asked in full: what all are off by is gone."""

import numpy as np
import pytest

import asapmodel as am
from asapmodel.uncertainties.checking import checked, full_throughputs
from asapmodel.uncertainties.drawing import Shared, answers_of, estimate_of, shared_draws
from asapmodel.uncertainties.sampling import costs_with
from asapmodel.verbs.prepared import Prepared, prepare
from tests.uncertainty.systems import toy


def drawn(scenario: am.Scenario, samples: int) -> tuple[Prepared, Shared]:
    ready = prepare(scenario)
    return ready, shared_draws([(ready.scenario, ready.costing.costs)], samples, 0)


def test_full_answers_are_those_of_systems_with_such_costs() -> None:
    """A cost drawn is a cost given: the same number as `capacity` of a scenario that states it."""
    scenario = toy('costs.moe = "10 %"')
    ready, shared = drawn(scenario, 16)
    found = full_throughputs(ready, shared.own[0], shared.values[:3])
    for factor, value in zip(shared.values[:3, 0].tolist(), found.tolist(), strict=True):
        other = scenario.replace(**{"costs.moe": {"floor": 0.0, "per_token": 2e-7 * factor}, "uncertainty": {}})
        assert value == pytest.approx(am.capacity(other).slo_throughput_rps, rel=1e-9)


def test_a_common_error_is_taken_off() -> None:
    ready, shared = drawn(toy('costs.moe = "10 %"'), 16)
    right = full_throughputs(ready, shared.own[0], shared.values)
    assert checked(ready, shared.own[0], shared.values, 1.07 * right, 4) == pytest.approx(right, rel=1e-12)
    missing = 0.9 * right
    missing[[0, 5]] = np.nan, 0.0
    mended = checked(ready, shared.own[0], shared.values, missing, 4)
    assert np.isnan(mended[0])
    assert mended[5] == 0
    assert mended[6:] == pytest.approx(right[6:], rel=1e-12)


def test_whole_prompts_whose_short_walks_are_off() -> None:
    """Default execution at 5 s mean: all ratios of short walks are about 1.7 % low; corrected they are not."""
    ready, shared = drawn(am.Scenario.load("paper-default"), 24)
    estimate = estimate_of(ready, None)
    found = answers_of(ready, estimate, shared.own[0], shared.values).throughput
    right = full_throughputs(ready, shared.own[0], shared.values)
    beyond = np.log(found / right)[8:]  # draws that were not asked
    assert abs(beyond.mean()) < 0.008
    assert np.abs(beyond).max() < 0.035
    costs = costs_with(ready.scenario, shared.own[0].constants, [one.law.value for one in shared.own[0].constants])
    assert costs == ready.costing.costs
