import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.solvers.roots import NoCrossing, find_crossing


@given(
    st.floats(0.5, 50.0),
    st.floats(0.05, 20.0),
    st.floats(0.01, 0.9),
    st.floats(1.01, 3.0),
    st.sampled_from([1e-2, 1e-4]),
)
def test_mm1_response_time(mu: float, level_services: float, first: float, width: float, tolerance: float) -> None:
    """1/(mu - x) = level at x = mu - 1/level; infinite from mu on."""
    level = (1 + level_services) / mu
    calls = []

    def response(x: float) -> float:
        calls.append(x)
        return 1 / (mu - x) if x < mu else math.inf

    found = find_crossing(response, level, first * mu, first * mu * width, tolerance)
    exact = mu - 1 / level
    assert found.low <= exact * (1 + 1e-12)
    assert found.high >= exact * (1 - 1e-12)
    assert found.high - found.low <= tolerance * found.high
    assert found.low <= found.estimate <= found.high
    assert len(calls) == len(set(calls))
    assert len(calls) < 60


def test_above_everywhere() -> None:
    with pytest.raises(NoCrossing, match="above 1"):
        find_crossing(lambda x: 2.0 + x, 1.0, 1.0, 2.0)


def test_below_everywhere() -> None:
    with pytest.raises(NoCrossing, match="not above"):
        find_crossing(lambda x: 0.5, 1.0, 1.0, 2.0, limit=100.0)
