"""Extreme ratio of weight to delay over the circuits of any weighted graph, on arrays.

A circuit lies inside one strongly connected component, so each is solved by itself (`howard`). Potentials of the whole
then follow component by component: inside one, values that fit its own ratio fit every larger one; an edge between two
of them only lifts all of the later one by a constant.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.howard import Component, policy_iteration
from asapmodel.solvers.timed_graph import find_deadlock, ordered_components

__all__ = ["CycleRatio", "maximum_cycle_ratio", "minimum_cycle_ratio"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Arrays = tuple[Ints, Ints, Floats, Floats]


@dataclass(frozen=True, slots=True)
class CycleRatio:
    """The extreme ratio over all circuits, and what proves it.

    Attributes
    ----------
    ratio : float
        Of `circuit`; an empty maximum is -inf, an empty minimum inf.
    circuit : list of int
        Numbers of the edges of one circuit with this ratio, in order; empty if there is no circuit.
    potentials : array, shape (nodes,)
        Maximum: `p_v >= p_u + weight - ratio delay` on every edge, with equality along `circuit`; minimum: `<=`.
        Without a circuit they hold for ratio 0.
    reach : array, shape (nodes,)
        Per node, the extreme ratio over the circuits from which it can be reached.
    """

    ratio: float
    circuit: list[int]
    potentials: Floats
    reach: Floats


def maximum_cycle_ratio(
    count: int, source: ArrayLike, target: ArrayLike, weight: ArrayLike, delay: ArrayLike
) -> CycleRatio:
    """`max over circuits of sum(weight) / sum(delay)`; exact up to rounding.

    The ratio is that of a circuit, rounded once. No circuit beats it by more than `8 n^2 e s / d`, n its number of
    nodes, d its delay, e = 2.2e-16 and s the largest of the potentials and weights: below that, a difference is
    taken for rounding. Cost: splitting O(nodes + edges), then as `howard.policy_iteration`.

    Parameters
    ----------
    count : int
        Number of nodes; any graph, strongly connected or not.
    source, target : array of int, shape (edges,)
        From 0 to `count` - 1; parallel edges and loops are allowed.
    weight, delay : array, shape (edges,)
        Weights of any sign, delays not negative; each circuit needs a positive delay. Delays 1 give the cycle mean.

    Returns
    -------
    CycleRatio

    Raises
    ------
    ValueError
        If a number is out of its range or a circuit has no delay.

    Examples
    --------
    >>> maximum_cycle_ratio(2, [0, 1, 1], [1, 0, 1], [3, 4, 2], [1, 1, 1]).ratio
    3.5
    """
    arrays = _checked(count, source, target, weight, delay)
    components = ordered_components(count, arrays[0], arrays[1])
    label = np.empty(count, dtype=np.int64)
    for c, members in enumerate(components):
        label[members] = c
    ratios, circuit, potentials = _solved(components, label, arrays)
    ratio = float(ratios.max(initial=-math.inf))
    reach = _joined(label, arrays, ratios, potentials, ratio)
    return CycleRatio(ratio, circuit, potentials, reach)


def minimum_cycle_ratio(
    count: int, source: ArrayLike, target: ArrayLike, weight: ArrayLike, delay: ArrayLike
) -> CycleRatio:
    """`min over circuits of sum(weight) / sum(delay)`: minus the maximum for the negated weights.

    Parameters, cost, precision and errors as `maximum_cycle_ratio`.

    Examples
    --------
    >>> minimum_cycle_ratio(2, [0, 1, 1], [1, 0, 1], [3, 4, 2], [1, 1, 1]).ratio
    2.0
    """
    largest = maximum_cycle_ratio(count, source, target, -np.asarray(weight, dtype=np.float64), delay)
    return CycleRatio(-largest.ratio, largest.circuit, -largest.potentials, -largest.reach)


def _checked(count: int, source: ArrayLike, target: ArrayLike, weight: ArrayLike, delay: ArrayLike) -> Arrays:
    """The arrays in their types."""
    u, v = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    w, d = np.asarray(weight, dtype=np.float64), np.asarray(delay, dtype=np.float64)
    if u.ndim != 1 or not u.shape == v.shape == w.shape == d.shape:
        raise ValueError(f"edges need one entry each per array, not shapes {u.shape}, {v.shape}, {w.shape}, {d.shape}")
    if u.size and not (min(u.min(), v.min()) >= 0 and max(u.max(), v.max()) < count):
        raise ValueError(f"nodes of edges must be from 0 to {count - 1}, the number of nodes less one")
    if not np.isfinite(w).all():
        raise ValueError(f"weight of an edge must be finite, not {w[~np.isfinite(w)][0]}")
    if not (np.isfinite(d) & (d >= 0)).all():
        raise ValueError(f"delay of an edge must be finite and not negative, not {d[~(np.isfinite(d) & (d >= 0))][0]}")
    if circuit := find_deadlock(u, v, d):
        raise ValueError(f"circuit through nodes {circuit} has no delay; give one of its edges a positive delay")
    return u, v, w, d


def _solved(components: list[list[int]], label: Ints, arrays: Arrays) -> tuple[Floats, list[int], Floats]:
    """Ratio of every component, the edges of the best circuit, and every node's value inside its component."""
    source, target, weight, delay = arrays
    inside = np.flatnonzero(label[source] == label[target])
    inside = inside[np.lexsort((source[inside], target[inside], label[target[inside]]))]
    ends = np.searchsorted(label[target[inside]], np.arange(len(components) + 1))
    ratios, potentials, inner = np.full(len(components), -math.inf), np.zeros(len(label)), np.empty_like(label)
    circuit: list[int] = []
    for c, members in enumerate(components):
        edge = inside[ends[c] : ends[c + 1]]
        if edge.size == 0:
            continue
        inner[members] = np.arange(len(members))
        part = Component(len(members), inner[source[edge]], inner[target[edge]], weight[edge], delay[edge])
        ratios[c], found, potentials[members] = policy_iteration(part)
        if ratios[c] > ratios[:c].max(initial=-math.inf):
            circuit = edge[found].tolist()
    return ratios, circuit, potentials


def _joined(label: Ints, arrays: Arrays, ratios: Floats, potentials: Floats, ratio: float) -> Floats:
    """Lift components, in order, until edges between them hold too; return every node's reach."""
    source, target, weight, delay = arrays
    across = np.flatnonzero(label[source] != label[target])
    across = across[np.argsort(label[target[across]], kind="stable")]
    ends = np.searchsorted(label[target[across]], np.arange(len(ratios) + 1))
    reach = ratios.copy()
    reduced = weight - (ratio if math.isfinite(ratio) else 0.0) * delay
    lift = np.zeros(len(ratios))
    for c in range(len(ratios)):
        edge = across[ends[c] : ends[c + 1]]
        if edge.size:
            u = source[edge]
            lift[c] = (lift[label[u]] + potentials[u] + reduced[edge] - potentials[target[edge]]).max()
            reach[c] = max(reach[c], reach[label[u]].max())
    potentials += lift[label]
    return np.asarray(reach[label])
