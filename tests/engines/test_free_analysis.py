"""The asynchronous half of the queueing engine against exact results and long runs of the graph engine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.analysis import Problem, Prompts
from asapmodel.engines.free_analysis import analyse_free
from asapmodel.engines.free_backlog import backlog_of, reduced
from asapmodel.engines.free_layers import fewer_layers
from asapmodel.engines.graph import run
from asapmodel.engines.problem import problem_of
from asapmodel.policy import Layout, Policy
from asapmodel.scenario import Scenario
from asapmodel.solvers.queue_errors import MomentError, UnstableError
from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, draw
from asapmodel.systems.arrays import make_requests

NOTHING = Affine(0.0, 0.0)
ALONE = Policy(min_batch_tokens=1, batch_window=0.0, dual_batch=False)


def single_server(lengths: np.ndarray) -> Problem:
    """One group that takes one prompt at a time, and nothing but a time in proportion to the tokens."""
    costs = LayerCosts(Quadratic(0.0, 1e-4, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=8)
    prompts = Prompts(lengths.astype(np.int64), np.zeros(len(lengths), dtype=np.int64))
    return Problem(Layout("asap", 1, 1, 1), ALONE, costs, prompts)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_one_group_one_prompt_at_a_time_is_a_single_server(spread: float) -> None:
    """Pollaczek-Khinchine, M/D/1 and M/G/1: mean response ES + rate ES^2 / (2 (1 - rho))."""
    shares = (np.arange(1024) + 0.5) / 1024
    problem = single_server(np.rint(1000.0 * (1.0 + spread * (2.0 * shares - 1.0))).clip(1))
    service = 8e-4 * problem.prompts.prompt
    analysis = analyse_free(problem)
    assert analysis.saturation_rps * service.mean() == pytest.approx(1.0, rel=0.01)
    for rho in (0.01, 0.3, 0.6, 0.8, 0.9):
        rate = rho * analysis.saturation_rps
        exact = float(service.mean() + rate * np.mean(service**2) / (2 * (1 - rate * service.mean())))
        assert analysis.at(rate).ttft.mean == pytest.approx(exact, rel=0.02 if rho <= 0.8 else 0.04)


@given(
    st.integers(1, 60),
    st.integers(0, 3),
    st.floats(0.0, 0.01),
    st.integers(1, 30000),
)
@settings(max_examples=50)
def test_few_layers_take_a_lone_batch_as_long(layers: int, dense: int, overhead: float, tokens: int) -> None:
    phase = Affine(1e-5, 2e-8)
    costs = LayerCosts(
        Quadratic(1e-4, 1e-7, 1e-11), phase, phase, Plateau(3e-4, 1e-7), phase, phase, 2e-4,
        layers + dense, dense, Affine(1e-4, 1e-8), overhead,
    )  # fmt: skip
    few = fewer_layers(costs, 4)
    for host in (0.0, 1.0):
        whole = costs.alone(tokens, tokens**2, host * costs.host_dispatch)
        assert few.alone(tokens, tokens**2, host * few.host_dispatch) == pytest.approx(whole)


@pytest.mark.parametrize("index", [97, 145])
def test_few_layers_have_the_limit_of_the_whole_where_dense_layers_are_many(index: int) -> None:
    """3 dense layers of 8 or 16; measured within 0.5 %, and 6 and 11 % too high when they were spread over the rest."""
    problem = draw(DEVELOPMENT_SEED, index + 1)[index].problem
    assert problem.costs.dense_layers == 3
    assert backlog_of(reduced(problem)).saturation == pytest.approx(backlog_of(problem).saturation, rel=0.01)


def test_light_load_is_the_lone_prompt_with_its_window() -> None:
    problem = problem_of(Scenario.load("paper-asap"))
    policy, prompt = problem.policy, problem.prompts.prompt.astype(float)
    held = (prompt < policy.min_batch_tokens * policy.slots) & (prompt <= policy.exclusive_tokens)
    alone = np.array([problem.costs.alone(n, n * n) for n in prompt]) + held * policy.batch_window
    far = 1e4 * np.arange(len(prompt), dtype=float)
    done = run(problem.layout, problem.policy, problem.costs, make_requests(far, problem.prompts.prompt))
    np.testing.assert_allclose(done.outcome.end - far, alone, rtol=1e-6)
    point = analyse_free(problem).at(1e-6)
    assert point.ttft.mean == pytest.approx(alone.mean() + problem.costs.request_latency, rel=1e-3)


@pytest.mark.parametrize("streams", [False, True])
def test_light_load_keeps_resources_busy_as_the_graph_engine_has_it(streams: bool) -> None:
    """Dense layers, the step's overhead and host dispatch included."""
    whole = problem_of(Scenario.load("paper-asap"))
    costs = replace(whole.costs, dense_layers=3, dense=Affine(2e-4, 1e-7), step_overhead=4e-3)
    policy = replace(whole.policy, overlap_moe=streams, overlap_attention=streams, super_kernel=False)
    problem = replace(whole, costs=costs, policy=policy)
    prompt = problem.prompts.prompt
    far = 1e4 * np.arange(len(prompt), dtype=float)
    done = run(problem.layout, policy, costs, make_requests(far, prompt))
    rate = 1e-3
    found = analyse_free(problem).at(rate).utilisation
    for name, share in found.items():
        assert share == pytest.approx(rate * done.busy_s[name] / len(prompt), rel=1e-3), name


def test_nothing_finite_at_or_above_the_limit_and_parts_add_up() -> None:
    problem = problem_of(Scenario.load("paper-asap"))
    analysis = analyse_free(problem)
    for factor in (1.0, 1.2):
        with pytest.raises(UnstableError):
            analysis.at(factor * analysis.saturation_rps)
    with pytest.raises(MomentError):
        analysis.at(float("nan"))
    before = 0.0
    for load in np.linspace(0.3, 0.99, 24):
        point = analysis.at(load * analysis.saturation_rps)
        parts = point.queueing_s + point.kernel_s + point.waiting_s
        assert parts == pytest.approx(point.ttft.mean - problem.costs.request_latency)
        assert min(point.queueing_s, point.kernel_s, point.waiting_s) >= 0
        assert all(0 <= busy <= 1 for busy in point.utilisation.values())
        assert np.all(np.diff(point.ttft.time) >= 0)
        assert np.all(np.diff(point.ttft.cdf) >= 0)
        assert point.ttft.mean >= before
        before = point.ttft.mean


def test_same_answer_twice() -> None:
    problem = problem_of(Scenario.load("paper-asap"))
    assert analyse_free(problem).at(5.0).ttft.mean == analyse_free(problem).at(5.0).ttft.mean


@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy(pairing="rolling"), Policy(dual_batch=False), Policy(super_kernel=False)],
    ids=["default", "rolling", "single", "host dispatch"],
)
def test_against_a_long_run_of_the_graph_engine(policy: Policy) -> None:
    """60,000 prompts at 70 % load; the run itself is within 1 to 2 %."""
    problem = problem_of(Scenario.load("paper-asap"))
    problem = replace(problem, policy=policy)
    analysis = analyse_free(problem)
    rate = 0.7 * analysis.saturation_rps
    rng = np.random.default_rng(3)
    arrival = np.cumsum(rng.exponential(1.0 / rate, 60_000))
    rows = rng.integers(len(problem.prompts.prompt), size=len(arrival))
    done = run(problem.layout, problem.policy, problem.costs, make_requests(arrival, problem.prompts.prompt[rows]))
    ttft = (done.outcome.end - arrival)[2000:]
    point = analysis.at(rate)
    assert point.ttft.mean == pytest.approx(float(ttft.mean()), rel=0.06)
    assert point.ttft.quantile(0.95) == pytest.approx(float(np.quantile(ttft, 0.95)), rel=0.09)
