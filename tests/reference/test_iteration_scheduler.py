"""The synchronous scheduler: every rule by a hand-worked example, then properties of whole runs."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.policy import Policy
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.scheduler import Piece, Prompt
from tests.reference.scheduling import POLICIES, SYNC, cuts, placed, prompts, sync, workloads


def test_idle_engine_waits_for_its_window_and_then_takes_all() -> None:
    scheduler = IterationScheduler(2, replace(SYNC, batch_window=0.5))
    assert (scheduler.begin(1.0), scheduler.start_at(), scheduler.pending) == ((None, None), None, False)
    scheduler.arrive(Prompt(0, 2.0, 10))
    assert (scheduler.start_at(), scheduler.pending) == (2.5, True)
    assert scheduler.begin(2.4) == (None, None)
    scheduler.arrive(Prompt(1, 2.5, 10))
    assert scheduler.start_at() == 2.5  # the first arrival counts
    assert placed(scheduler.begin(2.5)) == [(0, 0, [0]), (1, 0, [1])]
    assert (scheduler.start_at(), scheduler.pending) == (None, False)


def test_busy_engine_goes_on_at_once_and_idles_without_work() -> None:
    scheduler = sync(replace(SYNC, batch_window=0.5), prompts(10))
    scheduler.begin(0.5)
    scheduler.arrive(Prompt(1, 0.9, 10))
    assert scheduler.start_at() is None
    assert placed(scheduler.begin(1.0)) == [(0, 0, [1])]
    assert scheduler.begin(1.5) == (None, None)
    scheduler.arrive(Prompt(2, 3.0, 10))
    assert scheduler.start_at() == 3.5


def test_queued_work_goes_on_at_once() -> None:
    scheduler = sync(replace(SYNC, batch_window=0.5), prompts(200, 200), groups=1)
    assert placed(scheduler.begin(0.5)) == [(0, 0, [0])]
    assert scheduler.pending
    assert placed(scheduler.begin(0.7)) == [(0, 0, [1])]


def test_arrivals_go_to_the_fewest_queued_tokens() -> None:
    scheduler = sync(SYNC, prompts(100, 40, 60, 10, 90), groups=2)  # loads 100|40, 100|100, 110|100, 110|190
    assert placed(scheduler.begin(0.0)) == [(0, 0, [0, 3]), (1, 0, [1, 2, 4])]


def test_ties_go_to_the_lowest_index() -> None:
    assert placed(sync(SYNC, prompts(5, 5, 5, 5), groups=3).begin(0.0)) == [(0, 0, [0, 3]), (1, 0, [1]), (2, 0, [2])]


def test_routing_counts_tokens_to_compute() -> None:
    waiting = [Prompt(0, 0.0, 100, cached=90), Prompt(1, 0.0, 20), Prompt(2, 0.0, 5)]
    assert placed(sync(SYNC, waiting).begin(0.0)) == [(0, 0, [0, 2]), (1, 0, [1])]


def test_whole_prompts_within_the_maximum_at_least_one() -> None:
    scheduler = sync(SYNC, prompts(200, 100, 1, 400, 10), groups=1)
    steps = [placed(scheduler.begin(float(k))) for k in range(5)]
    assert steps == [[(0, 0, [0, 1])], [(0, 0, [2])], [(0, 0, [3])], [(0, 0, [4])], []]


def test_queues_of_whole_prompts_count_in_the_next_routing() -> None:
    scheduler = sync(SYNC, prompts(300, 250, 200, 350))  # loads 300|250, 300|450, 650|450
    assert placed(scheduler.begin(0.0)) == [(0, 0, [0]), (1, 0, [1])]
    for prompt in prompts(160, 1, at=0.5, first=4):  # left 350|200, 350|360, 351|360
        scheduler.arrive(prompt)
    assert placed(scheduler.begin(1.0)) == [(0, 0, [3]), (1, 0, [2])]
    assert placed(scheduler.begin(2.0)) == [(0, 0, [5]), (1, 0, [4])]


def test_chunks_carry_over_and_cut_the_last_prompt() -> None:
    scheduler = sync(replace(SYNC, chunk_tokens=100), [Prompt(0, 0.0, 270, cached=20), *prompts(30, 60, first=1)], 1)
    steps = [cuts(scheduler.begin(float(k))[0]) for k in range(5)]
    assert steps == [
        [(0, 20, 120)],
        [(0, 120, 220)],
        [(0, 220, 270), (1, 0, 30), (2, 0, 20)],
        [(2, 20, 60)],
        [],
    ]


def test_chunk_that_ends_with_a_prompt_cuts_nothing() -> None:
    scheduler = sync(replace(SYNC, chunk_tokens=100), prompts(60, 40, 10), groups=1)
    assert [cuts(scheduler.begin(float(k))[0]) for k in range(2)] == [[(0, 0, 60), (1, 0, 40)], [(2, 0, 10)]]


def test_routing_counts_what_is_left_of_a_part_done_prompt() -> None:
    scheduler = sync(replace(SYNC, chunk_tokens=100), prompts(130, 120))
    scheduler.begin(0.0)
    scheduler.arrive(Prompt(2, 0.5, 11))  # left 30|20, then 30|31
    scheduler.arrive(Prompt(3, 0.5, 1))
    first, second = scheduler.begin(1.0)
    assert cuts(first) == [(0, 100, 130), (3, 0, 1)]
    assert cuts(second) == [(1, 100, 120), (2, 0, 11)]


def test_balance_of_work_weighs_squares() -> None:
    waiting = prompts(100, 60, 60, 10)
    assert placed(sync(SYNC, waiting).begin(0.0)) == [(0, 0, [0, 3]), (1, 0, [1, 2])]
    by_work = replace(SYNC, balance="work")  # w: 10000|0, 10000|3600, 10000|7200, 10000|7300
    assert placed(sync(by_work, waiting, per_token=0.0, per_token2=1.0).begin(0.0)) == [(0, 0, [0]), (1, 0, [1, 2, 3])]
    assert placed(sync(by_work, waiting).begin(0.0)) == [(0, 0, [0, 3]), (1, 0, [1, 2])]  # only tokens by default
    by_tokens = sync(SYNC, waiting, per_token=0.0, per_token2=1.0)  # weights are for balance = "work" alone
    assert placed(by_tokens.begin(0.0)) == [(0, 0, [0, 3]), (1, 0, [1, 2])]


def test_balance_of_work_counts_cached_and_done_positions() -> None:
    """A prompt of 130 with 100 known has `130^2 - 100^2 = 6900` left, one of 80 tokens 6400."""
    by_work = replace(SYNC, balance="work", chunk_tokens=100)
    scheduler = sync(
        by_work, [Prompt(0, 0.0, 130, cached=100), *prompts(80, 1, first=1)], per_token=0.0, per_token2=1.0
    )
    assert placed(scheduler.begin(0.0)) == [(0, 0, [0]), (1, 0, [1, 2])]
    scheduler = sync(by_work, prompts(130, 180), per_token=0.0, per_token2=1.0)
    scheduler.begin(0.0)
    for prompt in prompts(110, 1, at=0.5, first=2):  # left 6900|22400, 19000|22400
        scheduler.arrive(prompt)
    assert [cuts(batch) for batch in scheduler.begin(1.0)] == [[(0, 100, 130), (2, 0, 70)], [(1, 100, 180)]]
    assert cuts(scheduler.begin(2.0)[0]) == [(2, 70, 110), (3, 0, 1)]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(workloads(), POLICIES, st.integers(1, 3), st.sampled_from([0.2, 0.5, 2.0]))
def test_iterations_compute_every_token_once(work: list[Prompt], policy: Policy, groups: int, pace: float) -> None:
    scheduler = IterationScheduler(groups, policy, 1.0, 0.01)
    waiting, now, idle = list(work), 0.0, True
    order: list[list[Piece]] = [[] for _ in range(groups)]
    while waiting or scheduler.pending:
        while waiting and (waiting[0].arrival <= now or (not scheduler.pending and idle)):
            now = max(now, waiting[0].arrival)
            scheduler.arrive(waiting.pop(0))
        now = scheduler.start_at() or now
        while waiting and waiting[0].arrival <= now:
            scheduler.arrive(waiting.pop(0))
        batches = scheduler.begin(now)
        idle = not any(batches)
        for group, batch in enumerate(batches):
            if batch is not None:
                assert (batch.group, batch.slot) == (group, 0)
                limit = policy.chunk_tokens or policy.max_batch_tokens
                assert batch.tokens <= limit or (policy.chunk_tokens == 0 and len(batch.pieces) == 1)
                assert all(piece.prompt.arrival <= now for piece in batch.pieces)
                assert all(piece.completes for piece in batch.pieces[:-1])
                order[group] += batch.pieces
        now += 0.0 if idle else pace
    for pieces in order:
        indices = [piece.prompt.index for piece in pieces]
        assert indices == sorted(indices)  # first come, first served within a group, pieces side by side
        for before, after in pairwise(pieces):
            assert before.completes if before.prompt != after.prompt else before.last == after.first
    done = Counter[int]()
    for piece in (piece for pieces in order for piece in pieces):
        done[piece.prompt.index] += piece.tokens
    assert done == {prompt.index: prompt.to_compute for prompt in work}


@settings(max_examples=100, derandomize=True, deadline=None)
@given(workloads(), st.sampled_from(["tokens", "work"]), st.integers(1, 4))
def test_routing_is_greedy(work: list[Prompt], balance: Any, groups: int) -> None:
    """With room for all, the first iteration shows the routing: each prompt went where least was queued."""
    weights = (1.0, 0.25) if balance == "work" else (1.0, 0.0)
    policy = Policy(max_batch_tokens=10**6, balance=balance)
    batches = sync(policy, work, groups, per_token=1.0, per_token2=0.25).begin(1e9)
    group_of = {piece.prompt.index: b.group for b in batches if b is not None for piece in b.pieces}
    loads = [0.0] * groups
    for prompt in work:
        assert group_of[prompt.index] == loads.index(min(loads))
        n, w = prompt.tokens - prompt.cached, prompt.tokens**2 - prompt.cached**2
        loads[group_of[prompt.index]] += weights[0] * n + weights[1] * w
