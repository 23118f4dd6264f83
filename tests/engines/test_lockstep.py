"""The closed form of an iteration against the event graph with barriers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.event_graph import advance, launch, new_log, new_network, new_state
from asapmodel.systems.arrays import make_requests
from tests.strategies import random_costs


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_iteration_equals_event_graph_with_barriers(seed: int, D: int) -> None:
    """Every group is a lane: attention | barrier | the collective step | barrier, L times."""
    rng = np.random.default_rng(seed)
    costs = random_costs(rng)
    prompts = np.clip(np.exp(rng.normal(7.5, 1.4, size=D)).astype(np.int64), 1, 32000)
    requests = make_requests(np.zeros(D), prompts)  # one prompt a group: fewest tokens, ties by index
    got = run(Layout("sync", D, 1, D), Policy(batch_window=0.0), costs, requests).outcome.end

    n, w = prompts.astype(float), prompts.astype(float) ** 2
    attention = costs.attention.fixed + costs.attention.per_token * n + costs.attention.per_token2 * w
    dense = attention + np.array([costs.dense(tokens) for tokens in n])
    shared = costs.moe(n.sum()) + sum(
        cost(n.max()) for cost in (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    )
    # positions: overhead, dense layer, attention, collective step; a group's own resource each, since
    # the collective step occupies every group alike
    own, collective = np.arange(D), D + np.arange(D)
    table = np.stack([own, own, own, collective], axis=1)
    barrier = np.tile([-1, 1, 2, 0], (D, 1))  # before the dense layers and before each layer: all together
    network = new_network(
        table,
        [(0, 0, 1), (1, 1, costs.dense_layers), (2, 3, costs.moe_layers)],
        barrier=barrier,
        barrier_width=[D, D, D],
    )
    state, log = new_state(network, 1), new_log()
    for group in range(D):
        state.duration[group] = [costs.step_overhead, dense[group], attention[group], shared]
        launch(network, state, log, group, 0.0)
    while advance(network, state, log, np.inf) >= 0:
        pass
    np.testing.assert_allclose(got, state.clock[0], rtol=1e-12)


def test_idle_engine_waits_for_the_window_then_takes_all() -> None:
    costs = random_costs(np.random.default_rng(5))
    requests = make_requests(np.array([0.0, 0.5, 1.0, 1.5]), np.array([10, 20, 30, 40]))
    out = run(Layout("sync", 2, 1, 2), Policy(batch_window=1.0), costs, requests).outcome
    assert out.start[:3].tolist() == [1.0, 1.0, 1.0]
    assert out.start[3] == max(2.5, out.end[0]) or out.start[3] == out.end[0]


def test_chunks_of_a_long_prompt_run_one_an_iteration() -> None:
    costs = random_costs(np.random.default_rng(6))
    requests = make_requests(np.array([0.0]), np.array([10_000]))
    layout = Layout("sync", 1, 1, 1)
    whole = run(layout, Policy(batch_window=0.0), costs, requests)
    chunked = run(layout, Policy(batch_window=0.0, chunk_tokens=3000), costs, requests)
    assert (whole.batches, chunked.batches) == (1, 4)
    expected = 0.0
    for c, q in ((3000, 0), (3000, 3000), (3000, 6000), (1000, 9000)):
        expected += costs.alone(float(c), float(c * c + 2 * c * q))
    assert chunked.outcome.end[0] == pytest.approx(expected, rel=1e-12)
