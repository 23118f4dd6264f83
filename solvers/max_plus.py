"""Max-plus linear algebra: matrices with maximum for sum and sum for product, -inf for what is missing.

`A[v, u]` is the time that passes from the (k-1)-th event u to the k-th event v, so that `x(k) = A x(k-1)` reads
`x_v(k) = max over u of A[v, u] + x_u(k-1)`. Entries are finite or -inf. Powers of A hold the heaviest walks.

Source: Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity" (1992), chapters 2 and 3.
"""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.timed_graph import read_graph

__all__ = ["FirstOrder", "first_order", "identity", "max_plus_matrix", "power", "product", "star", "transitive_closure"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstOrder:
    """A timed event graph as `x(k) = matrix x(k-1)`.

    Attributes
    ----------
    matrix : array, shape (states, states)
        In the unit of the graph's times.
    states : list of (node, delay)
        Entry (v, d) of x(k) is `x_v(k - d)`; all (v, 0) come first, in the order of the graph's nodes.
    """

    matrix: Floats
    states: list[tuple[Any, int]]


def max_plus_matrix(entries: ArrayLike) -> Floats:
    """A square matrix whose entries are finite or -inf, checked.

    Raises
    ------
    ValueError
        If it is not square, or an entry is inf or not a number.
    """
    a = np.array(entries, dtype=np.float64)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"matrix must be square, not of shape {a.shape}")
    wrong = np.isnan(a) | (a == np.inf)
    if wrong.any():
        raise ValueError(f"entries of a max-plus matrix must be finite or -inf, not {a[wrong][0]}")
    return a


def identity(n: int) -> Floats:
    """0 on the diagonal, -inf elsewhere."""
    one = np.full((n, n), -np.inf)
    np.fill_diagonal(one, 0.0)
    return one


def product(a: ArrayLike, b: ArrayLike) -> Floats:
    """`(A B)[i, j] = max over k of A[i, k] + B[k, j]`; exact up to rounding of one sum. Cost O(n m l).

    Parameters
    ----------
    a : array, shape (n, m)
    b : array, shape (m, l) or (m,)
        A matrix or a vector; entries of both finite or -inf.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> product([[3, 7], [2, 4]], [6.5, 4])
    array([11. ,  8.5])
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[1] != right.shape[0] or left.shape[1] == 0:
        raise ValueError(f"shapes {left.shape} and {right.shape} do not fit for a product")
    out = np.full((left.shape[0], *right.shape[1:]), -np.inf)
    for k in range(left.shape[1]):
        np.maximum(out, np.add.outer(left[:, k], right[k]), out=out)
    return out


def power(a: ArrayLike, exponent: int) -> Floats:
    """A to a whole power: the heaviest walk of just `exponent` arcs between any two nodes. Cost O(n^3 log exponent).

    Exact as long as sums of `exponent` entries are, whole numbers for example.

    Raises
    ------
    ValueError
        If the exponent is negative or the matrix is none.

    Examples
    --------
    >>> power([[3, 7], [2, 4]], 3)
    array([[13., 16.],
           [11., 13.]])
    """
    if exponent < 0:
        raise ValueError(f"exponent of a max-plus power must not be negative, not {exponent}")
    square = max_plus_matrix(a)
    out = identity(len(square))
    while exponent:
        if exponent % 2:
            out = product(out, square)
        exponent //= 2
        if exponent:
            square = product(square, square)
    return out


def transitive_closure(a: ArrayLike) -> Floats:
    """`A+ = A + A^2 + ... + A^n` (sums are maxima): the heaviest walks of one arc or more, if no circuit is positive.

    Where a circuit is positive there is no heaviest walk, and its diagonal entries say so by being positive.
    Exact up to rounding of the sums along a path. Cost O(n^3) (Floyd, Warshall).

    Raises
    ------
    ValueError
        If the matrix is none.

    Examples
    --------
    >>> transitive_closure([[-np.inf, 2], [-3, -np.inf]])
    array([[-1.,  2.],
           [-3., -1.]])
    """
    out = max_plus_matrix(a)
    for k in range(len(out)):
        np.maximum(out, np.add.outer(out[:, k], out[k]), out=out)
    return out


def star(a: ArrayLike) -> Floats:
    """`A* = I + A + A^2 + ...` (sums are maxima): the heaviest walk of any number of arcs, none included.

    It exists if no circuit has a positive weight; a weight of at most `4 n e s` counts as rounding, e = 2.2e-16, s the
    largest absolute entry. Precision and cost as `transitive_closure`.

    Raises
    ------
    ValueError
        If a circuit has a positive weight, or the matrix is none.

    Examples
    --------
    >>> star([[-1, 2], [-3, -np.inf]])
    array([[ 0.,  2.],
           [-3.,  0.]])
    """
    entries = max_plus_matrix(a)
    closed = transitive_closure(entries)
    largest = np.abs(entries[np.isfinite(entries)]).max(initial=0.0)
    heaviest = float(np.diagonal(closed).max(initial=-np.inf))
    if heaviest > 4 * len(closed) * np.finfo(np.float64).eps * largest:
        raise ValueError(f"a circuit has weight {heaviest:.6g} above 0: no star; subtract the largest cycle mean first")
    np.fill_diagonal(closed, 0.0)
    return closed


def first_order(graph: nx.MultiDiGraph) -> FirstOrder:
    """The matrix A of `x(k) = A x(k-1)` for a timed event graph; exact up to rounding of sums along token-free paths.

    With one matrix per number of tokens the graph is `x(k) = A0 x(k) + A1 x(k-1) + A2 x(k-2) + ...`. States
    `x_v(k-1), ..., x_v(k-t+1)` for a node v with an edge of t tokens leave A0 and A1 only. Then `x(k) = A0 x(k) + A1
    x(k-1)` is solved by `x(k) = A0* A1 x(k-1)`, and A0* exists because no circuit is without tokens.
    A node without incoming edges gets a row of -inf: give it a loop if it should fire. Cost O(states^3).

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        As in `timed_graph.read_graph`.

    Raises
    ------
    ValueError
        As `timed_graph.read_graph`.

    Examples
    --------
    >>> loop = nx.MultiDiGraph()
    >>> _ = loop.add_edge("a", "b", time=3.0, tokens=0)
    >>> _ = loop.add_edge("b", "a", time=4.0, tokens=2)
    >>> first_order(loop).states
    [('a', 0), ('b', 0), ('b', 1)]
    >>> first_order(loop).matrix
    array([[-inf, -inf,   4.],
           [-inf, -inf,   7.],
           [-inf,   0., -inf]])
    """
    read = read_graph(graph)
    longest = np.ones(len(read.nodes), dtype=np.int64)
    np.maximum.at(longest, read.source, read.tokens.astype(np.int64))
    states = [(v, 0) for v in read.nodes]
    states += [(v, d) for v, most in zip(read.nodes, longest.tolist(), strict=True) for d in range(1, most)]
    number = {state: k for k, state in enumerate(states)}
    now, before = np.full((2, len(states), len(states)), -np.inf)
    for (u, v, _), time, tokens in zip(read.edges, read.time.tolist(), read.tokens.tolist(), strict=True):
        part, state = (now, (u, 0)) if tokens == 0 else (before, (u, int(tokens) - 1))
        row, column = number[v, 0], number[state]
        part[row, column] = max(part[row, column], time)
    for v, d in states[len(read.nodes) :]:
        before[number[v, d], number[v, d - 1]] = 0.0
    return FirstOrder(product(star(now), before), states)
