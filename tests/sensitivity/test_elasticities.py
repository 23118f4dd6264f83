"""Elasticities against what must hold of them: the unit of time, exact queues, and the graph engine."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import asapmodel as am
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.analysis import Problem, Prompts
from asapmodel.engines.graph import run
from asapmodel.engines.queueing import analyse
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.policy import Layout, Policy
from asapmodel.sensitivity.elasticities import (
    Elasticity,
    Point,
    elasticities,
    objective_elasticity,
    rate_elasticity,
)
from asapmodel.sensitivity.knobs import knobs_of, scaled_times
from asapmodel.sensitivity.local import Change, Curve, NoLocalAnswer, Walked, changed
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.prepared import Prepared, prepare

NAMES = ["paper-asap", "paper-default", "paper-chunked", "afd-async", "afd-sync"]
WALKED = [pytest.param(name, marks=[pytest.mark.slow] if name == "afd-async" else []) for name in NAMES]


@cache
def ready(name: str) -> Prepared:
    return prepare(am.Scenario.load(name))


@cache
def curve(name: str) -> Curve:
    return Curve(ready(name).analysis, lambda law: law.mean)


@cache
def point(name: str) -> Point:
    rate = curve(name).limit * curve(name).load_at(5.0)
    return Point(5.0, rate, 0.8 * rate)


@cache
def found(name: str) -> dict[str, Elasticity]:
    problem = ready(name).problem
    return {one.name: one for one in elasticities(problem, curve(name), point(name), knobs_of(problem), range(4))}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [0.5, 2.0, 8.0])
def test_another_unit_of_time_is_exact(name: str, factor: float) -> None:
    """A power of two is exact in floating point, so the schedule is the same bit by bit."""
    problem, loads = ready(name).problem, (0.8, 0.95)
    before = Walked.of(problem, curve(name), loads)
    after = Walked.of(scaled_times(problem, factor), curve(name), loads)
    assert after.limit == pytest.approx(before.limit / factor, rel=1e-14)
    assert after.ttft == pytest.approx([factor * one for one in before.ttft], rel=1e-13)
    change = changed(curve(name), before, after, 0)
    rate = 0.7 * curve(name).limit
    assert change.ttft_at(rate / factor) == pytest.approx(factor * curve(name).at(0.7), rel=1e-12)
    assert change.throughput(5.0 * factor) == pytest.approx(point(name).throughput_rps / factor, rel=1e-9)


@pytest.mark.parametrize("name", WALKED)
def test_sums_are_those_of_the_unit_of_time(name: str) -> None:
    """Euler's theorem, within the errors that are stated and 0.03 for the step."""
    times = [one for one in found(name).values() if one.name.startswith("costs.") or one.name == "policy.batch_window"]
    throughput = sum(one.throughput for one in times) + objective_elasticity(curve(name), point(name))
    ttft = sum(one.ttft for one in times) - rate_elasticity(curve(name), point(name).rate_rps)
    assert sum(one.limit for one in times) == pytest.approx(-1.0, abs=0.03)
    throughput_error = math.sqrt(sum(one.throughput_error**2 for one in times))
    ttft_error = math.sqrt(sum(one.ttft_error**2 for one in times))
    assert throughput_error < 0.15
    assert throughput == pytest.approx(-1.0, abs=0.03 + 3 * throughput_error)
    assert ttft == pytest.approx(1.0, abs=0.03 + 3 * ttft_error)


@pytest.mark.parametrize("name", WALKED)
def test_signs_make_sense(name: str) -> None:
    """No cost makes a system faster, beyond the noise of walks."""
    for one in found(name).values():
        if one.name.startswith("costs."):
            assert one.throughput < 0.06, one
            assert one.ttft > -0.06, one
            assert one.limit < 0.01, one


def lone_server(gap_cv: float = 1.0) -> tuple[Problem, Curve]:
    """One group, one prompt a batch of fixed size, nothing but attention: M/D/1 with service `layers (a0 + a1 n)`."""
    nothing = Affine(0.0, 0.0)
    costs = LayerCosts(
        Quadratic(2e-3, 1e-6, 0.0),
        nothing,
        nothing,
        Plateau(0.0, 0.0),
        nothing,
        nothing,
        layers=10,
        request_latency=0.01,
    )
    prompts = Prompts(np.full(512, 4000), np.zeros(512, dtype=np.int64))
    problem = Problem(Layout("sync", 1, 1, 1), Policy(batch_window=0.0, max_batch_tokens=4000), costs, prompts, gap_cv)
    return problem, Curve(analyse(problem), lambda law: law.mean)


def test_a_single_server_has_the_elasticities_of_pollaczek_khinchine() -> None:
    """Mean time `S + rho S / (2 (1 - rho)) + latency` with `rho = rate S`; a0 is a third of S."""
    problem, line = lone_server()
    service, rate, latency = 0.06, 0.7 / 0.06, 0.01
    mean = service * (1 + 0.7 / 0.6) + latency
    where = Point(0.2, line.limit * line.load_at(0.2), rate)
    rows = {one.name: one for one in elasticities(problem, line, where, knobs_of(problem))}
    assert line.at(0.7) == pytest.approx(mean, rel=0.01)
    slope = (1 + 0.7 / 0.6) + 0.7 / (2 * 0.3**2)  # dT/dS at the rate
    for name, share in (("costs.attention.fixed", 1 / 3), ("costs.attention.per_token", 2 / 3)):
        assert rows[name].limit == pytest.approx(-share, abs=0.01)
        assert rows[name].ttft == pytest.approx(share * service * slope / mean, rel=0.05)
    assert rows["costs.request_latency"].ttft == pytest.approx(latency / mean, rel=0.02)
    assert rate_elasticity(line, rate) == pytest.approx(0.7 * service / (2 * 0.3**2) / mean, rel=0.06)
    # T(rate) = 0.2 solved for the load by hand: 0.19 / 0.06 = 1 + x / (2 (1 - x))
    excess = 0.19 / service - 1
    load = 2 * excess / (1 + 2 * excess)
    assert where.throughput_rps == pytest.approx(load / service, rel=0.01)
    derivative = 2 / (1 + 2 * excess) ** 2 / service  # d load / d objective
    assert objective_elasticity(line, where) == pytest.approx(0.2 * derivative / load, rel=0.05)


def test_a_missed_objective_has_no_load() -> None:
    _, line = lone_server()
    with pytest.raises(NoLocalAnswer, match="every rate"):
        line.load_at(0.05)
    assert line.load_at(1e9) == pytest.approx(0.999)
    assert Change(line, 1.0, 2.0).ttft_at(2 * line.limit) == math.inf


@pytest.mark.parametrize("name", ["paper-asap", "paper-chunked"])
def test_the_limit_agrees_with_the_graph_engine(name: str) -> None:
    """Differences of the throughput of a long backlog over the same step."""
    one = ready(name)
    problem = one.problem
    rows = even_deck(len(problem.prompts.prompt), 12)
    requests = make_requests(np.zeros(len(rows)), problem.prompts.prompt[rows], problem.prompts.cached[rows])

    def makespan(changed_problem: Problem) -> float:
        ends = np.sort(run(changed_problem.layout, changed_problem.policy, changed_problem.costs, requests).outcome.end)
        return float(ends[int(0.9 * len(ends))] - ends[int(0.1 * len(ends))])

    for knob in knobs_of(problem, lambda key: key in ("costs.attention.per_token2", "costs.moe.per_token")):
        slow, fast = (makespan(knob.scaled(problem, factor)) for factor in (1.1, 1 / 1.1))
        truth = -math.log(slow / fast) / (2 * math.log(1.1))
        assert found(name)[knob.name].limit == pytest.approx(truth, abs=0.04), knob.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-asap", "paper-chunked"])
def test_ttft_agrees_with_the_graph_engine(name: str) -> None:
    """Differences between long runs with the same arrivals; their noise by sixteen sequences."""
    one = ready(name)
    rate = point(name).rate_rps
    for knob in knobs_of(one.problem, lambda key: key in ("costs.attention.per_token2", "costs.moe.per_token")):
        rows = []
        for seed in range(16):
            drawn = prepare(one.scenario.replace(duration="2000 s"), seed, one.costing)
            requests = drawn.requests(rate)
            means = []
            for factor in (1.1, 1 / 1.1):
                other = replace(one.problem, costs=knob.scaled(one.problem, factor).costs)
                done = run(other.layout, other.policy, other.costs, requests)
                means.append(float((done.outcome.end - requests.arrival)[200:].mean()))
            rows.append(math.log(means[0] / means[1]) / (2 * math.log(1.1)))
        truth, noise = float(np.mean(rows)), float(np.std(rows, ddof=1)) / 4
        assert found(name)[knob.name].ttft == pytest.approx(truth, abs=3 * noise + 0.1 * abs(truth)), knob.name
