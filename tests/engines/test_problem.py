"""From a scenario to a problem: the quadrature keeps the moments that delays depend on."""

import numpy as np
import pytest

from asapmodel.engines.problem import POINTS, gap_cv_of, problem_of, prompts_of
from asapmodel.scenario import Scenario
from asapmodel.workload import length_law, recorded_trace

BASE = Scenario.load("paper-asap")
LAWS = [
    {"family": "lognormal", "mu": 7.5733, "sigma": 1.445},
    {"family": "lognormal", "mu": 6.5, "sigma": 1.6},
    {"family": "lognormal", "mu": 8.3, "sigma": 0.5},
    {"constant": 4096},
    {"values": [500] * 12 + [25000]},
    {"values": list(range(500, 12001, 500))},
]


@pytest.mark.parametrize("lengths", LAWS)
@pytest.mark.parametrize("most", [8192, 32768])
def test_points_keep_mean_and_mean_square(lengths: dict[str, object], most: int) -> None:
    workload = BASE.replace(lengths=lengths, max_prompt_tokens=most).workload
    prompts = prompts_of(workload)
    exact = np.rint(length_law(workload).quantile((np.arange(10**5) + 0.5) / 10**5))
    assert len(prompts.prompt) == POINTS
    assert prompts.prompt.mean() == pytest.approx(exact.mean(), rel=1e-3)
    assert np.mean(prompts.prompt.astype(float) ** 2) == pytest.approx(np.mean(exact**2), rel=1e-3)
    assert not prompts.cached.any()


@pytest.mark.parametrize("trace", ["mooncake_conversation", "azure2023_conv"])
def test_rows_of_a_trace_keep_tokens_and_work(trace: str) -> None:
    workload = BASE.replace(lengths={"trace": trace}).workload
    prompts, recorded = prompts_of(workload), recorded_trace(workload)
    assert recorded is not None
    for powers in ((1, 0), (2, 0), (0, 1)):

        def moment(prompt: np.ndarray, cached: np.ndarray, powers: tuple[int, int] = powers) -> float:
            tokens, work = (prompt - cached).astype(float), prompt.astype(float) ** 2 - cached.astype(float) ** 2
            return float(np.mean(tokens ** powers[0] * work ** powers[1]))

        exact = moment(np.asarray(recorded.prompt_tokens), np.asarray(recorded.cached_tokens))
        assert moment(*prompts) == pytest.approx(exact, rel=5e-3)
    tokens = prompts.prompt - prompts.cached
    assert np.all(tokens > 0)
    if trace == "azure2023_conv":
        assert np.all(np.diff(tokens) >= 0)


def test_gap_variability() -> None:
    assert gap_cv_of(BASE.workload) == 1.0
    assert gap_cv_of(BASE.replace(arrivals="gamma", cv=2.0).workload) == 2.0
    assert 1.0 < gap_cv_of(Scenario.load("trace-asap").workload) < 4.0


def test_problem_is_the_scenarios_own() -> None:
    scenario = BASE.replace(D=2, pairing="rolling")
    problem = problem_of(scenario)
    assert problem.layout == scenario.layout
    assert problem.policy == scenario.policy
    assert problem.costs.layers == 61
