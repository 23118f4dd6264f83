"""Efficiency of the experts and its inverse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.closed_forms.experts import (
    efficiency,
    efficiency_merged,
    inflection,
    tokens_for_efficiency,
    tokens_merged,
)
from asapmodel.costing import layer_costs
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.systems.arrays import make_requests

positive = st.floats(1e-3, 1e3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(m0=positive, m1=positive, h=st.floats(0.0, 100.0), r0=st.floats(0.0, 10.0), share=st.floats(0.01, 0.95))
def test_tokens_reach_the_wanted_efficiency(m0: float, m1: float, h: float, r0: float, share: float) -> None:
    x = {"m0": m0, "m1": m1, "h": h, "r0": r0, "r1": 0.3 * m1}
    n = float(tokens_for_efficiency().numeric(**x, eta=share))
    assert float(efficiency().numeric(**x, n=n)) == pytest.approx(share, rel=1e-9)
    eta = share / 1.3
    n = float(tokens_merged().numeric(**x, eta=eta))
    assert float(efficiency_merged().numeric(**x, n=n)) == pytest.approx(eta, rel=1e-9)


def test_unreachable_efficiency_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens_for_efficiency_merged holds for"):
        tokens_merged().numeric(m0=1.0, m1=1.0, h=0.0, r0=0.1, r1=1.0, eta=0.6)
    with pytest.raises(ValueError, match="tokens_for_efficiency holds for"):
        tokens_for_efficiency().numeric(m0=1.0, m1=1.0, h=0.0, eta=1.0)


def test_efficiency_is_busy_time_of_the_linear_part() -> None:
    """On the engine: m1 times the tokens, over the time the experts are busy."""
    costs = layer_costs(Scenario.load("paper-asap")).costs
    policy = Policy(super_kernel=False, batch_window=0.0)
    for n in (500, 3000, 9000):
        done = run(Layout("asap", 1, 4, 16), policy, costs, make_requests(np.zeros(1), np.array([n])))
        share = costs.moe.per_token * n * costs.layers / done.busy_s["moe"]
        x = {"m0": costs.moe.floor, "m1": costs.moe.per_token, "h": costs.host_dispatch, "n": n}
        assert float(efficiency().numeric(**x)) == pytest.approx(share, rel=1e-9)
        assert efficiency().regime(**x) == ("linear" if n > 3406 else "plateau")


def test_the_papers_minimum_batch() -> None:
    """2048 tokens are 60 % of what the experts could do per second; 90 % takes 3065, 3406 all."""
    moe = layer_costs(Scenario.load("paper-asap")).costs.moe
    x = {"m0": moe.floor, "m1": moe.per_token, "h": 0.0}
    assert float(inflection().numeric(**x)) == pytest.approx(3405.8, abs=0.1)
    assert float(efficiency().numeric(**x, n=2048)) == pytest.approx(0.601, abs=0.001)
    assert float(tokens_for_efficiency().numeric(**x, eta=0.9)) == pytest.approx(3065.2, abs=0.1)
