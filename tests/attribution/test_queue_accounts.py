"""Queues per group, and limits on the prompts of a step: what holds for every system."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.attribution.blame import blame_of
from asapmodel.attribution.components import FREE_QUEUES, LOCKSTEP_QUEUES, members
from asapmodel.engines.graph import run
from asapmodel.policy import Layout
from asapmodel.systems.arrays import make_requests
from tests.attribution.checks import blamed, check_devices, check_sums, total
from tests.strategies import Case, cases, queue_cases


@st.composite
def limited_cases(draw: st.DrawFn) -> Case:
    """A synchronous system with one queue and a limit on the prompts of an iteration."""
    plain = draw(cases(kind="sync"))
    chunk, most = draw(st.sampled_from([512, 3000, 16384])), draw(st.sampled_from([1, 2, 5]))
    return replace(plain, policy=replace(plain.policy, chunk_tokens=chunk, max_seqs=most))


@settings(max_examples=250)
@given(queue_cases() | limited_cases())
def test_components_are_times_and_add_up_to_ttft(case: Case) -> None:
    blame = blamed(case)
    assert list(blame.components) == list(LOCKSTEP_QUEUES if case.layout.kind == "sync" else FREE_QUEUES)
    suits = case.policy.pad_groups and case.policy.context_parallel  # a wider cut may suit a batch better than its own
    for name, values in blame.components.items():
        assert values.min() >= -1e-12 or (suits and name == "barrier_attention"), name
    check_sums(blame, case)


@settings(max_examples=200)
@given(queue_cases() | limited_cases())
def test_every_requests_parts_are_the_engines(case: Case) -> None:
    """Of halves only the sum of kernel and waiting is."""
    blame = blamed(case)
    out = run(case.layout, case.policy, case.costs, case.requests).outcome
    np.testing.assert_allclose(total(blame, "queueing"), out.start - case.requests.arrival, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        total(blame, "kernel") + total(blame, "waiting"), out.end - out.start, rtol=1e-9, atol=1e-11
    )
    if case.policy.micro != "split":
        np.testing.assert_allclose(total(blame, "kernel"), out.kernel, rtol=1e-9, atol=1e-11)
    elif case.layout.D == 1:
        np.testing.assert_allclose(total(blame, "kernel"), out.kernel, rtol=1e-9, atol=1e-11)
        assert total(blame, "waiting").max() <= 1e-12


@settings(max_examples=150)
@given(queue_cases() | limited_cases())
def test_device_time_is_complete_and_busy_time_the_engines(case: Case) -> None:
    check_devices(blamed(case), case)


@settings(max_examples=150)
@given(queue_cases())
def test_a_lone_request_waits_for_nobody(case: Case) -> None:
    alone = make_requests(case.requests.arrival[:1], case.requests.prompt[:1], case.requests.cached[:1])
    blame = blamed(replace(case, requests=alone))
    window = case.policy.batch_window if case.layout.kind == "sync" else 0.0
    assert total(blame, "queueing")[0] == pytest.approx(window, rel=1e-9, abs=1e-12)
    assert total(blame, "waiting")[0] == pytest.approx(0.0, abs=1e-12)
    if blame.paths is not None:
        assert blame.paths.filter(regex="^(group|others)_").to_numpy().sum() == 0.0


RULES: dict[str, dict[str, Any]] = {
    "formed_ahead": {"schedule_ahead": False, "hide_overhead": True},
    "prompt_limit": {"max_seqs": 0},
    "locked": {"pairing": "rolling"},
    "exclusive": {"exclusive_tokens": 10**6},
    "padding": {"pad_groups": False},
    "idle_step": {"idle_steps": False},
    "window": {"batch_window": 0.0},
}


@settings(max_examples=150)
@given(queue_cases(), st.sampled_from(sorted(RULES)))
def test_a_component_vanishes_with_its_rule(case: Case, name: str) -> None:
    blame = blamed(replace(case, policy=replace(case.policy, **RULES[name])))
    if name in blame.components:
        assert np.abs(blame.components[name]).max() == 0.0


@pytest.mark.parametrize("kind", ["sync", "asap"])
def test_every_component_occurs(kind: str) -> None:
    """None of them is zero in all random systems, so that the other tests are of something."""
    seen = dict.fromkeys(LOCKSTEP_QUEUES if kind == "sync" else FREE_QUEUES, 0)

    @settings(max_examples=200, database=None)
    @given(queue_cases(kind=kind))
    def look(case: Case) -> None:
        for name, values in blamed(case).components.items():
            seen[name] += bool(values.max() > 1e-9)

    look()
    assert min(seen.values()) >= 3, seen


@settings(max_examples=100)
@given(queue_cases(kind="asap"))
def test_one_group_with_a_queue_of_its_own_is_the_ordinary_system(case: Case) -> None:
    """With a minimum of tokens and no window, a group takes from its queue what it would from that of all."""
    one = Layout("asap", 1, case.layout.T, case.layout.E)
    micro: Literal["pair", "none"] = "pair" if case.policy.dual_batch and case.policy.micro != "none" else "none"
    queue = replace(
        case.policy, routing="round_robin", counts="exact", batching="min_tokens", chunk_tokens=0, max_seqs=0,
        schedule_ahead=False, hide_overhead=True, micro_batches=micro, batch_window=0.0,
    )  # fmt: skip
    pull = replace(queue, routing="auto", batching="auto", micro_batches="auto", dual_batch=micro == "pair")
    ours, theirs = (blame_of(one, policy, case.costs, case.requests) for policy in (queue, pull))
    for name in {"locked", "exclusive", *members(FREE_QUEUES, "kernel"), *members(FREE_QUEUES, "waiting")}:
        np.testing.assert_allclose(ours.components[name], theirs.components[name], rtol=1e-9, atol=1e-11, err_msg=name)
    taken = ours.components["group_busy"] + ours.components["own_queue"]
    np.testing.assert_allclose(taken, theirs.components["group_slots"], rtol=1e-9, atol=1e-11)
    assert theirs.components["formation"].max() == 0.0
    assert ours.paths is not None
    assert theirs.paths is not None
    np.testing.assert_allclose(ours.paths, theirs.paths, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.devices, theirs.devices, rtol=1e-9, atol=1e-9)


@settings(max_examples=100)
@given(cases(kind="sync"))
def test_one_group_in_lockstep_is_the_ordinary_system_too(case: Case) -> None:
    one, queue = Layout("sync", 1, 1, 1), replace(case.policy, routing="round_robin", balance="tokens")
    ours, theirs = (blame_of(one, policy, case.costs, case.requests) for policy in (queue, case.policy))
    for name, values in theirs.components.items():
        np.testing.assert_allclose(ours.components[name], values, rtol=1e-9, atol=1e-11, err_msg=name)
    for name in set(ours.components) - set(theirs.components):
        assert ours.components[name].max() == 0.0
    np.testing.assert_allclose(ours.devices, theirs.devices, rtol=1e-9, atol=1e-9)
