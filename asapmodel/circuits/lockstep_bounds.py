"""The synchronous iteration as an event graph with barriers: its exact time, and bounds from the batches alone.

Every group's attention ends before anyone's transfers, everyone's experts before the next layer: the circuits are one a
group, attention, transfers, experts, and the largest is the slowest group's. An iteration repeats the layer, so its
time is a sum, and so is a backlog's. Only the grouping of batches into iterations is left to chance, and it enters by
two maxima over groups and one sum. With `I` iterations of `D` batches whose values are known, but not who meets whom:

- the sum of the maxima is least if batches are sorted and cut into runs of D, and greatest if the I largest never meet
  (both are attained; the second is what Lai and Robbins (1976) find for dependent variables of one law);
- experts, a convex function of the sum, take least if all sums are equal (Jensen) and no more than the chord between
  the least and the largest possible sum (Edmundson and Madansky).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.batches import Batches
from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "ATTENTION",
    "EXPERTS",
    "ITERATION",
    "TRANSFERS",
    "expected_maximum",
    "independent_period",
    "iteration_times",
    "layer_graph",
    "lockstep_lower",
    "lockstep_upper",
]

Floats = NDArray[np.float64]

ATTENTION, TRANSFERS, EXPERTS, ITERATION = "attention of the groups", "transfers", "experts", "iteration"


def layer_graph(costs: LayerCosts, n: Floats, w: Floats) -> nx.MultiDiGraph:
    """Event graph of one MoE layer of an iteration for batches of `n` tokens and work `w`, shape (D,), 0 for none.

    Nodes are the starts of each group's attention, of the transfers and of the experts; edges have `time` in s and
    `tokens`. Its cycle time is the time of a layer.

    Examples
    --------
    >>> from asapmodel.costs import Affine, Plateau, Quadratic
    >>> from asapmodel.solvers.cycle_ratio import cycle_time
    >>> move = Affine(0.25, 0.0)
    >>> costs = LayerCosts(Quadratic(1.0, 1.0, 0.0), move, move, Plateau(3.0, 1.0), move, move)
    >>> cycle_time(layer_graph(costs, np.array([2.0, 5.0]), np.array([4.0, 25.0]))).time
    14.0
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for group, attention in enumerate(_attention(costs, n, w).tolist()):
        graph.add_edge("experts", f"attention {group}", time=costs.moe(float(n.sum())), tokens=1)
        graph.add_edge(f"attention {group}", "transfers", time=attention, tokens=0)
    graph.add_edge("transfers", "experts", time=float(_transfers(costs, n.max(keepdims=True))[0]), tokens=0)
    return graph


def _attention(costs: LayerCosts, n: Floats, w: Floats) -> Floats:
    """Attention of one layer; 0 for a group without work."""
    times: Floats = np.where(n > 0, costs.attention(n, w), 0.0)
    return times


def _dense(costs: LayerCosts, n: Floats, w: Floats) -> Floats:
    times: Floats = np.where(n > 0, costs.dense_layer(n, w), 0.0)
    return times


def _transfers(costs: LayerCosts, n: Floats) -> Floats:
    """The four transfers of one layer for a largest batch of `n` tokens."""
    return costs.dispatch_send(n) + costs.dispatch_recv(n) + costs.combine_send(n) + costs.combine_recv(n)


def iteration_times(costs: LayerCosts, batches: Batches) -> Floats:
    """Time of each iteration, seconds, shape (iterations,); exact. Their sum is the time of the backlog."""
    n, w = batches.n, batches.w
    layer = _attention(costs, n, w).max(axis=1) + _transfers(costs, n.max(axis=1)) + costs.moe(n.sum(axis=1))
    dense = costs.dense_layers * _dense(costs, n, w).max(axis=1)
    times: Floats = costs.step_overhead + dense + costs.moe_layers * layer
    return times


def expected_maximum(values: Floats, count: int) -> float:
    """Mean of the largest of `count` independent draws from `values`; exact.

    `sum_k x_(k) ((k / N)^count - ((k - 1) / N)^count)` over the N values in ascending order.

    Examples
    --------
    >>> expected_maximum(np.array([0.0, 1.0]), 2)
    0.75
    """
    share = (np.arange(values.size + 1) / values.size) ** count
    return float(np.sort(values, axis=None) @ np.diff(share))


def _least_maximum(values: Floats, count: int) -> float:
    """Mean maximum of groups of `count` if like meets like: the k-th largest maximum has `k count` values below it."""
    return float(np.sort(values, axis=None)[count - 1 :: count].mean())


def _greatest_maximum(values: Floats, count: int) -> float:
    """Mean maximum of groups of `count` if the largest values never meet."""
    return float(np.sort(values, axis=None)[-(values.size // count) :].mean())


def _chord(costs: LayerCosts, n: Floats, count: int) -> float:
    """Most that the mean of the experts' time over sums of `count` batches can be."""
    tokens = np.sort(n, axis=None)
    low, high, mean = float(tokens[:count].sum()), float(tokens[-count:].sum()), count * float(tokens.mean())
    share = (mean - low) / (high - low) if high > low else 0.0
    return (1.0 - share) * costs.moe(low) + share * costs.moe(high)


def _check(layout: Layout, batches: Batches) -> tuple[Floats, Floats]:
    if batches.n.ndim != 2 or batches.n.shape[1] != layout.D:
        raise ValueError(f"batches have shape {batches.n.shape}: give one row an iteration with D = {layout.D} batches")
    return batches.n, batches.w


def _parts(
    layout: Layout, costs: LayerCosts, batches: Batches, maximum: Callable[[Floats, int], float], experts: float
) -> dict[str, float]:
    """Seconds of the mean iteration by part, with one rule for the mean maxima over groups."""
    n, w = _check(layout, batches)
    dense = costs.dense_layers * maximum(_dense(costs, n, w), layout.D) + costs.step_overhead
    moved = _transfers(costs, np.array([maximum(n, layout.D)]))
    return {
        ATTENTION: dense + costs.moe_layers * maximum(_attention(costs, n, w), layout.D),
        TRANSFERS: costs.moe_layers * float(moved[0]),
        EXPERTS: costs.moe_layers * experts,
    }


def independent_period(layout: Layout, costs: LayerCosts, batches: Batches) -> float:
    """Mean iteration if batches are independent, seconds.

    Exact but for the experts, which are taken at the mean sum of tokens (too little by Jensen's inequality where some
    sums are below the plateau and some above).
    """
    mean = layout.D * float(batches.n.mean())
    return sum(_parts(layout, costs, batches, expected_maximum, costs.moe(mean)).values())


def lockstep_upper(layout: Layout, costs: LayerCosts, batches: Batches) -> dict[str, float]:
    """Upper bounds in batches/s by part of the iteration, and of the whole, for any grouping of these batches.

    Groups without work count as batches of 0 tokens.

    Raises
    ------
    ValueError
        If the batches do not have the shape (iterations, D).
    """
    mean = layout.D * float(batches.n.mean())
    parts = _parts(layout, costs, batches, _least_maximum, costs.moe(mean))
    parts[ITERATION] = sum(parts.values())
    return {name: layout.D / time for name, time in parts.items() if time > 0}


def lockstep_lower(layout: Layout, costs: LayerCosts, batches: Batches) -> float:
    """Batches/s that any grouping of these batches into iterations reaches."""
    experts = _chord(costs, batches.n, layout.D)
    return layout.D / sum(_parts(layout, costs, batches, _greatest_maximum, experts).values())
