"""Distributions on grids: what is kept exactly, and what converges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.solvers import laws
from asapmodel.solvers.convolution import (
    GridDistribution,
    cdf,
    convolve,
    from_limited_mean,
    from_points,
    maximum,
    mixture,
    moment,
    quantile,
    shift,
)
from asapmodel.solvers.fork_join import max_of_exponentials, max_of_independent
from asapmodel.solvers.queue_errors import MomentError, NoConvergence, QueueError

points = st.lists(st.tuples(st.floats(-50.0, 50.0), st.floats(0.01, 1.0)), min_size=1, max_size=12)


def _law(pairs: list[tuple[float, float]], step: float) -> tuple[GridDistribution, float, float]:
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    weights = weights / weights.sum()
    mean = float(weights @ values)
    return from_points(values, weights, step), mean, float(weights @ (values - mean) ** 2)


@settings(deadline=None)
@given(points, st.floats(0.01, 3.0))
def test_mean_is_kept_and_variance_grows_by_a_quarter_step_at_most(
    pairs: list[tuple[float, float]], step: float
) -> None:
    law, mean, variance = _law(pairs, step)
    assert law.mean == pytest.approx(mean, abs=1e-9)
    assert -1e-6 <= law.variance - variance <= step**2 / 4 + 1e-6
    assert law.mass.sum() == pytest.approx(1, abs=1e-12)


@settings(deadline=None)
@given(points, points, st.floats(0.05, 2.0), st.floats(-20.0, 20.0))
def test_sums_mixtures_and_shifts(
    first: list[tuple[float, float]], second: list[tuple[float, float]], step: float, offset: float
) -> None:
    a, b = _law(first, step)[0], _law(second, step)[0]
    total = convolve(a, b)
    assert total.mean == pytest.approx(a.mean + b.mean, abs=1e-9)
    assert total.variance == pytest.approx(a.variance + b.variance, abs=1e-6)
    mixed = mixture([1.0, 3.0], [a, b])
    assert mixed.mean == pytest.approx(0.25 * a.mean + 0.75 * b.mean, abs=1e-9)
    assert moment(mixed, 2) == pytest.approx(0.25 * moment(a, 2) + 0.75 * moment(b, 2), abs=1e-6)
    assert shift(a, offset).mean == pytest.approx(a.mean + offset, abs=1e-8)
    whole = shift(a, 7 * step)
    assert whole.mass.tolist() == pytest.approx(a.mass.tolist())
    assert whole.first == a.first + 7


@settings(deadline=None)
@given(points, points, st.floats(0.05, 2.0), st.floats(-60.0, 60.0))
def test_maximum(first: list[tuple[float, float]], second: list[tuple[float, float]], step: float, x: float) -> None:
    a, b = _law(first, step)[0], _law(second, step)[0]
    largest = maximum(a, b)
    assert cdf(largest, x) == pytest.approx(cdf(a, x) * cdf(b, x), abs=1e-9)
    assert largest.mean >= max(a.mean, b.mean) - 1e-9
    listed = max_of_independent([a.values, b.values], [a.mass, b.mass])
    assert listed.mean == pytest.approx(largest.mean, abs=1e-9)
    assert listed.variance == pytest.approx(largest.variance, abs=1e-6)


@settings(deadline=None)
@given(points, st.floats(0.05, 2.0), st.floats(1e-6, 1.0))
def test_quantile_inverts(pairs: list[tuple[float, float]], step: float, p: float) -> None:
    law = _law(pairs, step)[0]
    at = quantile(law, p)
    assert cdf(law, at) >= p - 1e-12
    assert cdf(law, at - step) < p


def test_fft_agrees_with_sums() -> None:
    rng = np.random.default_rng(5)
    a, b = (GridDistribution(0.1, 3, w / w.sum()) for w in (rng.uniform(size=700), rng.uniform(size=300)))
    total = convolve(a, b)
    assert np.abs(total.mass - np.convolve(a.mass, b.mass)).max() < 1e-16
    assert total.first == 6


def test_erlang_from_exponentials() -> None:
    """Four exponential phases; the distribution function of the sum is known."""
    step = 0.01
    phase = from_limited_mean(laws.exponential_limited_mean(0.25), step, 2001)
    total = convolve(phase, phase, phase, phase)
    for x in (0.5, 1.0, 2.0):
        exact = 1 - math.exp(-4 * x) * sum((4 * x) ** k / math.factorial(k) for k in range(4))
        inside = 0.5 * (cdf(total, x) + cdf(total, x - step))
        assert inside == pytest.approx(exact, abs=2e-4)
    assert total.mean == pytest.approx(1.0, abs=1e-9)
    assert total.variance == pytest.approx(0.25, abs=4 * step**2 / 4)


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_maximum_of_exponentials(count: int) -> None:
    mean, variance = max_of_exponentials(1.0, count)
    law = from_limited_mean(laws.exponential_limited_mean(1.0), 0.01, 4001)
    largest = maximum(*[law] * count)
    assert largest.mean == pytest.approx(mean, abs=2e-5)
    assert largest.variance == pytest.approx(variance, abs=1e-3)
    middles = (np.arange(20000) + 0.5) / 20000
    quantiles = max_of_independent([-np.log1p(-middles)], copies=[count])
    assert quantiles.mean == pytest.approx(mean, rel=count * 1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_maximum_of_different_laws_by_enumeration(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, 5, 3).astype(np.float64) for _ in range(count)]
    weights = [rng.uniform(0.1, 1.0, 3) for _ in range(count)]
    grids = np.meshgrid(*[np.arange(3)] * count, indexing="ij")
    largest = np.max([v[g] for v, g in zip(values, grids, strict=True)], axis=0)
    chance = np.prod([w[g] / w.sum() for w, g in zip(weights, grids, strict=True)], axis=0)
    assert max_of_independent(values, weights).mean == pytest.approx(float((largest * chance).sum()))


def test_bad_input() -> None:
    good = GridDistribution(1.0, 0, np.array([0.5, 0.5]))
    for mass in ([0.5, 0.6], [1.5, -0.5], [], [math.nan, 1.0]):
        with pytest.raises(MomentError):
            GridDistribution(1.0, 0, np.array(mass, dtype=np.float64))
    with pytest.raises(MomentError):
        GridDistribution(0.0, 0, np.array([1.0]))
    with pytest.raises(QueueError, match="different steps"):
        convolve(good, GridDistribution(0.5, 0, np.array([1.0])))
    with pytest.raises(QueueError):
        maximum()
    with pytest.raises(MomentError):
        mixture([1.0], [good, good])
    with pytest.raises(MomentError):
        from_points(np.array([math.inf]), np.array([1.0]), 1.0)
    with pytest.raises(QueueError):
        quantile(good, 0.0)
    with pytest.raises(NoConvergence, match="rounding"):
        from_limited_mean(lambda x: x**2, 0.1, 5)
