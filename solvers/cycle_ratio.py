"""Cycle time of a timed event graph: its period, the circuit that sets it, a periodic schedule, and derivatives.

In the event graph of `timed_graph` node v fires for the k-th time at `x_v(k) = max over edges (u, v) of x_u(k - tokens)
+ time`. Round a circuit the k-th firing waits `sum(time)` for the one `sum(tokens)` before it. So no schedule has a
shorter period than the largest `sum(time) / sum(tokens)` over all circuits, the *cycle time*; and a schedule with just
this period exists, the *potentials*: start v at `p_v + k period`.

Source: Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity" (1992), sections 2.5 and 3.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from asapmodel.solvers.extreme_ratio import CycleRatio, maximum_cycle_ratio
from asapmodel.solvers.timed_graph import Edge, TimedGraph, read_graph

__all__ = [
    "CycleTime",
    "CycleTimeProgram",
    "cycle_time",
    "cycle_time_by_program",
    "cycle_times",
    "sensitivity",
]


@dataclass(frozen=True, slots=True)
class CycleTime:
    """The period of a timed event graph and what proves it.

    Attributes
    ----------
    time : float
        Largest `sum(time) / sum(tokens)` over the circuits, in the unit of the edges' times; -inf, the maximum over
        nothing, if there is no circuit: nothing then limits the rate.
    circuit : list of (source, target, key), or None
        Edges of one circuit with this ratio, in order; it passes no node twice. None if there is no circuit.
    potentials : dict of node -> float
        First starts of a schedule of this period, the earliest at 0: `p_v >= p_u + time - tokens period` on every
        edge, with equality along `circuit`. Without a circuit, of a schedule for any period from 0 on.
    """

    time: float
    circuit: list[Edge] | None
    potentials: dict[Any, float]


@dataclass(frozen=True, slots=True)
class CycleTimeProgram:
    """The period as the value of a linear program, and the multipliers of its constraints.

    Attributes
    ----------
    time : float
        As in `CycleTime`.
    flow : dict of (source, target, key) -> float
        Circulation on the edges with `sum(flow tokens) = 1` and `sum(flow time) = time`; edges without flow are left
        out. It is `1 / sum(tokens)` along the critical circuit, or a mixture of several.
    """

    time: float
    flow: dict[Edge, float]


def cycle_time(graph: nx.MultiDiGraph) -> CycleTime:
    """Period, critical circuit and periodic schedule, by Howard's policy iteration; exact up to rounding.

    Any timed event graph, strongly connected or not. With several components the slowest sets the period; nodes
    that it does not reach could go faster (`cycle_times`). Precision and cost as `extreme_ratio.maximum_cycle_ratio`:
    under 0.1 s for a few thousand edges.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        Edge attributes `time` (float, finite, not negative) and `tokens` (int, not negative).

    Raises
    ------
    ValueError
        If an attribute is missing or out of its range, or if a circuit has no token (deadlock).

    Examples
    --------
    Two machines in a ring with two parts in it; a machine works on one part at a time:

    >>> ring = nx.MultiDiGraph()
    >>> ring.add_edges_from(
    ...     [
    ...         ("saw", "drill", dict(time=3.0, tokens=0)),
    ...         ("drill", "saw", dict(time=4.0, tokens=2)),
    ...         ("saw", "saw", dict(time=3.0, tokens=1)),
    ...         ("drill", "drill", dict(time=4.0, tokens=1)),
    ...     ]
    ... )
    [0, 0, 0, 0]
    >>> found = cycle_time(ring)
    >>> found.time, found.circuit
    (4.0, [('drill', 'drill', 0)])
    >>> found.potentials
    {'saw': 0.0, 'drill': 4.0}
    """
    read = read_graph(graph)
    found = _largest(read)
    start = found.potentials - found.potentials.min(initial=math.inf)
    return CycleTime(
        found.ratio,
        [read.edges[k] for k in found.circuit] or None,
        dict(zip(read.nodes, start.tolist(), strict=True)),
    )


def cycle_times(graph: nx.MultiDiGraph) -> dict[Any, float]:
    """Cycle-time vector: every node's own period, `lim x_v(k) / k` when nothing else holds it back.

    The largest ratio over the circuits from which the node can be reached, -inf if there are none. Exact up to
    rounding. Domain, cost and errors as `cycle_time`.

    Source: Cochet-Terrasson, Cohen, Gaubert, Mc Gettrick, Quadrat (1998), section 3.

    Examples
    --------
    >>> line = nx.MultiDiGraph()
    >>> _ = line.add_edge("fast", "fast", time=1.0, tokens=1)
    >>> _ = line.add_edge("slow", "slow", time=3.0, tokens=1)
    >>> _ = line.add_edge("fast", "slow", time=0.0, tokens=0)
    >>> cycle_times(line)
    {'fast': 1.0, 'slow': 3.0}
    """
    read = read_graph(graph)
    return dict(zip(read.nodes, _largest(read).reach.tolist(), strict=True))


def cycle_time_by_program(graph: nx.MultiDiGraph) -> CycleTimeProgram:
    """The cycle time once more, from a linear program: a check of `cycle_time`, slower and by another road.

    Minimise `period` subject to `p_v >= p_u + time - period tokens` on every edge. The dual maximises
    `sum(flow time)` over circulations with `sum(flow tokens) = 1`, and these are mixtures of circuits.
    Exact up to the solver's tolerance, here 1e-10 of the largest time per edge; scipy's HiGHS, simplex.

    Source: Dasdan (2004), section 2. Parameters and errors as `cycle_time`.

    Examples
    --------
    >>> loop = nx.MultiDiGraph()
    >>> _ = loop.add_edge("a", "b", time=3.0, tokens=0)
    >>> _ = loop.add_edge("b", "a", time=4.0, tokens=2)
    >>> cycle_time_by_program(loop)
    CycleTimeProgram(time=3.5, flow={('a', 'b', 0): 0.5, ('b', 'a', 0): 0.5})
    """
    read = read_graph(graph)
    if nx.is_directed_acyclic_graph(graph):
        return CycleTimeProgram(-math.inf, {})
    nodes, edges = len(read.nodes), len(read.edges)
    scale = float(read.time.max()) or 1.0
    row = np.arange(edges)
    ones = np.ones(edges)
    constraints: Any = coo_array(  # scipy-stubs know dense ones only
        (
            np.concatenate([ones, -ones, -read.tokens]),
            (np.tile(row, 3), np.concatenate([read.source, read.target, np.full(edges, nodes)])),
        ),
        shape=(edges, nodes + 1),
    )
    cost = np.zeros(nodes + 1)
    cost[nodes] = 1.0
    answer = linprog(
        cost,
        A_ub=constraints.tocsr(),
        b_ub=-read.time / scale,
        bounds=(None, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.fun is None:
        raise ValueError(f"linear program of {edges} edges was not solved: {answer.message}")
    flow = -answer.ineqlin.marginals
    used = np.flatnonzero(flow > 0).tolist()
    return CycleTimeProgram(float(answer.fun) * scale, {read.edges[k]: float(flow[k]) for k in used})


def sensitivity(graph: nx.MultiDiGraph, circuit: Sequence[Edge] | None) -> dict[Edge, float]:
    """Derivative of the period with respect to the time of each edge, from a critical circuit; exact.

    The period is the largest of the circuits' ratios, and the ratio of `circuit` grows with the time of each of its
    edges as `1 / sum(tokens)`, with others not at all. If no other circuit is critical this is the derivative. If
    several are, the period has a kink: this is one subgradient, `period(time') >= period(time) + sum(derivative
    (time' - time))` for all times; shortening a single edge may then bring less than its entry, or nothing.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        As for `cycle_time`.
    circuit : sequence of (source, target, key), or None
        `cycle_time(graph).circuit`; None, no circuit, gives 0 everywhere.

    Returns
    -------
    dict of (source, target, key) -> float
        Every edge of the graph; pure numbers.

    Raises
    ------
    ValueError
        If `circuit` is not a circuit of the graph with a token on it.

    Examples
    --------
    >>> loop = nx.MultiDiGraph()
    >>> _ = loop.add_edge("a", "b", time=3.0, tokens=0)
    >>> _ = loop.add_edge("b", "a", time=4.0, tokens=2)
    >>> _ = loop.add_edge("b", "b", time=1.0, tokens=1)
    >>> sensitivity(loop, cycle_time(loop).circuit)
    {('a', 'b', 0): 0.5, ('b', 'a', 0): 0.5, ('b', 'b', 0): 0.0}
    """
    edges: list[Edge] = list(graph.edges(keys=True))
    if circuit is None:
        return dict.fromkeys(edges, 0.0)
    around = [(v, edge[0]) for (_, v, _), edge in zip(circuit, [*circuit[1:], *circuit[:1]], strict=True)]
    if not circuit or any(v != u for v, u in around):
        raise ValueError(f"edges {list(circuit)} do not form a circuit; pass cycle_time(graph).circuit")
    if missing := [edge for edge in circuit if not graph.has_edge(*edge)]:
        raise ValueError(f"edge {missing[0]} of the circuit is not in the graph; pass cycle_time(graph).circuit")
    tokens = sum(graph.edges[edge]["tokens"] for edge in circuit)
    if not tokens > 0:
        raise ValueError(f"circuit of {len(circuit)} edges has no token: deadlock; put a token on one of its edges")
    on = set(circuit)
    return {edge: 1 / tokens if edge in on else 0.0 for edge in edges}


def _largest(read: TimedGraph) -> CycleRatio:
    """Of time over tokens."""
    return maximum_cycle_ratio(len(read.nodes), read.source, read.target, read.time, read.tokens)
