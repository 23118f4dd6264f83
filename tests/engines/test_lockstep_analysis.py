"""The analytic synchronous engine against exact single-queue results and long runs of the graph engine."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.analysis import Problem, Prompts
from asapmodel.engines.effort import FULL, QUICK
from asapmodel.engines.graph import run
from asapmodel.engines.lockstep_analysis import LockstepAnalysis, analyse_lockstep
from asapmodel.engines.lockstep_backlog import under_backlog
from asapmodel.engines.problem import problem_of
from asapmodel.models.distributions import Constant, Distribution, TruncatedLognormal
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import MomentError, UnstableError
from asapmodel.systems.arrays import make_requests
from tests.strategies import random_costs

NOTHING = Affine(0.0, 0.0)
LENGTHS = {"M/D/1": Constant(1000.0), "M/G/1": TruncatedLognormal(6.5, 0.8, 31.0, 8000.0)}


def prompts_of(law: Distribution, rows: int = 1024) -> Prompts:
    """Quantiles of a law of lengths, nothing cached."""
    tokens = np.rint(law.quantile((np.arange(rows) + 0.5) / rows)).astype(np.int64)
    return Prompts(tokens, np.zeros(rows, dtype=np.int64))


def single_server(law: Distribution) -> Problem:
    """One group, one prompt an iteration, and nothing but a time in proportion to the tokens."""
    costs = LayerCosts(Quadratic(0.0, 1e-4, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1)
    policy = Policy(max_batch_tokens=1, batch_window=0.0)
    return Problem(Layout("sync", 1, 1, 1), policy, costs, prompts_of(law))


@pytest.mark.parametrize("name", LENGTHS)
def test_one_group_one_prompt_at_a_time_is_a_single_server(name: str) -> None:
    """Pollaczek-Khinchine: mean response ES + rate ES^2 / (2 (1 - rho)); measured within 0.3 %, 2.5 % at 98 %."""
    problem = single_server(LENGTHS[name])
    service = 1e-4 * problem.prompts.prompt
    analysis = analyse_lockstep(problem)
    assert analysis.saturation_rps * service.mean() == pytest.approx(1.0, rel=1e-9)
    for rho in (0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98):
        rate = rho / float(service.mean())
        exact = float(service.mean() + rate * np.mean(service**2) / (2 * (1 - rho)))
        point = analysis.at(rate)
        assert point.ttft.mean == pytest.approx(exact, rel=0.006 if rho <= 0.95 else 0.03)
        assert point.utilisation["engine"] == pytest.approx(rho, rel=1e-3)
        assert point.waiting_s == pytest.approx(0.0, abs=1e-9)


def test_an_idle_system_takes_the_time_of_a_lone_prompt() -> None:
    """At a vanishing rate: the window, and every prompt's own iterations."""
    scenario = Scenario.load("paper-chunked").replace(policy={"chunk_tokens": 2048, "batch_window": "20 ms"})
    problem = problem_of(scenario)
    point = analyse_lockstep(problem).at(1e-6)
    costs = problem.costs
    alone = []
    for tokens in problem.prompts.prompt.tolist():
        pieces = [(min(2048, tokens - done), done) for done in range(0, tokens, 2048)]
        alone.append(0.02 + sum(costs.alone(c, c * c + 2.0 * c * q) for c, q in pieces))
    assert point.ttft.mean == pytest.approx(float(np.mean(alone)), rel=1e-4)
    assert point.queueing_s == pytest.approx(0.02, rel=1e-3)
    assert point.ttft.quantile(0.5) == pytest.approx(float(np.quantile(alone, 0.5)), rel=0.01)


def test_no_variability_takes_no_time_beyond_a_lone_prompt() -> None:
    """Equal prompts at equal distances never meet below the rate of lone prompts."""
    costs = LayerCosts(Quadratic(0.0, 1e-4, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1)
    policy = Policy(max_batch_tokens=1, batch_window=0.0)
    problem = Problem(Layout("sync", 1, 1, 1), policy, costs, prompts_of(Constant(1000.0)), gap_cv=0.0)
    analysis = analyse_lockstep(problem)
    for load in (0.1, 0.5, 0.8):
        assert analysis.at(load * analysis.saturation_rps).ttft.mean == pytest.approx(0.1, rel=0.01)


@pytest.fixture(scope="module")
def chunked() -> LockstepAnalysis:
    return analyse_lockstep(problem_of(Scenario.load("paper-chunked")))


def test_no_answer_at_or_above_the_stability_limit(chunked: LockstepAnalysis) -> None:
    limit = chunked.saturation_rps
    for rate in (limit, 1.0001 * limit, 10 * limit):
        with pytest.raises(UnstableError):
            chunked.at(rate)
    with pytest.raises(MomentError):
        chunked.at(0.0)
    assert chunked.at(limit * (1 - 1e-9)).ttft.mean > 1e5


def test_times_diverge_like_the_distance_to_the_limit(chunked: LockstepAnalysis) -> None:
    limit = chunked.saturation_rps
    near, nearer = chunked.at(0.999 * limit), chunked.at(0.9999 * limit)
    assert nearer.ttft.mean == pytest.approx(10 * near.ttft.mean, rel=1e-6)


def test_parts_add_up_and_utilisation_is_rate_times_work(chunked: LockstepAnalysis) -> None:
    latency = chunked.problem.costs.request_latency
    for load in (0.05, 0.3, 0.7, 0.93):
        point = chunked.at(load * chunked.saturation_rps)
        assert point.queueing_s + point.kernel_s + point.waiting_s + latency == pytest.approx(point.ttft.mean)
        assert min(point.queueing_s, point.kernel_s, point.waiting_s) >= 0
        parts = sum(point.utilisation[name] for name in ("attention", "barrier", "transfers", "moe"))
        assert parts == pytest.approx(point.utilisation["engine"], rel=1e-3)  # each interpolated
        assert 0 < point.utilisation["engine"] <= 1
        share = point.by_length.weight
        assert share.sum() == pytest.approx(1.0)
        assert float(share @ point.by_length.mean_s) == pytest.approx(point.ttft.mean, rel=0.03)


def test_many_rates_at_once_are_the_single_ones(chunked: LockstepAnalysis) -> None:
    rates = np.linspace(0.1, 0.95, 7) * chunked.saturation_rps
    for rate, point in zip(rates, chunked.at_many(rates), strict=True):
        assert point.ttft.mean == chunked.at(float(rate)).ttft.mean


@given(st.integers(0, 2**32 - 1))
def test_times_grow_with_the_rate(seed: int) -> None:
    """Mean and every quantile, whatever the system."""
    rng = np.random.default_rng(seed)
    tokens = np.sort(np.clip(np.exp(rng.normal(7.5, rng.uniform(0, 1.5), 1024)), 1, 32768).astype(np.int64))
    policy = Policy(
        max_batch_tokens=int(rng.choice([2048, 8192, 32768])),
        batch_window=float(rng.choice([0.0, 0.05])),
        chunk_tokens=int(rng.choice([0, 2048, 8192])),
        balance="work" if rng.random() < 0.5 else "tokens",
    )
    layout = Layout("sync", int(rng.integers(1, 9)), 1, 8)
    prompts = Prompts(tokens, np.zeros(1024, dtype=np.int64))
    analysis = analyse_lockstep(Problem(layout, policy, random_costs(rng), prompts, float(rng.choice([1.0, 2.0]))))
    points = analysis.at_many(np.linspace(0.01, 0.995, 40) * analysis.saturation_rps)
    for slow, fast in pairwise(points):
        assert fast.ttft.mean >= slow.ttft.mean * (1 - 1e-12)
        assert np.all(fast.ttft.time >= slow.ttft.time * (1 - 1e-9) - 1e-12)
        assert np.all(np.diff(fast.ttft.time) >= 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"policy": {"max_batch_tokens": 2048}},
        {"policy": {"max_batch_tokens": 32768}},
        {"policy": {"chunk_tokens": 8192}},
        {"policy": {"chunk_tokens": 2048}},
        {"policy": {"chunk_tokens": 1024, "balance": "work"}},
        {"policy": {"batch_window": 0.3}},
        {"system": {"kind": "sync", "D": 4, "T": 8}},
        {"system": {"kind": "sync", "D": 16, "T": 2}},
    ],
    ids=str,
)
@pytest.mark.parametrize("gap_cv", [1.0, 2.0])
def test_against_long_runs_of_the_graph_engine(changes: dict[str, Any], gap_cv: float) -> None:
    """Mean within 6 % and 99th percentile within 20 % (measured: 5, 16) up to 80 % load; runs scatter by 1 to 2 %."""
    problem = problem_of(Scenario.load("paper-default").replace(**changes))
    analysis = analyse_lockstep(Problem(problem.layout, problem.policy, problem.costs, problem.prompts, gap_cv))
    rng = np.random.default_rng(1)
    count, shape = 600_000, gap_cv**-2
    rows = rng.integers(0, len(problem.prompts.prompt), count)
    gaps = rng.gamma(shape, 1 / shape, count)
    for load in (0.1, 0.3, 0.6, 0.8):
        rate = load * analysis.saturation_rps
        arrival = np.cumsum(gaps) / rate
        requests = make_requests(arrival, problem.prompts.prompt[rows], problem.prompts.cached[rows])
        end = run(problem.layout, problem.policy, problem.costs, requests).outcome.end
        ttft = (end - arrival)[count // 50 :]
        point = analysis.at(rate)
        assert point.ttft.mean == pytest.approx(float(ttft.mean()), rel=0.06)
        assert point.ttft.quantile(0.99) == pytest.approx(float(np.quantile(ttft, 0.99)), rel=0.2)


def test_many_groups_have_a_limit_by_the_quick_effort_too() -> None:
    """A short deck is no backlog for 128 groups: it grows with them."""
    scenario = Scenario.load("paper-default").replace(D=128, T=2, **{"cluster.memory_bytes": 1e15})
    problem = problem_of(scenario)
    quick, full = (under_backlog(problem, effort).saturation for effort in (QUICK, FULL))
    assert quick == pytest.approx(full, rel=0.03)


def test_short_prompts_under_a_large_budget_are_a_backlog() -> None:
    """2048 prompts of 16 tokens fill a group: eight groups pass 8 x 2048 of them in the time of 32768 tokens."""
    costs = LayerCosts(Quadratic(0.0, 1e-6, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1)
    policy = Policy(max_batch_tokens=32768, batch_window=0.0)
    problem = Problem(Layout("sync", 8, 1, 8), policy, costs, prompts_of(Constant(16.0)))
    assert under_backlog(problem).saturation == pytest.approx(8 * 2048 / 0.032768, rel=1e-9)
