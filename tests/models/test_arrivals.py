"""Renewal arrivals: shared random numbers, rates, burstiness."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.models.arrivals import Renewal, counts_index_of_dispersion, gamma, poisson, renewal_times
from asapmodel.models.distributions import Constant, Exponential

PROCESSES = [poisson(), gamma(0.5), gamma(2.0), Renewal(Constant(1.0))]


@pytest.mark.parametrize("process", PROCESSES, ids=str)
@given(seed=st.integers(0, 2**32 - 1), rate=st.floats(0.01, 30), faster=st.floats(1, 5))
def test_two_rates_share_their_random_numbers(process: Renewal, seed: int, rate: float, faster: float) -> None:
    slow, fast = (renewal_times(process.gaps, np.random.default_rng(seed), r, 20.0) for r in (rate, rate * faster))
    assert slow.size <= fast.size
    unit = process.unit_times(np.random.default_rng(seed), fast.size + 1)
    np.testing.assert_array_equal(slow, unit[: slow.size] / rate)
    np.testing.assert_array_equal(fast, unit[:-1] / (rate * faster))
    # Nothing within the run is missing: the next arrival is past its end.
    assert unit[-1] / (rate * faster) > 20.0
    assert unit[slow.size] / rate > 20.0


def test_a_run_longer_than_one_block_is_complete() -> None:
    # Very bursty gaps overrun the first guess of how many are needed.
    counts = []
    for seed in range(200):
        times = renewal_times(gamma(8.0).gaps, np.random.default_rng(seed), 1.0, 5.0)
        unit = gamma(8.0).unit_times(np.random.default_rng(seed), times.size + 1)
        np.testing.assert_array_equal(times, unit[:-1])
        assert unit[-1] > 5.0
        counts.append(times.size)
    assert max(counts) > 5 + 4 * math.sqrt(5) + 16


def test_unit_times_are_prefix_stable() -> None:
    short, long = (gamma(2.0).unit_times(np.random.default_rng(3), n) for n in (10, 1000))
    np.testing.assert_array_equal(short, long[:10])


@pytest.mark.parametrize("rate", [0.5, 4.0])
def test_poisson_counts_have_mean_and_variance_rate_times_duration(rate: float) -> None:
    counts = [renewal_times(poisson().gaps, np.random.default_rng(s), rate, 50.0).size for s in range(1000)]
    expected = rate * 50
    assert np.mean(counts) == pytest.approx(expected, abs=4 * math.sqrt(expected / 1000))
    assert np.var(counts) == pytest.approx(expected, rel=4 * math.sqrt(2 / 1000))


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_gaps_have_the_cv_asked_for(cv: float) -> None:
    gaps = np.diff(gamma(cv).unit_times(np.random.default_rng(7), 200_001))
    assert gaps.mean() == pytest.approx(1.0, abs=4 * cv / math.sqrt(200_000))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.02)


def test_index_of_dispersion_is_one_for_poisson_and_tends_to_cv_squared() -> None:
    rng = np.random.default_rng(11)
    assert counts_index_of_dispersion(poisson().unit_times(rng, 100_000), 10.0) == pytest.approx(1.0, abs=0.06)
    assert counts_index_of_dispersion(gamma(2.0).unit_times(rng, 400_000), 100.0) == pytest.approx(4.0, rel=0.1)
    assert counts_index_of_dispersion(np.arange(1000) + 0.5, 10.0) == 0.0


def test_index_of_dispersion_leaves_the_incomplete_window_out() -> None:
    assert counts_index_of_dispersion([0.5, 1.5, 2.1, 2.2, 2.3], 1.0) == 0.0


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_rate_must_be_positive_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="rate must be positive"):
        renewal_times(Exponential(1.0), np.random.default_rng(1), rate, 10.0)


def test_bad_input_is_refused_in_words() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="duration must be positive"):
        renewal_times(Exponential(1.0), rng, 1.0, 0.0)
    with pytest.raises(ValueError, match="mean 1, not 2"):
        renewal_times(Exponential(2.0), rng, 1.0, 10.0)
    with pytest.raises(ValueError, match="cannot be negative"):
        Renewal(Constant(-1.0))
    with pytest.raises(ValueError, match="cv must be positive"):
        gamma(0.0)
    with pytest.raises(ValueError, match="two whole windows"):
        counts_index_of_dispersion([0.5, 1.5], 1.0)
    with pytest.raises(ValueError, match="inside the whole windows"):
        counts_index_of_dispersion([10.0], 2.5 * 2)
    with pytest.raises(ValueError, match="at least 0"):
        counts_index_of_dispersion([-0.5, 1.5], 1.0)
