import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import gamma

from asapmodel.solvers.phase_arrivals import MarkovianArrivals, mmpp2_from, poisson, renewal
from asapmodel.solvers.phase_fit import fit_three_moments
from asapmodel.solvers.phase_grid import fit_grid
from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.phase_type import PhaseType, erlang, exponential, fit_two_moments, hyperexponential, mixture
from asapmodel.solvers.queue_errors import MomentError, QueueError

means = st.floats(1e-3, 1e3)


@given(means, st.floats(0.0101, 50.0))
@settings(max_examples=60, deadline=None)
def test_two_moments(mean: float, scv: float) -> None:
    law = fit_two_moments(mean, scv)
    assert law.mean == pytest.approx(mean, rel=1e-11)
    assert law.scv == pytest.approx(scv, rel=1e-9, abs=1e-9)


@given(means, st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 20.0)), min_size=2, max_size=5))
@settings(max_examples=60, deadline=None)
def test_three_moments_of_discrete_laws(mean: float, points: list[tuple[float, float]]) -> None:
    """Any law on several points has moments that enough phases match; the error names those it has not enough for."""
    weights, values = np.array(points).T
    weights = weights / weights.sum()
    values = values / (values @ weights)
    m = [float(values**k @ weights) * mean**k for k in (1, 2, 3)]
    assume(m[1] / m[0] ** 2 > 1.15 and m[0] * m[2] / m[1] ** 2 > 1.05)
    law = fit_three_moments(m[0], m[1], m[2], limit=100)
    np.testing.assert_allclose(law.moments(3), m, rtol=1e-8)


@pytest.mark.parametrize("scv", [0.5, 0.7, 1.0, 1.5, 4.0, 30.0])
def test_three_moments_give_back_order_two(scv: float) -> None:
    law = fit_two_moments(2.0, scv)
    again = fit_three_moments(*law.moments(3))
    assert again.order <= 2
    np.testing.assert_allclose(again.moments(6), law.moments(6), rtol=1e-7)


def test_moments_that_no_law_has() -> None:
    for moments in ((1.0, 0.9, 1.0), (1.0, 2.0, 3.0), (-1.0, 2.0, 6.0), (1.0, math.nan, 6.0)):
        with pytest.raises(MomentError):
            fit_three_moments(*moments)
    with pytest.raises(MomentError, match="up to 8 phases"):
        fit_three_moments(1.0, 1.01, 1.0303, limit=8)
    for mean, scv in ((0.0, 1.0), (1.0, 0.001), (1.0, math.nan), (math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(MomentError):
            fit_two_moments(mean, scv)
    with pytest.raises(MomentError):
        hyperexponential(1.0, 0.9)
    with pytest.raises(MomentError):
        mixture([1.0], [0.0], [1])


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("sigma", [0.8, 1.1])
def test_grid_of_a_capped_lognormal(order: int, sigma: float) -> None:
    draws = np.minimum(np.random.default_rng(3).lognormal(8, sigma, 4000), 32000.0)
    work = draws * (1 + draws / 8000)
    law = fit_grid(work, np.ones(len(work)), order)
    assert law.order <= order
    moments = [np.mean(work**k) for k in (1, 2, 3)]
    np.testing.assert_allclose(law.moments(2), moments[:2], rtol=1e-8)
    assert abs(law.moments(3)[2] / moments[2] - 1) < 0.05
    assert law.cdf(np.quantile(work, 0.9)) == pytest.approx(0.9, abs=0.03)


def test_grid_refuses() -> None:
    for values, weights, order in (
        ([1.0, 2.0], [1.0], 2),
        ([1.0, 2.0], [1.0, 1.0], 5),
        ([0.0, 0.0], [1.0, 1.0], 2),
        ([1.0, -2.0], [1.0, 1.0], 2),
        ([1.0, math.nan], [1.0, 1.0], 2),
        ([1.0, 1.01], [1.0, 1.0], 4),  # nearly constant
    ):
        with pytest.raises(MomentError):
            fit_grid(values, weights, order)


@pytest.mark.parametrize("phases", [1, 2, 7, 40])
def test_erlang_against_gamma(phases: int) -> None:
    law = erlang(3.0, phases)
    times = np.array([0.0, 0.01, 1.0, 3.0, 7.0, 30.0])
    np.testing.assert_allclose(law.cdf(times), gamma.cdf(times, phases, scale=3.0 / phases), atol=1e-13)
    for p in (0.0, 0.001, 0.5, 0.99, 1 - 1e-9):
        assert law.quantile(p) == pytest.approx(gamma.ppf(p, phases, scale=3.0 / phases), rel=1e-7, abs=1e-12)
    assert law.lst(0.7) == pytest.approx((1 + 0.7 * 3.0 / phases) ** -phases, rel=1e-12)
    assert abs(law.lst(2j)) == pytest.approx(abs((1 + 6j / phases) ** -phases), rel=1e-12)


def test_far_tail_keeps_its_relative_accuracy() -> None:
    law = TailLaw(np.array([0.5, 0.5]), np.array([[-1.0, 0.0], [0.0, -30.0]]), np.ones(2))
    assert law.tail(70.0) == pytest.approx(0.5 * math.exp(-70.0), rel=1e-11)
    assert law.tail(-1.0) == 1.0
    assert law.tail(1e9) == 0.0
    slow = TailLaw(np.array([0.3]), np.array([[-1e-9]]), np.ones(1))
    assert slow.quantile(0.99) == pytest.approx(1e9 * math.log(30.0), rel=1e-10)
    assert slow.quantile(0.7) == 0.0


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_random_law_against_expm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    rates = rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(rates, 0.0)
    generator = rates - np.diag(rates.sum(axis=1) + rng.exponential(size=n))
    law = PhaseType(rng.dirichlet(np.ones(n)), generator)
    t = float(rng.exponential(3 * law.mean))
    assert law.cdf(t) == pytest.approx(1 - law.initial @ expm(generator * t) @ np.ones(n), abs=1e-12)
    p = float(rng.random())
    assert law.cdf(law.quantile(p)) == pytest.approx(p, abs=1e-11)
    step = 1e-5 / law.mean
    assert (1 - law.lst(step).real) / step == pytest.approx(law.mean, rel=1e-3)


def test_sample_follows_the_law() -> None:
    law = fit_three_moments(1.0, 1.3, 2.2)
    draws = law.sample(40_000, np.random.default_rng(5))
    assert draws.mean() == pytest.approx(1.0, abs=5 * math.sqrt(0.3 / 40_000))
    for p in (0.1, 0.5, 0.9):
        assert (draws <= law.quantile(p)).mean() == pytest.approx(p, abs=0.01)
    np.testing.assert_array_equal(draws, law.sample(40_000, np.random.default_rng(5)))


@pytest.mark.parametrize(
    ("initial", "generator"),
    [
        ([1.0], [[1.0]]),
        ([1.0], [[0.0]]),
        ([0.5], [[-1.0]]),
        ([1.5, -0.5], [[-1.0, 0.0], [0.0, -1.0]]),
        ([1.0, 0.0], [[-1.0, 1.0], [1.0, -1.0]]),
        ([1.0, 0.0], [[-1.0, 2.0], [0.0, -1.0]]),
        ([1.0, 0.0], [[-1.0, -0.5], [0.0, -1.0]]),
        ([1.0], [[math.nan]]),
        ([math.nan], [[-1.0]]),
        ([1.0], [[-1.0, 0.0]]),
        ([], [[]]),
    ],
)
def test_what_is_no_phase_type_law(initial: list[float], generator: list[list[float]]) -> None:
    with pytest.raises(QueueError):
        PhaseType(initial, generator)


def test_quantile_and_tail_refuse() -> None:
    for p in (-0.1, 1.0, math.nan):
        with pytest.raises(QueueError):
            exponential(1.0).quantile(p)
    with pytest.raises(QueueError, match="fit"):
        TailLaw(np.ones(2), -np.eye(3), np.ones(2))
    with pytest.raises(QueueError, match="finite"):
        TailLaw(np.ones(1), np.array([[math.nan]]), np.ones(1))


@given(means, st.floats(1.001, 20.0), st.floats(1.0, 30.0))
@settings(max_examples=60, deadline=None)
def test_mmpp2_matches(rate: float, scv: float, ratio: float) -> None:
    process = mmpp2_from(rate, scv, scv * ratio)
    assert process.rate == pytest.approx(rate, rel=1e-9)
    assert process.scv == pytest.approx(scv, rel=1e-7)
    assert process.index_of_dispersion() == pytest.approx(scv * ratio, rel=1e-6)


def test_interrupted_poisson_is_the_renewal_process() -> None:
    process = mmpp2_from(2.0, 3.0, 3.0)
    assert abs(process.lag_correlation(1)) < 1e-12
    assert renewal(process.interval).index_of_dispersion() == pytest.approx(3.0, rel=1e-10)


def test_dispersion_over_time() -> None:
    process = mmpp2_from(2.0, 1.5, 6.0)
    assert process.index_of_dispersion(1e-4) == pytest.approx(1.0, abs=1e-3)
    assert process.index_of_dispersion(1e9) == pytest.approx(6.0, rel=1e-6)
    values = [process.index_of_dispersion(t) for t in (0.01, 0.1, 1.0, 10.0, 100.0)]
    assert values == sorted(values)
    assert poisson(3.0).index_of_dispersion(2.0) == pytest.approx(1.0, abs=1e-12)


def test_arrival_processes_that_are_none() -> None:
    for d0, d1 in (
        ([[-1.0]], [[2.0]]),
        ([[-1.0]], [[1.0, 0.0]]),
        ([[-1.0, 1.0], [1.0, -1.0]], [[0.0, 0.0], [0.0, 0.0]]),  # no arrivals
        ([[-1.0, 0.0], [0.0, -1.0]], [[1.0, 0.0], [0.0, 1.0]]),  # two closed classes
        ([[math.nan]], [[1.0]]),
        ([[-1.0, -1.0], [1.0, -1.0]], [[2.0, 0.0], [0.0, 0.0]]),
    ):
        with pytest.raises(QueueError):
            MarkovianArrivals(d0, d1)
    for arguments in ((1.0, 0.9, 2.0), (1.0, 3.0, 2.0), (0.0, 1.5, 2.0), (1.0, math.nan, 2.0), (1.0, 1.0, 2.0)):
        with pytest.raises(MomentError):
            mmpp2_from(*arguments)
    with pytest.raises(MomentError):
        poisson(1.0).index_of_dispersion(0.0)
    assert mmpp2_from(1.0, 1.0, 1.0).order == 1
    transient = MarkovianArrivals([[-2.0, 1.0], [0.0, -3.0]], [[0.0, 1.0], [0.0, 3.0]])
    np.testing.assert_array_equal(transient.phases, [0.0, 1.0])
