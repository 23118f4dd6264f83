"""Howard's iteration against all circuits listed, Karp, a linear program, the recursion itself, and its own proofs."""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.solvers.cycle_ratio import cycle_time, cycle_time_by_program, cycle_times, sensitivity
from asapmodel.solvers.extreme_ratio import maximum_cycle_ratio, minimum_cycle_ratio
from asapmodel.solvers.karp import cycle_time_vector, maximum_cycle_mean
from asapmodel.solvers.max_plus import first_order, power, product
from asapmodel.solvers.timed_graph import Edge
from tests.solvers.timed_graphs import circuits, graphs, random_graph, ratio


def closes(circuit: list[Edge]) -> bool:
    return all(edge[1] == following[0] for edge, following in zip(circuit, [*circuit[1:], circuit[0]], strict=True))


def fire(graph: nx.MultiDiGraph, rounds: int) -> dict[tuple[int, int], float]:
    """`x_v(k)` from the definition, 0 for k <= 0; nodes in an order that respects edges without tokens."""
    free = nx.DiGraph([(u, v) for u, v, d in graph.edges(data=True) if d["tokens"] == 0])
    free.add_nodes_from(graph)
    order = list(nx.topological_sort(free))
    x: dict[tuple[int, int], float] = {}
    for k in range(1, rounds + 1):
        for v in order:
            into = [x.get((u, k - d["tokens"]), 0) + d["time"] for u, _, d in graph.in_edges(v, data=True)]
            x[v, k] = max(into, default=-math.inf)
    return x


def scaled(graph: nx.MultiDiGraph, factor: float) -> nx.MultiDiGraph:
    out = graph.copy()
    for _, _, data in out.edges(data=True):
        data["time"] *= factor
    return out


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_howard_karp_program_and_all_circuits_agree(graph: nx.MultiDiGraph) -> None:
    listed = [ratio(graph, circuit) for circuit in circuits(graph)]
    found, program = cycle_time(graph), cycle_time_by_program(graph)
    karp = maximum_cycle_mean(first_order(graph).matrix).mean
    if not listed:
        assert (found.time, found.circuit, program.time, karp) == (-math.inf, None, -math.inf, -math.inf)
        return
    assert found.circuit is not None
    assert ratio(graph, found.circuit) == max(listed)  # in fractions: no tolerance
    assert found.time == float(max(listed))
    assert closes(found.circuit)
    assert len({u for u, _, _ in found.circuit}) == len(found.circuit)
    assert program.time == pytest.approx(found.time, rel=1e-9, abs=1e-9)
    assert karp == pytest.approx(found.time, rel=1e-13)


@settings(max_examples=200, deadline=None)
@given(graphs(9, 30))
def test_potentials_prove_the_period(graph: nx.MultiDiGraph) -> None:
    found = cycle_time(graph)
    period = 0.0 if found.circuit is None else found.time
    slack = {
        (u, v, key): found.potentials[v] - found.potentials[u] - data["time"] + period * data["tokens"]
        for u, v, key, data in graph.edges(keys=True, data=True)
    }
    assert min(slack.values(), default=0.0) >= -1e-12
    assert all(abs(slack[edge]) <= 1e-12 for edge in found.circuit or [])
    assert min(found.potentials.values()) == 0.0


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_every_node_grows_at_the_rate_of_the_circuits_before_it(graph: nx.MultiDiGraph) -> None:
    expected = dict.fromkeys(graph, -math.inf)
    for circuit in circuits(graph):
        for v in {circuit[0][0]} | nx.descendants(graph, circuit[0][0]):
            expected[v] = max(expected[v], float(ratio(graph, circuit)))
    assert cycle_times(graph) == expected
    form = first_order(graph)
    rates = cycle_time_vector(form.matrix)
    for (v, delay), rate in zip(form.states, rates.tolist(), strict=True):
        if delay == 0:
            assert rate == pytest.approx(expected[v], rel=1e-13)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_recursion_reaches_the_period(graph: nx.MultiDiGraph) -> None:
    """On a critical circuit x(k) stays between two shifts of the periodic schedule, so x(k) / k tends to the period."""
    found = cycle_time(graph)
    if found.circuit is None:
        return
    rounds, p = 400, found.potentials
    low, high = max(p.values()), max(data["tokens"] for _, _, data in graph.edges(data=True)) * found.time
    x = fire(graph, rounds)
    for v, _, _ in found.circuit:
        assert p[v] - low + rounds * found.time - 1e-9 <= x[v, rounds] <= p[v] + rounds * found.time + high + 1e-9


@settings(max_examples=100, deadline=None)
@given(graphs(4, 10))
def test_the_periodic_regime_is_exact(graph: nx.MultiDiGraph) -> None:
    """Once the transient is over, `x(k + c) = x(k) + c rate` for every node; c a multiple of all circuits' tokens.

    In whole numbers, so to the bit; 4 million steps are beyond Hartmann and Arguelles' bound for 12 states.
    """
    form, rates = first_order(graph), cycle_times(graph)
    listed = list(circuits(graph))
    tokens = math.lcm(*(sum(graph.edges[edge]["tokens"] for edge in circuit) for circuit in listed))
    exact = {float(ratio(graph, circuit)): ratio(graph, circuit) for circuit in listed}
    start = np.zeros(len(form.states))
    now = product(power(form.matrix, 2**22), start)
    later = product(power(form.matrix, 2**22 + tokens), start)
    for node, rate in rates.items():
        k = form.states.index((node, 0))
        if rate == -math.inf:
            assert now[k] == later[k] == -math.inf
        else:
            assert later[k] - now[k] == exact[rate] * tokens


@settings(max_examples=100, deadline=None)
@given(graphs(9, 30), st.floats(1e-6, 1e6), st.integers(-20, 20))
def test_times_scale(graph: nx.MultiDiGraph, factor: float, exponent: int) -> None:
    found = cycle_time(graph)
    assert cycle_time(scaled(graph, factor)).time == pytest.approx(found.time * factor, rel=1e-12)
    doubled = cycle_time(scaled(graph, 2.0**exponent))
    assert (doubled.time, doubled.circuit) == (found.time * 2.0**exponent, found.circuit)  # to the bit


@settings(max_examples=100, deadline=None)
@given(graphs(9, 30), st.integers(0, 2**32 - 1))
def test_one_more_edge_never_shortens_the_period(graph: nx.MultiDiGraph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = cycle_time(graph).time
    u, v = rng.integers(len(graph), size=2).tolist()
    graph.add_edge(u, v, time=int(rng.integers(20)), tokens=int(rng.integers(1, 4)))
    assert cycle_time(graph).time >= before


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_sensitivity_is_a_subgradient(graph: nx.MultiDiGraph, seed: int) -> None:
    found = cycle_time(graph)
    slope = sensitivity(graph, found.circuit)
    assert list(slope) == list(graph.edges(keys=True))
    if found.circuit is None:
        assert not any(slope.values())
        return
    rng, other = np.random.default_rng(seed), graph.copy()
    change = {edge: int(rng.integers(-graph.edges[edge]["time"], 10)) for edge in graph.edges}
    for edge, by in change.items():
        other.edges[edge]["time"] += by
    assert cycle_time(other).time >= found.time + sum(slope[edge] * by for edge, by in change.items()) - 1e-9


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_sensitivity_is_the_derivative_where_one_circuit_is_critical(graph: nx.MultiDiGraph) -> None:
    ratios = sorted((ratio(graph, circuit) for circuit in circuits(graph)), reverse=True)
    if not ratios or ratios[1:2] == ratios[:1]:
        return
    found = cycle_time(graph)
    step = 2.0**-10  # small against the gap between two fractions of at most 18 tokens
    for edge, slope in sensitivity(graph, found.circuit).items():
        graph.edges[edge]["time"] += step
        assert (cycle_time(graph).time - found.time) / step == pytest.approx(slope, abs=1e-9)
        graph.edges[edge]["time"] -= step


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_multipliers_are_a_flow_on_critical_circuits(graph: nx.MultiDiGraph) -> None:
    program = cycle_time_by_program(graph)
    if program.time == -math.inf:
        assert program.flow == {}
        return
    flow = program.flow
    assert sum(f * graph.edges[edge]["tokens"] for edge, f in flow.items()) == pytest.approx(1, abs=1e-9)
    assert sum(f * graph.edges[edge]["time"] for edge, f in flow.items()) == pytest.approx(program.time, abs=1e-9)
    for node in graph:
        into = sum(f for (_, v, _), f in flow.items() if v == node)
        assert into == pytest.approx(sum(f for (u, _, _), f in flow.items() if u == node), abs=1e-9)


def test_flow_is_the_critical_circuit_when_there_is_one() -> None:
    graph = random_graph(np.random.default_rng(5), 40, 160)
    for number, edge in enumerate(graph.edges):
        graph.edges[edge]["time"] += number**0.5  # no two circuits alike
    found, program = cycle_time(graph), cycle_time_by_program(graph)
    slope = {edge: s for edge, s in sensitivity(graph, found.circuit).items() if s}
    assert set(program.flow) == set(slope)
    assert all(program.flow[edge] == pytest.approx(s, abs=1e-9) for edge, s in slope.items())


@pytest.mark.parametrize(("nodes", "edges"), [(120, 200), (100, 400), (60, 2000)])
def test_larger_graphs(nodes: int, edges: int) -> None:
    graph = random_graph(np.random.default_rng(nodes), nodes, edges)
    rng = np.random.default_rng(edges)
    for edge in graph.edges:
        graph.edges[edge]["time"] = float(rng.lognormal(-7, 2))  # from microseconds to seconds
    found = cycle_time(graph)
    assert maximum_cycle_mean(first_order(graph).matrix).mean == pytest.approx(found.time, rel=1e-12)
    assert cycle_time_by_program(graph).time == pytest.approx(found.time, rel=1e-9)


def test_long_ring_and_thousands_of_edges() -> None:
    """One critical circuit of 3000 nodes, beside 3000 loops that come close."""
    graph, n = nx.MultiDiGraph(), 3000
    times = np.random.default_rng(7).uniform(size=n).tolist()
    for k, time in enumerate(times):
        graph.add_edge(k, (k + 1) % n, time=time, tokens=int(k % 2 == 1))
        graph.add_edge(k, k, time=0.999 * time, tokens=1)
    assert cycle_time(graph).time == pytest.approx(math.fsum(times) / (n / 2), rel=1e-12)
    graph.add_edge(17, 17, time=1.1, tokens=1)
    assert cycle_time(graph).circuit == [(17, 17, 1)]


def test_close_circuits_are_told_apart() -> None:
    """The first policy holds the loop at a; the loop at b is better by one part in 10^12."""
    graph = nx.MultiDiGraph()
    for u, v, time, tokens in [("a", "a", 1.0, 1), ("a", "b", 5.0, 10), ("b", "b", 1.0 + 1e-12, 1), ("b", "a", 0.0, 1)]:
        graph.add_edge(u, v, time=time, tokens=tokens)
    found = cycle_time(graph)
    assert (found.time, found.circuit) == (1.0 + 1e-12, [("b", "b", 0)])


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_deadlock_is_refused_and_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from("abcd")
    for u, v in rng.choice(list("abcd"), size=(int(rng.integers(8)), 2)).tolist():
        graph.add_edge(u, v, time=1.0, tokens=int(rng.integers(2)))
    if nx.is_directed_acyclic_graph(nx.DiGraph([e[:2] for e in graph.edges(data="tokens") if e[2] == 0])):
        cycle_time(graph)
    else:
        for solve in (cycle_time, cycle_times, cycle_time_by_program, first_order):
            with pytest.raises(ValueError, match=r"^circuit [a-d]( -> [a-d])+ has no token: deadlock"):
                solve(graph)


def test_deadlock_names_its_nodes_in_order() -> None:
    graph = nx.MultiDiGraph()
    for u, v, tokens in [("in", "a", 0), ("a", "b", 0), ("b", "c", 0), ("c", "a", 0), ("c", "in", 1)]:
        graph.add_edge(u, v, time=1.0, tokens=tokens)
    with pytest.raises(ValueError, match=r"circuit (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c) has no token"):
        cycle_time(graph)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"time": -1.0, "tokens": 1}, "time of edge a -> b must be finite and not negative, not -1.0"),
        ({"time": math.nan, "tokens": 1}, "time of edge a -> b must be finite and not negative, not nan"),
        ({"time": math.inf, "tokens": 1}, "time of edge a -> b must be finite and not negative, not inf"),
        ({"tokens": 1}, "time of edge a -> b must be finite and not negative, not None"),
        ({"time": 1.0, "tokens": 0.5}, "tokens of edge a -> b must be a whole number from 0 on, not 0.5"),
        ({"time": 1.0, "tokens": -1}, "tokens of edge a -> b must be a whole number from 0 on, not -1"),
        ({"time": 1.0, "tokens": math.inf}, "tokens of edge a -> b must be a whole number from 0 on, not inf"),
        ({"time": 1.0}, "tokens of edge a -> b must be a whole number from 0 on, not None"),
    ],
)
def test_wrong_edges_are_refused(data: dict[str, float], message: str) -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", **data)
    with pytest.raises(ValueError, match=message):
        cycle_time(graph)


def test_other_kinds_of_graph_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be a networkx.MultiDiGraph, not DiGraph"):
        cycle_time(nx.DiGraph())


def test_nothing_at_all() -> None:
    found = cycle_time(nx.MultiDiGraph())
    assert (found.time, found.circuit, found.potentials) == (-math.inf, None, {})


def test_sensitivity_refuses_what_is_no_circuit() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", time=1.0, tokens=0)
    graph.add_edge("b", "a", time=1.0, tokens=1)
    for wrong in ([], [("a", "b", 0)]):
        with pytest.raises(ValueError, match="do not form a circuit"):
            sensitivity(graph, wrong)
    with pytest.raises(ValueError, match=r"edge \('b', 'a', 3\) of the circuit is not in the graph"):
        sensitivity(graph, [("a", "b", 0), ("b", "a", 3)])
    graph.add_edge("b", "a", time=1.0, tokens=0)
    with pytest.raises(ValueError, match="has no token: deadlock"):
        sensitivity(graph, [("a", "b", 0), ("b", "a", 1)])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_ratios_of_any_sign_and_fractional_delays(seed: int) -> None:
    """Weights and delays in quarters; both extremes against all circuits."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 12))
    source, target = rng.integers(n, size=(2, m))
    weight, delay = rng.integers(-40, 41, size=m) / 4, rng.integers(1, 9, size=m) / 4
    graph = nx.MultiDiGraph()
    for k in range(m):
        graph.add_edge(int(source[k]), int(target[k]), time=Fraction(weight[k]), tokens=Fraction(delay[k]))
    listed = [ratio(graph, circuit) for circuit in circuits(graph)]
    largest = maximum_cycle_ratio(n, source, target, weight, delay)
    smallest = minimum_cycle_ratio(n, source, target, weight, delay)
    assert largest.ratio == float(max(listed, default=-math.inf))
    assert smallest.ratio == float(min(listed, default=math.inf))
    if listed:
        p = smallest.potentials
        assert (p[target] <= p[source] + weight - smallest.ratio * delay + 1e-12).all()
        for found in (largest, smallest):
            assert weight[found.circuit].sum() / delay[found.circuit].sum() == pytest.approx(found.ratio, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, [0, 1], [1], [1, 1], [1, 1]), "one entry each"),
        ((2, [0, 2], [1, 1], [1, 1], [1, 1]), "from 0 to 1"),
        ((2, [0], [1], [math.inf], [1]), "weight of an edge must be finite, not inf"),
        ((2, [0], [1], [1], [-2]), "delay of an edge must be finite and not negative, not -2"),
        ((2, [0, 1], [1, 0], [1, 1], [0, 0]), r"circuit through nodes \[0, 1\] has no delay"),
    ],
)
def test_wrong_arrays_are_refused(
    arguments: tuple[int, list[int], list[int], list[float], list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        maximum_cycle_ratio(*arguments)
