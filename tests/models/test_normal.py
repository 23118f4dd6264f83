"""The normal law by the standard library against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr, ndtri

from asapmodel.models.normal import log_cdf, normal_cdf, normal_quantile


@given(st.lists(st.floats(-45.0, 45.0), max_size=20))
def test_equals_scipy(points: list[float]) -> None:
    x = np.array(points, dtype=np.float64)
    rounding = 5e-13  # of x^2 in exp(-x^2/2), up to |x| = 45
    assert normal_cdf(x) == pytest.approx(ndtr(x), rel=rounding, abs=0.0)
    assert log_cdf(x) == pytest.approx(log_ndtr(x), rel=rounding, abs=0.0)


@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_quantile_equals_scipy(shares: list[float]) -> None:
    p = np.array(shares, dtype=np.float64)
    assert normal_quantile(p) == pytest.approx(ndtri(p), rel=1e-12, abs=1e-15)


def test_many_and_few_agree() -> None:
    x = np.linspace(-29.0, 29.0, 4097)
    p = np.linspace(1e-9, 1.0 - 1e-9, 4097)
    assert normal_cdf(x)[1:] == pytest.approx(normal_cdf(x[1:]), rel=1e-13)
    assert log_cdf(x)[1:] == pytest.approx(log_cdf(x[1:]), rel=1e-13)
    assert normal_quantile(p)[1:] == pytest.approx(normal_quantile(p[1:]), rel=1e-12, abs=1e-15)


def test_shapes_are_kept() -> None:
    assert normal_cdf(np.zeros((2, 3))).shape == (2, 3)
    assert float(normal_quantile(np.array(0.5))) == 0.0
