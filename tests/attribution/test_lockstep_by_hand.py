"""Synchronous system, a few requests, every component worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.attribution.blame import Blame, blame_of
from asapmodel.attribution.lockstep_trace import trace_lockstep
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.strategies import Case, cases

MOVE = Affine(0.25, 1 / 256)  # four of them: 1 s and 1/64 s a token
COSTS = LayerCosts(
    attention=Quadratic(0.0, 1 / 64, 0.0),
    dispatch_send=MOVE,
    dispatch_recv=MOVE,
    moe=Plateau(1.0, 1 / 64),
    combine_send=MOVE,
    combine_recv=MOVE,
    host_dispatch=100.0,  # launched ahead
    layers=1,
    step_overhead=0.5,
    request_latency=0.125,
)


def blamed(policy: Policy, arrivals: list[float], prompts: list[int], groups: int) -> Blame:
    requests = make_requests(np.array(arrivals), np.array(prompts))
    return blame_of(Layout("sync", groups, 1, groups), policy, COSTS, requests)


def shown(blame: Blame, k: int) -> dict[str, float]:
    """Components of a request that are not 0, latency aside."""
    assert blame.components["request_latency"][k] == 0.125
    names = list(blame.components)[1:]
    return {name: float(blame.components[name][k]) for name in names if blame.components[name][k]}


def test_two_groups_of_different_length() -> None:
    # iteration 0.25-8.75: overhead 0.5, attention 1 | 2, transfers 2 | 3, experts 1 | 2 together 3
    # iteration 8.75-13.25: the third prompt alone: 0.5, 1, 2, 1
    blame = blamed(Policy(batch_window=0.25), [0.0, 0.0, 1.25], [64, 128, 64], groups=2)
    assert blame.ttft_s.tolist() == [8.875, 8.875, 12.125]
    waits = {"barrier_attention": 1.0, "barrier_transfers": 1.0, "shared_experts": 2.0}
    assert shown(blame, 0) == {"window": 0.25, "attention": 1.5, "transfers": 2.0, "experts": 1.0} | waits
    own = {"attention": 2.5, "transfers": 3.0, "experts": 2.0}
    assert shown(blame, 1) == {"window": 0.25, "shared_experts": 1.0} | own
    assert shown(blame, 2) == {"engine_busy": 7.5, "attention": 1.5, "transfers": 2.0, "experts": 1.0}
    # of 2 + 1 s at the slowest group's pace, twice, 1 + 1 s are lost
    assert blame.straggler_waste == 2 / 6
    # own attention with overhead: 1.5 | 2.5, then 1.5 | none; at the slowest group's pace 2.5 and 1.5
    assert list(blame.devices.loc["devices"]) == [2.75, 1.25, 5.0, 4.0, 0.25, 0.0]
    assert blame.paths is None


def test_dense_layers_wait_for_the_slowest_too() -> None:
    costs = LayerCosts(
        COSTS.attention, MOVE, MOVE, COSTS.moe, MOVE, MOVE, layers=3, dense_layers=2, dense=Affine(0.0, 1 / 64)
    )
    requests = make_requests(np.zeros(2), np.array([64, 128]))
    blame = blame_of(Layout("sync", 2, 1, 2), Policy(batch_window=0.0), costs, requests)
    assert blame.components["attention"].tolist() == [2 * 2.0 + 1.0, 2 * 4.0 + 2.0]
    assert blame.components["barrier_attention"].tolist() == [5.0, 0.0]


def test_behind_another_prompt_of_the_group() -> None:
    # chunks of 64: two iterations of the first prompt (0.5 + 1 + 2 + 1 s each), then one of the second
    blame = blamed(Policy(batch_window=0.0, chunk_tokens=64), [0.0, 0.0], [128, 64], groups=1)
    assert shown(blame, 0) == {"attention": 3.0, "transfers": 4.0, "experts": 2.0}
    assert shown(blame, 1) == {"own_queue": 9.0, "attention": 1.5, "transfers": 2.0, "experts": 1.0}


def test_whole_prompts_that_do_not_fit_wait_an_iteration() -> None:
    blame = blamed(Policy(batch_window=0.0, max_batch_tokens=100), [0.0, 1.0, 1.0], [64, 64, 64], groups=1)
    assert [shown(blame, k).get("engine_busy", 0.0) for k in range(3)] == [0.0, 3.5, 3.5]
    assert [shown(blame, k).get("own_queue", 0.0) for k in range(3)] == [0.0, 0.0, 4.5]


def test_idle_devices_wait_for_an_arrival_then_for_the_window() -> None:
    blame = blamed(Policy(batch_window=1.0), [0.0, 20.0], [64, 64], groups=1)
    row = blame.devices.loc["devices"]
    assert row["window"] == 2.0
    assert row["empty"] == 20.0 - 5.5
    assert list(row[["attention", "barrier", "transfers", "experts"]]) == [3.0, 0.0, 4.0, 2.0]


@settings(max_examples=200)
@given(cases(kind="sync"))
def test_replay_is_the_engine_to_the_bit(case: Case) -> None:
    trace = trace_lockstep(case.layout, case.policy, case.costs, case.requests)
    done = run(case.layout, case.policy, case.costs, case.requests)
    np.testing.assert_array_equal(trace.start[trace.first], done.outcome.start)
    np.testing.assert_array_equal(trace.end[trace.last - 1], done.outcome.end)
    assert (trace.tokens > 0).sum() == done.batches
    assert trace.tokens.sum() == done.batch_tokens
    assert trace.times.duration.sum() == pytest.approx(done.busy_s["engine"], rel=1e-12)
