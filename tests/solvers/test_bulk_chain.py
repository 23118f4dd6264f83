"""Bulk service with times that depend on the batch: closed forms where there are some, simulation where not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.bulk import batch_arrival_wait, bulk_service_queue
from asapmodel.solvers.bulk_chain import bulk_service_chain, gamma_services, point_services
from asapmodel.solvers.fork_join import fork_join_response, max_of_exponentials, split_merge_response
from asapmodel.solvers.polling import exhaustive_wait, gated_wait, limited_wait
from asapmodel.solvers.queue_errors import MomentError
from asapmodel.solvers.single_server import mg1_wait
from tests.solvers.table import Row, rows

FROM_ONE = [r for r in rows() if r.system == "M/M[a,b]/1" and ";a=1;" in r.parameters and r.quantity != "r"]


@pytest.mark.parametrize("row", FROM_ONE, ids=lambda row: f"{row.index}-{row.quantity}")
def test_table(row: Row) -> None:
    """The rows of exponential service that start with one customer; the ratio r is of the closed form only."""
    b, mu = int(row.number("b")), row.number("mu")
    solved = bulk_service_chain(gamma_services(row.number("lambda"), np.full(b, 1 / mu), np.ones(b), 700))
    names = {"mean_queue_Lq": "mean_queue", "mean_wait_Wq": "mean_wait", "P(server idle)": "idle"}
    row.check(getattr(solved, names[row.quantity]))


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 0.9), st.sampled_from([0.0, 0.25, 1.0, 2.0]))
def test_one_at_a_time_is_m_g_1(rho: float, scv: float) -> None:
    solved = bulk_service_chain(gamma_services(rho / 3, np.array([3.0]), np.array([scv]), 1200), 1e-9)
    assert solved.mean_wait == pytest.approx(mg1_wait(rho / 3, 3.0, scv), rel=1e-6)
    assert solved.idle == pytest.approx(1 - rho, rel=1e-6)
    assert solved.left[0] == pytest.approx(1 - rho, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 0.85), st.integers(1, 8))
def test_against_the_closed_form(rho: float, b: int) -> None:
    exact = bulk_service_queue(rho * b, 1.0, 1, b)
    solved = bulk_service_chain(gamma_services(rho * b, np.ones(b), np.ones(b), 900))
    assert solved.mean_wait == pytest.approx(exact.mean_wait, rel=1e-9)
    assert solved.idle == pytest.approx(exact.idle, rel=1e-9)
    assert solved.taken.sum() == pytest.approx(1)


def test_two_ways_to_give_a_constant() -> None:
    times = np.array([1.0, 1.4, 1.8, 2.2])
    by_moments = bulk_service_chain(gamma_services(1.2, times, np.zeros(4), 300))
    by_points = bulk_service_chain(point_services(1.2, [times[m : m + 1] for m in range(4)], [np.ones(1)] * 4, 300))
    assert by_points.left == pytest.approx(by_moments.left, abs=1e-14)
    assert by_points.mean_wait == pytest.approx(by_moments.mean_wait, rel=1e-13)


def _simulate(rate: float, values: list[NDArray[np.float64]], customers: int, seed: int) -> tuple[float, float]:
    """Mean wait and mean response of the customers of one run, services equally likely among `values[m - 1]`."""
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1 / rate, customers))
    clock, first, waits, stays = 0.0, 0, 0.0, 0.0
    while first < customers:
        clock = max(clock, arrival[first])
        taken = max(1, min(int(np.searchsorted(arrival, clock, side="right")) - first, len(values)))
        batch = arrival[first : first + taken]
        end = clock + float(rng.choice(values[taken - 1]))
        waits += float((clock - batch).sum())
        stays += float((end - batch).sum())
        clock, first = end, first + taken
    return waits / customers, stays / customers


def test_against_simulation() -> None:
    """Times grow with the batch and scatter; six runs of 30 000 customers, four standard errors."""
    values = [np.array([0.5, 1.5]) + 0.3 * m for m in range(5)]
    services = point_services(1.8, values, [np.ones(2)] * 5, 400)
    solved = bulk_service_chain(services)
    runs = np.array([_simulate(1.8, values, 30_000, seed) for seed in range(6)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    for found, exact, spread in zip(runs.mean(axis=0), (solved.mean_wait, solved.mean_response), error, strict=True):
        assert abs(found - exact) < 4 * spread
        assert spread < 0.02 * exact
    rate_out = float(solved.taken @ np.arange(6)) / float(solved.taken[1:] @ services.mean) * (1 - solved.idle)
    assert rate_out == pytest.approx(1.8, rel=1e-10)


def test_what_shapes_and_numbers_it_refuses() -> None:
    with pytest.raises(ValueError, match="zip"):
        point_services(1.0, [np.ones(1)], [np.ones(1)] * 2, 8)
    with pytest.raises(MomentError):
        gamma_services(1.0, np.array([1.0, -1.0]), np.ones(2), 8)


@settings(deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_batches_of_one(rho: float, scv: float, extra: float) -> None:
    assert batch_arrival_wait(rho, 1.0, 1.0, 1.0, scv) == pytest.approx(mg1_wait(rho, 1.0, scv), rel=1e-9)
    assert batch_arrival_wait(rho / 2, 2.0, 4.0 + extra, 1.0, scv) > mg1_wait(rho, 1.0, scv)


@settings(deadline=None)
@given(st.integers(1, 20), st.floats(0.05, 0.9), st.floats(0.0, 3.0), st.floats(0.0, 0.3), st.floats(0.0, 3.0))
def test_polling_orders(q: int, rho: float, scv: float, switch: float, switch_scv: float) -> None:
    """Without switching all rules wait as M/G/1 (conservation); with it exhaustive < gated < limited."""
    for rule in (exhaustive_wait, gated_wait, limited_wait):
        assert rule(q, rho, 1.0, scv, 0.0) == pytest.approx(mg1_wait(rho, 1.0, scv), rel=1e-9)
    arguments = (q, rho, 1.0, scv, switch, switch_scv)
    assert exhaustive_wait(*arguments) <= gated_wait(*arguments)
    if rho * (1 + switch) < 0.999:
        assert gated_wait(*arguments) <= limited_wait(*arguments) * (1 + 1e-12)


@settings(deadline=None)
@given(st.floats(0.05, 0.95), st.integers(2, 32))
def test_parallel_tasks(rho: float, k: int) -> None:
    """A job waits for its slowest task, but fork-join keeps the capacity that split-merge loses."""
    joined = fork_join_response(rho, 1.0, k)
    assert fork_join_response(rho, 1.0, k - 1) < joined
    assert joined <= max_of_exponentials(1 - rho, k)[0] * (1 + 1e-12)
    mean = max_of_exponentials(1.0, k)[0]
    if rho * mean < 0.95:
        assert split_merge_response(rho, 1.0, k) >= joined * 0.95
