"""The schedulers of the reference system: every rule by a hand-worked example, then properties of whole runs."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.policy import Policy
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.scheduler import Batch, Piece, Prompt, PullScheduler

SMALL = Policy(min_batch_tokens=100, max_batch_tokens=300, exclusive_tokens=200, batch_window=1.0)
ROLLING = replace(SMALL, pairing="rolling")
SYNC = Policy(max_batch_tokens=300, batch_window=0.0)


def prompts(*tokens: int, at: float = 0.0, first: int = 0) -> list[Prompt]:
    return [Prompt(first + k, at, s) for k, s in enumerate(tokens)]


def pull(policy: Policy, waiting: Iterable[Prompt], groups: int = 2) -> PullScheduler:
    scheduler = PullScheduler(groups, policy)
    for prompt in waiting:
        scheduler.arrive(prompt)
    return scheduler


def sync(policy: Policy, waiting: Iterable[Prompt], groups: int = 2, **weights: float) -> IterationScheduler:
    scheduler = IterationScheduler(groups, policy, **weights)
    for prompt in waiting:
        scheduler.arrive(prompt)
    return scheduler


def placed(batches: Iterable[Batch | None]) -> list[tuple[int, int, list[int]]]:
    """Group, slot and prompts of each batch."""
    return [(b.group, b.slot, [p.prompt.index for p in b.pieces]) for b in batches if b is not None]


def cuts(batch: Batch | None) -> list[tuple[int, int, int]]:
    """Prompt and positions of each piece."""
    return [] if batch is None else [(p.prompt.index, p.first, p.last) for p in batch.pieces]


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


# --------------------------------------------------------------------------------------------------------- iteration


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


# -------------------------------------------------------------------------------------------------------- properties


@st.composite
def workloads(draw: st.DrawFn) -> list[Prompt]:
    """Up to 30 prompts on a coarse time grid, so that things happen in one instant; some are exclusive in SMALL."""
    gaps = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 3.0])
    rows = draw(st.lists(st.tuples(gaps, st.integers(1, 320), st.floats(0.0, 0.99)), min_size=1, max_size=30))
    found, now = [], 0.0
    for index, (gap, tokens, share) in enumerate(rows):
        now += gap
        found.append(Prompt(index, now, tokens, int(share * tokens) if index % 3 == 0 else 0))
    return found


POLICIES = st.builds(
    Policy,
    min_batch_tokens=st.sampled_from([1, 100, 250]),
    max_batch_tokens=st.sampled_from([50, 300]),
    exclusive_tokens=st.sampled_from([0, 200, 400]),
    batch_window=st.sampled_from([0.0, 0.5, 1.0]),
    pairing=st.sampled_from(["locked", "rolling"]),
    dual_batch=st.booleans(),
    chunk_tokens=st.sampled_from([0, 1, 90, 1000]),
    balance=st.sampled_from(["tokens", "work"]),
)


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
