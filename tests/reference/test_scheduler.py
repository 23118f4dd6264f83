"""Prompts, pieces and the asynchronous scheduler: every rule by a hand-worked example, then whole runs."""

import heapq
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.policy import Policy
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.scheduler import Batch, Piece, Prompt, PullScheduler
from tests.reference.scheduling import POLICIES, ROLLING, SMALL, cuts, placed, prompts, pull, workloads

# ------------------------------------------------------------------------------------------------ prompts and pieces


def test_pieces_of_a_prompt_with_a_cached_prefix() -> None:
    prompt = Prompt(0, 0.0, tokens=10, cached=4)
    assert (prompt.to_compute, prompt.whole.tokens, prompt.whole.work) == (6, 6, 100 - 16)
    head, rest = prompt.whole.cut(2)
    assert ((head.first, head.last, head.completes), (rest.first, rest.last, rest.completes)) == (
        (4, 6, False),
        (6, 10, True),
    )
    assert rest.work == 4**2 + 2 * 4 * 6  # c^2 + 2 c q
    assert head.work + rest.work == prompt.whole.work
    batch = Batch(0, 0, 0, (head, Prompt(1, 0.0, 3).whole))
    assert (batch.tokens, batch.work) == (5, head.work + 9)


@pytest.mark.parametrize(("tokens", "cached"), [(0, 0), (5, 5), (5, 6), (5, -1)])
def test_prompt_needs_something_to_compute(tokens: int, cached: int) -> None:
    with pytest.raises(ValueError, match=rf"prompt 7 has {tokens} tokens of which {cached} are cached"):
        Prompt(7, 0.0, tokens, cached)


@pytest.mark.parametrize(("first", "last"), [(3, 6), (4, 4), (6, 5), (4, 11)])
def test_piece_lies_in_what_is_to_be_computed(first: int, last: int) -> None:
    with pytest.raises(ValueError, match=r"must be a part of \[4, 10\)"):
        Piece(Prompt(0, 0.0, 10, 4), first, last)


@pytest.mark.parametrize("scheduler", [PullScheduler, IterationScheduler])
def test_schedulers_refuse_bad_input(scheduler: Any) -> None:
    with pytest.raises(ValueError, match="0 attention groups"):
        scheduler(0, SMALL)
    machine = scheduler(1, SMALL)
    machine.arrive(Prompt(0, 2.0, 10))
    with pytest.raises(ValueError, match=r"prompt 1 arrived at 1.0 s, before prompt 0 at 2.0 s"):
        machine.arrive(Prompt(1, 1.0, 10))


# --------------------------------------------------------------------------------------------------- pull: when due


def test_nothing_queued_nothing_released() -> None:
    scheduler = PullScheduler(2, SMALL)
    assert scheduler.release(5.0) == []
    assert scheduler.expiry() is None


@pytest.mark.parametrize(
    ("dual", "tokens", "released"), [(True, 199, 0), (True, 200, 1), (False, 99, 0), (False, 100, 1)]
)
def test_due_with_enough_tokens_for_all_slots(dual: bool, tokens: int, released: int) -> None:
    scheduler = pull(replace(SMALL, dual_batch=dual), prompts(tokens))
    assert len(scheduler.release(0.0)) == released


def test_due_when_the_window_of_the_head_ends() -> None:
    scheduler = pull(SMALL, [Prompt(0, 2.0, 10), Prompt(1, 2.5, 10)])
    assert scheduler.expiry() == 3.0
    assert scheduler.release(2.999) == []
    assert placed(scheduler.release(3.0)) == [(0, 0, [0, 1])]
    assert scheduler.expiry() is None


def test_expiry_is_due_whatever_the_rounding() -> None:
    scheduler = pull(replace(SMALL, batch_window=0.05), [Prompt(0, 0.7, 10)])
    expiry = scheduler.expiry()
    assert expiry is not None
    assert expiry - 0.7 != 0.05  # the difference does not give the window back
    assert len(scheduler.release(expiry)) == 1


def test_due_when_the_head_is_exclusive_but_not_when_another_is() -> None:
    assert placed(pull(SMALL, prompts(201)).release(0.0)) == [(0, 0, [0])]
    assert pull(SMALL, [Prompt(0, 0.0, 10), Prompt(1, 0.0, 205, cached=150)]).release(0.0) == []


def test_prompt_of_exactly_the_limit_is_not_exclusive() -> None:
    policy = replace(SMALL, min_batch_tokens=150)
    assert pull(policy, prompts(200)).release(0.0) == []
    assert len(pull(policy, prompts(201)).release(0.0)) == 1


def test_due_counts_what_is_left_in_the_queue() -> None:
    scheduler = pull(SMALL, prompts(*[50] * 7))
    assert placed(scheduler.release(0.0)) == [(0, 0, [0, 1]), (0, 1, [2, 3])]  # 150 tokens are left


def test_due_stops_while_it_repeats() -> None:
    """240 tokens make a pair; the 60 left are too few, and wait for their own window."""
    scheduler = pull(SMALL, prompts(120, 120, 60))
    assert placed(scheduler.release(0.0)) == [(0, 0, [0]), (0, 1, [1])]
    assert scheduler.release(0.5) == []
    assert placed(scheduler.release(1.0)) == [(1, 0, [2])]


def test_cached_tokens_do_not_count_as_queued() -> None:
    scheduler = pull(SMALL, [Prompt(0, 0.0, 150, cached=51), Prompt(1, 0.0, 100)])
    assert scheduler.release(0.0) == []  # 99 + 100
    scheduler.arrive(Prompt(2, 0.1, 20, cached=19))
    assert placed(scheduler.release(0.1)) == [(0, 0, [0, 1]), (0, 1, [2])]


# -------------------------------------------------------------------------------------------- pull: what a batch has


def test_batch_stops_growing_at_the_minimum() -> None:
    scheduler = pull(SMALL, prompts(60, 39, 1, 50, 50, 10))
    assert placed(scheduler.release(0.0)) == [(0, 0, [0, 1, 2]), (0, 1, [3, 4])]


def test_batch_stays_within_the_maximum_and_takes_nothing_from_further_back() -> None:
    policy = replace(SMALL, max_batch_tokens=150)
    scheduler = pull(policy, prompts(60, 91, 10, 50))
    assert placed(scheduler.release(0.0)) == [(0, 0, [0]), (0, 1, [1, 2])]
    assert placed(pull(policy, prompts(60, 90, 60)).release(0.0)) == [(0, 0, [0, 1]), (0, 1, [2])]


def test_first_prompt_is_taken_even_above_the_maximum() -> None:
    scheduler = pull(replace(SMALL, max_batch_tokens=50), prompts(120, 80))
    assert placed(scheduler.release(0.0)) == [(0, 0, [0]), (0, 1, [1])]


def test_cached_tokens_do_not_count_in_a_batch() -> None:
    scheduler = pull(SMALL, [Prompt(0, 0.0, 190, cached=130), Prompt(1, 0.0, 190, cached=130), *prompts(80, first=2)])
    (first, second) = scheduler.release(0.0)
    assert placed([first, second]) == [(0, 0, [0, 1]), (0, 1, [2])]
    assert (first.tokens, first.work) == (120, 2 * (190**2 - 130**2))
    assert (first.number, second.number) == (0, 1)


# ------------------------------------------------------------------------------------------------ pull: whose turn


def test_locked_fills_a_group_and_then_the_next() -> None:
    scheduler = pull(SMALL, prompts(100, 100, 100, 100, 100, 100))
    batches = scheduler.release(0.0)
    assert placed(batches) == [(0, 0, [0]), (0, 1, [1]), (1, 0, [2]), (1, 1, [3])]
    scheduler.finish(batches[3])
    assert scheduler.release(1.0) == []  # one slot is free, but the pair is not done
    scheduler.finish(batches[2])
    assert placed(scheduler.release(2.0)) == [(1, 0, [4]), (1, 1, [5])]


def test_rolling_spreads_and_refills_any_free_slot() -> None:
    scheduler = pull(ROLLING, prompts(*[100] * 7))
    batches = scheduler.release(0.0)
    assert placed(batches) == [(0, 0, [0]), (1, 0, [1]), (0, 1, [2]), (1, 1, [3])]
    scheduler.finish(batches[1])
    assert placed(scheduler.release(1.0)) == [(1, 0, [4])]
    scheduler.finish(batches[3])
    scheduler.finish(batches[0])
    assert placed(scheduler.release(2.0)) == [(0, 0, [5]), (1, 1, [6])]  # one batch each: a tie


def test_rolling_prefers_the_group_with_fewest_batches() -> None:
    scheduler = pull(ROLLING, prompts(*[100] * 6), groups=3)
    batches = scheduler.release(0.0)
    assert [b.group for b in batches] == [0, 1, 2, 0, 1]
    for batch in (batches[0], batches[3], batches[1]):
        scheduler.finish(batch)
    assert placed(scheduler.release(1.0)) == [(0, 0, [5])]
    scheduler.arrive(Prompt(6, 1.0, 100))
    scheduler.arrive(Prompt(7, 1.0, 100))
    assert [b.group for b in scheduler.release(1.0)] == [0]


def test_pair_with_too_few_prompts_leaves_its_second_slot_empty() -> None:
    scheduler = pull(SMALL, prompts(200))
    (only,) = scheduler.release(0.0)
    scheduler.arrive(Prompt(1, 0.1, 200))
    assert placed(scheduler.release(0.1)) == [(1, 0, [1])]
    scheduler.arrive(Prompt(2, 0.2, 200))
    assert scheduler.release(9.0) == []  # locked: the empty second slots are not filled
    scheduler.finish(only)
    assert placed(scheduler.release(9.0)) == [(0, 0, [2])]


def test_without_dual_batch_a_group_has_one_slot() -> None:
    for pairing in (SMALL, ROLLING):
        scheduler = pull(replace(pairing, dual_batch=False), prompts(100, 100, 100))
        assert placed(scheduler.release(0.0)) == [(0, 0, [0]), (1, 0, [1])]


# -------------------------------------------------------------------------------------------------- pull: exclusive


@pytest.mark.parametrize("policy", [SMALL, ROLLING])
def test_exclusive_prompt_has_its_group_for_itself(policy: Policy) -> None:
    scheduler = pull(policy, prompts(201, 50, 50, 100), groups=1)
    (alone,) = scheduler.release(0.0)
    assert cuts(alone) == [(0, 0, 201)]
    assert scheduler.release(5.0) == []  # held although a slot is free
    scheduler.finish(alone)
    assert placed(scheduler.release(6.0))[0] == (0, 0, [1, 2])


@pytest.mark.parametrize("policy", [SMALL, ROLLING])
def test_exclusive_prompt_never_joins_and_waits_for_an_empty_group(policy: Policy) -> None:
    scheduler = pull(policy, prompts(60, 201, 100), groups=1)
    (first,) = scheduler.release(0.0)
    assert cuts(first) == [(0, 0, 60)]  # below the minimum, but the next one does not join; nor does it take slot 1
    assert scheduler.release(3.0) == []  # and nobody passes it
    scheduler.finish(first)
    assert placed(scheduler.release(3.0)) == [(0, 0, [1])]


def test_exclusive_prompt_goes_to_an_empty_group_of_lowest_index() -> None:
    scheduler = pull(ROLLING, prompts(100, 100), groups=3)
    (only,) = scheduler.release(0.0)
    scheduler.arrive(Prompt(2, 0.1, 100))
    scheduler.arrive(Prompt(3, 0.1, 250))
    assert placed(scheduler.release(0.1)) == [(1, 0, [1]), (2, 0, [2])]
    scheduler.finish(only)
    assert placed(scheduler.release(0.2)) == [(0, 0, [3])]


def test_exclusive_looks_at_the_whole_prompt() -> None:
    scheduler = pull(SMALL, [Prompt(0, 0.0, 201, cached=200), *prompts(200, first=1)])
    assert placed(scheduler.release(0.0)) == [(0, 0, [0]), (1, 0, [1])]


def test_a_batch_is_finished_once_and_was_released() -> None:
    scheduler = pull(SMALL, prompts(200))
    (batch,) = scheduler.release(0.0)
    with pytest.raises(ValueError, match="batch 0 is not active"):
        scheduler.finish(replace(batch, group=1))
    scheduler.finish(batch)
    with pytest.raises(ValueError, match="batch 0 is not active"):
        scheduler.finish(batch)


def due(policy: Policy, left: list[Prompt], now: float) -> bool:
    """Whether the queue `left` is due, from scratch."""
    if not left:
        return False
    enough = sum(p.to_compute for p in left) >= policy.min_batch_tokens * policy.slots
    return enough or left[0].tokens > policy.exclusive_tokens or now >= left[0].arrival + policy.batch_window


def check_release(policy: Policy, groups: int, active: list[Batch], left: list[Prompt], now: float) -> None:
    """No group holds more than it may, and nobody waits who could be taken: the rules, counted from outside."""
    held = [[b for b in active if b.group == g] for g in range(groups)]
    for batches in held:
        assert len({b.slot for b in batches}) == len(batches)
        assert all(0 <= b.slot < policy.slots for b in batches)
        assert len(batches) == 1 or not any(
            p.prompt.tokens > policy.exclusive_tokens for b in batches for p in b.pieces
        )
    if due(policy, left, now):
        assert all(held), "an empty group and a head that is due"
        if policy.pairing == "rolling" and left[0].tokens <= policy.exclusive_tokens:
            alone = [
                any(p.prompt.tokens > policy.exclusive_tokens for b in batches for p in b.pieces) for batches in held
            ]
            assert all(a or len(batches) == policy.slots for a, batches in zip(alone, held, strict=True))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(workloads(), POLICIES, st.integers(1, 3), st.sampled_from([0.2, 0.5, 2.0]))
def test_pull_takes_every_prompt_once_in_order(work: list[Prompt], policy: Policy, groups: int, pace: float) -> None:
    scheduler = PullScheduler(groups, policy)
    events: list[tuple[float, int, int, Any]] = [(p.arrival, 1, p.index, p) for p in work]
    heapq.heapify(events)
    released: list[Batch] = []
    active: list[Batch] = []
    arrived = taken = 0
    while events:
        now, _, _, item = heapq.heappop(events)
        if isinstance(item, Prompt):
            scheduler.arrive(item)
            arrived += 1
        elif isinstance(item, Batch):
            scheduler.finish(item)
            active.remove(item)
        busy = {batch.group for batch in active}
        for batch in scheduler.release(now):
            assert policy.pairing == "rolling" or batch.group not in busy
            if policy.pairing == "rolling" or batch.slot == 0:
                assert due(policy, work[taken:arrived], now)
            released.append(batch)
            active.append(batch)
            taken += len(batch.pieces)
            heapq.heappush(events, (now + pace * (1 + batch.number % 3), 0, batch.number, batch))
        check_release(policy, groups, active, work[taken:arrived], now)
        expiry = scheduler.expiry()
        if expiry is not None and expiry > now:
            heapq.heappush(events, (expiry, 2, 0, None))
    pieces = [piece for batch in released for piece in batch.pieces]
    assert pieces == [prompt.whole for prompt in work]
    assert [batch.number for batch in released] == list(range(len(released)))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(workloads(), POLICIES)
def test_pull_keeps_the_limits_of_a_batch(work: list[Prompt], policy: Policy) -> None:
    batches = pull(policy, work, groups=len(work)).release(1e9)
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        long = [piece.prompt.tokens > policy.exclusive_tokens for piece in batch.pieces]
        assert len(long) == 1 or not any(long)
        assert len(long) == 1 or batch.tokens <= policy.max_batch_tokens
        assert len(long) == 1 or batch.tokens - batch.pieces[-1].tokens < policy.min_batch_tokens
        if following is not None and batch.tokens < policy.min_batch_tokens and not any(long):
            first = following.pieces[0]
            too_large = batch.tokens + first.tokens > policy.max_batch_tokens
            assert too_large or first.prompt.tokens > policy.exclusive_tokens, "the next prompt could have joined"
