"""Approximate mean value analysis: never above capacity, exact in its limits, near an exact simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.approximate_mva import approximate_mva
from asapmodel.solvers.approximate_network import schweitzer
from asapmodel.solvers.closed_multiclass import multiclass_mva
from asapmodel.solvers.closed_network import mva
from asapmodel.solvers.event_graph import advance, launch, new_log, new_network, new_state
from asapmodel.solvers.queue_errors import NoConvergence, QueueError

Floats = NDArray[np.float64]
times = st.floats(0.01, 10.0)
spreads = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
thinks = st.sampled_from([0.0, 1.0, 30.0])


@st.composite
def networks(draw: st.DrawFn) -> tuple[Floats, NDArray[np.int64]]:
    """Demands and populations up to 64."""
    stations = draw(st.integers(1, 4))
    row = st.lists(st.one_of(st.just(0.0), times), min_size=stations, max_size=stations).filter(any)
    demands = np.array(draw(st.lists(row, min_size=1, max_size=6)))
    population = draw(st.lists(st.integers(0, 64), min_size=len(demands), max_size=len(demands)))
    return demands, np.array(population)


@given(networks(), spreads, thinks, st.sampled_from([1.0, 4.0]))
@settings(max_examples=150, deadline=None)
def test_utilisation_stays_at_or_below_one(
    network: tuple[Floats, NDArray[np.int64]], scv: float, think: float, visits: float
) -> None:
    demands, population = network
    found = approximate_mva(demands, population, scv, think, visits)
    assert np.all(found.utilisation.sum(axis=0) <= 1 + 1e-8)
    assert np.all(found.residence >= demands * (1 - 1e-12))
    assert np.allclose(found.queue.sum(axis=-1) + found.throughput * think, population, rtol=1e-8)  # Little's law


def test_above_scv_1_a_second_customer_may_cost_throughput() -> None:
    """The residual of the first, (1 + scv)/2 services, is more than the queue it stands for."""
    one, two = (approximate_mva([[1.0, 3.0]], [n], 4.0).throughput[0] for n in (1, 2))
    assert two < one


@given(st.lists(times, min_size=1, max_size=4), st.floats(0.0, 1.0), thinks)
@settings(max_examples=40, deadline=None)
def test_throughput_grows_with_the_population(demands: list[float], scv: float, think: float) -> None:
    sizes = np.arange(1, 65)
    batch = np.broadcast_to(demands, (64, 1, len(demands)))
    found = approximate_mva(batch, sizes[:, None], scv, think).throughput[:, 0]
    assert np.all(np.diff(found) >= -1e-8 * found[1:])


@given(st.lists(times, min_size=1, max_size=4), st.integers(1, 64), thinks)
@settings(max_examples=60, deadline=None)
def test_exponential_single_class_is_schweitzer(demands: list[float], n: int, think: float) -> None:
    found = approximate_mva([demands], [n], 1.0, think).throughput[0]
    assert math.isclose(found, schweitzer(demands, n, think).throughput, rel_tol=1e-7)
    assert abs(found / mva(demands, n, think).throughput - 1) < 0.08


def test_exponential_customers_that_are_alike_are_near_exact() -> None:
    """As classes of population one; 8 random networks of 6 customers and 3 stations, errors up to 5 %."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        demands = np.tile(rng.lognormal(0.0, 0.7, 3), (6, 1))
        found = approximate_mva(demands, np.ones(6), 1.0).throughput.sum()
        assert abs(found / multiclass_mva(demands[:1], [6]).throughput.sum() - 1) < 0.05


@given(st.lists(times, min_size=1, max_size=8), spreads)
@settings(max_examples=40, deadline=None)
def test_one_station_is_exact(demands: list[float], scv: float) -> None:
    """Everybody waits for everybody: each customer is served once per round."""
    found = approximate_mva(np.array(demands)[:, None], np.ones(len(demands)), scv)
    assert np.allclose(found.throughput, 1 / sum(demands), rtol=1e-8)


@given(st.lists(times, min_size=1, max_size=5), spreads, thinks)
@settings(max_examples=40, deadline=None)
def test_one_customer_never_waits(demands: list[float], scv: float, think: float) -> None:
    found = approximate_mva([demands, demands], [1, 0], scv, think)
    assert math.isclose(found.throughput[0], 1 / (think + sum(demands)), rel_tol=1e-9)
    assert found.throughput[1] == 0


def test_less_variability_is_faster() -> None:
    scv = np.array([0.0, 0.5, 1.0, 2.0])
    found = approximate_mva(np.broadcast_to([[1.0, 2.0]], (4, 1, 2)), [4], scv[:, None, None]).throughput[:, 0]
    assert np.all(np.diff(found) < 0)


def simulate(own: Floats, shared: Floats, rounds: int = 1500) -> float:
    """Total throughput of customers that alternate between their group's server and the shared one, exactly."""
    groups = len(own)
    lanes = np.repeat(np.arange(groups), 2)
    network = new_network(np.column_stack([lanes, np.full(2 * groups, groups)]), [(0, 1, 10**9)])
    state, log = new_state(network, 1), new_log()
    state.duration[:, 0], state.duration[:, 1] = own.ravel(), shared.ravel()
    for chain in range(2 * groups):
        launch(network, state, log, chain, 0.0)
    span = rounds * max(float(own.sum(axis=1).max()), float(shared.sum()))
    advance(network, state, log, 0.2 * span)
    before = int(state.counter[2])
    advance(network, state, log, span)
    return float(int(state.counter[2]) - before) / 2 / (0.8 * span)


@pytest.mark.parametrize(("groups", "error", "bias"), [(2, 0.05, 0.03), (4, 0.035, 0.02), (8, 0.02, 0.015)])
def test_deterministic_cyclic_network(groups: int, error: float, bias: float) -> None:
    """40 networks: shared work 0.1 to 1.3 of a group's, lognormal times of sigma 0.7."""
    rng = np.random.default_rng(11)
    demands = np.zeros((40, 2 * groups, groups + 1))
    true = np.empty(40)
    for case in range(40):
        own, shared = rng.lognormal(0.0, 0.7, (2, groups, 2))
        shared *= rng.uniform(0.1, 1.3) * own.sum(axis=1).mean() / shared.sum()
        for k in range(2 * groups):
            demands[case, k, k // 2] = own.ravel()[k]
        demands[case, :, -1] = shared.ravel()
        true[case] = simulate(own, shared)
    relative = approximate_mva(demands, np.ones(2 * groups), 0.0).throughput.sum(axis=-1) / true - 1
    assert np.mean(np.abs(relative)) < error
    assert abs(np.mean(relative)) < bias


def test_refusals() -> None:
    with pytest.raises(QueueError, match="scv must be finite and not negative, not -1"):
        approximate_mva([[1.0]], [1], -1.0)
    with pytest.raises(QueueError, match="population must be whole"):
        approximate_mva([[1.0]], [1.5], 1.0)
    with pytest.raises(QueueError, match="visits must be positive"):
        approximate_mva([[1.0]], [1], 1.0, visits=0.0)
    with pytest.raises(QueueError, match="shapes disagree"):
        approximate_mva([[1.0], [2.0], [3.0]], [1, 1], 1.0)
    with pytest.raises(QueueError, match="all 0"):
        approximate_mva([[0.0, 0.0]], [1], 1.0)
    with pytest.raises(NoConvergence, match="after 3 steps"):
        approximate_mva([[1.0, 2.0]], [5], 0.0, steps=3)
