"""A timed event graph as arrays: read from networkx, checked, split into strongly connected components.

Every edge (u, v) of a timed event graph carries a time and a number of tokens. The k-th firing of node v is

    x_v(k) = max over edges (u, v) of x_u(k - tokens) + time.

A circuit without tokens would have to wait for itself: it is a deadlock, and refused.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

__all__ = ["Edge", "TimedGraph", "find_deadlock", "ordered_components", "read_graph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Edge: TypeAlias = tuple[Any, Any, Any]
"""Source, target and key of an edge; nodes and keys are whatever networkx takes."""


@dataclass(frozen=True, slots=True)
class TimedGraph:
    """Nodes are numbered in the order of `nodes`; the arrays have one entry per edge, in the order of `edges`.

    `source` and `target` hold numbers of nodes, `time` is in the unit of the caller, `tokens` are whole numbers held as
    floats.
    """

    nodes: list[Any]
    edges: list[Edge]
    source: Ints
    target: Ints
    time: Floats
    tokens: Floats


def read_graph(graph: nx.MultiDiGraph) -> TimedGraph:
    """Arrays of a graph whose edges carry `time` and `tokens`. Cost O(nodes + edges).

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Edge attributes `time` (float, finite, not negative) and `tokens` (int, not negative).

    Raises
    ------
    ValueError
        If an attribute is missing or out of its range, or if a circuit has no token.

    Examples
    --------
    >>> g = nx.MultiDiGraph()
    >>> _ = g.add_edge("a", "a", time=2.0, tokens=1)
    >>> read_graph(g).edges
    [('a', 'a', 0)]
    """
    if not (graph.is_directed() and graph.is_multigraph()):
        raise ValueError(f"graph must be a networkx.MultiDiGraph, not {type(graph).__name__}")
    nodes = list(graph)
    number = {node: k for k, node in enumerate(nodes)}
    edges: list[Edge] = []
    time, tokens = [], []
    for u, v, key, data in graph.edges(keys=True, data=True):
        edges.append((u, v, key))
        time.append(_time(u, v, data))
        tokens.append(_tokens(u, v, data))
    read = TimedGraph(
        nodes,
        edges,
        np.array([number[u] for u, _, _ in edges], dtype=np.int64),
        np.array([number[v] for _, v, _ in edges], dtype=np.int64),
        np.array(time, dtype=np.float64),
        np.array(tokens, dtype=np.float64),
    )
    waiting = find_deadlock(read.source, read.target, read.tokens)
    if waiting:
        names = " -> ".join(str(nodes[k]) for k in [*waiting, waiting[0]])
        raise ValueError(f"circuit {names} has no token: deadlock; put a token on one of its edges")
    return read


def _time(u: Any, v: Any, data: dict[str, Any]) -> float:
    """Time of an edge, checked."""
    value = data.get("time")
    if value is None or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"time of edge {u} -> {v} must be finite and not negative, not {value}")
    return float(value)


def _tokens(u: Any, v: Any, data: dict[str, Any]) -> float:
    """Tokens of an edge, checked."""
    value = data.get("tokens")
    if value is None or not (math.isfinite(value) and value >= 0 and value == int(value)):
        raise ValueError(f"tokens of edge {u} -> {v} must be a whole number from 0 on, not {value}")
    return float(value)


def find_deadlock(source: Ints, target: Ints, tokens: Floats) -> list[int]:
    """Nodes of one circuit without tokens, in order; empty if there is none. Exact, cost O(edges)."""
    free = tokens == 0
    graph = nx.DiGraph(zip(source[free].tolist(), target[free].tolist(), strict=True))
    if nx.is_directed_acyclic_graph(graph):
        return []
    return [int(u) for u, _ in nx.find_cycle(graph)]


def ordered_components(count: int, source: Ints, target: Ints) -> list[list[int]]:
    """Strongly connected components, each after all from which it can be reached. Exact, cost O(nodes + edges).

    Examples
    --------
    >>> ordered_components(3, np.array([2, 0, 1]), np.array([0, 1, 0]))
    [[2], [0, 1]]
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    condensed = nx.condensation(graph)
    return [sorted(condensed.nodes[c]["members"]) for c in nx.topological_sort(condensed)]
