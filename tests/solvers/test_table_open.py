"""Open and mixed networks, flow variability and flow-equivalent servers: the table, identities, refusals."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.closed_multiclass import multiclass_mva
from asapmodel.solvers.closed_network import load_dependent_mva, mva, throughput_curve
from asapmodel.solvers.flow_equivalent import rate_queue, two_moment_wait
from asapmodel.solvers.network_solution import Solution
from asapmodel.solvers.open_network import arrival_rates, jackson, mixed_network, open_multiclass
from asapmodel.solvers.queue_errors import MomentError, QueueError, UnstableError
from asapmodel.solvers.traffic_variability import departure_scv, flow_scv, qna, split_scv, superposition_scv
from tests.solvers.parameters import Value, read
from tests.solvers.table import Row, marked, rows

Floats = NDArray[np.float64]
CUT = "printed cut, not rounded, at its last digit"
REASONS: dict[int, str] = {863: CUT + " (10.76652)"}


def numbers(row: Row, name: str) -> Floats:
    return np.asarray(read(row.given[name]), dtype=np.float64)


def index_of(row: Row) -> int:
    """Of the last index in the quantity, ``Q[2]`` or ``Q_c1_0``."""
    return int(re.findall(r"\d", row.quantity)[-1])


def single(row: Row, solution: Solution) -> float:
    table = {"X": solution.throughput, "U": solution.utilisation, "R": solution.residence, "Q": solution.queue}
    return float(table[row.quantity[0]][index_of(row)])


def jackson_row(row: Row) -> float:
    return single(row, jackson(numbers(row, "lambda"), numbers(row, "P"), numbers(row, "S")))


def visits_row(row: Row) -> float:
    flow, visits = numbers(row, "lambda"), numbers(row, "V")
    found = open_multiclass(flow[None], (numbers(row, "S") * visits)[None])
    return single(row, Solution(flow * visits, found.residence[0] / visits, found.queue[0], found.utilisation[0]))


def classes_row(row: Row) -> float:
    """The first class: arrivals at stations, response per visit."""
    flow, visits = numbers(row, "lambda"), numbers(row, "V")
    found = open_multiclass(flow, numbers(row, "S") * visits)
    response = found.residence / visits
    return single(row, Solution(flow[0] * visits[0], response[0], found.queue[0], found.utilisation[0]))


def mixed_row(row: Row) -> float:
    """Classes 1 and 2 are open, 3 and 4 closed."""
    visits = numbers(row, "V")
    demands = numbers(row, "S") * visits
    found = mixed_network(numbers(row, "lambda"), demands[:2], numbers(row, "N"), demands[2:])
    if row.quantity.startswith("X_closed"):
        return float(found.closed.throughput[index_of(row)])
    kind = int(row.quantity[3]) - 1
    response = np.concatenate([found.open.residence, found.closed.residence]) / visits
    queue = np.concatenate([found.open.queue, found.closed.queue])
    return float({"R": response, "Q": queue}[row.quantity[0]][kind, index_of(row)])


def departure_row(row: Row) -> float:
    return departure_scv(row.number("rho"), row.number("ca2"), row.number("cs2"), int(row.number("m")))


METHODS: dict[str, Callable[[Row], float]] = {
    "open Jackson network": jackson_row,
    "open network": visits_row,
    "open network, 2 classes": classes_row,
    "mixed network": mixed_row,
    "QNA departure scv (Marshall)": departure_row,
    "QNA departure scv multi-server": departure_row,
}
ROWS = [row for row in rows() if row.system.startswith(("open ", "mixed ", "QNA "))]


@pytest.mark.parametrize("row", marked(ROWS, REASONS))
def test_row(row: Row) -> None:
    row.check(METHODS[row.system](row))


@pytest.mark.parametrize("row", [row for row in ROWS if row.index in REASONS], ids=lambda row: f"{row.index}")
def test_listed_rows_are_near(row: Row) -> None:
    assert abs(METHODS[row.system](row) - float(row.value)) < 2.01 * row.printed_error


def test_reader_of_parameters() -> None:
    cases: dict[str, Value] = {
        "[1/.8,1/.6]": [1.25, 1 / 0.6],
        "[0.605 2.1 1.35]": [0.605, 2.1, 1.35],
        "[[1,0,.025],[0,15,.5]]": [[1.0, 0.0, 0.025], [0.0, 15.0, 0.5]],
        "[2,1,inf]": [2.0, 1.0, math.inf],
        "[IS,PS]": ["IS", "PS"],
        "-3": -3.0,
    }
    for text, value in cases.items():
        assert read(text) == value
    with pytest.raises(ValueError, match="not a value"):
        read("__import__('os')")


# Open networks

flows = st.floats(0.01, 0.9)


@given(st.lists(flows, min_size=3, max_size=3), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_open_limits(loads: list[float], servers: int) -> None:
    """M/M/c stations in series; a class split in two; a closed network with ever more customers beside it."""
    ring = np.diag([1.0, 1.0], 1)
    found = jackson([servers, 0, 0], ring, loads, [servers] * 3)
    for k, load in enumerate(loads):
        wait = rate_queue(servers, np.arange(1, servers + 1) / load).response
        assert math.isclose(found.residence[k], wait, rel_tol=1e-9)
    assert np.allclose(found.queue, found.throughput * found.residence)
    parts = open_multiclass([0.3 * servers, 0.7 * servers], [loads, loads], [servers] * 3)
    assert np.allclose(parts.queue.sum(axis=0), found.queue)


def test_mixed_limits() -> None:
    closed = mixed_network([0.0], [[1.0, 1.0]], [3], [[1.0, 2.0]])
    assert np.allclose(closed.closed.queue, multiclass_mva([[1.0, 2.0]], [3]).queue)
    none = mixed_network([0.4], [[1.0, 2.0]], [0], [[1.0, 2.0]])
    assert np.allclose(none.open.residence, open_multiclass([0.4], [[1.0, 2.0]]).residence)
    still = mixed_network([0.4], [[1.0, 2.0]], [2], [[1.0, 2.0]], delays=[False, True])
    assert math.isclose(still.open.residence[0, 1], 2.0)
    assert math.isclose(still.closed.residence[0, 1], 2.0)


def test_open_refusals() -> None:
    with pytest.raises(UnstableError) as caught:
        jackson([1.0], [[0.5]], [0.6])
    assert math.isclose(caught.value.rho, 1.2)
    with pytest.raises(UnstableError):
        open_multiclass([1.0, 1.0], [[0.5], [0.5]])
    with pytest.raises(UnstableError):
        mixed_network([1.0], [[1.0]], [1], [[1.0]])
    with pytest.raises(QueueError, match="for ever"):
        arrival_rates([1.0, 0.0], [[0, 1], [0, 1]])
    with pytest.raises(QueueError, match="sum to at most 1"):
        arrival_rates([1.0], [[1.5]])
    with pytest.raises(QueueError, match="routing must have shape"):
        arrival_rates([1.0, 1.0], [[0.5]])
    with pytest.raises(QueueError, match="service must have shape"):
        jackson([1.0], [[0.5]], [0.6, 0.6])
    with pytest.raises(QueueError, match="one row for each"):
        open_multiclass([1.0], [[0.1], [0.1]])
    assert arrival_rates([0.0, 1.0], [[0, 1], [0, 0]]).tolist() == [0, 1]
    assert arrival_rates([0.0, 1.0], [[1, 0], [0, 0]]).tolist() == [0, 1]  # the trap is never reached
    free = jackson([4.0], [[0.5]], [3.0], [math.inf])
    assert (free.queue[0], free.residence[0]) == (24.0, 3.0)


# Variability of flows


@given(flows, st.floats(0, 4), st.floats(0, 4), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_poisson_flows_stay_poisson(load: float, p: float, scv: float, servers: int) -> None:
    assert math.isclose(departure_scv(load, 1.0, 1.0, servers), 1.0)
    assert math.isclose(split_scv(p / 4, 1.0), 1.0)
    assert math.isclose(superposition_scv([1.0, p + 1], [1.0, 1.0], load), 1.0)
    assert math.isclose(superposition_scv([2.0], [scv], load), scv, abs_tol=1e-12)
    routing = [[0.0, 0.3], [0.4, 0.1]]
    assert np.allclose(flow_scv([1, 2], [1, 1], routing, [load, load], [1, 1], [1, servers]), 1.0)


def test_qna_is_exact_for_jackson_and_for_one_station() -> None:
    routing = np.array([[0, 0.5, 0.5, 0], [1, 0, 0, 0], [0.6, 0, 0, 0], [1, 0, 0, 0]])
    service, servers = np.array([0.07, 0.03, 0.06, 0.05]), np.array([2, 1, 1, math.inf])
    exact = jackson([0, 0, 0, 4], routing, service, servers)
    rough = qna([0, 0, 0, 4], 1.0, routing, service, 1.0, servers)
    for a, b in zip(exact, rough, strict=True):
        assert np.allclose(a, b)
    alone = qna([0.5], [1.0], [[0.0]], [1.0], [4.0])
    assert math.isclose(alone.residence[0], 1 + 0.5 * 2.5 / 0.5)  # Pollaczek-Khinchine
    with pytest.raises(UnstableError):
        qna([1.0], [1.0], [[0.0]], [1.0], [0.0])
    with pytest.raises(QueueError, match="service must have shape"):
        qna([1.0], [1.0], [[0.0]], [0.1, 0.2], [0.0])


def test_flow_scv_composes_the_rules() -> None:
    """Without loops the linear system is the rules applied one after another."""
    routing = np.zeros((3, 3))
    routing[0, 2], routing[1, 2] = 0.25, 1.0
    found = flow_scv([0.8, 0.3, 0.0], [2.0, 0.5, 1.0], routing, [0.8, 0.6, 0.5], [0.5, 2.0, 1.0], [1, 4, 1])
    first = split_scv(0.25, departure_scv(0.8, 2.0, 0.5))
    second = departure_scv(0.6, 0.5, 2.0, 4)
    assert np.allclose(found, [2.0, 0.5, superposition_scv([0.2, 0.3], [first, second], 0.5)])


def test_variability_refusals() -> None:
    with pytest.raises(UnstableError):
        departure_scv(1.0, 1.0, 1.0)
    with pytest.raises(QueueError, match="servers must be a whole number"):
        departure_scv(0.5, 1.0, 1.0, 0)
    with pytest.raises(QueueError, match="probability must be"):
        split_scv(1.5, 1.0)
    with pytest.raises(UnstableError):
        superposition_scv([1.0], [1.0], 1.0)
    with pytest.raises(QueueError, match="a rate positive"):
        superposition_scv([0.0], [1.0], 0.5)


# Flow-equivalent servers


@given(st.lists(st.floats(0.05, 5.0), min_size=2, max_size=5), st.integers(1, 20), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_part_of_a_closed_network_may_be_replaced(demands: list[float], n: int, cut: int) -> None:
    """Chandy, Herzog and Woo: exact for product form."""
    cut = min(cut, len(demands) - 1)
    rates = throughput_curve(demands[:cut], n)
    speeds = np.vstack([np.broadcast_to(1.0, (len(demands) - cut, n)), rates])
    whole, parts = mva(demands, n), load_dependent_mva([*demands[cut:], 1.0], speeds, n)
    assert math.isclose(whole.throughput, parts.throughput, rel_tol=1e-8)
    assert math.isclose(whole.queue[:cut].sum(), parts.queue[-1], rel_tol=1e-7)


def test_an_inner_network_that_holds_everybody_is_exact() -> None:
    """Open tandem of M/M/1 queues as one server with the rates of the closed tandem."""
    found = rate_queue(0.8, throughput_curve([1.0, 0.5, 0.9], 400))
    assert math.isclose(found.response, open_multiclass([0.8], [[1.0, 0.5, 0.9]]).response[0], rel_tol=1e-9)
    assert math.isclose(found.wait, 0.0, abs_tol=1e-6)
    assert math.isclose(found.inside, found.number, rel_tol=1e-6)


@given(flows, st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_rate_queue_is_a_distribution(load: float, levels: int) -> None:
    rates = np.sqrt(np.arange(1.0, levels + 1))
    found = rate_queue(load * rates[-1], rates)
    rest = found.probabilities[-1] * found.tail / (1 - found.tail)
    assert math.isclose(found.probabilities.sum() + rest, 1.0)
    assert math.isclose(found.number, load * rates[-1] * found.response)
    assert found.wait <= found.response
    served = found.probabilities[1:] @ rates + rest * rates[-1]
    assert math.isclose(served, load * rates[-1], rel_tol=1e-9)  # what comes in goes out


def test_rate_queue_batches_and_refuses() -> None:
    found = rate_queue([0.0, 0.5], [[2.0], [1.0]])
    assert found.response.tolist() == [0.5, 2.0]
    assert found.wait.tolist() == [0.0, 1.0]
    with pytest.raises(UnstableError):
        rate_queue(2.0, [1.0, 2.0])
    with pytest.raises(QueueError, match="rates must be positive"):
        rate_queue(0.5, [0.0, 2.0])
    assert two_moment_wait(2.0, 1.0, 0.0) == 1.0
    with pytest.raises(MomentError):
        two_moment_wait(2.0, -1.0, 0.0)
