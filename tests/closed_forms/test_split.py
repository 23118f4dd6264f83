"""Best split of devices against enumeration and the graph engine."""

import math
from dataclasses import replace

import numpy as np
import pytest

from asapmodel.closed_forms.split import best_groups, best_throughput, rounding_share
from asapmodel.costing import layer_costs
from asapmodel.costs import Plateau
from asapmodel.engines.free_backlog import backlog_of, reduced
from asapmodel.engines.problem import problem_of
from asapmodel.policy import Layout
from asapmodel.scenario import Scenario
from tests.closed_forms.cycles import backlog_policy, constant_costs, measured_throughput


def random_split(rng: np.random.Generator, host: bool) -> dict[str, float]:
    G, K_E, h = rng.uniform(0.5, 5.0), rng.uniform(2.0, 60.0), rng.uniform(0.0, 0.5) if host else 0.0
    return {"G": G, "K_E": K_E, "h": h, "N": float(rng.integers(16, 200)), "T": float(rng.integers(1, 9))}


def capacity(x: dict[str, float], D: float) -> float:
    return min(D / x["G"], 1 / (x["K_E"] / (x["N"] - D * x["T"]) + x["h"]))


@pytest.mark.parametrize("host", [False, True])
def test_both_sides_limit_at_the_best_split(host: bool) -> None:
    """Both capacities are equal, and the best whole number, found by trying all, is next to it."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        x = random_split(rng, host)
        best = float(best_groups().numeric(**x))
        assert 0 < best < x["N"] / x["T"]
        assert best / x["G"] == pytest.approx(1 / (x["K_E"] / (x["N"] - best * x["T"]) + x["h"]), rel=1e-9)
        whole = range(1, math.ceil(x["N"] / x["T"]))
        top = max(whole, key=lambda D: capacity(x, D), default=0)
        if top:
            assert top in {max(math.floor(best), 1), math.ceil(best)}
        if not host:
            assert best / x["G"] == pytest.approx(float(best_throughput().numeric(**x)), rel=1e-12)
            for D in whole:
                share = float(rounding_share().numeric(**x, D=D))
                assert share == pytest.approx(capacity(x, D) / capacity(x, best), rel=1e-9)
                assert rounding_share().regime(**x, D=D) == ("groups limit" if D < best else "experts limit")


def test_equal_batches_on_the_engine() -> None:
    """All splits of 24 devices in groups of 2: throughput of a rolling backlog is what the two sides allow."""
    x = {"G": 3.0, "K_E": 12.0, "h": 0.0, "N": 24.0, "T": 2.0}
    assert float(best_groups().numeric(**x)) == 4.0
    measured = {}
    for D in range(1, 9):
        E = 24 - 2 * D
        phases = np.array([2.4, 0.4, 0.1, 12.0 / E, 0.1, 0.2])
        prompts = np.ones(160 * D, dtype=np.int64)
        measured[D] = measured_throughput(
            constant_costs(phases), Layout("asap", D, 2, E), backlog_policy(), prompts, 16
        )
        assert measured[D] == pytest.approx(capacity(x, D), rel=1e-6)
    assert max(measured, key=lambda D: measured[D]) == 4


def test_the_papers_split() -> None:
    """32 devices, T = 4: D* = 4.19 for the mean batch, D = 4 as in the paper, and best on the engine too."""
    scenario = Scenario.load("paper-asap")
    costs = layer_costs(scenario).costs
    problem = problem_of(scenario)
    found = {}
    for D in (3, 4, 5):
        E = 32 - 4 * D
        moe = Plateau(costs.moe.floor * 16 / E, costs.moe.per_token * 16 / E)
        there = replace(problem, layout=Layout("asap", D, 4, E), costs=replace(costs, moe=moe))
        found[D] = backlog_of(reduced(there)).saturation
    assert max(found, key=lambda D: found[D]) == 4
    assert found[3] / found[4] == pytest.approx(0.82, abs=0.02)
    assert found[5] / found[4] == pytest.approx(0.97, abs=0.02)
