import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from asapmodel.workload import Traffic, length_law

PAPER = Scenario.load("paper-asap")
TRACE = Scenario.load("trace-asap")


@settings(max_examples=25, deadline=None)
@given(st.floats(0.2, 20.0), st.floats(0.2, 20.0), st.integers(0, 2**31))
def test_two_rates_share_their_numbers(one: float, two: float, seed: int) -> None:
    """Arrival i at rate r is unit time i over r, its length the same, whichever rate is asked first."""
    traffic = Traffic(PAPER.workload, seed)
    a, b = traffic.at(one), traffic.at(two)
    again = Traffic(PAPER.workload, seed).at(two)
    count = min(len(a.arrival), len(b.arrival))
    np.testing.assert_allclose(a.arrival[:count] * one, b.arrival[:count] * two, rtol=1e-12)
    np.testing.assert_array_equal(a.prompt[:count], b.prompt[:count])
    np.testing.assert_array_equal(b.arrival, again.arrival)
    np.testing.assert_array_equal(b.prompt, again.prompt)
    assert a.arrival[-1] <= 300.0


def test_drawn_traffic_has_the_law() -> None:
    scenario = PAPER.replace(duration="5000 s")
    requests = Traffic(scenario.workload).at(20.0)
    law = length_law(scenario.workload)
    count = len(requests.prompt)
    assert abs(count / 100_000 - 1) < 4 / 100_000**0.5
    assert abs(requests.prompt.mean() / law.mean - 1) < 4 * law.scv**0.5 / count**0.5
    assert requests.prompt.min() >= 31
    assert requests.prompt.max() <= 32768


def test_gamma_arrivals_have_their_variation() -> None:
    scenario = PAPER.replace(arrivals="gamma", cv=2.5, duration="5000 s")
    gaps = np.diff(Traffic(scenario.workload).at(20.0).arrival)
    assert gaps.std() / gaps.mean() == pytest.approx(2.5, rel=0.03)


def test_replay_keeps_order_lengths_and_cached_tokens() -> None:
    traffic = Traffic(TRACE.workload)
    assert traffic.natural_rate is not None
    slow, fast = traffic.at(2.0), traffic.at(8.0)
    np.testing.assert_array_equal(slow.prompt, fast.prompt)
    np.testing.assert_array_equal(slow.cached, fast.cached)
    np.testing.assert_allclose(slow.arrival, 4 * fast.arrival, rtol=1e-9, atol=1e-9)
    assert slow.cached.sum() > 0
    assert len(slow.arrival) / slow.arrival[-1] == pytest.approx(2.0, rel=1e-3)


def test_duration_cuts_a_replay() -> None:
    short = Traffic(TRACE.replace(duration="60 s").workload).at(4.0)
    assert short.arrival[-1] <= 60.0
    assert len(short.arrival) < 400


def test_lengths_of_a_trace_come_with_their_cached_prefix() -> None:
    scenario = PAPER.replace(lengths={"trace": "mooncake_conversation"})
    requests = Traffic(scenario.workload).at(10.0)
    recorded = Traffic(TRACE.workload).at(1.0)
    pairs = set(zip(recorded.prompt.tolist(), recorded.cached.tolist(), strict=True))
    assert set(zip(requests.prompt.tolist(), requests.cached.tolist(), strict=True)) <= pairs


def test_too_few_and_too_many_requests_are_refused() -> None:
    with pytest.raises(InputError, match="no request arrives"):
        Traffic(PAPER.replace(duration="1 ms").workload).at(0.1)
    with pytest.raises(InputError, match="2e\\+07 at most"):
        Traffic(PAPER.workload).at(1e6)


def test_all_prompts_excluded_is_refused() -> None:
    with pytest.raises(InputError, match="no prompt has between"):
        Traffic(TRACE.replace(min_prompt_tokens=31, max_prompt_tokens=100).workload)
