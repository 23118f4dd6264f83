"""Bounds with queues per group: runs obey them, simple systems attain them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.circuits.bounds import JOINT, REGIMES, regime_of
from asapmodel.circuits.queue_bounds import queue_bounds
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import AT_ARRIVAL, Layout, Policy
from asapmodel.systems.arrays import Requests, make_requests
from tests.strategies import Case, cases, queue_cases, random_costs


def rate_over_bound(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> dict[str, float]:
    """Prompts/s of a backlog over each bound."""
    backlog = make_requests(np.zeros(len(requests.arrival)), requests.prompt, requests.cached)
    done = run(layout, policy, costs, backlog)
    bounds = queue_bounds(layout, policy, costs, backlog.prompt, backlog.cached)
    assert set(bounds.upper) - set(JOINT.values()) <= set(REGIMES)
    return {name: len(backlog.prompt) / done.makespan_s / rate for name, rate in bounds.upper.items()}


@settings(max_examples=150)
@given(queue_cases())
def test_small_runs_obey_their_bounds(case: Case) -> None:
    """All rules, switches and numbers of groups, few prompts: the bounds hold for finite runs."""
    found = rate_over_bound(case.layout, case.policy, case.costs, case.requests)
    assert max(found.values()) <= 1 + 1e-9, found


@settings(max_examples=50)
@given(cases("sync"))
def test_a_limit_on_prompts_without_queues_per_group(case: Case) -> None:
    policy = replace(case.policy, chunk_tokens=3000, max_seqs=2)
    found = rate_over_bound(case.layout, policy, case.costs, case.requests)
    assert max(found.values()) <= 1 + 1e-9, found


def drawn(seed: int) -> tuple[Layout, Policy, LayerCosts, Requests]:
    """A system of the vLLM kind, synchronous or not, and a backlog of 1,500 prompts."""
    rng = np.random.default_rng(seed)
    D, free = int(rng.integers(1, 7)), bool(seed % 2)
    layout = Layout("asap", D, 4, 8) if free else Layout("sync", D, 4, 4 * D)
    policy = Policy(
        routing=rng.choice(AT_ARRIVAL),
        chunk_tokens=int(rng.choice([2048, 8192, 32768])),
        max_seqs=int(rng.choice([0, 4, 32])),
        schedule_ahead=(ahead := bool(rng.random() < 0.5)),
        hide_overhead=not ahead or seed % 3 > 0,
        micro_batches=str(rng.choice(["none", "split"])) if free else "none",  # type: ignore[arg-type]
        overlap_moe=bool(rng.random() < 0.5),
        super_kernel=bool(rng.random() < 0.5),
        batch_window=0.0,
    )
    prompt = np.clip(np.exp(rng.normal(7.8, 1.2, size=1500)).astype(np.int64), 1, 65536)
    return layout, policy, random_costs(rng), make_requests(np.zeros(1500), prompt)


def test_backlogs_of_forty_systems_are_near_their_bounds() -> None:
    """None is above, and most are near: a bound that is any good."""
    reached = np.array([max(rate_over_bound(*drawn(seed)).values()) for seed in range(40)])
    assert np.all(reached <= 1 + 1e-9)
    assert np.median(reached) > 0.8
    assert reached.min() > 0.4


def phases(attention: float, experts: float, overhead: float = 0.0) -> LayerCosts:
    """Ten layers; attention and experts by the token."""
    none = Affine(0.0, 0.0)
    a, m = Quadratic(0.0, attention, 0.0), Plateau(0.0, experts)
    return LayerCosts(a, none, none, m, none, none, layers=10, step_overhead=overhead)


@pytest.mark.parametrize(
    ("costs", "constraint"),
    [
        (phases(2e-6, 1e-9), "attention stream of the group"),
        (phases(1e-9, 2e-6), "MoE compute"),
        (phases(1e-9, 1e-10, 0.1), "attention stream of the group"),
    ],
)
def test_full_chunks_attain_the_bound_of_the_busiest(costs: LayerCosts, constraint: str) -> None:
    layout = Layout("asap", 3, 1, 1)
    policy = Policy(routing="round_robin", chunk_tokens=1000, micro_batches="split")
    requests = make_requests(np.zeros(300), np.full(300, 5000))
    found = rate_over_bound(layout, policy, costs, requests)
    assert max(found, key=lambda name: found[name]) == constraint
    assert found[constraint] == pytest.approx(1.0, abs=0.003)  # the first and the last step through ten layers
    bounds = queue_bounds(layout, policy, costs, requests.prompt, requests.cached)
    assert regime_of(bounds).constraint == constraint


def test_equal_groups_in_lockstep_attain_the_bound_of_the_iteration() -> None:
    costs = random_costs(np.random.default_rng(3))
    layout, policy = Layout("sync", 3, 1, 3), Policy(routing="round_robin", chunk_tokens=5000, max_seqs=1)
    policy = replace(policy, batch_window=0.0)
    requests = make_requests(np.zeros(30), np.full(30, 5000))
    assert rate_over_bound(layout, policy, costs, requests)[JOINT["sync"]] == pytest.approx(1.0, rel=1e-12)


def test_a_limit_on_prompts_makes_more_steps() -> None:
    """Short prompts: ten a step would fit, two may."""
    costs, layout = phases(1e-9, 1e-9, 0.1), Layout("asap", 2, 1, 1)
    prompt, cached = np.full(100, 100), np.zeros(100, dtype=np.int64)
    rates = [
        queue_bounds(layout, Policy(routing="round_robin", chunk_tokens=1000, max_seqs=seqs), costs, prompt, cached)
        for seqs in (0, 2)
    ]
    assert rates[0].upper_batches / rates[1].upper_batches == pytest.approx(5.0, rel=1e-3)
