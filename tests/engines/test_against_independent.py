"""The graph engine against a slow program written from the semantics page alone (`tests/independent`)."""

from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings

from asapmodel.engines.graph import run
from asapmodel.policy_rules import batching_of
from tests.independent import events, group_queues, prefill
from tests.strategies import Case, cases, queue_cases


def independent(case: Case) -> list[events.Outcome]:
    requests = [
        (float(t), int(s), int(p))
        for t, s, p in zip(case.requests.arrival, case.requests.prompt, case.requests.cached, strict=True)
    ]
    kind = case.layout.kind
    if case.policy.queue_per_group:
        own: dict[str, Any] = {"batching": batching_of(kind, case.policy), "micro_batches": case.policy.micro}
        own["T"] = case.layout.T
        policy = policy_of(group_queues.QueuePolicy, case, own)
        return group_queues.simulate(policy, costs_of(case), requests)
    return prefill.simulate(policy_of(events.Policy, case, {}), costs_of(case), requests)


PolicyT = TypeVar("PolicyT", bound=events.Policy)


def policy_of(record: type[PolicyT], case: Case, own: dict[str, Any]) -> PolicyT:
    known = {"kind": case.layout.kind, "D": case.layout.D} | own
    names = [name for name in record.__dataclass_fields__ if name not in known]
    return record(**known, **{name: getattr(case.policy, name) for name in names})


def costs_of(case: Case) -> events.Costs:
    costs = case.costs
    a = costs.attention

    def pair(entry: object) -> tuple[float, float]:
        return (entry.fixed, entry.per_token)  # type: ignore[attr-defined]

    return events.Costs(
        attention=(a.fixed, a.per_token, a.per_token2),
        dispatch_send=pair(costs.dispatch_send),
        dispatch_recv=pair(costs.dispatch_recv),
        moe=(costs.moe.floor, costs.moe.per_token),
        combine_send=pair(costs.combine_send),
        combine_recv=pair(costs.combine_recv),
        host_dispatch=costs.host_dispatch,
        layers=costs.layers,
        dense=pair(costs.dense),
        dense_layers=costs.dense_layers,
        step_overhead=costs.step_overhead,
        request_latency=costs.request_latency,
    )


def check(case: Case) -> None:
    ours = run(case.layout, case.policy, case.costs, case.requests).outcome
    theirs = independent(case)
    for name, mine in (("end", ours.end), ("start", ours.start), ("kernel", ours.kernel)):
        other = np.array([getattr(one, name) for one in theirs])
        np.testing.assert_allclose(mine, other, rtol=1e-9, err_msg=name)
    ttft = ours.end - case.requests.arrival + case.costs.request_latency
    np.testing.assert_allclose(ttft, [one.ttft for one in theirs], rtol=1e-6)


@settings(max_examples=300, deadline=None)
@given(cases(kind="asap"))
def test_asynchronous(case: Case) -> None:
    check(case)


@settings(max_examples=300, deadline=None)
@given(cases(kind="sync"))
def test_synchronous(case: Case) -> None:
    check(case)


@settings(max_examples=200, deadline=None)
@given(queue_cases(kind="asap"))
def test_asynchronous_with_a_queue_per_group(case: Case) -> None:
    check(case)


@settings(max_examples=200, deadline=None)
@given(queue_cases(kind="sync"))
def test_synchronous_with_a_queue_per_group(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(queue_cases())
def test_many_with_a_queue_per_group(case: Case) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=10000, deadline=None)
@given(cases())
def test_many(case: Case) -> None:
    check(case)
