"""Spectral theory of max-plus matrices: cycle means by Karp's theorem, eigenvectors, cycle-time vectors.

`A[v, u]` is the weight of the arc u -> v, as in `max_plus`. The mean of a circuit is its weight over its number of
arcs. An irreducible matrix (every node can be reached from every other) has one eigenvalue, the largest mean over its
circuits; a reducible one has a growth rate per node instead.

Source: Karp, "A characterization of the minimum cycle mean in a digraph" (1978); Chaturvedi and McConnell, "A note on
finding minimum mean cycle" (2017), for the circuit; Baccelli, Cohen, Olsder, Quadrat (1992), chapter 3.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.max_plus import max_plus_matrix, transitive_closure
from asapmodel.solvers.timed_graph import ordered_components

__all__ = ["CycleMean", "cycle_time_vector", "eigenvectors", "maximum_cycle_mean", "minimum_cycle_mean"]

Floats = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class CycleMean:
    """The extreme mean over all circuits, and a circuit that has it.

    Attributes
    ----------
    mean : float
        An empty maximum is -inf, an empty minimum inf.
    circuit : list of int
        Its nodes in the order of the arcs, each once; empty if there is no circuit.
    """

    mean: float
    circuit: list[int]


def maximum_cycle_mean(matrix: ArrayLike) -> CycleMean:
    """Largest mean over the circuits: the largest eigenvalue, and the only one of an irreducible matrix.

    Karp: in a strongly connected component of n nodes let `D_k(v)` be the heaviest walk of k arcs from a fixed node
    to v; the largest mean is `max over v of min over k < n of (D_n(v) - D_k(v)) / (n - k)`.

    The circuit: let v attain the maximum, and shift the weights so that it is 0. Then `D_n(v) = max over k of D_k(v)`
    is the heaviest of all walks to v. Its n arcs contain a circuit; taking this out leaves a walk that is not heavier,
    so the circuit weighs nothing: *any* circuit on the walk is critical. (It cannot be told from a k that attains the
    minimum: n - k arcs of the walk need not close. Chaturvedi and McConnell corrected Karp's remark on this.)

    Exact up to rounding of sums of n entries; the mean is that of the circuit returned. Cost O(n^3) time, O(n^2) room.

    Parameters
    ----------
    matrix : array, shape (n, n)
        Entries finite or -inf.

    Raises
    ------
    ValueError
        If it is not a square matrix of finite entries and -inf.

    Examples
    --------
    >>> maximum_cycle_mean([[3, 7], [2, 4]])
    CycleMean(mean=4.5, circuit=[1, 0])
    """
    a = max_plus_matrix(matrix)
    return max(
        (_component_mean(a, part) for part in _components(a)), key=lambda c: c.mean, default=CycleMean(-math.inf, [])
    )


def minimum_cycle_mean(matrix: ArrayLike) -> CycleMean:
    """Smallest mean over the circuits: minus the largest of the negated weights; -inf still marks a missing arc.

    Domain, cost, precision and errors as `maximum_cycle_mean`.

    Examples
    --------
    >>> minimum_cycle_mean([[3, 7], [2, 4]])
    CycleMean(mean=3.0, circuit=[0])
    """
    a = max_plus_matrix(matrix)
    largest = maximum_cycle_mean(np.where(np.isfinite(a), -a, -np.inf))
    return CycleMean(-largest.mean, largest.circuit)


def cycle_time_vector(matrix: ArrayLike) -> Floats:
    """`lim x_v(k) / k` for `x(k) = A x(k-1)` from a finite start: the growth rate of every node, reducible or not.

    Per node the largest mean over the circuits from which it can be reached; -inf if there are none. Exact up to
    rounding; domain, cost and errors as `maximum_cycle_mean`.

    Source: Cochet-Terrasson, Cohen, Gaubert, Mc Gettrick, Quadrat (1998), section 3.

    Examples
    --------
    >>> cycle_time_vector([[3, -np.inf], [2, 4]])
    array([3., 4.])
    """
    a = max_plus_matrix(matrix)
    rate = np.full(len(a), -np.inf)
    for part in _components(a):
        feeding = np.isfinite(a[part]).any(axis=0)
        rate[part] = max(_component_mean(a, part).mean, float(rate[feeding].max(initial=-np.inf)))
    return rate


def eigenvectors(matrix: ArrayLike) -> tuple[float, Floats]:
    """Eigenvalue and all eigenvectors of an irreducible matrix: `A x = eigenvalue x`, that is, `A x` is x shifted.

    With `B = A - eigenvalue` the heaviest walks `B*` exist. Column c of `B*` for a node c on a critical circuit is an
    eigenvector; nodes of one critical component give the same up to a shift, those of different ones independent
    ones; every eigenvector is a maximum of shifts of these. Exact up to rounding: walks within `8 n e s` of 0 count as
    critical, e = 2.2e-16, s the largest absolute entry. Cost O(n^3).

    Parameters
    ----------
    matrix : array, shape (n, n)
        Irreducible, entries finite or -inf.

    Returns
    -------
    eigenvalue : float
    vectors : array, shape (n, critical components)
        One column each, 0 at the lowest node of its critical component.

    Raises
    ------
    ValueError
        If the matrix is reducible, or is none.

    Examples
    --------
    >>> value, vectors = eigenvectors([[3, 7], [2, 4]])
    >>> value, vectors.T
    (4.5, array([[ 0. , -2.5]]))
    """
    a = max_plus_matrix(matrix)
    value = maximum_cycle_mean(a).mean
    if len(_components(a)) != 1 or value == -math.inf:
        raise ValueError("matrix is reducible: its nodes grow at rates of their own; use cycle_time_vector")
    reduced = a - value
    circuits = transitive_closure(reduced)
    walks = circuits.copy()
    np.fill_diagonal(walks, 0.0)
    tolerance = 8 * len(a) * _EPS * np.abs(a[np.isfinite(a)]).max()
    heads: list[int] = []
    for c in np.flatnonzero(np.diagonal(circuits) >= -tolerance).tolist():
        if all(walks[c, other] + walks[other, c] < -tolerance for other in heads):
            heads.append(c)
    return value, walks[:, heads]


def _components(a: Floats) -> list[list[int]]:
    """Strongly connected components, each after those that feed it."""
    target, source = np.nonzero(np.isfinite(a))
    return ordered_components(len(a), source, target)


def _component_mean(a: Floats, part: list[int]) -> CycleMean:
    """Karp's theorem in one component."""
    n, inner = len(part), a[np.ix_(part, part)]
    if n == 1 and inner[0, 0] == -np.inf:
        return CycleMean(-math.inf, [])
    heaviest, previous = np.full((n + 1, n), -np.inf), np.empty((n + 1, n), dtype=np.int64)
    heaviest[0, 0] = 0.0
    for k in range(1, n + 1):
        reached = inner + heaviest[k - 1]
        previous[k] = reached.argmax(axis=1)
        heaviest[k] = reached.max(axis=1)
    earlier, there = heaviest[:n], np.isfinite(heaviest[:n])
    gains = np.where(there, heaviest[n] - np.where(there, earlier, 0.0), np.inf) / np.arange(n, 0, -1)[:, None]
    node = int(gains.min(axis=0).argmax())
    circuit = _first_circuit(previous, node)
    weight = math.fsum(inner[v, u] for u, v in zip(circuit, [*circuit[1:], circuit[0]], strict=True))
    return CycleMean(weight / len(circuit), [part[v] for v in circuit])


def _first_circuit(previous: NDArray[np.int64], node: int) -> list[int]:
    """Nodes, in the order of the arcs, of the first circuit met when the walk of n arcs to `node` is followed back."""
    walk: list[int] = []
    while node not in walk:
        walk.append(node)
        node = int(previous[len(previous) - len(walk), node])
    return walk[walk.index(node) :][::-1]
