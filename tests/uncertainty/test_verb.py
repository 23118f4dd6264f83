"""Intervals against exact laws of scaling, shares and narrowings against what they must be."""

import numpy as np
import pytest
from scipy.stats import norm

import asapmodel as am
from asapmodel.solvers.marginals import Marginal
from asapmodel.uncertainties.sampling import Look, sample
from asapmodel.uncertainties.sources import Source, Sources
from asapmodel.verbs.prepared import prepare
from tests.uncertainty.systems import toy

FACTORS = ("attention", "dispatch_send", "dispatch_recv", "moe")


def common_factor() -> Sources:
    law = Marginal("uniform", 1.0, 0.5, 2.0)
    return Sources(tuple(Source(f"costs.{name}", law, 1.0, "") for name in FACTORS), np.eye(4))


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_throughput_is_inverse_to_a_clock(factor: float) -> None:
    """All times and the objective by x: throughput and limit by 1/x, TTFT at a rate by 1/x times x; exactly."""
    plain, clock = toy(), toy().replace(ttft=2.0 * factor)
    problem, rate = prepare(plain).problem, 100.0
    one = sample(plain, problem, common_factor(), np.ones((1, 4)), Look(rate, (0.3, 0.5)))
    other = sample(clock, problem, common_factor(), np.full((1, 4), factor), Look(rate / factor, (0.3, 0.5)))
    assert other.throughput[0] * factor == pytest.approx(one.throughput[0], rel=1e-9)
    assert other.limit[0] * factor == pytest.approx(one.limit[0], rel=1e-9)
    assert other.mean[0] / factor == pytest.approx(one.mean[0], rel=1e-9)
    assert other.p99[0] / factor == pytest.approx(one.p99[0], rel=1e-9)


def test_interval_of_a_normal_clock_is_known() -> None:
    """One factor f ~ N(1, 0.1) on all costs: the limit is that of the estimates over f."""
    found = am.uncertainty(toy(together=0.1), samples=128)
    high, low = norm(1.0, 0.1).ppf([0.05, 0.95])
    assert found.limit.value / found.limit.low == pytest.approx(low, rel=0.01)
    assert found.limit.value / found.limit.high == pytest.approx(high, rel=0.01)
    assert found.linear is not None
    # The SLO throughput goes nearly the same way: the objective is far beyond the service time.
    assert found.linear[0] == pytest.approx(found.throughput.low, rel=0.03)
    assert found.linear[1] == pytest.approx(found.throughput.high, rel=0.03)
    assert found.explained > 0.999


def width(scenario: am.Scenario) -> float:
    found = am.uncertainty(scenario, samples=32).throughput
    return (found.high - found.low) / found.value


def test_covariance_is_honoured() -> None:
    """Send and receive have equal costs, one after the other: opposite errors cancel, common ones double."""

    def pair(correlation: float) -> am.Scenario:
        off = 0.04 * correlation
        keys = '["costs.dispatch_send", "costs.dispatch_recv"]'
        return toy(f"covariance = {{ keys = {keys}, matrix = [[0.04, {off}], [{off}, 0.04]] }}")

    opposite, apart, same = (width(pair(value)) for value in (-1.0, 0.0, 1.0))
    assert opposite < 1e-6  # not 0: the laws are cut at a hundredth, five deviations away
    assert same > 0.05
    assert same / apart == pytest.approx(np.sqrt(2), rel=0.15)


def test_shares_and_narrowing() -> None:
    """Nearly linear: a group that is known takes its share of the variance away."""
    lines = ('costs.moe = "12 %"', 'costs.dispatch_send = "20 %"', 'costs.attention = "10 %"')
    found = am.uncertainty(toy(*lines), samples=64, noise=0.0)
    by_key = {one.key: one for one in found.constants}
    assert next(one.key for one in found.constants) == "costs.moe"
    assert sum(one.alone for one in found.constants) == pytest.approx(1.0, abs=0.03)
    assert sum(one.total for one in found.constants) >= 0.99
    best = found.best
    assert best is not None
    assert (best.name, best.constants) == ("expert kernels", ("costs.moe",))
    left = np.sqrt(1 - by_key["costs.moe"].total)
    assert best.width == pytest.approx(left, rel=0.12)
    assert best.throughput_high - best.throughput_low == pytest.approx(left * found.throughput.width, rel=0.15)
    widths = [one.width for one in found.measurements]
    assert widths == sorted(widths)
    # A measurement as vague as what is known already leaves more.
    vague = am.uncertainty(toy(*lines), samples=64, noise=0.12).best
    assert vague is not None
    assert best.width < vague.width < 1


def test_known_everything_leaves_nothing() -> None:
    found = am.uncertainty(toy('costs.moe = "10 %"'), samples=32, noise=0.0)
    assert found.best is not None
    assert found.best.width < 1e-6
