"""Laws of lengths and gaps against quadrature, published figures and their own inverses."""

import doctest
import importlib
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad

from asapmodel.models.distributions import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    TruncatedLognormal,
)
from asapmodel.models.lengths import token_bounds, token_lengths

WIDE = TruncatedLognormal(7.5733, 1.445, 31, 32768)
NARROW = TruncatedLognormal(7.9271, 1.1, 31, 32768)
SMOOTH = [
    Exponential(2.5),
    Gamma(1.0, 0.4),
    Gamma(3.0, 1.0),
    Gamma(1.0, 2.0),
    WIDE,
    NARROW,
    TruncatedLognormal(0.0, 0.5, 0.0, math.inf),
    TruncatedLognormal(0.0, 1.0, 30.0, 40.0),
    TruncatedLognormal(0.0, 1.0, 0.01, 0.02),
]
STEPPED = [Constant(4096), Empirical([31, 512, 512, 2048, 9]), TruncatedLognormal(7.0, 0.0, 31, 32768)]


def by_quadrature(law: Distribution, k: int) -> float:
    """E[X^k] = low^k + int k x^(k-1) (1 - cdf) dx, from the cdf alone."""
    low = law.support[0]
    cuts = [low, *law.quantile([0.01, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-9]).tolist(), law.support[1]]
    negligible = 1e-10 * float(law.quantile(0.5)) ** k
    pieces = [
        quad(lambda x: k * x ** (k - 1) * (1 - float(law.cdf(x))), a, b, epsabs=negligible, epsrel=1e-9)[0]
        for a, b in pairwise(cuts)
        if math.isfinite(b)
    ]
    return low**k + math.fsum(pieces)


@pytest.mark.parametrize("law", SMOOTH, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_moments_agree_with_quadrature_of_the_cdf(law: Distribution, k: int) -> None:
    # The part of an infinite tail that is left out weighs most in the third moment.
    assert law.moment(k) == pytest.approx(by_quadrature(law, k), rel=1e-6 if k < 3 else 1e-5)


@pytest.mark.parametrize("law", SMOOTH + STEPPED, ids=str)
def test_mean_variance_scv_follow_from_moments(law: Distribution) -> None:
    assert law.moment(0) == 1
    assert law.mean == pytest.approx(law.moment(1))
    assert law.variance == pytest.approx(law.moment(2) - law.mean**2, rel=1e-9, abs=1e-9 * law.mean**2)
    assert law.scv == pytest.approx(law.variance / law.mean**2)


@pytest.mark.parametrize("law", SMOOTH + STEPPED, ids=str)
def test_sample_moments_lie_within_the_central_limit(law: Distribution) -> None:
    size = 40_000
    values = law.sample(np.random.default_rng(20260), size)
    assert values.dtype == np.float64
    assert values.min() >= law.support[0]
    assert values.max() <= law.support[1]
    for k in (1, 2):
        error = math.sqrt(max(law.moment(2 * k) - law.moment(k) ** 2, 0) / size)
        assert abs(np.mean(values**k) - law.moment(k)) <= 4 * error + 1e-9 * law.moment(k)


@pytest.mark.parametrize("law", SMOOTH + STEPPED, ids=str)
def test_sampling_is_prefix_stable(law: Distribution) -> None:
    rng = np.random.default_rng(5)
    twice = np.concatenate([law.sample(rng, 10), law.sample(rng, 10)])
    np.testing.assert_array_equal(twice, law.sample(np.random.default_rng(5), 20))


@pytest.mark.parametrize("law", SMOOTH + STEPPED, ids=str)
def test_cdf_and_quantile_at_the_ends_and_in_shape(law: Distribution) -> None:
    low, high = law.support
    assert law.quantile([0.0, 1.0]).tolist() == [low, high]
    np.testing.assert_array_equal(law.cdf([-math.inf, low - 1, high, math.inf]), [0, 0, 1, 1])
    assert law.cdf(np.full((2, 3), 100.0)).shape == (2, 3)
    assert law.quantile(np.full((2, 3), 0.5)).shape == (2, 3)
    assert law.cdf(1.0).shape == law.quantile(0.5).shape == ()


@given(st.sampled_from(SMOOTH), st.floats(1e-6, 1 - 1e-6))
def test_cdf_inverts_quantile_of_smooth_laws(law: Distribution, p: float) -> None:
    assert float(law.cdf(law.quantile(p))) == pytest.approx(p, rel=1e-7, abs=1e-12)


@given(st.floats(-3, 10), st.floats(0.01, 4), st.floats(-2, 2), st.floats(0.1, 3), st.floats(0, 1), st.integers(1, 4))
def test_any_truncated_lognormal_is_coherent(
    mu: float, sigma: float, at: float, width: float, p: float, k: int
) -> None:
    low, high = (math.exp(mu + sigma * z) for z in (at, at + width))
    law = TruncatedLognormal(mu, sigma, low, high)
    x = float(law.quantile(p))
    assert low <= x <= high
    assert float(law.cdf(x)) == pytest.approx(p, abs=1e-7)
    assert low**k * (1 - 1e-9) <= law.moment(k) <= high**k * (1 + 1e-9)
    assert law.mean <= math.sqrt(law.moment(2)) * (1 + 1e-12)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.floats(0, 1))
def test_empirical_quantile_is_the_smallest_value_whose_cdf_reaches_p(values: list[int], p: float) -> None:
    law = Empirical(values)
    expected = min((v for v in values if float(law.cdf(v)) >= p), default=max(values))
    assert float(law.quantile(p)) == expected
    np.testing.assert_array_equal(law.quantile(law.cdf(law.values)), law.values)


@given(st.floats(0.01, 100), st.floats(0, 0.999))
def test_gamma_of_cv_one_is_exponential(mean: float, p: float) -> None:
    gamma, exponential = Gamma(mean, 1.0), Exponential(mean)
    assert float(gamma.quantile(p)) == pytest.approx(float(exponential.quantile(p)), rel=1e-12)
    assert float(gamma.cdf(p)) == pytest.approx(float(exponential.cdf(p)), rel=1e-12)
    assert [gamma.moment(k) for k in range(5)] == pytest.approx([exponential.moment(k) for k in range(5)])


@pytest.mark.parametrize(
    ("law", "mean", "square", "cv", "under_512", "over_8k", "over_16k"),
    [(WIDE, 3947, 4.43e7, 1.36, 18.1, 13.8, 4.6), (NARROW, 4491, 4.53e7, 1.12, 6.3, 15.2, 4.1)],
    ids=["A", "B"],
)
def test_research_table_of_length_models_after_the_cut(
    law: Distribution, mean: float, square: float, cv: float, under_512: float, over_8k: float, over_16k: float
) -> None:
    assert law.mean == pytest.approx(mean, abs=1)
    assert law.moment(2) == pytest.approx(square, abs=0.005e7)
    assert math.sqrt(law.scv) == pytest.approx(cv, abs=0.005)
    below = 100 * law.cdf([512, 8192, 16384])
    assert [below[0], 100 - below[1], 100 - below[2]] == pytest.approx([under_512, over_8k, over_16k], abs=0.05)


@pytest.mark.parametrize(("mu", "sigma", "median", "p99"), [(7.5733, 1.445, 1942, 48232), (7.9271, 1.1, 2769, 35027)])
def test_research_table_of_length_models_before_the_cut(mu: float, sigma: float, median: int, p99: int) -> None:
    law = TruncatedLognormal(mu, sigma, 31, 100_000)
    assert law.mean == pytest.approx(5000, abs=0.5)
    assert law.quantile([0.5, 0.99]) == pytest.approx([median, p99], abs=1)


def test_untruncated_lognormal_has_the_textbook_moments() -> None:
    law = TruncatedLognormal(1.0, 0.8, 0.0, math.inf)
    assert law.mean == pytest.approx(math.exp(1 + 0.32), rel=1e-14)
    assert law.scv == pytest.approx(math.expm1(0.64), rel=1e-12)


def test_lognormal_without_spread_is_a_constant() -> None:
    law = TruncatedLognormal(math.log(100), 0.0, 31, 32768)
    assert law.support == pytest.approx((100, 100))
    assert law.moment(2) == pytest.approx(1e4)
    assert law.scv == pytest.approx(0, abs=1e-15)


def test_laws_are_equal_by_parameters_and_frozen() -> None:
    assert Gamma(1.0, 2.0) == Gamma(1.0, 2.0) != Gamma(1.0, 3.0)
    assert Empirical([2, 1]) == Empirical([1, 2]) != Empirical([1, 3])
    assert hash(Empirical([2, 1])) == hash(Empirical([1, 2]))
    with pytest.raises(AttributeError):
        Exponential(1.0).mean = 2.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        Empirical([1, 2]).values[0] = 7
    with pytest.raises(TypeError):
        Exponential()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(math.nan), "value must be finite"),
        (lambda: Exponential(0.0), "mean must be positive"),
        (lambda: Exponential(math.inf), "mean must be positive and finite"),
        (lambda: Gamma(1.0, 0.0), "cv must be positive"),
        (lambda: Gamma(1.0, 1e-200), "out of range"),
        (lambda: Gamma(-1.0, 1.0), "mean must be positive"),
        (lambda: TruncatedLognormal(math.nan, 1, 1, 2), "needs |mu|"),
        (lambda: TruncatedLognormal(1, -1, 1, 2), "sigma >= 0"),
        (lambda: TruncatedLognormal(1, 1, 3, 2), "low <= high"),
        (lambda: TruncatedLognormal(1, 1, -1, 2), "0 <= low"),
        (lambda: TruncatedLognormal(1, 1, 2, math.nan), "low <= high"),
        (lambda: TruncatedLognormal(1, 1, 2, 2), "holds less than 1e-09"),
        (lambda: TruncatedLognormal(0, 0.1, 1e6, 1e7), "holds less than 1e-09"),
        (lambda: TruncatedLognormal(0, 0, 2, 3), "exp(mu) inside"),
        (lambda: Empirical([]), "at least one value"),
        (lambda: Empirical([1, math.inf]), "finite"),
        (lambda: Exponential(1.0).moment(-1), "at least 0"),
        (lambda: Exponential(1.0).quantile(1.5), "in [0, 1]"),
        (lambda: Exponential(1.0).quantile([0.5, math.nan]), "in [0, 1]"),
        (lambda: Exponential(1.0).cdf(math.nan), "NaN"),
        (lambda: Constant(0.0).scv, "mean other than 0"),
    ],
)
def test_bad_input_is_refused_in_words(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared literally below
        make()
    assert message in str(error.value)


def test_token_lengths_round_half_to_even_inside_the_support() -> None:
    law = Empirical([0.2, 2.5, 3.5, 8.7])
    tokens = token_lengths(law, np.random.default_rng(1), 200)
    assert tokens.dtype == np.int64
    # 8.7 rounds to 9, which the support does not reach.
    assert set(tokens.tolist()) == {1, 2, 4, 8}
    assert token_bounds(law) == (1, 8)


@given(st.floats(0.5, 200), st.floats(0, 200), st.integers(0, 2**32 - 1))
def test_token_lengths_stay_in_bounds(low: float, width: float, seed: int) -> None:
    high = low + width
    assume(max(1, math.ceil(low)) <= math.floor(high) and width > 0.01)
    tokens = token_lengths(TruncatedLognormal(4.0, 3.0, low, high), np.random.default_rng(seed), 50)
    assert max(low, 1) <= tokens.min() <= tokens.max() <= high


def test_no_whole_token_in_the_support_is_an_error() -> None:
    with pytest.raises(ValueError, match="no whole number of tokens"):
        token_lengths(Constant(0.5), np.random.default_rng(1), 3)


@pytest.mark.parametrize(
    "name",
    ["distribution_base", "distributions", "truncated_lognormal", "lengths", "arrivals", "trace_base", "trace"],
)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(f"asapmodel.models.{name}")
    assert doctest.testmod(module).failed == 0
