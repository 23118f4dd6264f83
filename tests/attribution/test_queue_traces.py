"""Queues per group: steps and iterations as they are read from the engine's logs, checked by other ways to them."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.attribution.blame import blame_of
from asapmodel.attribution.lockstep_queues import trace_lockstep_queues
from asapmodel.attribution.step_queueing import formed_before
from asapmodel.attribution.step_trace import trace_steps
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy, Routing
from asapmodel.systems.arrays import Requests
from asapmodel.timelines.steps import pieces_of
from tests.attribution.checks import check_paths
from tests.attribution.test_free_trace import backlog
from tests.attribution.test_queue_accounts import limited_cases
from tests.strategies import Case, queue_cases


@settings(max_examples=200)
@given(queue_cases(kind="asap"))
def test_own_steps_are_those_that_hold_a_piece(case: Case) -> None:
    """The other way: lay out every step from its first request on."""
    trace = trace_steps(case.layout, case.policy, case.costs, case.requests)
    noted, follow = trace.done.steps, trace.done.follow
    assert noted is not None
    assert follow is not None
    steps: list[list[tuple[int, int]]] = [[] for _ in case.requests.arrival]
    for step in range(trace.done.batches):
        for k, begin, end in pieces_of(noted, follow, case.requests, step):
            steps[k].append((step, end - begin))
    number = np.argsort(noted.group[: trace.done.batches], kind="stable")
    for k, pieces in enumerate(steps):
        assert number[trace.first[k] : trace.last[k]].tolist() == [step for step, _ in pieces]
        assert sum(tokens for _, tokens in pieces) == case.requests.prompt[k] - case.requests.cached[k]
    np.testing.assert_array_equal(trace.launch[trace.first], trace.done.outcome.start)
    np.testing.assert_array_equal(trace.step_end[trace.last - 1], trace.done.outcome.end)


@settings(max_examples=200)
@given(queue_cases(kind="asap"))
def test_every_start_is_the_end_of_its_cause(case: Case) -> None:
    trace = trace_steps(case.layout, case.policy, case.costs, case.requests)
    caused = trace.cause >= 0
    np.testing.assert_array_equal(trace.start[caused], trace.end[trace.cause[caused]])
    assert np.all(trace.cause[caused] < np.flatnonzero(caused))
    known = trace.previous >= 0
    np.testing.assert_array_equal(trace.ready[known], trace.end[trace.previous[known]])
    # the others begin a step, as a prompt arrives at an idle group
    roots = np.flatnonzero(~caused)
    np.testing.assert_array_equal(trace.start[roots], case.requests.arrival[trace.head[trace.step[roots]]])
    blame = blame_of(case.layout, case.policy, case.costs, case.requests)
    assert blame.paths is not None
    assert blame.paths.to_numpy().min() >= 0.0
    np.testing.assert_allclose(blame.paths.sum(axis=1), blame.ttft_s - case.costs.request_latency, rtol=1e-9)


@settings(max_examples=200)
@given(queue_cases(kind="asap"))
def test_steps_formed_ahead_are_those_without_overhead(case: Case) -> None:
    costs = replace(case.costs, step_overhead=0.003)
    ahead = case.policy.chunk_tokens > 0
    policy = replace(case.policy, schedule_ahead=ahead, hide_overhead=True)
    trace = trace_steps(case.layout, policy, costs, case.requests)
    overhead = trace.position == 0
    free = np.zeros(len(trace.group), dtype=np.bool_)
    free[trace.step[overhead]] = (trace.end - trace.start)[overhead] == 0
    np.testing.assert_array_equal(formed_before(policy, case.requests, trace), free)


@settings(max_examples=200)
@given(queue_cases(kind="sync") | limited_cases())
def test_iterations_take_the_time_they_took(case: Case) -> None:
    trace = trace_lockstep_queues(case.layout, case.policy, case.costs, case.requests)
    done, ran = run(case.layout, case.policy, case.costs, case.requests), trace.run
    np.testing.assert_allclose(ran.times.duration, ran.end - ran.start, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(ran.start[ran.first], done.outcome.start)
    np.testing.assert_array_equal(ran.end[ran.last - 1], done.outcome.end)
    assert np.all(ran.routed <= trace.formable)
    assert np.all(trace.formable <= ran.first)
    assert (ran.tokens > 0).sum() == done.batches


ROUTINGS: tuple[Routing, ...] = ("round_robin", "fewest_tokens", "fewest_requests")
MICRO: tuple[Literal["none", "split", "pair"], ...] = ("none", "split", "pair")


def waiting_line(seed: int) -> tuple[Layout, Policy, LayerCosts, Requests]:
    """All requests there from the start, so that paths go back to one instant."""
    layout, policy, costs, requests = backlog(seed)
    rng = np.random.default_rng(1000 + seed)
    chunks = bool(rng.random() < 0.6)
    policy = replace(
        policy,
        routing=ROUTINGS[rng.integers(3)],
        batching="chunks" if chunks else "prompts",
        chunk_tokens=int(rng.choice([1000, 8000])) if chunks else 0,
        max_seqs=int(rng.choice([0, 2])) if chunks else 0,
        schedule_ahead=chunks and bool(rng.random() < 0.5),
        dual_batch=True,
        micro_batches=MICRO[rng.integers(2 if chunks else 3)],
    )
    return layout, policy, costs, requests


@pytest.mark.parametrize("seed", range(30))
def test_a_path_is_the_derivative_of_the_end(seed: int) -> None:
    check_paths(*waiting_line(seed))
