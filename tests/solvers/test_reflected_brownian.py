"""Reflected Brownian motion: limits, moments against its law, a numerical solution, and an M/M/1 queue near 1."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import solve_banded

from asapmodel.solvers.queue_errors import MomentError
from asapmodel.solvers.reflected_brownian import (
    average_mean,
    average_tail,
    transient_mean,
    transient_mean_square,
    transient_tail,
)
from tests.solvers.transient_mmc import birth_death

Floats = NDArray[np.float64]

drifts = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-9, -1e-6, 1e-3, -1e-3]))


def crank_nicolson(drift: float, variance: float, start: float, until: float, top: float) -> tuple[Floats, Floats]:
    """P(R(t) > y) on a grid: `F_t = variance/2 F_yy - drift F_y`, F = 1 at 0; and its mean over time."""
    size, steps = 1500, 3000
    y = np.linspace(0, top, size + 1)
    h, dt = top / size, until / steps
    low = 0.5 * variance / h**2 + 0.5 * drift / h
    high = 0.5 * variance / h**2 - 0.5 * drift / h
    value = (y < start).astype(float) + 0.5 * (y == start)
    value[0] = 1.0
    average = np.zeros_like(y)
    for k in range(steps):
        implicit = 1.0 if k < 8 else 0.5  # a few damped steps, as the start is not smooth (Rannacher 1984)
        inner = value[1:-1]
        change = low * value[:-2] - (low + high) * inner + high * value[2:]
        right = inner + (1 - implicit) * dt * change
        right[0] += implicit * dt * low
        bands = np.zeros((3, size - 1))
        bands[0, 1:] = -implicit * dt * high
        bands[1] = 1 + implicit * dt * (low + high)
        bands[2, :-1] = -implicit * dt * low
        new = value.copy()
        new[1:-1] = solve_banded((1, 1), bands, right)
        average += 0.5 * (value + new) / steps
        value = new
    return value, average


@pytest.mark.parametrize("drift", [-1.0, -0.2, 0.0, 0.3])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_law_and_its_average_agree_with_a_numerical_solution(drift: float, start: float) -> None:
    value, average = crank_nicolson(drift, 1.5, start, 2.0, 12.0)
    y = np.linspace(0, 12, 1501)[10::30]
    assert transient_tail(y, 2.0, drift, 1.5, start) == pytest.approx(value[10::30], abs=1e-5)
    assert average_tail(y, 2.0, drift, 1.5, start) == pytest.approx(average[10::30], abs=2e-4)


@settings(max_examples=40, deadline=None)
@given(drifts, st.floats(0.1, 5), st.floats(0, 3), st.floats(1e-3, 60))
def test_moments_are_those_of_the_law(drift: float, variance: float, start: float, time: float) -> None:
    spread = math.sqrt(variance * time)
    top = start + max(drift, 0.0) * time + 11 * spread
    if drift < 0:
        top = min(top, start + 40 * variance / -drift)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = np.linspace(0, top, 41)
    y = (edges[:-1, None] + 0.5 * top / 40 * (1 + nodes)).ravel()
    weight = np.tile(0.5 * top / 40 * weights, 40)
    tail = transient_tail(y, time, drift, variance, start)
    scale = start + spread
    assert float(transient_mean(time, drift, variance, start)) == pytest.approx(float(weight @ tail), abs=1e-6 * scale)
    square = float(transient_mean_square(time, drift, variance, start))
    assert square == pytest.approx(float(2 * (weight * y) @ tail), rel=1e-5, abs=1e-6 * scale**2)


@settings(max_examples=30, deadline=None)
@given(drifts, st.floats(0.1, 5), st.floats(0, 20), st.floats(1e-3, 1e4))
def test_averages_are_those_of_the_transient(drift: float, variance: float, level: float, horizon: float) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.geomspace(1e-6, 1, 40)
    share = np.concatenate([0.5 * 1e-6 * (1 + nodes), *(a + 0.5 * (b - a) * (1 + nodes) for a, b in pairwise(edges))])
    weight = np.concatenate([0.5 * 1e-6 * weights, *(0.5 * (b - a) * weights for a, b in pairwise(edges))])
    tails = transient_tail(level, horizon * share, drift, variance)
    assert float(average_tail(level, horizon, drift, variance)) == pytest.approx(float(weight @ tails), abs=1e-7)
    means = transient_mean(horizon * share, drift, variance)
    assert float(average_mean(horizon, drift, variance)) == pytest.approx(float(weight @ means), rel=1e-6)


def test_limits() -> None:
    y = np.linspace(0, 5, 11)
    assert transient_tail(y, 1e6, -0.5, 2.0) == pytest.approx(np.exp(-0.5 * y), abs=1e-12)
    assert average_tail(y, 1e8, -0.5, 2.0) == pytest.approx(np.exp(-0.5 * y), abs=1e-6)
    normal = [math.erfc(level / math.sqrt(2 * 3.0)) for level in y]
    assert transient_tail(y, 1.5, 0.0, 2.0) == pytest.approx(normal, abs=1e-14)
    for drift in (1e-6, -1e-6):
        assert average_tail(y, 1.5, drift, 2.0) == pytest.approx(average_tail(y, 1.5, 0.0, 2.0), abs=1e-5)
    assert float(transient_mean(2.0, 0.0, 3.0)) == pytest.approx(3 * math.sqrt(4 / (3 * math.pi)))
    assert float(transient_mean_square(2.0, 0.0, 3.0)) == pytest.approx(6.0)
    # soon after the start the drift does not matter, much later only it does
    assert float(transient_mean(1e-10, -0.7, 3.0)) == pytest.approx(math.sqrt(2 * 3e-10 / math.pi), rel=1e-5)
    assert float(transient_mean(1e6, 0.7, 3.0)) == pytest.approx(0.7e6 + 3 / 1.4)
    assert float(transient_mean_square(1e6, -0.7, 3.0)) == pytest.approx(9 / (2 * 0.49))
    assert float(average_mean(1e6, 0.7, 3.0)) == pytest.approx(0.35e6, rel=1e-5)


def test_extremes_do_not_overflow() -> None:
    with np.errstate(all="raise"):
        for drift in (-100.0, 100.0):
            tail = transient_tail([0.0, 1.0, 50.0, 1e4], [[1e-6], [1.0], [1e6]], drift, 0.5)
            assert ((tail >= 0) & (tail <= 1)).all()
            average = average_tail([0.0, 1.0, 50.0, 1e4], [[1e-6], [1.0], [1e6]], drift, 0.5)
            assert ((average >= 0) & (average <= 1)).all()
    assert float(average_tail(50.0, 1.0, 100.0, 0.5)) == pytest.approx(0.5, abs=1e-3)
    assert float(transient_tail(-1.0, 1.0, 0.0, 1.0)) == 1.0
    assert [float(transient_tail(y, 0.0, -1.0, 1.0, 2.0)) for y in (1.0, 2.0, 3.0)] == [1.0, 0.0, 0.0]


@given(drifts, st.floats(0.1, 5), st.floats(0, 5), st.floats(0.01, 10))
def test_more_level_less_time_or_less_drift_make_it_smaller(
    drift: float, variance: float, start: float, at: float
) -> None:
    level = np.linspace(0, 8, 30)
    assert (np.diff(transient_tail(level, at, drift, variance, start)) <= 1e-12).all()
    assert (
        transient_tail(level, at, drift, variance) <= transient_tail(level, at, drift + 0.1, variance) + 1e-12
    ).all()
    assert (
        transient_tail(level, at, drift, variance) <= transient_tail(level, 1.1 * at, drift, variance) + 1e-12
    ).all()
    assert (average_tail(level, at, drift, variance) <= average_tail(level, 1.1 * at, drift, variance) + 1e-12).all()


def test_queue_near_saturation_behaves_like_it() -> None:
    """M/M/1 at load 0.98, number in system against variance `rate + service`; the difference is of order 1 - load."""
    load = 0.98
    for time in (200.0, 1000.0, 5000.0, 20000.0):
        law = birth_death(load, 1.0, 1, time, 900)[0]
        mean = float(law @ np.arange(900))
        assert float(transient_mean(time, load - 1, load + 1)) == pytest.approx(mean, abs=0.6)  # half a customer
        beyond = float(law[31:].sum())
        assert float(transient_tail(30.5, time, load - 1, load + 1)) == pytest.approx(beyond, abs=0.01)


def test_refusals() -> None:
    with pytest.raises(MomentError, match="variance"):
        transient_tail(1.0, 1.0, 0.0, 0.0)
    with pytest.raises(MomentError, match="time"):
        transient_mean(-1.0, 0.0, 1.0)
    with pytest.raises(MomentError, match="time"):
        transient_mean(math.nan, 0.0, 1.0)
    with pytest.raises(MomentError, match="horizon"):
        average_tail(1.0, 0.0, 0.0, 1.0)
    with pytest.raises(MomentError, match="horizon"):
        average_mean([1.0, 0.0], 0.0, 1.0)
    with pytest.raises(MomentError, match="start"):
        average_tail(1.0, 1.0, 0.0, 1.0, start=-1.0)
