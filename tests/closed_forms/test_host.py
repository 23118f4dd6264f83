"""What host dispatch costs, against the graph engine with and without the super kernel."""

from dataclasses import replace

import numpy as np
import pytest

from asapmodel.closed_forms.host import (
    dispatch_cost,
    dispatch_free,
    dispatch_loss,
    dispatch_loss_tokens,
    dispatch_ttft,
)
from asapmodel.costing import layer_costs
from asapmodel.engines.free_backlog import backlog_of, reduced
from asapmodel.engines.graph import run
from asapmodel.engines.problem import problem_of
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import make_requests
from tests.closed_forms.cycles import (
    backlog_policy,
    constant_costs,
    measured_cycle,
    measured_throughput,
    named,
    pair_policy,
    random_phases,
)


def test_cost_to_a_pair_is_exact() -> None:
    """Cycle with host dispatch minus cycle without; every regime occurs."""
    rng = np.random.default_rng(1)
    seen = dict.fromkeys(dispatch_cost().conditions, 0)
    exposed = replace(pair_policy(), super_kernel=False)
    done = 0
    while done < 200:
        phases = random_phases(rng)
        phases[1] *= 0.5
        h = float(rng.exponential(1.0))
        x = named(phases) | {"h": h}
        if not dispatch_cost().holds(**x):
            continue
        done += 1
        seen[dispatch_cost().regime(**x)] += 1
        costs = replace(constant_costs(phases), host_dispatch=h)
        added = measured_cycle(costs, exposed, (1, 1)) - measured_cycle(costs, pair_policy(), (1, 1))
        assert float(dispatch_cost().numeric(**x)) == pytest.approx(added, rel=1e-9, abs=1e-9)
        free = float(dispatch_free().numeric(**x))
        assert free >= 0
        assert float(dispatch_cost().numeric(**{**x, "h": 0.999 * free})) <= 1e-12
        assert float(dispatch_cost().numeric(**{**x, "h": free + 0.01})) > 0
    assert min(seen.values()) > 10, seen


def test_loss_of_equal_batches_on_the_engine() -> None:
    """Rolling backlog, three groups: exact where one limit dominates before and after."""
    cases = [((2.0, 0.3, 0.1, 1.0, 0.1, 0.2), 0.5), ((9.0, 0.3, 0.1, 1.0, 0.1, 0.2), 0.5)]
    losses = []
    for phases, h in cases:
        costs = replace(constant_costs(np.array(phases)), host_dispatch=h)
        prompts, layout = np.ones(480, dtype=np.int64), Layout("asap", 3, 1, 1)
        kernel = backlog_policy()
        rates = [
            measured_throughput(costs, layout, policy, prompts, 16)
            for policy in (kernel, replace(kernel, super_kernel=False))
        ]
        predicted = float(dispatch_loss().numeric(**named(np.array(phases)), D=3, N_s=2, h=h))
        assert predicted == pytest.approx(1 - rates[1] / rates[0], abs=2e-3)
        losses.append(predicted)
    assert losses[0] == pytest.approx(1 / 3)  # the experts limit: 0.5 of 1.5
    assert losses[1] == pytest.approx(0.0)  # the groups limit: 9.5 / 3 > 1.5


def test_loss_below_a_share() -> None:
    form = dispatch_loss_tokens()
    x = {"m0": 1.0, "m1": 0.01, "h": 0.2, "epsilon": 0.05}
    n = float(form.numeric(**x))
    assert n == pytest.approx(0.2 * 0.95 / 0.05 / 0.01)
    assert 0.2 / (max(1.0, 0.01 * n) + 0.2) == pytest.approx(0.05)
    assert form.regime(**x) == "large batches"
    assert float(form.numeric(**{**x, "h": 0.05})) == 0.0
    assert form.regime(**{**x, "h": 0.05}) == "any batch"


def test_the_papers_numbers() -> None:
    """13.4 ms for a lone batch (section 5.5.3), and a loss of 6 % for the paper's traffic.

    The formula takes a mean batch for all and gives 7.9 %; the engine on the whole mix gives 5.7 %.
    """
    scenario = Scenario.load("paper-asap")
    costs = layer_costs(scenario).costs
    assert float(dispatch_ttft().numeric(L=costs.moe_layers, h=costs.host_dispatch)) == pytest.approx(0.01342)
    lone = [
        run(
            scenario.layout, Policy(super_kernel=on, batch_window=0.0), costs, make_requests(np.zeros(1), np.array([n]))
        )
        for n, on in ((4000, True), (4000, False))
    ]
    assert lone[1].makespan_s - lone[0].makespan_s == pytest.approx(0.01342)
    problem = problem_of(scenario)
    kernel, exposed = (
        backlog_of(reduced(replace(problem, policy=replace(scenario.policy, super_kernel=on)))).saturation
        for on in (True, False)
    )
    assert 1 - exposed / kernel == pytest.approx(0.058, abs=0.01)
