"""The queueing engine on systems with a queue per group: exact cases, and long runs of the graph engine."""

from dataclasses import replace

import numpy as np
import pytest

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines import queueing
from asapmodel.engines.analysis import Analysis, Point, Problem, Prompts
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests

NOTHING = Affine(0.0, 0.0)
SOME = Affine(1e-5, 4e-8)
COSTS = LayerCosts(
    Quadratic(1e-3, 6e-7, 1.4e-11),
    SOME,
    SOME,
    Plateau(4e-4, 1.2e-7),
    SOME,
    SOME,
    layers=9,
    dense_layers=2,
    dense=Affine(0.0, 1.5e-7),
    step_overhead=5e-3,
)
LENGTHS = np.linspace(64, 30000, 600).astype(np.int64)
SYNC = Policy(routing="fewest_requests", chunk_tokens=16384, max_seqs=4, batch_window=0.0)
ASYNC = Policy(routing="round_robin", chunk_tokens=16384, micro_batches="split")


def problem(kind: str, D: int, policy: Policy, costs: LayerCosts = COSTS, lengths: np.ndarray = LENGTHS) -> Problem:
    layout = Layout(kind, D, 8, 8 * D)  # type: ignore[arg-type]
    return Problem(layout, policy, costs, Prompts(lengths, np.zeros_like(lengths)))


def point(analysis: Analysis, load: float) -> Point:
    found = queueing.operating_point(analysis, load * analysis.saturation_rps)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["sync", "asap"])
def test_one_group_and_one_prompt_a_step_is_the_queue_m_g_1(kind: str) -> None:
    """Mean wait `rate E[S^2] / 2 (1 - rho)` (Pollaczek and Khinchine); the limit is `1 / E[S]`."""
    costs = LayerCosts(Quadratic(0.0, 1e-5, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1)
    policy = Policy(routing="round_robin", batching="prompts", max_batch_tokens=1, micro_batches="none", batch_window=0)
    analysis = queueing.analyse(problem(kind, 1, policy, costs))
    service = LENGTHS * 1e-5
    assert analysis.saturation_rps == pytest.approx(1 / service.mean(), rel=0.01)
    for load in (0.3, 0.7):
        rate = load / service.mean()
        found = queueing.operating_point(analysis, rate)
        assert found is not None
        wait = rate * (service**2).mean() / 2 / (1 - load)
        assert found.ttft.mean == pytest.approx(service.mean() + wait, rel=0.02)


@pytest.mark.parametrize(("kind", "policy"), [("sync", SYNC), ("asap", ASYNC)])
def test_the_lone_prompt_is_exact(kind: str, policy: Policy) -> None:
    one = problem(kind, 3, policy)
    apart = 60.0 * np.arange(len(LENGTHS), dtype=np.float64)
    alone = run(one.layout, policy, COSTS, make_requests(apart, LENGTHS)).outcome.end - apart
    found = point(queueing.analyse(one), 1e-9)
    assert found.ttft.mean == pytest.approx(alone.mean(), rel=1e-6)
    assert found.kernel_s == pytest.approx(alone.mean(), rel=1e-6)
    assert found.queueing_s == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "D", "policy", "within"),
    [
        ("sync", 4, SYNC, 0.03),
        ("sync", 4, replace(SYNC, counts="step"), 0.03),
        ("sync", 3, replace(SYNC, routing="least_work", max_seqs=0), 0.03),
        ("sync", 4, replace(SYNC, routing="auto", max_seqs=2), 0.03),
        ("asap", 3, ASYNC, 0.04),
        ("asap", 3, replace(ASYNC, routing="fewest_tokens", micro_batches="none"), 0.04),
        ("asap", 3, Policy(routing="least_work", batching="prompts", micro_batches="pair"), 0.04),
    ],
)
def test_means_against_long_runs(kind: str, D: int, policy: Policy, within: float) -> None:
    one = problem(kind, D, policy)
    analysis = queueing.analyse(one)
    rng = np.random.default_rng(8)
    count = 60_000 if kind == "sync" else 12_000
    gaps, rows = rng.exponential(size=count), rng.integers(0, len(LENGTHS), count)
    for load in (0.3, 0.7):
        arrival = np.cumsum(gaps) / (load * analysis.saturation_rps)
        out = run(one.layout, policy, COSTS, make_requests(arrival, LENGTHS[rows])).outcome
        ttft = (out.end - arrival)[count // 20 :]
        assert point(analysis, load).ttft.mean == pytest.approx(ttft.mean(), rel=within), load
