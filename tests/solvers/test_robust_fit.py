"""Robust fits: exact data give exact parameters, intervals cover, outliers do not pull, open combinations are named."""

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.solvers.cross_validation import cross_validate
from asapmodel.solvers.robust_fit import Parameter, robust_fit

Array = NDArray[np.float64]
N = np.array([64.0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768])
TRUE = np.array([5e-5, 2e-7])
LINE = (Parameter("fixed", 1e-5, 1e-8, 1e-2), Parameter("slope", 1e-6, 1e-10, 1e-3))


def line(p: Array) -> Array:
    return np.asarray(p[0] + p[1] * N)


def test_exact_data_give_the_exact_parameters() -> None:
    fit = robust_fit(line, line(TRUE), LINE)
    np.testing.assert_allclose(fit.values, TRUE, rtol=1e-6)
    assert fit.unidentified() == ()
    assert fit.at_bound == ()


def test_covariance_is_that_of_least_squares_where_residuals_are_small() -> None:
    """Against the textbook: (J'J)^-1 s^2 of the linearised problem, up to the efficiency of the estimator."""
    x = np.repeat(N, 40)
    y = (TRUE[0] + TRUE[1] * x) * np.exp(0.03 * np.random.default_rng(1).standard_normal(x.size))
    fit = robust_fit(lambda p: p[0] + p[1] * x, y, LINE, 0.03)
    share = TRUE[0] / (TRUE[0] + TRUE[1] * x)
    jacobian = np.column_stack([share, 1 - share])
    textbook = 0.03**2 * np.linalg.inv(jacobian.T @ jacobian)
    np.testing.assert_allclose(fit.covariance, textbook, rtol=0.2)


@pytest.mark.parametrize("copies", [1, 4])
def test_intervals_cover_the_truth(copies: int) -> None:
    """Nominally 95 %; of 200 seeds at least 90 % and not all."""
    x = np.repeat(N, copies)
    hits = np.zeros(2)
    for seed in range(200):
        y = (TRUE[0] + TRUE[1] * x) * np.exp(0.05 * np.random.default_rng(seed).standard_normal(x.size))
        fit = robust_fit(lambda p: p[0] + p[1] * x, y, LINE, 0.05, bootstrap=False)
        hits += (fit.intervals[:, 0] <= TRUE) & (fit.intervals[:, 1] >= TRUE)
    assert np.all(hits >= 180)
    assert np.all(hits < 200)


def test_a_bootstrap_only_widens_the_intervals_of_few_points() -> None:
    y = line(TRUE) * np.exp(0.05 * np.random.default_rng(7).standard_normal(N.size))
    plain, wide = (robust_fit(line, y, LINE, 0.05, bootstrap=one) for one in (False, True))
    assert np.all(wide.intervals[:, 0] <= plain.intervals[:, 0])
    assert np.all(wide.intervals[:, 1] >= plain.intervals[:, 1])


def test_one_wrong_row_hardly_moves_the_fit() -> None:
    y = line(TRUE) * np.exp(0.02 * np.random.default_rng(3).standard_normal(N.size))
    before = robust_fit(line, y, LINE, bootstrap=False).values
    y[6] *= 3.0
    after = robust_fit(line, y, LINE, bootstrap=False).values
    assert np.all(np.abs(after / before - 1) < 0.06)


def test_a_product_that_cannot_be_told_apart_is_named() -> None:
    pair = (*LINE, Parameter("share", 0.5, 0.01, 1.0))
    fit = robust_fit(lambda p: p[0] + p[1] / p[2] * N, line(TRUE), pair, bootstrap=False)
    (combination,) = fit.unidentified()
    assert set(combination) == {"slope", "share"}
    assert combination["slope"] == pytest.approx(combination["share"], rel=1e-3)


def test_a_parameter_without_effect_is_named_and_infinitely_uncertain() -> None:
    fit = robust_fit(lambda p: 0 * p[0] + p[1] * N, 3.0 * N, (LINE[0], Parameter("slope", 1, 0.1, 9)), bootstrap=False)
    assert fit.unidentified() == ({"fixed": 1.0},)
    assert np.isinf(fit.covariance[0, 0])


def test_a_floor_that_never_acts_leaves_the_others_as_sure_as_without_it() -> None:
    y = line(TRUE) * np.exp(0.03 * np.random.default_rng(1).standard_normal(N.size))
    floor = (*LINE, Parameter("floor", 1e-6, 1e-9, 1e-1))
    for bootstrap in (False, True):
        plain = robust_fit(line, y, LINE, bootstrap=bootstrap)
        fit = robust_fit(lambda p: np.maximum(line(p), p[2]), y, floor, bootstrap=bootstrap)
        assert np.isinf(fit.covariance[2, 2])
        # One parameter more counts as used up when the scale is read off the residuals, so not quite the same.
        np.testing.assert_allclose(fit.covariance[:2, :2], plain.covariance, rtol=0.5)
        np.testing.assert_allclose(np.log(fit.intervals[:2]), np.log(plain.intervals), atol=0.03)
        assert fit.intervals[2].tolist() == pytest.approx([1e-9, 1e-1])


def test_of_a_product_the_factors_are_open_and_what_stands_apart_is_not() -> None:
    y = line(TRUE) * np.exp(0.03 * np.random.default_rng(2).standard_normal(N.size))
    plain = robust_fit(line, y, LINE, bootstrap=False)
    pair = (*LINE, Parameter("share", 0.5, 0.01, 1.0))
    fit = robust_fit(lambda p: p[0] + p[1] / p[2] * N, y, pair, bootstrap=False)
    assert np.isinf(np.diag(fit.covariance)).tolist() == [False, True, True]
    assert fit.covariance[0, 0] == pytest.approx(plain.covariance[0, 0], rel=0.5)
    assert np.all(fit.covariance[0, 1:] == 0)


def test_bounds_hold_and_are_reported() -> None:
    fit = robust_fit(line, line(TRUE), (LINE[0], Parameter("slope", 2e-8, 1e-9, 1e-7)), bootstrap=False)
    assert fit.at_bound == ("slope",)
    assert fit.values[1] == pytest.approx(1e-7)


def test_cross_validation_predicts_what_it_has_not_seen() -> None:
    """By hand: of a constant the prediction of a point is the robust mean of the others."""
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.5])
    errors = cross_validate(lambda p, rows: np.full(rows.size, p[0]), y, [Parameter("a", 1, 0.1, 10)])
    assert errors[4] == pytest.approx(1 / 1.5 - 1, abs=1e-6)
    assert np.all(errors[:4] >= 0)


@pytest.mark.parametrize(
    ("measured", "noise", "start", "message"),
    [
        ([1.0], 0.1, 0.5, "1 points cannot determine 2 parameters"),
        ([1.0, -1.0, 2.0], 0.1, 0.5, "measurements must be finite and positive"),
        ([1.0, 1.0, 2.0], 0.0, 0.5, "noise must be finite and positive"),
        ([1.0, 1.0, 2.0], 0.1, 2.0, r"parameter b starts at 2, outside \[0.1, 1\]"),
    ],
)
def test_refusals(measured: list[float], noise: float, start: float, message: str) -> None:
    parameters = [Parameter("a", 1, 0.1, 10), Parameter("b", start, 0.1, 1)]
    with pytest.raises(ValueError, match=message):
        robust_fit(lambda p: np.full(len(measured), p[0]), np.array(measured), parameters, noise)
