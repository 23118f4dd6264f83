"""Howard's policy iteration: the largest ratio of weight to delay over the circuits of one strongly connected graph.

A *policy* names for every node one incoming edge; followed backwards it runs into a circuit from everywhere. Repeat:

1. find the circuits of the policy, keep the one with the largest ratio `r` and hang the nodes of the others onto it;
2. give every node the value `x` of its policy path from a fixed node of that circuit, an edge counting
   `weight - r delay`;
3. wherever an edge (u, v) offers `x_u + weight - r delay > x_v`, take the best such edge into the policy.

Why it ends, and with the right ratio. If nothing is offered in step 3, summing `x_v >= x_u + weight - r delay` round
any circuit gives `weight <= r delay`: no circuit has a larger ratio. If a switch closes a new circuit, the offers round
it sum to more than nothing, so its ratio exceeds `r`. Otherwise the circuit stays and some value grows while none
falls. So the pair (ratio, values) grows, and there are finitely many policies.

In floating point an offer counts if it exceeds the value by more than `8 n e s`: n nodes, e = 2.2e-16, s the largest of
the values and weights. Sums along a path are off by less, so rounding is never taken for progress.

Source: Cochet-Terrasson, Cohen, Gaubert, Mc Gettrick, Quadrat, "Numerical computation of spectral elements in max-plus
algebra" (1998); Dasdan, "Experimental analysis of the fastest optimum cycle ratio and mean algorithms" (2004), who
finds it the fastest in practice.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

__all__ = ["Component", "policy_iteration"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Component:
    """A strongly connected graph of `count` nodes and at least one edge, every circuit with a positive delay.

    The arrays, shape (edges,), are ordered by target and then by source; nothing is checked.
    """

    count: int
    source: Ints
    target: Ints
    weight: Floats
    delay: Floats


def policy_iteration(part: Component) -> tuple[float, list[int], Floats]:
    """Largest ratio, the edges of a circuit that has it, in order, and the value of every node; exact up to rounding.

    Cost O(edges) an iteration, times a logarithm of the nodes. Iterations are few, ten to thirty for thousands of
    edges; no useful bound is proved.

    Examples
    --------
    >>> two = np.array([0, 1]), np.array([0, 1])
    >>> policy_iteration(Component(2, two[1][::-1], two[0], np.array([4.0, 3.0]), np.ones(2)))
    (3.5, [1, 0], array([ 0. , -0.5]))
    """
    first = np.searchsorted(part.target, np.arange(part.count))
    policy = _taken(part, part.weight, np.maximum.reduceat(part.weight, first), first.copy())
    while True:
        ratio, circuit = _best_circuit(part, policy)
        reduced = part.weight - ratio * part.delay
        value = _hung(part, policy, int(part.source[circuit[0]]), reduced)
        scale = max(np.abs(value).max(), np.abs(part.weight).max(), abs(ratio) * part.delay.max())
        offered = value[part.source] + reduced
        best = np.maximum.reduceat(offered, first)
        better = best > value + _ROUNDING * part.count * scale
        if not better.any():
            return ratio, circuit, value
        best[~better] = math.inf
        _taken(part, offered, best, policy)


def _taken(part: Component, offered: Floats, best: Floats, policy: Ints) -> Ints:
    """Change the policy where an edge offers the best; a node whose best is inf keeps its edge."""
    hit = np.flatnonzero(offered == best[part.target])
    policy[part.target[hit]] = hit
    return policy


def _best_circuit(part: Component, policy: Ints) -> tuple[float, list[int]]:
    """Largest ratio over the circuits of the policy, and its edges, in order from the circuit's lowest node."""
    edge_into, parent = policy.tolist(), part.source[policy].tolist()
    seen = [-1] * part.count
    ratio, circuit = -math.inf, []
    for start in range(part.count):
        node = start
        while seen[node] < 0:
            seen[node] = start
            node = parent[node]
        if seen[node] != start:
            continue
        around = [node]
        while (node := parent[node]) != around[0]:
            around.append(node)
        low = around.index(min(around))
        edges = [edge_into[node] for node in reversed(around[low:] + around[:low])]
        found = math.fsum(part.weight[edges]) / math.fsum(part.delay[edges])
        if found > ratio:
            ratio, circuit = found, edges
    return ratio, circuit


def _hung(part: Component, policy: Ints, root: int, reduced: Floats) -> Floats:
    """Value of every node along the policy from `root`; nodes that do not hang on it are hung there first."""
    value, hop = _path_sums(part, policy, root, reduced)
    loose = np.flatnonzero(hop != root)
    if loose.size:
        links = csr_array((np.ones(part.source.size), (part.source, part.target)), shape=(part.count, part.count))
        _, above = breadth_first_order(links, root)
        code = part.target * part.count + part.source
        policy[loose] = np.searchsorted(code, loose * part.count + above[loose])
        value, _ = _path_sums(part, policy, root, reduced)
    return value


def _path_sums(part: Component, policy: Ints, root: int, reduced: Floats) -> tuple[Floats, Ints]:
    """Sums along the policy back to `root`, and the node reached, by doubling the steps."""
    value, hop = reduced[policy], part.source[policy]
    value[root], hop[root] = 0.0, root
    for _ in range(part.count.bit_length()):
        value = value + value[hop]
        hop = hop[hop]
    return value, hop
