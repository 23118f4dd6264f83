"""The list scheduler against hand-worked schedules, longest paths, max-plus and Lindley recursions."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.solvers.event_graph import Log, Network, State, advance, launch, new_log, new_network, new_state


def finish_all(network: Network, state: State, log: Log) -> list[tuple[int, float]]:
    out = []
    while (chain := advance(network, state, log, np.inf)) >= 0:
        out.append((chain, float(state.clock[0])))
    return out


def test_two_chains_on_one_resource_alternate() -> None:
    network = new_network(np.array([[0, 1]]), [(0, 1, 2)])
    state, log = new_state(network, 2), new_log(16)
    state.duration[:] = [[3.0, 1.0], [2.0, 1.0]]
    launch(network, state, log, 0, 0.0)
    launch(network, state, log, 1, 0.0)
    # resource 0: chain 0 [0,3], 1 [3,5], 0 [5,8], 1 [8,10]; resource 1 after each for 1
    assert finish_all(network, state, log) == [(0, 9.0), (1, 11.0)]
    assert state.busy.tolist() == [10.0, 4.0]


def test_a_taken_buffer_blocks_the_resource() -> None:
    # position 0 on resource 0 takes the buffer, position 1 on resource 1 frees it
    network = new_network(np.array([[0, 1]]), [(0, 1, 1)], np.array([[0, -1]]), np.array([[-1, 0]]))
    state, log = new_state(network, 2), new_log(8)
    state.duration[:] = [[1.0, 5.0], [1.0, 5.0]]
    launch(network, state, log, 0, 0.0)
    launch(network, state, log, 1, 0.0)
    # chain 1 could start at 1 but the buffer is free only at 6
    assert finish_all(network, state, log) == [(0, 6.0), (1, 12.0)]
    assert state.stalled[0] == 5.0


def test_barrier_opens_for_the_last() -> None:
    network = new_network(
        np.array([[0, 2], [1, 2]]), [(0, 1, 1)], barrier=np.array([[-1, 0], [-1, 0]]), barrier_width=[2]
    )
    state, log = new_state(network, 1), new_log(8)
    state.duration[:] = [[1.0, 2.0], [4.0, 2.0]]
    launch(network, state, log, 0, 0.0)
    launch(network, state, log, 1, 0.0)
    assert finish_all(network, state, log) == [(0, 6.0), (1, 8.0)]  # both ready at 4, first come first


def test_one_buffer_on_two_resources_is_refused() -> None:
    with pytest.raises(ValueError, match="more than one resource"):
        new_network(np.array([[0], [1]]), [(0, 0, 1)], np.array([[0], [0]]))


def test_nothing_to_run_is_refused() -> None:
    with pytest.raises(ValueError, match="no task"):
        new_network(np.array([[0]]), [(0, 0, 0)])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 5)), min_size=1, max_size=30))
def test_single_resource_is_lindley(jobs: list[tuple[float, float]]) -> None:
    """One FCFS resource: departure_k = max(arrival_k, departure_(k-1)) + service_k, exactly."""
    arrivals = np.cumsum([gap for gap, _ in jobs])
    network = new_network(np.array([[0]]), [(0, 0, 1)])
    state, log = new_state(network, len(jobs)), new_log()
    ends = {}
    for k, (arrival, (_, service)) in enumerate(zip(arrivals, jobs, strict=True)):
        while (chain := advance(network, state, log, arrival)) >= 0:
            ends[chain] = float(state.clock[0])
        state.duration[k, 0] = service
        launch(network, state, log, k, float(arrival))
    ends |= dict(finish_all(network, state, log))
    departure = 0.0
    for k, (arrival, (_, service)) in enumerate(zip(arrivals, jobs, strict=True)):
        departure = max(float(arrival), departure) + service
        assert ends[k] == departure


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 5), st.integers(1, 4))
def test_finish_is_the_longest_path_of_the_realised_order(seed: int, chains: int, positions: int, repeats: int) -> None:
    """With the order on each resource given, finish times are longest paths in a graph (networkx as judge)."""
    rng = np.random.default_rng(seed)
    resource = rng.integers(0, 3, size=(1, positions))
    resource[0, 0] = 2  # highest resource used, so that all three exist
    network = new_network(resource, [(0, positions - 1, repeats)])
    state, log = new_state(network, chains), new_log(chains * positions * repeats)
    state.duration[:] = rng.uniform(0.1, 2.0, size=(chains, positions))
    for chain in range(chains):
        launch(network, state, log, chain, 0.0)
    ends = dict(finish_all(network, state, log))
    graph = nx.DiGraph()
    previous: dict[tuple[str, int], int] = {}
    for k in range(int(log.recorded[0])):
        span = float(log.end[k] - log.start[k])
        graph.add_edge("source", k, weight=0.0)
        for key in (("resource", int(log.resource[k])), ("chain", int(log.chain[k]))):
            if key in previous:
                graph.add_edge(previous[key], k, weight=float(log.end[previous[key]] - log.start[previous[key]]))
            previous[key] = k
        graph.add_edge(k, ("sink", int(log.chain[k])), weight=span)
    for chain in range(chains):
        path = nx.dag_longest_path_length(graph.subgraph(nx.ancestors(graph, ("sink", chain)) | {("sink", chain)}))
        assert ends[chain] == pytest.approx(path, rel=1e-12)


@pytest.mark.parametrize(
    ("a1", "m1", "a2", "m2", "c"),
    [
        (3.0, 1.0, 2.0, 2.0, 0.5),
        (1.0, 4.0, 2.0, 3.0, 0.25),
        (1.0, 1.0, 1.0, 1.0, 3.0),
        (5.0, 1.0, 1.0, 1.0, 0.1),
    ],
)
def test_dual_batch_cycle_time(a1: float, m1: float, a2: float, m2: float, c: float) -> None:
    """Two chains alternate on two resources with transfers c between: max-plus eigenvalue of the pair.

    cycle = max(A1 + A2, M1 + M2, A1 + M1 + 2c, A2 + M2 + 2c) for one group in alternating order.
    """
    # transfers run on resources of their own, one per chain and direction: lanes 0 and 1
    table = np.array([[0, 2, 1, 3], [0, 4, 1, 5]])
    repeats = 400
    network = new_network(table, [(0, 3, repeats)])
    state, log = new_state(network, 1), new_log()
    state.duration[:] = [[a1, c, m1, c], [a2, c, m2, c]]
    launch(network, state, log, 0, 0.0)
    launch(network, state, log, 1, 0.0)
    ends = dict(finish_all(network, state, log))
    cycle = max(a1 + a2, m1 + m2, a1 + m1 + 2 * c, a2 + m2 + 2 * c)
    assert max(ends.values()) / repeats == pytest.approx(cycle, rel=0.01)
