"""The synchronous iteration: event graph, exact sums, and bounds over all ways to share iterations."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.circuits.batches import Batches, form_iterations
from asapmodel.circuits.bounds import regime_of, throughput_bounds
from asapmodel.circuits.lockstep_bounds import (
    expected_maximum,
    independent_period,
    iteration_times,
    layer_graph,
    lockstep_lower,
    lockstep_upper,
)
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.cycle_ratio import cycle_time
from asapmodel.systems.arrays import Requests
from tests.strategies import Case, cases, random_costs

SAME = pytest.approx


def batches(n: list[list[float]]) -> Batches:
    tokens = np.array(n)
    return Batches(tokens, tokens**2, np.zeros(tokens.shape, dtype=bool), int(np.sum(tokens > 0)))


@given(cases("sync"))
def test_sum_of_iterations_is_the_time_of_a_run(case: Case) -> None:
    requests = Requests(np.zeros_like(case.requests.arrival), case.requests.prompt, case.requests.cached)
    policy = replace(case.policy, batch_window=0.0)
    formed = form_iterations(case.layout, policy, case.costs, requests)
    done = run(case.layout, policy, case.costs, requests)
    assert float(iteration_times(case.costs, formed).sum()) == SAME(done.makespan_s, rel=1e-12)
    assert formed.n.sum() == np.sum(requests.prompt - requests.cached)
    assert np.sum(formed.n > 0) == done.batches


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_an_iteration_is_its_layers_by_the_event_graph(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    costs = replace(random_costs(rng), dense_layers=0)
    n = np.where(rng.random(groups) < 0.2, 0.0, rng.uniform(1, 9000, size=groups))
    n[0] = 100.0
    found = cycle_time(layer_graph(costs, n, n**2))
    whole = iteration_times(costs, Batches(n[None], n[None] ** 2, np.zeros((1, groups), dtype=bool), groups))
    assert costs.step_overhead + costs.layers * found.time == SAME(float(whole[0]), rel=1e-12)
    attention = [str(u) for u, _, _ in found.circuit or [] if str(u).startswith("attention")]
    slowest = int(np.argmax(np.where(n > 0, costs.attention(n, n**2), 0.0)))
    assert attention == [f"attention {slowest}"]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 2), (3, 2), (2, 3)]))
def test_bounds_hold_however_batches_share_iterations(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    costs, layout = random_costs(rng), Layout("sync", shape[1], 1, shape[1])
    n = np.exp(rng.uniform(2, 9, size=shape))
    rates = []
    for order in permutations(range(n.size)):
        mixed = n.ravel()[list(order)].reshape(shape)
        times = iteration_times(costs, Batches(mixed, mixed**2, np.zeros(shape, dtype=bool), n.size))
        rates.append(n.size / float(times.sum()))
    some = Batches(n, n**2, np.zeros(shape, dtype=bool), n.size)
    assert lockstep_lower(layout, costs, some) <= min(rates) * (1 + 1e-12)
    upper = lockstep_upper(layout, costs, some)
    assert all(max(rates) <= rate * (1 + 1e-12) for rate in upper.values())
    assert upper["iteration"] == min(upper.values())


def test_bounds_are_attained_where_only_attention_counts() -> None:
    none = Affine(0.0, 0.0)
    costs = LayerCosts(Quadratic(0.0, 1.0, 0.0), none, none, Plateau(0.0, 0.0), none, none, layers=1)
    layout = Layout("sync", 2, 1, 2)
    some = batches([[4.0, 1.0], [3.0, 2.0]])
    assert lockstep_upper(layout, costs, some)["iteration"] == SAME(4 / (4 + 2))  # 4 with 3, 2 with 1
    assert lockstep_lower(layout, costs, some) == SAME(4 / (4 + 3))  # as they are
    assert 4 / float(iteration_times(costs, some).sum()) == SAME(4 / 7)


def test_independent_batches() -> None:
    """The mean maximum by all pairs of draws; the period of shuffled batches comes near it."""
    values = np.array([1.0, 5.0, 2.0])
    assert expected_maximum(values, 2) == SAME(np.maximum.outer(values, values).mean())
    rng = np.random.default_rng(3)
    costs, layout = random_costs(rng), Layout("sync", 4, 1, 4)
    n = rng.uniform(2000, 8000, size=(4000, 4))
    some = Batches(n, n**2, np.zeros(n.shape, dtype=bool), n.size)
    assert independent_period(layout, costs, some) == SAME(float(iteration_times(costs, some).mean()), rel=0.01)


def test_equal_batches_leave_nothing_open_and_the_largest_part_is_the_regime() -> None:
    half = Affine(0.5, 0.0)
    costs = LayerCosts(
        Quadratic(5.0, 0.0, 0.0), half, half, Plateau(3.0, 0.0), half, half, layers=10, step_overhead=4.0
    )
    found = throughput_bounds(Layout("sync", 2, 1, 2), Policy(), costs, batches([[7.0, 7.0], [7.0, 7.0]]))
    assert found.lower == SAME(2 / 104)
    assert found.upper_batches == SAME(2 / 104)
    regime = regime_of(found)
    assert (regime.name, regime.next_name) == ("attention-bound", "MoE-bound")
    assert regime.margin == SAME(54 / 30)


def test_batches_of_another_shape_are_refused() -> None:
    costs = random_costs(np.random.default_rng(1))
    with pytest.raises(ValueError, match="D = 3 batches"):
        throughput_bounds(Layout("sync", 3, 1, 3), Policy(), costs, batches([[7.0, 7.0], [7.0, 7.0]]))
