"""Finite runs from the stationary law: exact for a queue whose transient is known, limits, continuity, graph engine."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

import asapmodel as am
from asapmodel.costing import layer_costs
from asapmodel.engines.analysis import Analysis, ByLength, Point, TtftLaw
from asapmodel.engines.horizon import HorizonLaw
from asapmodel.solvers.queue_errors import MomentError, UnstableError
from asapmodel.verbs.evaluate import prepare
from tests.solvers.transient_mmc import birth_death, stationary_wait_tail, wait_tail

Floats = NDArray[np.float64]


def classes(mean: float, p95: float) -> ByLength:
    return ByLength(np.array([100.0, 5000.0]), np.array([0.5, 0.5]), np.array([mean, mean]), np.array([p95, p95]))


@dataclass(frozen=True)
class WaitOnly:
    """M/M/c, TTFT its wait and a constant."""

    servers: int
    kernel: float = 0.3
    asked: list[float] = field(default_factory=list)

    @property
    def saturation_rps(self) -> float:
        return float(self.servers)

    def at(self, rate: float) -> Point:
        self.asked.append(rate)
        if rate >= self.servers:
            raise UnstableError(rate / self.servers)
        decay = self.servers - rate
        time = np.concatenate([[0.0], np.linspace(0, 14 / decay, 300)]) + self.kernel
        tail = np.append(1.0, stationary_wait_tail(rate, 1.0, self.servers, time[1:] - self.kernel))
        waits = float(tail[1])
        std = np.sqrt(waits * (2 - waits)) / decay
        law = TtftLaw(time, np.append(1 - tail[:-1], 1.0), self.kernel + waits / decay, float(std))
        by_length = classes(law.mean, law.quantile(0.95))
        load = rate / self.servers
        busy = {"moe": load, "engine": 1.5 * load / (1 + 0.5 * load)}  # of which the second has costs that are shared
        return Point(rate, law, waits / decay, self.kernel, 0.0, busy, 100.0, 0.0, by_length)


@dataclass(frozen=True)
class Constant:
    """Nothing varies: every request takes the same time below saturation."""

    saturation_rps: float = 2.0

    def at(self, rate: float) -> Point:
        law = TtftLaw(np.array([0.4]), np.array([1.0]), 0.4, 0.0)
        return Point(rate, law, 0.0, 0.4, 0.0, {"moe": rate / 2}, 100.0, 0.0, classes(0.4, 0.4))


def exact(servers: int, load: float, horizon: float, kernel: float) -> tuple[float, float, float]:
    """Mean, 0.95 and 0.99 quantile of the finite run."""
    states = servers + int(max(load - 1, 0.0) * servers * horizon + 12 * np.sqrt(2 * servers * horizon))
    time = np.linspace(0, states / servers, 1500)
    law = birth_death(load * servers, 1.0, servers, horizon, states)[1]
    tail = wait_tail(law, 1.0, servers, time)
    quantiles = np.interp([-0.05, -0.01], -tail, time)
    return kernel + float(np.trapezoid(tail, time)), kernel + float(quantiles[0]), kernel + float(quantiles[1])


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("load", [0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1, 1.2])
@pytest.mark.parametrize("horizon", [100.0, 600.0])
def test_agrees_with_the_exact_transient(servers: int, load: float, horizon: float) -> None:
    point = HorizonLaw(WaitOnly(servers), horizon).at(load * servers)
    law = point.ttft
    assert (law.mean, law.quantile(0.95), law.quantile(0.99)) == pytest.approx(
        exact(servers, load, horizon, 0.3), rel=0.012
    )
    assert point.queueing_s + point.kernel_s + point.waiting_s == pytest.approx(law.mean)
    assert law.mean == pytest.approx(law.time[0] + np.trapezoid(1 - law.cdf, law.time), rel=2e-3)
    square = law.time[0] ** 2 + np.trapezoid(2 * law.time * (1 - law.cdf), law.time)
    assert law.std == pytest.approx(np.sqrt(square - law.mean**2), rel=0.01)


@pytest.mark.parametrize("servers", [1, 4])
def test_monotone_and_continuous_in_the_rate(servers: int) -> None:
    law = HorizonLaw(WaitOnly(servers), 300.0)
    loads = np.linspace(0.05, 1.6, 400)
    points = [law.at(load * servers) for load in loads]
    for values in (
        np.array([point.ttft.mean for point in points]),
        np.array([point.ttft.quantile(0.95) for point in points]),
        np.array([point.ttft.quantile(0.99) for point in points]),
    ):
        assert (np.diff(values) > -1e-3 * values[:-1]).all()
        steps = np.diff(np.log(values))
        smooth = np.maximum(steps[:-2], steps[2:])
        assert (steps[1:-1] <= 1.5 * smooth + 0.01).all(), "no jump, neither where the law changes nor at saturation"


def test_monotone_in_the_horizon_up_to_the_stationary_law() -> None:
    stationary = WaitOnly(1).at(0.9).ttft
    means = [
        HorizonLaw(WaitOnly(1), horizon).at(0.9).ttft.mean for horizon in (3.0, 30.0, 300.0, 3000.0, 3e4, 3e5, 3e6)
    ]
    assert (np.diff(means) > 0).all()
    assert means[-1] == pytest.approx(stationary.mean, rel=1e-3)
    assert means[0] < 0.2 * stationary.mean
    very_long = HorizonLaw(WaitOnly(1), 1e9)
    for load in (0.3, 0.8, 0.99):
        assert very_long.at(load).ttft.quantile(0.95) == pytest.approx(
            WaitOnly(1).at(load).ttft.quantile(0.95), rel=2e-3
        )


def test_asks_for_two_rates_and_its_own() -> None:
    analysis = WaitOnly(4)
    law = HorizonLaw(analysis, 300.0)
    for rate in (3.9, 4.0, 5.0):
        law.at(rate)
    assert len(analysis.asked) == 2
    assert max(analysis.asked) < 4
    law.at(2.0)
    assert analysis.asked[2:] == [2.0]
    assert law.saturation_rps == 4.0


def test_far_above_saturation_the_backlog_decides() -> None:
    point = HorizonLaw(WaitOnly(2), 1000.0).at(4.0)
    assert point.ttft.mean == pytest.approx(500, rel=0.02)
    assert point.ttft.quantile(0.5) == pytest.approx(500, rel=0.02)
    assert point.ttft.std == pytest.approx(1000 / np.sqrt(12), rel=0.03)
    assert point.utilisation["moe"] == pytest.approx(1.0, abs=0.03)
    assert point.utilisation["engine"] == pytest.approx(1.0, abs=0.03)
    assert point.by_length.mean_s == pytest.approx(point.ttft.mean)


def test_nothing_varies() -> None:
    law = HorizonLaw(Constant(), 100.0)
    assert law.at(1.5).ttft.mean == pytest.approx(0.4, abs=1e-3)
    assert law.at(3.0).ttft.mean == pytest.approx(0.4 + 25, rel=0.01)
    assert law.at(3.0).ttft.quantile(0.5) == pytest.approx(0.4 + 25, rel=0.01)


def test_refusals() -> None:
    with pytest.raises(MomentError, match="rate"):
        HorizonLaw(WaitOnly(1), 300.0).at(0.0)
    with pytest.raises(MomentError, match="horizon"):
        HorizonLaw(WaitOnly(1), 0.0).at(0.5)


class LongRuns:
    """Stationary law of a scenario from one long run of the graph engine a rate."""

    def __init__(self, scenario: am.Scenario, requests: int) -> None:
        self.scenario, self.requests, self.costing = scenario, requests, layer_costs(scenario)
        backlog = prepare(scenario, 91, self.costing)
        ends = np.sort(backlog.run(backlog.traffic.backlog(requests)).outcome.end)
        middle = ends[len(ends) // 20 : -len(ends) // 20]
        self._saturation = (len(middle) - 1) / float(middle[-1] - middle[0])

    @property
    def saturation_rps(self) -> float:
        return self._saturation

    def at(self, rate: float) -> Point:
        ready = prepare(self.scenario.replace(duration=self.requests / rate), 92, self.costing)
        ttft = ready.ttft(rate)[1000:]
        share = np.concatenate([np.linspace(0, 0.99, 300), 1 - np.geomspace(0.01, 1e-5, 60)[1:], [1.0]])
        law = TtftLaw(np.quantile(ttft, share), share, float(ttft.mean()), float(ttft.std()))
        return Point(rate, law, law.mean, 0.0, 0.0, {}, 0.0, 0.0, classes(law.mean, law.quantile(0.95)))


@pytest.mark.slow
def test_agrees_with_short_runs_of_the_graph_engine() -> None:
    """Synchronous system, 300 s: the stationary law is that of long runs, so that only what this module adds counts."""
    scenario = am.Scenario.load("paper-default")
    analysis: Analysis = LongRuns(scenario, 3_000_000)
    law = HorizonLaw(analysis, 300.0)
    runs = [prepare(scenario, 5000 + seed, layer_costs(scenario)) for seed in range(400)]
    for load in (0.8, 0.95, 1.05):
        ttft = np.concatenate([ready.ttft(load * analysis.saturation_rps) for ready in runs])
        point = law.at(load * analysis.saturation_rps)
        assert point.ttft.mean == pytest.approx(ttft.mean(), rel=0.07)
        assert point.ttft.quantile(0.95) == pytest.approx(np.quantile(ttft, 0.95), rel=0.08)
