"""Random timed event graphs, and their circuits listed one by one."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from asapmodel.solvers.timed_graph import Edge


def random_graph(rng: np.random.Generator, nodes: int, edges: int, largest: int = 20) -> nx.MultiDiGraph:
    """Whole times, 0 to 3 tokens; an edge without token leads to a later node, so that there is no deadlock."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    for u, v in rng.integers(nodes, size=(edges, 2)).tolist():
        graph.add_edge(u, v, time=int(rng.integers(largest + 1)), tokens=int(rng.integers(3)) + (u >= v))
    return graph


@st.composite
def graphs(draw: st.DrawFn, nodes: int = 6, edges: int = 14) -> nx.MultiDiGraph:
    """Up to so many nodes and edges: reducible, irreducible, without circuits, with loops and parallel edges."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_graph(rng, draw(st.integers(1, nodes)), draw(st.integers(0, edges)), draw(st.sampled_from([2, 20])))


def circuits(graph: nx.MultiDiGraph) -> Iterator[list[Edge]]:
    """Every circuit that passes no node twice."""
    for around in nx.simple_cycles(nx.DiGraph(graph)):
        steps = list(zip(around, [*around[1:], around[0]], strict=True))
        yield from (list(way) for way in itertools.product(*([(u, v, k) for k in graph[u][v]] for u, v in steps)))


def ratio(graph: nx.MultiDiGraph, circuit: list[Edge]) -> Fraction:
    """Of time to tokens."""
    return Fraction(sum(graph.edges[e]["time"] for e in circuit), sum(graph.edges[e]["tokens"] for e in circuit))
