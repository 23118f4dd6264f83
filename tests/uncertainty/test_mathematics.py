"""Laws of inputs, shares of variance and surfaces, against published and exact values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import norm, triang, truncnorm

import asapmodel as am
from asapmodel.solvers.marginals import LawName, Marginal, correlation_root, inside, sobol_points
from asapmodel.solvers.response_surface import fit_surface
from asapmodel.solvers.variance_shares import posterior, variance_left, variance_shares

Array = NDArray[np.float64]
SHARES = np.linspace(0.01, 0.99, 41)


def ishigami(z: Array) -> Array:
    x = np.pi * (2.0 * ndtr(z) - 1.0)
    return np.asarray(np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))


def test_ishigami() -> None:
    """Saltelli et al., Global Sensitivity Analysis (2008), section 5.9: a = 7, b = 0.1."""
    groups = [[0], [1], [2], [0, 2]]
    found = variance_shares(ishigami, np.eye(3), groups, samples=8192)
    alone, total = [one.alone for one in found], [one.total for one in found]
    assert alone == pytest.approx([0.3139, 0.4424, 0.0, 0.5576], abs=0.01)
    assert total == pytest.approx([0.5576, 0.4424, 0.2437, 0.5576], abs=0.01)


def random_correlation(seed: int, d: int) -> Array:
    root = np.random.default_rng(seed).standard_normal((d, d + 1))
    covariance = root @ root.T
    scale = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(scale, scale))


@pytest.mark.parametrize("seed", range(3))
def test_linear_normal_shares_are_exact(seed: int) -> None:
    """``Var E(b z | z_g) = c' R_gg^-1 c`` with ``c = R_g b``: correlated inputs included."""
    R, b = random_correlation(seed, 4), np.array([1.0, -2.0, 0.5, 1.5])
    whole = b @ R @ b
    groups = [[0], [1], [2, 3]]
    found = variance_shares(lambda z: z @ b, R, groups, samples=8192)

    def known(group: list[int]) -> float:
        c = R[group, :] @ b
        return float(c @ np.linalg.inv(R[np.ix_(group, group)]) @ c / whole)

    for group, one in zip(groups, found, strict=True):
        others = [k for k in range(4) if k not in group]
        assert one.alone == pytest.approx(known(group), abs=0.02)
        assert one.total == pytest.approx(1 - known(others), abs=0.02)


def test_noise_of_an_observation() -> None:
    """One normal input seen with noise s: ``1 / (1 + 1 / s^2)`` of its variance is left; another input's all."""
    for noise in (0.5, 2.0):
        left = variance_left(lambda z: 3.0 * z[:, 0] + z[:, 1], np.eye(2), [0], np.array([noise]), samples=8192)
        assert left == pytest.approx(9.0 * noise**2 / (1.0 + noise**2) + 1.0, rel=0.02)


def test_posterior_by_bayes() -> None:
    """Against the inverse of the joint precision."""
    R, noise = random_correlation(5, 3), np.array([0.7, 0.3])
    H = np.eye(3)[[0, 2]]
    precision = np.linalg.inv(R) + H.T @ np.diag(noise**-2) @ H
    found = posterior(R, [0, 2], noise)
    assert found.root @ found.root.T == pytest.approx(np.linalg.inv(precision), abs=1e-9)
    assert found.gain == pytest.approx(np.linalg.inv(precision) @ H.T @ np.diag(noise**-2), abs=1e-9)
    assert found.spread @ found.spread.T == pytest.approx(R[np.ix_([0, 2], [0, 2])] + np.diag(noise**2))


def test_quantiles_are_those_of_scipy() -> None:
    free = Marginal("normal", 2.0, -np.inf, np.inf, 0.3)
    assert free.quantile(SHARES) == pytest.approx(norm(2.0, 0.3).ppf(SHARES), rel=1e-12)
    assert free.slope == pytest.approx(0.3, rel=1e-9)
    peak = Marginal("triangular", 3.0, 2.0, 6.0)
    assert peak.quantile(SHARES) == pytest.approx(triang(0.25, loc=2.0, scale=4.0).ppf(SHARES), rel=1e-9)
    assert peak.std == pytest.approx(triang(0.25, loc=2.0, scale=4.0).std())
    assert Marginal("uniform", 2.3, 1.3, 3.2).std == pytest.approx(1.9 / np.sqrt(12))
    share = Marginal("reciprocal", 0.5, 0.005, 1.0, 0.05)
    assert 1 / share.quantile(SHARES) == pytest.approx(norm(2.0, 0.2).ppf(1 - SHARES), rel=1e-9)


@given(st.sampled_from(["normal", "reciprocal"]), st.floats(0.05, 1.0), st.floats(0.001, 1.0))
def test_a_share_stays_a_share(name: LawName, value: float, spread: float) -> None:
    law, scores = Marginal(name, value, 0.01 * value, 1.0, spread), np.linspace(-8, 8, 33)
    drawn = law.of_scores(scores)
    assert np.all((drawn > 0) & (drawn <= 1))
    assert np.all(np.diff(drawn) >= 0)
    kept = inside([law], scores[:, None])
    low, high = law.score_range
    assert np.array_equal(kept, (scores >= low) & (scores <= high))
    assert law.of_scores(np.array([low, high])) == pytest.approx([0.01 * value, 1.0], rel=1e-9)


def test_draws_inside_are_the_law_cut_by_a_bound() -> None:
    laws = [Marginal("normal", 0.9, -np.inf, 1.0, 0.1), Marginal("normal", 0.0, -np.inf, np.inf, 1.0)]
    scores = ndtri(sobol_points(4096, 2, 1))
    drawn = laws[0].of_scores(scores[inside(laws, scores), 0])
    wanted = truncnorm(-np.inf, 1.0, loc=0.9, scale=0.1)
    assert np.quantile(drawn, SHARES) == pytest.approx(wanted.ppf(SHARES), abs=2e-3)


def test_reciprocals_keep_a_sum_that_shares_cannot() -> None:
    """1/x + 1/y known, x and y hardly: opposite errors of the reciprocals leave the sum, however large they are."""
    laws = [Marginal("reciprocal", 0.5, 0.005, np.inf, 0.2), Marginal("reciprocal", 0.25, 0.0025, np.inf, 0.05)]
    scores = np.random.default_rng(2).standard_normal((200, 1)) * np.array([1.0, -1.0])
    kept = scores[inside(laws, scores)]
    assert len(kept) > 150
    assert 1 / laws[0].of_scores(kept[:, 0]) + 1 / laws[1].of_scores(kept[:, 1]) == pytest.approx(6.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="outside"):
        Marginal("uniform", 3.0, 1.0, 2.0)
    with pytest.raises(ValueError, match="spread is 0"):
        Marginal("normal", 3.0, 1.0, 4.0)
    with pytest.raises(ValueError, match="eigenvalue"):
        correlation_root(np.array([[1.0, 1.5], [1.5, 1.0]]))
    with pytest.raises(ValueError, match="symmetric"):
        correlation_root(np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="points for 3 inputs"):
        fit_surface(np.zeros((7, 3)), np.zeros(7))


def test_singular_correlation_is_kept() -> None:
    root = correlation_root(np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    drawn = np.random.default_rng(1).standard_normal((100, 3)) @ root.T
    assert drawn[:, 0] == pytest.approx(-drawn[:, 1])


def test_points_are_of_a_sequence() -> None:
    first, more = sobol_points(16, 3, 7), sobol_points(64, 3, 7)
    assert np.array_equal(first, more[:16])
    assert not np.array_equal(first, sobol_points(16, 3, 8))
    assert np.histogram(more[:, 1], bins=16, range=(0, 1))[0].tolist() == [4] * 16


def test_surface_is_exact_for_a_quadratic_and_judges_itself() -> None:
    generator = np.random.default_rng(3)
    x = generator.uniform(1.0, 2.0, (60, 3))
    y = 1 + x[:, 0] - 2 * x[:, 1] * x[:, 2] + x[:, 1] ** 2
    surface = fit_surface(x, y)
    assert surface.form == "full"
    assert surface.explained == pytest.approx(1.0)
    new = generator.uniform(0.0, 3.0, (5, 3))
    assert surface(new) == pytest.approx(1 + new[:, 0] - 2 * new[:, 1] * new[:, 2] + new[:, 1] ** 2)
    noisy = y + generator.standard_normal(60)
    found, errors = fit_surface(x, noisy), []
    for k in range(60):  # leaving out one by one, by refitting
        rest = np.arange(60) != k
        one = fit_surface(x[rest], noisy[rest])
        assert one.form == found.form
        errors.append(float(one(x[[k]])[0]) - noisy[k])
    assert found.explained == pytest.approx(1 - np.sum(np.square(errors)) / np.sum((noisy - noisy.mean()) ** 2))


def test_a_surface_does_not_leave_the_box_it_was_fitted_to() -> None:
    inputs = np.random.default_rng(4).uniform(-1.0, 2.0, (200, 2))
    surface = fit_surface(inputs, inputs[:, 0] ** 2 + inputs[:, 1])
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    inside = np.random.default_rng(5).uniform(low, high, (50, 2))
    assert surface.within(inside) == pytest.approx(surface(inside))
    far = np.array([[1e3, 0.5], [0.5, -1e3], [-1e3, 1e3]])
    nearest = np.array([[high[0], 0.5], [0.5, low[1]], [low[0], high[1]]])
    assert surface.within(far) == pytest.approx(surface(nearest))


def test_shares_are_shares_where_a_constant_has_a_wide_law() -> None:
    """The vector units of this profile are known to a third: one draw far out must not make up the variance."""
    answer = am.uncertainty(am.Scenario.load("paper-asap").replace(**{"cluster.use": "h200-rdma"}))
    assert max(one.total for one in answer.constants) < 1.05
    assert answer.constants[0].key.endswith(".vector")
    assert answer.constants[0].alone > 0.3


@pytest.mark.parametrize(("count", "form"), [(12, "linear"), (30, "squares"), (60, "full")])
def test_few_points_have_a_simple_surface(count: int, form: str) -> None:
    x = np.random.default_rng(0).standard_normal((count, 5)) if form == "linear" else np.empty(0)
    if form != "linear":
        x = np.random.default_rng(0).standard_normal((count, 5 if form == "squares" else 4))
    assert fit_surface(x, x[:, 0]).form == form


def test_scores_that_all_but_determine_one_another_leave_a_covariance() -> None:
    """As logs that cannot tell two constants apart give it; inverting their difference would invert rounding."""
    deviations = np.array([4.6e-11, 3.6e-14, 1.03e-11, 1.03e-11])
    steps = np.random.default_rng(3).standard_normal((2, 4))
    steps[:, 3] = steps[:, 2] * (1 + 1e-6 * steps[:, 0])
    covariance = (steps.T @ steps) * np.outer(deviations, deviations)
    spread = np.sqrt(np.diag(covariance))
    R = covariance / np.outer(spread, spread)
    for known in ([2, 3], [1, 2, 3], [0, 1, 2]):
        left = posterior(R, known)
        found = left.root @ left.root.T
        assert np.diag(found)[known] == pytest.approx(0.0, abs=1e-6)
        assert np.all(np.diag(found) <= 1 + 1e-9)
