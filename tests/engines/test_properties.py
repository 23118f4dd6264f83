"""What holds in every run: conservation, order, one task at a time, work conserved, nothing from before its time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import exposed_host_dispatch, run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from asapmodel.systems.free import free_network
from tests.strategies import Case, cases


def tasks_of(case: Case) -> tuple[np.ndarray, ...]:
    result = run(case.layout, case.policy, case.costs, case.requests, log_tasks=200_000)
    count = int(result.log.recorded[0])
    assert count == result.tasks
    return tuple(column[:count] for column in result.log[:5])


def per_batch(case: Case) -> int:
    """Tasks of one batch."""
    costs = case.costs
    return (costs.step_overhead > 0) + costs.dense_layers + 6 * costs.moe_layers


@settings(max_examples=150, deadline=None)
@given(cases())
def test_every_prompt_finishes_once_after_its_kernel_time(case: Case) -> None:
    out = run(case.layout, case.policy, case.costs, case.requests).outcome
    assert np.all(out.start >= case.requests.arrival)
    assert np.all(out.end >= out.start)
    assert np.all(out.end - out.start >= out.kernel * (1 - 1e-9))
    assert np.all(out.kernel > 0)


@settings(max_examples=100, deadline=None)
@given(cases(kind="asap"))
def test_fifo_release(case: Case) -> None:
    out = run(case.layout, case.policy, case.costs, case.requests).outcome
    assert np.all(np.diff(out.start) >= 0)


@settings(max_examples=100, deadline=None)
@given(cases(kind="asap"))
def test_no_resource_serves_two_and_busy_time_is_conserved(case: Case) -> None:
    start, end, resource, _, _ = tasks_of(case)
    result = run(case.layout, case.policy, case.costs, case.requests)
    for one in np.unique(resource):
        mine = np.flatnonzero(resource == one)
        assert np.all(start[mine][1:] >= end[mine][:-1])
    pool = ["moe", "moe_send", "moe_receive"] if case.policy.overlap_moe else ["moe"]
    for k, name in enumerate(pool):
        np.testing.assert_allclose((end - start)[resource == k].sum(), result.busy_s[name], rtol=1e-9)
    # all work that came in was done: phase times of all batches equal busy times of all resources
    total = sum(
        result.busy_s[name] * (1 if name.startswith("moe") else case.layout.D)
        for name in result.busy_s
        if not name.endswith("_blocked")
    )
    np.testing.assert_allclose((end - start).sum(), total, rtol=1e-9)
    assert len(start) == result.batches * per_batch(case)


@settings(max_examples=100, deadline=None)
@given(cases(kind="asap"))
def test_buffers_hold_one_batch(case: Case) -> None:
    start, end, _, chain, position = tasks_of(case)
    slots = case.policy.slots
    for first, last in ((3, 4), (6, 7)):  # dispatch region, combine region
        for group in range(case.layout.D):
            spans = []
            for one in range(group * slots, (group + 1) * slots):
                opened = start[(chain == one) & (position == first)]
                closed = end[(chain == one) & (position == last)]
                assert len(opened) == len(closed)
                spans += list(zip(opened, closed, strict=True))
            spans.sort()
            for (_, before), (after, _) in pairwise(spans):
                assert after >= before


@settings(max_examples=100, deadline=None)
@given(cases(kind="asap"))
def test_a_chain_runs_its_positions_in_order(case: Case) -> None:
    start, end, resource, chain, position = tasks_of(case)
    table = free_network(case.layout, case.policy, case.costs).resource
    np.testing.assert_array_equal(resource, table[chain // case.policy.slots, position])
    for one in np.unique(chain):
        mine = np.flatnonzero(chain == one)
        assert np.all(start[mine][1:] >= end[mine][:-1] * (1 - 1e-12))


@settings(max_examples=100, deadline=None)
@given(cases(kind="asap"))
def test_a_stream_never_idles_beside_a_ready_task(case: Case) -> None:
    """Every task starts at the latest of: ready, resource freed, buffer freed; never later."""
    start, end, resource, chain, position = tasks_of(case)
    network = free_network(case.layout, case.policy, case.costs)
    free_at = np.zeros(resource.max() + 1)  # of each resource
    moved_at = np.zeros(chain.max() + 1)  # end of the chain's latest task
    freed: dict[int, float] = {}  # end of the latest occupation of each buffer
    seen = np.zeros(chain.max() + 1, dtype=int)
    for k in range(len(start)):
        lane = chain[k] // case.policy.slots
        acquired, released = network.acquire[lane, position[k]], network.release[lane, position[k]]
        earliest = max(free_at[resource[k]], freed.get(acquired, 0.0) if acquired >= 0 else 0.0)
        if seen[chain[k]] % per_batch(case):
            assert start[k] == max(earliest, moved_at[chain[k]])
        else:  # became ready at the release of its batch
            assert start[k] >= earliest
        if released >= 0:
            freed[released] = end[k]
        free_at[resource[k]] = moved_at[chain[k]] = end[k]
        seen[chain[k]] += 1


@settings(max_examples=60, deadline=None)
@given(cases())
def test_time_scales(case: Case) -> None:
    """All durations and arrivals doubled: every time doubles, exactly (powers of two do not round)."""
    costs = case.costs
    a = costs.attention

    def twice(entry: Affine) -> Affine:
        return Affine(2 * entry.fixed, 2 * entry.per_token)

    slow = LayerCosts(
        Quadratic(2 * a.fixed, 2 * a.per_token, 2 * a.per_token2),
        twice(costs.dispatch_send),
        twice(costs.dispatch_recv),
        Plateau(2 * costs.moe.floor, 2 * costs.moe.per_token),
        twice(costs.combine_send),
        twice(costs.combine_recv),
        2 * costs.host_dispatch,
        costs.layers,
        costs.dense_layers,
        twice(costs.dense),
        2 * costs.step_overhead,
    )
    policy = replace(case.policy, batch_window=2 * case.policy.batch_window)
    later = make_requests(2 * case.requests.arrival, case.requests.prompt, case.requests.cached)
    one = run(case.layout, case.policy, costs, case.requests).outcome.end
    two = run(case.layout, policy, slow, later).outcome.end
    np.testing.assert_array_equal(two, 2 * one)


def test_one_request_alone_takes_its_kernel_time() -> None:
    costs = LayerCosts(
        Quadratic(1e-3, 1e-7, 1e-11),
        Affine(1e-5, 1e-8),
        Affine(1e-5, 1e-8),
        Plateau(3e-4, 1e-7),
        Affine(1e-5, 1e-8),
        Affine(1e-5, 1e-8),
        host_dispatch=220e-6,
    )
    requests = make_requests(np.array([1.0]), np.array([4000]))
    for layout, policy in (
        (Layout("sync", 2, 4, 8), Policy(batch_window=0.0)),
        (Layout("asap", 2, 4, 8), Policy(batch_window=0.0)),
        (Layout("asap", 2, 4, 8), Policy(batch_window=0.0, super_kernel=False)),
    ):
        out = run(layout, policy, costs, requests).outcome
        host = exposed_host_dispatch(layout, policy, costs)
        assert out.end[0] - 1.0 == pytest.approx(costs.alone(4000.0, 16e6, host), rel=1e-12)
        assert out.kernel[0] == pytest.approx(out.end[0] - 1.0, rel=1e-12)
