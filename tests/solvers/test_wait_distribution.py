"""The M/G/1 wait on a grid: sure bounds, second-order estimate, agreement with moments and with the table."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.solvers import laws
from asapmodel.solvers.convolution import from_tail
from asapmodel.solvers.deterministic import mdc_wait_cdf
from asapmodel.solvers.queue_errors import MomentError, NoConvergence
from asapmodel.solvers.single_server import mg1_wait_moments
from asapmodel.solvers.wait_distribution import mg1_wait_bracket, wait_quantile
from tests.solvers.table import Row, rows

POINTS = [r for r in rows() if r.system == "M/D/1" and r.quantity == "P(W<=x)"]
QUANTILES = [r for r in rows() if r.system == "M/D/1" and r.quantity.startswith("wait_quantile")]


@pytest.mark.parametrize("row", POINTS, ids=lambda row: f"{row.index}")
def test_constant_service_of_the_table(row: Row) -> None:
    """Between the bounds; the estimate within what the docstring states for 400 points a service."""
    step, x = 1 / 400, row.number("x")
    wait = mg1_wait_bracket(row.number("rho"), 1.0, laws.deterministic_limited_mean(1.0), step, round(x / step) + 1)
    exact = 1 - float(row.value)
    assert wait.low[-1] - row.printed_error <= exact <= wait.high[-1] + row.printed_error
    assert wait.estimate[-1] == pytest.approx(exact, abs=1.3e-6)


@pytest.mark.parametrize("row", QUANTILES, ids=lambda row: f"{row.index}-{row.quantity}")
def test_quantiles_of_the_table(row: Row) -> None:
    exact, p = float(row.value), float(row.quantity.rsplit("_", 1)[1])
    wait = mg1_wait_bracket(
        row.number("rho"), 1.0, laws.deterministic_limited_mean(1.0), 1 / 100, int(110 * exact) + 200
    )
    low, estimate, high = wait_quantile(wait, p)
    assert low <= exact <= high
    assert estimate == pytest.approx(exact, rel=1.3e-4)


@given(st.floats(0.05, 0.95), st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_exponential_service(rho: float, mean: float) -> None:
    step = mean / 50
    wait = mg1_wait_bracket(rho / mean, mean, laws.exponential_limited_mean(mean), step, 500)
    exact = rho * np.exp(-(1 - rho) * np.arange(500) / 50)
    assert (wait.low <= exact + 1e-12).all()
    assert (exact <= wait.high + 1e-12).all()
    assert np.abs(wait.estimate - exact).max() < 2e-4
    assert wait.low[0] == pytest.approx(rho)
    assert wait.high[0] == pytest.approx(rho)


@given(st.floats(0.1, 0.8), st.lists(st.floats(0.2, 3.0), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_moments_of_the_distribution(rho: float, points: list[float], seed: int) -> None:
    """Mean and second moment of the grid law against Takács' recursion, for services with discrete laws."""
    values, weights = np.array(points), np.random.default_rng(seed).uniform(0.1, 1.0, len(points))
    weights /= weights.sum()
    service = [float(weights @ values**k) for k in (1, 2, 3)]
    step = service[0] / 50
    wait = mg1_wait_bracket(rho / service[0], service[0], laws.points_limited_mean(values, weights), step, 4000)
    law = from_tail(wait.estimate, step)
    first, second = mg1_wait_moments(rho / service[0], service)
    assert law.mean == pytest.approx(first, rel=1e-3)
    assert law.variance + law.mean**2 == pytest.approx(second, rel=3e-3)


def test_error_falls_with_the_square_of_the_step() -> None:
    exact = 1 - mdc_wait_cdf(0.8, 1.0, 1, 4.0)
    law = laws.deterministic_limited_mean(1.0)
    errors = [float(mg1_wait_bracket(0.8, 1.0, law, 1 / n, 4 * n + 1).estimate[-1]) - exact for n in (50, 100, 200)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)


def test_more_load_waits_longer() -> None:
    law = laws.deterministic_limited_mean(1.0)
    tails = [mg1_wait_bracket(rho, 1.0, law, 0.05, 200) for rho in (0.3, 0.6, 0.9)]
    for less, more in pairwise(tails):
        assert (less.low <= more.low).all()
        assert (less.high <= more.high).all()


def test_short_grid_says_so() -> None:
    wait = mg1_wait_bracket(0.9, 1.0, laws.deterministic_limited_mean(1.0), 0.1, 20)
    with pytest.raises(NoConvergence, match="grid ends"):
        wait_quantile(wait, 0.9)
    with pytest.raises(NoConvergence, match="beyond the grid"):
        from_tail(wait.estimate, 0.1)
    with pytest.raises(MomentError):
        from_tail(np.array([0.5, 0.7, 0.0]), 0.1)
    assert wait_quantile(wait, 0.05) == (0.0, 0.0, 0.0)
    assert math.isclose(float(wait.estimate[0]), 0.9)
