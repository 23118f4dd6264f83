"""Replay of the scheduler, causes of starts, and critical paths of random asynchronous systems."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.attribution.blame import blame_of
from asapmodel.attribution.critical_path import OWNERS
from asapmodel.attribution.free_trace import FreeTrace, trace_free
from asapmodel.attribution.release import WINDOW
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests, make_requests
from tests.attribution.checks import check_paths
from tests.strategies import Case, cases, random_costs


def traced(case: Case) -> FreeTrace:
    return trace_free(case.layout, case.policy, case.costs, case.requests)


@settings(max_examples=200)
@given(cases(kind="asap"))
def test_replayed_batches_are_the_engines(case: Case) -> None:
    trace = traced(case)
    release, out = trace.release, run(case.layout, case.policy, case.costs, case.requests).outcome
    sizes = release.last - release.first
    assert len(sizes) == trace.done.batches
    np.testing.assert_array_equal(np.repeat(release.launch, sizes), out.start)
    np.testing.assert_array_equal(np.repeat(trace.end[release.tasks[:, -1]], sizes), out.end)
    np.testing.assert_array_equal(np.sort(release.tasks, axis=None), np.arange(trace.done.tasks))
    # each batch's first MoE layer says how many tokens it has
    tokens = np.add.reduceat(case.requests.prompt - case.requests.cached, release.first)
    seconds = (trace.end - trace.start)[release.tasks[:, -6:]]
    np.testing.assert_allclose(seconds[:, 1], [case.costs.dispatch_send(float(n)) for n in tokens], rtol=1e-6)


@settings(max_examples=200)
@given(cases(kind="asap"))
def test_every_start_is_the_end_of_its_cause(case: Case) -> None:
    trace = traced(case)
    caused = trace.cause >= 0
    np.testing.assert_array_equal(trace.start[caused], trace.end[trace.cause[caused]])
    assert np.all(trace.cause[caused] < np.flatnonzero(caused))
    # the others begin a batch, with an arrival or a window's end
    release = trace.release
    roots = np.flatnonzero(~caused)
    assert np.isin(roots, release.tasks[:, 0]).all()
    launch = release.launch[trace.batch[roots]]
    np.testing.assert_array_equal(trace.start[roots], launch)
    arrival = case.requests.arrival
    expired = trace.cause[roots] == WINDOW
    heads = release.first[trace.batch[roots[expired]]]
    assert np.all(launch[expired] >= arrival[heads])
    assert np.isin(launch[~expired], arrival).all()


@settings(max_examples=150)
@given(cases(kind="asap"))
def test_turn_is_first_come_first_served(case: Case) -> None:
    """On a resource, turns come in the order of becoming ready, and it is never free before the next turn."""
    trace = traced(case)
    assert np.all(trace.ready <= trace.turn)
    assert np.all(trace.turn <= trace.start)
    for one in np.unique(trace.resource):
        mine = np.flatnonzero(trace.resource == one)
        assert np.all(np.diff(trace.ready[mine]) >= 0)
        waited = trace.turn[mine] > trace.ready[mine]
        assert not waited[0]
        np.testing.assert_array_equal(trace.turn[mine][1:][waited[1:]], trace.end[mine][:-1][waited[1:]])


@settings(max_examples=150)
@given(cases(kind="asap"))
def test_paths_cover_the_time_from_arrival_to_end(case: Case) -> None:
    blame = blame_of(case.layout, case.policy, case.costs, case.requests)
    assert blame.paths is not None
    assert blame.paths.to_numpy().min() >= 0.0
    np.testing.assert_allclose(blame.paths.sum(axis=1), blame.ttft_s - case.costs.request_latency, rtol=1e-9)
    if case.layout.D == 1:
        assert blame.paths.filter(like="others_").to_numpy().sum() == 0.0


@settings(max_examples=100)
@given(cases(kind="asap"), st.sampled_from(["formation", "locked", "exclusive", "group_slots"]))
def test_a_cause_vanishes_with_its_rule(case: Case, cause: str) -> None:
    without = {
        "formation": replace(case.policy, batch_window=0.0),
        "locked": replace(case.policy, pairing="rolling"),
        "exclusive": replace(case.policy, exclusive_tokens=10**6),
        "group_slots": case.policy,
    }
    groups = len(case.requests.arrival) if cause == "group_slots" else case.layout.D
    blame = blame_of(Layout("asap", groups, 1, 1), without[cause], case.costs, case.requests)
    assert blame.components[cause].max() == 0.0


@settings(max_examples=50)
@given(cases(kind="asap"))
def test_a_group_of_one_slot_is_never_locked(case: Case) -> None:
    policy = replace(case.policy, dual_batch=False)
    components = blame_of(case.layout, policy, case.costs, case.requests).components
    for name in ("locked", "exclusive", "wait_buffer"):
        assert components[name].max() == 0.0


def backlog(seed: int) -> tuple[Layout, Policy, LayerCosts, Requests]:
    """Every switch drawn; all requests there from the start, so that paths go back to one instant."""
    rng = np.random.default_rng(seed)
    policy = Policy(
        min_batch_tokens=int(rng.choice([1, 2048])),
        batch_window=0.0,
        pairing="rolling" if rng.random() < 0.5 else "locked",
        dual_batch=bool(rng.random() < 0.8),
        overlap_moe=bool(rng.random() < 0.5),
        overlap_attention=bool(rng.random() < 0.5),
        super_kernel=bool(rng.random() < 0.5),
    )
    prompts = np.clip(np.exp(rng.normal(7.5, 1.4, size=40)).astype(np.int64), 1, 32000)
    requests = make_requests(np.zeros(40), prompts)
    return Layout("asap", int(rng.integers(1, 5)), 4, 8), policy, random_costs(rng), requests


@pytest.mark.parametrize("seed", range(30))
def test_a_path_is_the_derivative_of_the_end(seed: int) -> None:
    check_paths(*backlog(seed))


def test_busy_systems_wait_for_others() -> None:
    """The paths of the derivative test do leave their own batches."""
    owners = np.zeros(3)
    for seed in range(10):
        blame = blame_of(*backlog(seed))
        assert blame.paths is not None
        owners += [blame.paths.filter(like=f"{owner}_").to_numpy().sum() for owner in OWNERS]
    assert np.all(owners / owners.sum() > 0.05)
