"""The numbers for a scenario: present, sensible, checked against the forms, and quick."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from asapmodel.closed_forms.advice import of_scenario
from asapmodel.costing import layer_costs, length_grid
from asapmodel.costs import Quadratic
from asapmodel.engines.free_backlog import backlog_of, reduced
from asapmodel.engines.problem import problem_of
from asapmodel.policy import Policy
from asapmodel.scenario import Scenario

PAPER = Scenario.load("paper-asap")
COSTS = layer_costs(PAPER).costs
LENGTHS = length_grid(PAPER)


def test_the_papers_system() -> None:
    found = of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS)
    assert found["inflection_tokens"] == pytest.approx(COSTS.moe.inflection_tokens)
    assert found["tokens_for_90_percent"] == pytest.approx(0.9 * COSTS.moe.inflection_tokens)
    assert (found["best_D"], found["best_E"]) == (4.0, 16.0)
    assert found["limited_by"] == "attention"
    assert 1.0 <= float(found["dual_gain"]) <= 2.0
    assert found["host_dispatch_ttft_s"] == pytest.approx(61 * 220e-6)
    assert 4000 < float(found["exclusive_tokens_mean_ttft"]) < 16384 < float(found["exclusive_tokens_throughput"])
    assert all(isinstance(value, str) or math.isfinite(value) for value in found.values())


@pytest.mark.parametrize(
    "policy",
    [
        PAPER.policy,
        replace(PAPER.policy, overlap_moe=False),
        replace(PAPER.policy, overlap_attention=True),
        replace(PAPER.policy, dual_batch=False),
    ],
)
def test_saturation_bounds_the_engine(policy: Policy) -> None:
    """Never below the measured limit; unlike batches wait for one another, and stay 10 to 24 % below it."""
    found = of_scenario(COSTS, PAPER.layout, policy, LENGTHS)
    measured = backlog_of(reduced(replace(problem_of(PAPER), policy=policy))).saturation
    assert 0.75 * float(found["saturation_rps"]) < measured < 0.91 * float(found["saturation_rps"])


def test_synchronous_system() -> None:
    scenario = Scenario.load("paper-default")
    costs = layer_costs(scenario).costs
    found = of_scenario(costs, scenario.layout, scenario.policy, length_grid(scenario))
    assert set(found) == {"inflection_tokens", "tokens_for_90_percent", "batch_cv", "barrier_excess"}
    assert float(found["barrier_excess"]) > float(found["batch_cv"]) > 0.5


def test_costs_of_the_other_system_move_the_break_even() -> None:
    """The paper's blocking transfers are slower than those of the asynchronous system: it wins sooner."""
    default = layer_costs(Scenario.load("paper-default")).costs
    own = of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS)
    theirs = of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS, default)
    assert float(theirs["break_even_cv"]) < float(own["break_even_cv"])
    assert {key: own[key] for key in own if key != "break_even_cv"} == {
        key: theirs[key] for key in theirs if key != "break_even_cv"
    }


def test_limits_of_the_laws() -> None:
    """Without quadratic attention no prompt is long; a dual gain and a split are still found."""
    linear = replace(COSTS, attention=Quadratic(COSTS.attention.fixed, COSTS.attention.per_token, 0.0))
    found = of_scenario(linear, PAPER.layout, PAPER.policy, LENGTHS)
    assert found["exclusive_tokens_mean_ttft"] == math.inf
    assert float(found["best_D"]) < 4
    exposed = of_scenario(COSTS, PAPER.layout, replace(PAPER.policy, super_kernel=False), LENGTHS)
    assert float(exposed["tokens_for_90_percent"]) > 10_000  # host dispatch is 0.22 ms of every batch
    kernel = of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS)
    assert exposed["host_dispatch_loss"] == pytest.approx(kernel["host_dispatch_loss"])


def test_bad_lengths_are_refused() -> None:
    for lengths in (np.array([]), np.array([100.0, 0.0])):
        with pytest.raises(ValueError, match="lengths must be positive"):
            of_scenario(COSTS, PAPER.layout, PAPER.policy, lengths)


def test_quick_when_warm() -> None:
    of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        of_scenario(COSTS, PAPER.layout, PAPER.policy, LENGTHS)
        best = min(best, time.perf_counter() - start)
    assert best < 0.05
