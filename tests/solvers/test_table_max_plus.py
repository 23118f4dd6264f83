"""The table's rows on max-plus matrices and cycle means, and dual-batch interleaving once more, as event graphs."""

import re
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.solvers.cycle_ratio import cycle_time, cycle_time_by_program, cycle_times
from asapmodel.solvers.extreme_ratio import CycleRatio, maximum_cycle_ratio, minimum_cycle_ratio
from asapmodel.solvers.karp import cycle_time_vector, eigenvectors, maximum_cycle_mean
from asapmodel.solvers.max_plus import product
from tests.solvers.parameters import read
from tests.solvers.table import Row, where

Floats = NDArray[np.float64]


def matrix(row: Row) -> Floats:
    """Of ``A=[[3,7],[2,-inf]]``; the row of an entry is where its arc ends, as in our solvers."""
    return np.array(read(row.parameters.partition("A=")[2]), dtype=np.float64)


def check_vector(row: Row, computed: Floats) -> None:
    printed = np.array(read(row.value), dtype=np.float64)
    assert computed.tolist() == printed.tolist(), f"row {row.index}"


def edges(row: Row, ratio: Callable[..., CycleRatio], delays: bool) -> CycleRatio:
    """Of ``(src,dst,weight,delay)`` quadruples: the source there waits for the destination, so arcs are turned."""
    quads = np.array([[float(x) for x in quad.split(",")] for quad in re.findall(r"\(([\d.,]+)\)", row.parameters)])
    source, target, weight, delay = quads.T
    return ratio(5, target, source, weight, delay if delays else np.ones(len(quads)))


@pytest.mark.parametrize("row", where("max-plus eigenvalue"))
def test_eigenvalue(row: Row) -> None:
    a = matrix(row)
    if row.quantity == "generalised cycle-time vector":
        check_vector(row, cycle_time_vector(a))
    elif row.quantity == "eigenvector (up to a shift)":
        value, vectors = eigenvectors(a)
        printed = np.array(read(row.value), dtype=np.float64)
        assert vectors.shape[1] == 1
        check_vector(row, vectors[:, 0] - vectors[0, 0] + printed[0])
        assert (product(a, printed) == printed + value).all()
    else:
        row.check(maximum_cycle_mean(a).mean)


@pytest.mark.parametrize("row", where("max-plus eigenvector"))
def test_eigenvector(row: Row) -> None:
    check_vector(row, eigenvectors(matrix(row))[1][:, 0])


@pytest.mark.parametrize("row", where("max-plus cycle-time vector"))
def test_cycle_time_vector(row: Row) -> None:
    check_vector(row, cycle_time_vector(matrix(row)))


@pytest.mark.parametrize("row", where("maximum cycle mean"))
def test_cycle_mean(row: Row) -> None:
    if "acyclic" in row.parameters:
        assert maximum_cycle_mean([[-np.inf, 0], [-np.inf, -np.inf]]).mean == float(row.value)
        assert maximum_cycle_ratio(2, [0], [1], [1], [1]).ratio == float(row.value)
        return
    found = edges(row, maximum_cycle_ratio, delays=False)
    if row.quantity == "chi per node":
        check_vector(row, found.reach)
    else:
        row.check(found.ratio)


@pytest.mark.parametrize("row", where("maximum cycle ratio"))
def test_cycle_ratio(row: Row) -> None:
    if row.quantity == "chi":
        loops = nx.MultiDiGraph()
        for node, (weight, delay) in enumerate([(2, 2), (3, 1)]):
            loops.add_edge(node, node, time=weight, tokens=delay)
        check_vector(row, np.array(list(cycle_times(loops).values())))
        return
    found = edges(row, maximum_cycle_ratio, delays=True)
    row.check(found.ratio)
    assert found.circuit == [4]  # the loop at node 3


@pytest.mark.parametrize("row", where("minimum cycle ratio"))
def test_minimum_cycle_ratio(row: Row) -> None:
    row.check(edges(row, minimum_cycle_ratio, delays=True).ratio)


def two_batches(row: Row) -> nx.MultiDiGraph:
    """Nodes are starts: each batch goes to and fro between two resources, which serve the batches in turn."""
    c = row.number("c")
    graph = nx.MultiDiGraph()
    for batch in "12":
        graph.add_edge("A" + batch, "M" + batch, time=row.number("A" + batch) + c, tokens=0)
        graph.add_edge("M" + batch, "A" + batch, time=row.number("M" + batch) + c, tokens=1)
    for resource in "AM":
        graph.add_edge(resource + "1", resource + "2", time=row.number(resource + "1"), tokens=0)
        graph.add_edge(resource + "2", resource + "1", time=row.number(resource + "2"), tokens=1)
    return graph


@pytest.mark.parametrize("row", where("dual-batch interleaving*"))
def test_dual_batch(row: Row) -> None:
    graph = two_batches(row)
    row.check(cycle_time(graph).time)
    row.check(cycle_time_by_program(graph).time)
