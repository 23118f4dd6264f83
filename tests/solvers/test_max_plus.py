"""Max-plus algebra and spectra against plain loops, whole numbers, and the laws of the theory."""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.karp import cycle_time_vector, eigenvectors, maximum_cycle_mean, minimum_cycle_mean
from asapmodel.solvers.max_plus import first_order, identity, power, product, star, transitive_closure
from tests.solvers.timed_graphs import graphs

Floats = NDArray[np.float64]
INF = math.inf


@st.composite
def matrices(draw: st.DrawFn, largest: int = 5, irreducible: bool = False) -> Floats:
    """Whole numbers from -6 to 6, some missing; irreducible ones hold a ring through all nodes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, largest))
    a = rng.integers(-6, 7, size=(n, n)).astype(np.float64)
    a[rng.random((n, n)) < draw(st.sampled_from([0.0, 0.4, 0.8]))] = -INF
    if irreducible:
        ring = rng.permutation(n)
        a[np.roll(ring, -1), ring] = rng.integers(-6, 7, size=n)
    return a


def means(a: Floats) -> list[Fraction]:
    """Mean of every circuit that passes no node twice; `a[v, u]` is the arc u -> v."""
    graph = nx.DiGraph([(u, v) for v, u in np.argwhere(np.isfinite(a)).tolist()])
    around = [(way, [*way[1:], way[0]]) for way in nx.simple_cycles(graph)]
    return [Fraction(int(sum(a[v, u] for u, v in zip(way, then, strict=True))), len(way)) for way, then in around]


@given(matrices(), st.integers(0, 2**32 - 1))
def test_product_from_the_definition(a: Floats, seed: int) -> None:
    n = len(a)
    b = np.random.default_rng(seed).integers(-5, 6, size=(n, 3)).astype(np.float64)
    expected = [[max(a[i, k] + b[k, j] for k in range(n)) for j in range(3)] for i in range(n)]
    assert product(a, b).tolist() == expected
    assert product(a, b[:, 1]).tolist() == [row[1] for row in expected]


@given(matrices(), st.integers(0, 9), st.integers(0, 9))
def test_powers_add_up(a: Floats, k: int, more: int) -> None:
    assert (power(a, k + more) == product(power(a, k), power(a, more))).all()
    assert (power(a, 0) == identity(len(a))).all()
    assert (power(a, 1) == a).all()


@given(matrices())
def test_star_is_the_sum_of_powers(a: Floats) -> None:
    if max(means(a), default=Fraction(0)) > 0:
        with pytest.raises(ValueError, match="above 0: no star"):
            star(a)
        return
    n = len(a)
    powers = [power(a, k) for k in range(n + 1)]
    assert (star(a) == np.max(powers[:n], axis=0)).all()
    assert (transitive_closure(a) == np.max(powers[1:], axis=0)).all()
    assert (product(star(a), star(a)) == star(a)).all()


@settings(max_examples=300)
@given(matrices(6))
def test_cycle_means_of_all_circuits(a: Floats) -> None:
    listed = means(a)
    largest, smallest = maximum_cycle_mean(a), minimum_cycle_mean(a)
    assert largest.mean == float(max(listed, default=-INF))
    assert smallest.mean == float(min(listed, default=INF))
    for found in (largest, smallest):
        nodes = found.circuit
        assert len(set(nodes)) == len(nodes)
        weight = sum(a[v, u] for u, v in zip(nodes, nodes[1:] + nodes[:1], strict=True))
        assert not nodes or weight / len(nodes) == found.mean


def test_circuit_that_cannot_be_read_off_the_attaining_k() -> None:
    """Node 1 attains Karp's maximum with k = n - 1, and the walk of n arcs to it has no circuit of n - k = 1 arc."""
    n = 4
    a = np.full((n, n), -INF)
    for u, v in [(0, 2), (2, 3), (3, 2), (2, 1), (3, 1)]:
        a[v, u] = 0.0
    a[0, 1] = -1.0
    assert [power(a, k)[1, 0] for k in range(n + 1)] == [-INF, -INF, 0, 0, 0]
    assert (np.diagonal(a) == -INF).all()
    found = maximum_cycle_mean(a)
    assert (found.mean, sorted(found.circuit)) == (0.0, [2, 3])


@settings(max_examples=150)
@given(matrices(5, irreducible=True))
def test_eigenvectors(a: Floats) -> None:
    value, vectors = eigenvectors(a)
    exact = max(means(a))
    assert value == float(exact)
    assert np.isfinite(vectors).all()
    for x in vectors.T:
        assert product(a, x) == pytest.approx(x + value, abs=1e-12)
    for x, y in itertools.combinations(vectors.T, 2):
        assert np.ptp(x - y) > 1e-6  # not shifts of one another
    critical = nx.DiGraph()
    for way in nx.simple_cycles(nx.DiGraph([(u, v) for v, u in np.argwhere(np.isfinite(a)).tolist()])):
        steps = list(zip(way, [*way[1:], way[0]], strict=True))
        if Fraction(int(sum(a[v, u] for u, v in steps)), len(way)) == exact:
            critical.add_edges_from(steps)
    assert vectors.shape[1] == nx.number_strongly_connected_components(critical)


@settings(max_examples=100)
@given(matrices(4, irreducible=True))
def test_powers_become_periodic(a: Floats) -> None:
    """`A^(k + 12) = A^k + 12 eigenvalue` for n <= 4 once k is beyond the transient (Hartmann and Arguelles' bound)."""
    value = maximum_cycle_mean(a).mean
    assert power(a, 10_012) == pytest.approx(power(a, 10_000) + 12 * value, abs=1e-9)


@settings(max_examples=100)
@given(matrices(5))
def test_growth_rates(a: Floats) -> None:
    """`x(k) = A^k x(0)` grows by 60 times the vector over 60 steps (60: a multiple of all circuit lengths)."""
    rates = cycle_time_vector(a)
    start = np.zeros(len(a))
    now, later = product(power(a, 60_000), start), product(power(a, 60_060), start)
    finite = np.isfinite(rates)
    assert (np.isfinite(now) == finite).all()
    assert later[finite] - now[finite] == pytest.approx(60 * rates[finite], abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_first_order_form_repeats_the_recursion(graph: nx.MultiDiGraph) -> None:
    """Iterate the matrix and the definition side by side, from 0 and from what the matrix says for k < 1."""
    form = first_order(graph)
    assert [v for v, delay in form.states if delay == 0] == list(graph)
    state = np.zeros(len(form.states))
    past = {(v, -delay): 0.0 for v, delay in form.states}
    free = nx.DiGraph([(u, v) for u, v, data in graph.edges(data=True) if data["tokens"] == 0])
    free.add_nodes_from(graph)
    for k in range(1, 12):
        state = product(form.matrix, state)
        for v in nx.topological_sort(free):
            into = [past[u, k - data["tokens"]] + data["time"] for u, _, data in graph.in_edges(v, data=True)]
            past[v, k] = max(into, default=-INF)
        assert state.tolist() == [past[v, k - delay] for v, delay in form.states]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[1.0, 2.0]], r"must be square, not of shape \(1, 2\)"),
        ([[math.nan]], "finite or -inf, not nan"),
        ([[INF]], "finite or -inf, not inf"),
    ],
)
def test_what_is_no_matrix_is_refused(wrong: list[list[float]], message: str) -> None:
    for solve in (star, transitive_closure, maximum_cycle_mean, minimum_cycle_mean, cycle_time_vector, eigenvectors):
        with pytest.raises(ValueError, match=message):
            solve(wrong)
    with pytest.raises(ValueError, match=message):
        power(wrong, 2)


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match=r"shapes \(1, 2\) and \(3,\) do not fit"):
        product([[1, 2]], [1, 2, 3])
    with pytest.raises(ValueError, match="must not be negative, not -1"):
        power([[0]], -1)
    with pytest.raises(ValueError, match="reducible"):
        eigenvectors([[1.0, -INF], [2.0, 3.0]])
    with pytest.raises(ValueError, match="reducible"):
        eigenvectors([[-INF]])


def test_eigenvectors_of_large_nearly_equal_entries() -> None:
    """The critical circuit is told from rounding by the size of the entries, not of what is left of them."""
    rng = np.random.default_rng(3)
    a = 1e6 + rng.uniform(size=(8, 8))
    value, vectors = eigenvectors(a)
    assert vectors.shape[1] == 1
    assert product(a, vectors[:, 0]) == pytest.approx(vectors[:, 0] + value, rel=1e-14)
