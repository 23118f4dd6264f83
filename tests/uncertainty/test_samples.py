"""Draws: seeds, systems without an answer, scenarios drawn together, what is taken as exact."""

import os

import numpy as np
import pytest

import asapmodel as am
from asapmodel.engines.screening import screen
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.uncertainties import sampling
from asapmodel.uncertainties.answer import interval_of
from asapmodel.uncertainties.drawing import draw
from asapmodel.uncertainties.engine_error import THROUGHPUT
from asapmodel.verbs.prepared import prepare
from tests.test_docs import DOCS
from tests.uncertainty.systems import toy


def test_same_seed_same_answer_whatever_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = toy('costs.moe = "10 %"', 'costs.attention = "10 %"')
    first = am.uncertainty(scenario, 100.0, samples=32, seed=5)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert am.uncertainty(scenario, 100.0, samples=32, seed=5) == first
    other = am.uncertainty(scenario, 100.0, samples=32, seed=6)
    assert other.throughput.low != first.throughput.low
    assert other.throughput.low == pytest.approx(first.throughput.low, rel=0.03)


def test_unstable_and_missed_are_counted() -> None:
    scenario = toy(together=0.3).replace(ttft=0.03)
    limit = am.capacity(scenario).stability_limit_rps
    found = am.uncertainty(scenario, 0.95 * limit, samples=64)
    assert found.ttft_mean is not None
    assert np.isinf(found.ttft_mean.high)
    assert 20 <= found.unstable <= 40  # f > 1 / 0.95 with f ~ N(1, 0.3): 43 %
    assert found.failed == 0
    strict = toy(together=0.3).replace(ttft=1.15 * am.evaluate(toy(), 1e-3).ttft.mean_s)
    missing = am.uncertainty(strict, samples=64)
    assert 15 <= missing.missed <= 30  # f > 1.15: 31 %
    assert missing.throughput.low == 0


def test_systems_without_an_answer_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(problem, *rest, **more):  # type: ignore[no-untyped-def]
        if problem.costs.moe.per_token > 2.1e-7:
            raise QueueError("too slow")
        return screen(problem, *rest, **more)

    monkeypatch.setattr(sampling, "screen", refuse)
    found = am.uncertainty(toy('costs.moe = "10 %"'), samples=64)
    assert 15 <= found.failed <= 25  # above 1.05: 31 %
    assert found.throughput.low > am.uncertainty(toy('costs.moe = "1 %"'), samples=16).throughput.low * 0.9


def test_gain_of_a_system_over_itself_is_certain() -> None:
    one = toy(together=0.2)
    answers, gains = am.uncertain_gains([one, one.replace(name="again")], samples=32)
    assert answers[0].throughput == answers[1].throughput
    (gain,) = gains
    assert (gain.scenario, gain.over) == ("again", "toy")
    assert (gain.ratio.low, gain.ratio.value, gain.ratio.high) == pytest.approx((1.0, 1.0, 1.0))
    assert gain.apart[0] < 0.8
    assert gain.apart[1] > 1.25


def test_words_of_different_scenarios_are_drawn_apart() -> None:
    first, second = toy('costs.moe = "10 %"'), toy('costs.moe = "9 %"').replace(name="other")
    _, (gain,) = am.uncertain_gains([first, second], samples=64)
    assert gain.ratio.high / gain.ratio.low > 1.1


def test_what_has_no_stated_error_is_listed() -> None:
    found = am.uncertainty(toy('costs.moe = "10 %"'), samples=16)
    exact = {one.key: one for one in found.exact}
    assert "costs.moe.per_token" not in exact
    assert exact["costs.attention.per_token"].kind == "override"
    assert -1 < exact["costs.attention.per_token"].elasticity < -0.1
    assert abs(found.exact[0].elasticity) == max(abs(one.elasticity) for one in found.exact)
    nothing = am.uncertainty(toy(), samples=16)
    assert (nothing.constants, nothing.measurements, nothing.best) == ((), (), None)
    assert nothing.throughput.low == nothing.throughput.value == nothing.throughput.high


def test_shipped_profile_says_what_its_sources_say() -> None:
    found = am.uncertainty(am.Scenario.load("paper-chunked"), samples=32)
    assert {one.key.removeprefix("cluster.profile.") for one in found.constants} == {
        "gemm",
        "expert_load_cv",
        "collective_link",
    }
    assert found.best is not None
    assert found.best.name == "spread of expert load"
    assert found.best.width < 0.3
    assert {"cluster.profile.core", "cluster.int8_flops"} <= {one.key for one in found.exact}
    assert "cluster.profile.send_latency" not in {one.key for one in found.exact}  # without effect here, not exact


def test_engine_error_is_that_of_the_page() -> None:
    page = (DOCS / "engines.md").read_text()
    for kind, name in (("sync", "synchronous"), ("asap", "asynchronous")):
        row = next(line for line in page.splitlines() if line.startswith(f"| {name} | SLO throughput |"))
        held_out = row.split("|")[10].strip()
        median, most = THROUGHPUT[kind]
        assert held_out == f"{100 * median:.1f}% / {100 * most:.1f}%"


def test_interval_knows_infinity() -> None:
    found = interval_of(1.0, np.array([1.0, 2.0, np.inf, np.inf, np.nan]), 0.9)
    assert found.low == pytest.approx(1.15)
    assert np.isinf(found.high)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"samples": 3}, "samples: is 3"), ({"level": 1.0}, "level: is 1"), ({"noise": -1.0}, "noise: is -1")],
)
def test_arguments_are_checked(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.uncertainty(toy(), **arguments)  # type: ignore[arg-type]


def test_finite_runs_and_missed_objectives_are_refused() -> None:
    with pytest.raises(am.InputError, match=r"workload\.horizon: cannot be combined"):
        am.uncertainty(toy().replace(horizon="60 s"))
    with pytest.raises(am.NoAnswer, match="missed at every rate"):
        am.uncertainty(toy().replace(ttft=1e-6))


def test_short_walks_follow_the_full_effort() -> None:
    """The drawn systems' ratios to the system of the estimates are those of the engine's full effort."""
    scenario = am.Scenario.load("paper-chunked")
    (found,) = draw([prepare(scenario)], 4.0, 6, 3, None)
    for k, row in enumerate(found.values.tolist()):
        changes = {one.key: value for one, value in zip(found.sources.constants, row, strict=True)}
        ready = prepare(scenario.replace(**changes))
        full = am.capacity(ready.scenario, prepared=ready).slo_throughput_rps
        assert found.answers.throughput[k] == pytest.approx(full, rel=5e-3)
        assert found.answers.limit[k] == pytest.approx(ready.analysis.saturation_rps, rel=5e-3)
        assert found.answers.mean[k] == pytest.approx(
            am.evaluate(ready.scenario, 4.0, prepared=ready).ttft.mean_s, rel=0.02
        )
