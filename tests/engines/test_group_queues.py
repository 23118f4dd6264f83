"""Queues per group: what holds in every run, the synchronous system as a special case, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests, new_outcome
from asapmodel.systems.queue_rules import queue_rules
from asapmodel.systems.queues import begin, form, join, new_batches, new_queues, note_step, settle
from tests.strategies import Case, cases, queue_cases


@settings(max_examples=150, deadline=None)
@given(queue_cases())
def test_every_token_is_served_once_and_no_prompt_ends_before_it_can(case: Case) -> None:
    done = run(case.layout, case.policy, case.costs, case.requests)
    out, tokens = done.outcome, case.requests.prompt - case.requests.cached
    assert done.batch_tokens == tokens.sum()
    assert np.all(out.start >= case.requests.arrival)
    assert np.all(out.end > out.start)
    if case.policy.micro != "split":  # whose halves may pass each other in fewer layers' time beside others
        assert np.all(out.end - out.start >= out.kernel * (1 - 1e-9))
    if case.policy.chunk_tokens:
        assert done.batches >= np.ceil(tokens.sum() / case.policy.chunk_tokens)
        if case.policy.max_seqs == 1:
            assert done.batches == np.ceil(tokens / case.policy.chunk_tokens).sum()


@settings(max_examples=100, deadline=None)
@given(queue_cases(kind="asap"))
def test_busy_time_is_what_the_tasks_take(case: Case) -> None:
    done = run(case.layout, case.policy, case.costs, case.requests, log_tasks=200_000)
    count = int(done.log.recorded[0])
    assert count == done.tasks
    span, resource = done.log.end[:count] - done.log.start[:count], done.log.resource[:count]
    names = [name for name in done.busy_s if not name.endswith("_blocked")]
    times = sum(done.busy_s[name] * (1 if name.startswith("moe") else case.layout.D) for name in names)
    np.testing.assert_allclose(span.sum(), times, rtol=1e-9)
    for one in np.unique(resource):  # one task at a time
        mine = np.flatnonzero(resource == one)
        assert np.all(done.log.start[mine][1:] >= done.log.end[mine][:-1])
    # Overhead and dense layers once a batch, cut or not; every half passes every layer.
    positions = np.bincount(done.log.position[:count], minlength=8)
    assert positions[0] == done.batches * (case.costs.step_overhead > 0)
    assert positions[1] == done.batches * case.costs.dense_layers
    parts = positions[2] / case.costs.moe_layers
    assert np.all(positions[2:] == positions[2])
    assert done.batches <= parts <= (2 if case.policy.micro == "split" else 1) * done.batches


@settings(max_examples=100, deadline=None)
@given(queue_cases(), st.data())
def test_first_in_first_out_in_a_group(case: Case, data: st.DataObject) -> None:
    policy = replace(case.policy, routing="round_robin", counts="exact")
    if policy.micro == "pair":  # whose second batch may be the first to end
        policy = replace(policy, micro_batches="none")
    out = run(case.layout, policy, case.costs, case.requests).outcome
    group = data.draw(st.integers(0, case.layout.D - 1))
    for times in (out.start, out.end):
        assert np.all(np.diff(times[group :: case.layout.D]) >= 0)


@settings(max_examples=100, deadline=None)
@given(queue_cases(kind="asap"))
def test_a_group_with_a_queue_never_rests(case: Case) -> None:
    """One prompt a step: each starts when it arrives, or when the one before it in its group ends."""
    policy = replace(case.policy, routing="round_robin", counts="exact", batching="prompts", max_batch_tokens=1)
    policy = replace(policy, chunk_tokens=0, max_seqs=0, micro_batches="none")
    policy = replace(policy, schedule_ahead=False, hide_overhead=True)
    out = run(case.layout, policy, case.costs, case.requests).outcome
    for group in range(case.layout.D):
        arrival, start, end = (x[group :: case.layout.D] for x in (case.requests.arrival, out.start, out.end))
        free = np.concatenate([[0.0], end[:-1]])[: len(end)]
        np.testing.assert_array_equal(start, np.maximum(arrival, free))


@settings(max_examples=150, deadline=None)
@given(cases(kind="sync"))
def test_routing_by_iteration_without_a_limit_is_the_synchronous_system(case: Case) -> None:
    """`max_seqs` sends a system to the code of the queues; a limit that no iteration reaches changes no bit."""
    assume(case.policy.chunk_tokens > 0)
    plain = run(case.layout, case.policy, case.costs, case.requests)
    limited = run(case.layout, replace(case.policy, max_seqs=1000), case.costs, case.requests)
    for one, other in zip(plain.outcome, limited.outcome, strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain.busy_s == limited.busy_s


@settings(max_examples=150, deadline=None)
@given(queue_cases(), st.integers(0, 2**32 - 1))
def test_queues_against_lists(case: Case, seed: int) -> None:
    """Joins and batches in any order: the groups' queues are lists, and budget and limit are never exceeded."""
    policy, requests = replace(case.policy, schedule_ahead=False, hide_overhead=True), case.requests
    rng = np.random.default_rng(seed)
    rules = queue_rules(case.layout, policy, 1e-7, 1e-12)
    q, outcome, batches = new_queues(case.layout.D, requests), new_outcome(len(requests.arrival)), new_batches(1)
    lists: list[list[int]] = [[] for _ in range(case.layout.D)]
    left = requests.prompt - requests.cached
    joined = served = 0
    while served < left.sum():
        if joined < len(left) and rng.random() < 0.6:
            lists[join(q, rules, requests, joined)].append(joined)
            joined += 1
            continue
        group = int(rng.integers(case.layout.D))
        assert q.head[group] == (lists[group][0] if lists[group] else -1)
        if not lists[group]:
            continue
        begun = {k: int(q.done[k]) for k in lists[group]}
        form(q, rules, requests, batches, 0, group)
        begin(q, requests, outcome, batches, 0, 1.0, 0.5)
        note_step(q, rules)
        prompts, n, w = batches.prompts[0], batches.n[0], batches.w[0]
        taken = lists[group][:prompts]
        got = [int(q.done[k]) - begun[k] for k in taken]
        assert sum(got) == n
        assert w == sum(int(q.done[k]) ** 2 - begun[k] ** 2 for k in taken)
        assert all(tokens == requests.prompt[k] - begun[k] for k, tokens in zip(taken[:-1], got[:-1], strict=True))
        if policy.chunk_tokens:
            assert n <= policy.chunk_tokens
            assert policy.max_seqs == 0 or prompts <= policy.max_seqs
        else:
            assert got[-1] == requests.prompt[taken[-1]] - begun[taken[-1]]
            assert n <= policy.max_batch_tokens or prompts == 1
        complete = settle(q, outcome, batches, 0, group, 2.0)
        ended = [k for k in taken if q.done[k] == requests.prompt[k]]
        assert complete == len(ended)
        lists[group] = [k for k in lists[group] if k not in ended]
        served += sum(got)
        assert q.tokens[group] == sum(int(requests.prompt[k] - q.done[k]) for k in lists[group])
        begun_now = [k for k in lists[group] if outcome.start[k] > 0]
        assert (q.running[group], q.waiting[group]) == (len(begun_now), len(lists[group]) - len(begun_now))


def test_counts_of_the_last_step_send_what_arrives_in_it_to_one_group() -> None:
    """4 groups in lockstep: the group of a prompt shows in when it starts, if a group takes one prompt an iteration."""
    free = Affine(0.0, 0.0)
    costs = LayerCosts(Quadratic(1.0, 0.0, 0.0), free, free, Plateau(0.0, 0.0), free, free, layers=1)
    rng = np.random.default_rng(3)
    requests = make_requests(np.sort(rng.random(40) * 8.0), np.full(40, 64))
    policy = Policy(
        routing="fewest_requests", counts="step", chunk_tokens=64, max_seqs=1, batch_window=0.0, micro_batches="none"
    )
    out = run(Layout("sync", 4, 1, 4), policy, costs, requests).outcome
    first = requests.arrival[0]
    within = np.floor(requests.arrival - first)  # iterations of 1 s from the first arrival on
    for step in range(int(within.max()) + 1):
        mine = out.start[(within == step) & (requests.arrival > first)]
        assert len(set(mine.tolist())) == len(mine), "two of one group cannot start together"
    exact = run(Layout("sync", 4, 1, 4), replace(policy, counts="exact"), costs, requests).outcome
    assert (out.end - requests.arrival).mean() > 1.2 * (exact.end - requests.arrival).mean()


AHEAD = Policy(
    routing="round_robin", chunk_tokens=100, batch_window=0.0, micro_batches="none", schedule_ahead=True, max_seqs=2
)
NOTHING = Affine(0.0, 0.0)
UNIT = LayerCosts(  # a second for every 100 tokens, half a second of overhead
    Quadratic(0.0, 0.01, 0.0), NOTHING, NOTHING, Plateau(0.0, 0.0), NOTHING, NOTHING, layers=1, step_overhead=0.5
)


def ends(
    kind: str, groups: int, arrival: list[float], prompt: list[int], max_seqs: int = 2, hidden: bool = True
) -> list[float]:
    layout = Layout(kind, groups, 1, groups)  # type: ignore[arg-type]
    policy = replace(AHEAD, max_seqs=max_seqs, hide_overhead=hidden)
    out = run(layout, policy, UNIT, make_requests(np.array(arrival), np.array(prompt))).outcome
    return [round(float(x), 9) for x in out.end]


def test_a_group_in_lockstep_sits_out_after_a_step_that_found_its_queue_empty() -> None:
    """Group 0 runs 0 to 1.5, 1 to the next step; what comes to 0 meanwhile waits for an empty step of its own."""
    # Prompt 2 goes to group 0 at 1.0: that runs prompt 0 until 1.5 and sits out the step of prompt 1, 1.5 to 3.0.
    assert ends("sync", 2, [0.0, 0.5, 1.0], [100, 100, 100]) == [1.5, 3.0, 4.5]
    # Alone, an iteration in which all sit out takes its overhead.
    assert ends("sync", 1, [0.0, 1.0], [100, 100]) == [1.5, 3.5]
    # An idle engine starts afresh.
    assert ends("sync", 1, [0.0, 1.6], [100, 100]) == [1.5, 3.1]


def test_a_batch_formed_ahead_has_no_overhead_and_is_closed() -> None:
    """250 tokens in steps of 100, 100, 50, the later two prepared; the last was closed when the second began."""
    for kind in ("sync", "asap"):
        assert ends(kind, 1, [0.0, 1.6, 1.7], [250, 30, 30], 0) == [3.0, 3.6, 3.6]
        assert ends(kind, 1, [0.0, 1.4, 1.7], [250, 30, 30], 0) == [3.3, 3.3, 3.6]
    # Free execution never sits out: the queue was empty at 0.0, so the next batch is formed at 1.5.
    assert ends("asap", 1, [0.0, 1.0], [100, 100]) == [1.5, 3.0]


def test_a_batch_formed_ahead_may_pay_its_overhead() -> None:
    """As above, every step half a second longer, and closed when the one before begins: at 1.5 and 3.0."""
    for kind in ("sync", "asap"):
        assert ends(kind, 1, [0.0, 1.4, 1.6], [250, 30, 30], 0, hidden=False) == [4.3, 4.3, 5.1]
        assert ends(kind, 1, [0.0, 1.6, 1.7], [250, 30, 30], 0, hidden=False) == [4.0, 5.1, 5.1]
    # A prompt that arrives while the only step runs has not missed anything in free execution, and two in lockstep.
    assert ends("asap", 1, [0.0, 1.0], [100, 100], hidden=False) == [1.5, 3.0]
    assert ends("sync", 1, [0.0, 1.0], [100, 100], hidden=False) == [1.5, 3.5]


def test_prompts_of_the_running_step_count_towards_the_limit_of_the_next() -> None:
    """At 1.1 two prompts start, `max_seqs` of 2; the third is not in the batch formed then and waits for two steps."""
    assert ends("sync", 1, [0.0, 0.1, 0.1, 0.1], [10, 10, 10, 10]) == [0.6, 1.8, 1.8, 2.9]


ASYNC = Policy(routing="round_robin", chunk_tokens=8192, micro_batches="split")


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("asap", {"routing": "auto"}, "policy.chunk_tokens: is 8192, but chunks are not available with one queue"),
        ("asap", {"routing": "iteration"}, "policy.routing: is 'iteration', but the asynchronous system has no"),
        ("asap", {"micro_batches": "pair"}, "policy.micro_batches: is 'pair', but the two chunks of a group"),
        ("asap", {"counts": "step"}, "policy.counts: is 'step', but no requests are counted; give routing = 'few"),
        ("asap", {"chunk_tokens": 0, "schedule_ahead": True}, "policy.schedule_ahead: is true, but batches are formed"),
        ("asap", {"routing": "auto", "schedule_ahead": True}, "policy.schedule_ahead: is true, but batches are formed"),
        ("asap", {"hide_overhead": False}, "policy.hide_overhead: is false, but no batch is formed ahead"),
        ("sync", {"micro_batches": "none", "hide_overhead": False}, "policy.hide_overhead: is false, but no batch"),
        ("asap", {"batching": "prompts"}, "policy.chunk_tokens: is 8192, but batching = 'prompts'; leave one"),
        ("asap", {"chunk_tokens": 0, "max_seqs": 8}, "policy.max_seqs: is 8, but prompts are not cut"),
        ("asap", {"chunk_tokens": 0, "batching": "chunks"}, "policy.chunk_tokens: is 0, but batching = 'chunks'"),
        ("asap", {"chunk_tokens": 0, "routing": "pull"}, "policy.micro_batches: is 'split', but from one queue"),
        (
            "asap",
            {"chunk_tokens": 0, "routing": "pull", "micro_batches": "auto", "batching": "prompts"},
            "policy.batching: is 'prompts', but from one queue groups take",
        ),
        (
            "asap",
            {"chunk_tokens": 0, "micro_batches": "pair", "dual_batch": False},
            "policy.micro_batches: is 'pair', but dual_batch = false",
        ),
        ("asap", {"pad_groups": True}, "policy.pad_groups: is true, but it belongs to groups in lockstep with queues"),
        (
            "sync",
            {"routing": "iteration", "micro_batches": "none", "idle_steps": True},
            "policy.idle_steps: is true, but",
        ),
        ("sync", {}, "policy.micro_batches: is 'split', but a group in lockstep has one batch; give 'none'"),
        ("sync", {"routing": "pull"}, "policy.routing: is 'pull', but groups in lockstep"),
        ("sync", {"chunk_tokens": 0, "batching": "min_tokens"}, "policy.batching: is 'min_tokens', but groups in"),
        ("sync", {"micro_batches": "none", "balance": "work"}, "policy.balance: is 'work', but routing = 'round_"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(kind: str, changes: dict[str, object], message: str) -> None:
    layout = Layout(kind, 2, 1, 2)  # type: ignore[arg-type]
    free = Affine(0.0, 0.0)
    costs = LayerCosts(Quadratic(1.0, 0.0, 0.0), free, free, Plateau(0.0, 0.0), free, free, layers=1)
    with pytest.raises(ValueError, match="^" + re.escape(message)) as refusal:
        run(layout, replace(ASYNC, **changes), costs, make_requests(np.zeros(1), np.ones(1, dtype=np.int64)))  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_what_is_left_out_is_what_the_kind_of_system_has() -> None:
    """`dual_batch` says between pair and none; only the routing differs between one queue and many."""
    assert Policy().micro == Policy(routing="least_work").micro == "pair"
    assert Policy(dual_batch=False).micro == Policy(dual_batch=False, routing="least_work").micro == "none"
    assert Policy(routing="round_robin", chunk_tokens=100).micro == "none"
    assert [replace(ASYNC, micro_batches=one).slots for one in ("none", "split")] == [1, 2]
    layout, requests = Layout("asap", 1, 1, 1), make_requests(np.linspace(0.0, 0.08, 9), np.arange(1, 10) * 900)
    some = Affine(1e-4, 1e-8)
    costs = LayerCosts(Quadratic(1e-3, 1e-7, 1e-11), some, some, Plateau(4e-4, 1e-7), some, some, layers=3)
    for dual_batch in (True, False):  # one group without a minimum: both are the same system
        shared = Policy(min_batch_tokens=1, batch_window=0.0, dual_batch=dual_batch)
        one, other = (run(layout, p, costs, requests) for p in (shared, replace(shared, routing="round_robin")))
        np.testing.assert_array_equal(one.outcome.end, other.outcome.end)
        assert one.busy_s == other.busy_s
