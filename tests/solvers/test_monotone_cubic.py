"""The monotone cubic interpolant against SciPy's, and its defining property."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from asapmodel.solvers.monotone_cubic import MonotoneCubic


@given(st.integers(0, 10**6), st.integers(2, 9), st.booleans())
def test_equals_scipy(seed: int, nodes: int, rising: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.uniform(0.01, 2.0, nodes))
    y = rng.normal(size=(nodes, 4)).round(1)  # rounded: equal neighbours occur
    y = np.sort(y, axis=0) if rising else y
    at = np.concatenate([x, rng.uniform(x[0], x[-1], 50)])
    assert MonotoneCubic(x, y)(at) == pytest.approx(PchipInterpolator(x, y, axis=0)(at), rel=1e-11, abs=1e-11)
    assert MonotoneCubic(x, y[:, 0])(at) == pytest.approx(PchipInterpolator(x, y[:, 0])(at), rel=1e-11, abs=1e-11)


@given(st.integers(0, 10**6), st.integers(2, 9))
def test_rises_where_the_data_rise(seed: int, nodes: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.uniform(0.01, 2.0, nodes)), np.cumsum(rng.exponential(size=nodes) ** 3)
    assert np.all(np.diff(MonotoneCubic(x, y)(np.linspace(x[0], x[-1], 500))) >= -1e-9 * y[-1])


def test_two_nodes_make_a_line() -> None:
    assert MonotoneCubic([1.0, 3.0], [2.0, 6.0])([0.0, 2.0, 4.0]).tolist() == [0.0, 4.0, 8.0]


@pytest.mark.parametrize(("x", "y"), [([1.0], [1.0]), ([1.0, 1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])])
def test_refuses_what_is_no_curve(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="strictly ascending"):
        MonotoneCubic(x, y)
