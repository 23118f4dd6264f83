"""Queues per group, a few requests, every component worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from asapmodel.attribution.blame import Blame, blame_of
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.attribution.systems import flat_costs

MOVE = Affine(0.25, 1 / 256)  # four of them: 1 s and 1/64 s a token
COSTS = LayerCosts(
    attention=Quadratic(0.0, 1 / 64, 0.0),
    dispatch_send=MOVE,
    dispatch_recv=MOVE,
    moe=Plateau(1.0, 1 / 64),
    combine_send=MOVE,
    combine_recv=MOVE,
    layers=1,
    step_overhead=0.5,
)
TURNS = Policy(routing="round_robin", batch_window=0.0)
CHUNKS = replace(TURNS, chunk_tokens=64)  # an iteration of 64 tokens alone: 0.5 + 1 + 2 + 1 = 4.5 s
OWN = {"attention": 1.5, "transfers": 2.0, "experts": 1.0}


def in_lockstep(policy: Policy, arrivals: list[float], prompts: list[int], groups: int = 1) -> Blame:
    requests = make_requests(np.array(arrivals), np.array(prompts))
    return blame_of(Layout("sync", groups, 1, groups), policy, COSTS, requests)


def freely(policy: Policy, arrivals: list[float], prompts: list[int], groups: int = 1, **costs: float) -> Blame:
    requests = make_requests(np.array(arrivals), np.array(prompts))
    return blame_of(Layout("asap", groups, 1, 1), policy, flat_costs(**costs), requests)


def shown(blame: Blame, k: int) -> dict[str, float]:
    """Components of a request that are not 0."""
    return {name: float(values[k]) for name, values in blame.components.items() if values[k]}


def path(blame: Blame, k: int) -> dict[str, float]:
    assert blame.paths is not None
    return {str(name): float(value) for name, value in blame.paths.iloc[k].items() if value}


def test_two_groups_padded_to_the_larger() -> None:
    # 0.25-9.75: overhead 0.5; both groups compute 128 tokens: attention 2, transfers 3, experts at 256 tokens 4
    policy = replace(TURNS, pad_groups=True, batch_window=0.25)
    blame = in_lockstep(policy, [0.0, 0.0], [64, 128], groups=2)
    # 64 tokens alone, the other group padded to them: 0.5 + 1 + 2 + 1 and 1 more in the experts
    others = {"barrier_attention": 1.0, "barrier_transfers": 1.0, "shared_experts": 2.0}
    assert shown(blame, 0) == {"window": 0.25} | OWN | {"padding": 1.0} | others
    assert shown(blame, 1) == {"window": 0.25, "attention": 2.5, "transfers": 3.0, "experts": 2.0, "padding": 2.0}
    assert blame.ttft_s.tolist() == [9.75, 9.75]
    assert blame.straggler_waste == 1 / 4  # of 2 groups' 2 s, 1 s of one
    assert list(blame.devices.loc["devices"]) == [2.0, 0.5, 3.0, 4.0, 0.25, 0.0]


def test_slices_as_wide_as_those_of_the_largest_may_suit_a_batch_better() -> None:
    # on two devices; group 0: 2 tokens, then 2 behind 1000 cached ones; group 1: 6 tokens
    # slices of 2: the second has 2**2 + 2 * 2 * 1000; slices of 3: 2**2 + 1 + 2 * 1000 and 1 + 2 * 1001
    costs = replace(COSTS, attention=Quadratic(0.0, 0.0, 1.0), step_overhead=0.0)
    policy = replace(TURNS, pad_groups=True, context_parallel=True, chunk_tokens=6)
    requests = make_requests(np.zeros(3), np.array([2, 6, 1002]), np.array([0, 0, 1000]))
    blame = blame_of(Layout("sync", 2, 2, 4), policy, costs, requests)
    assert blame.components["attention"].tolist() == [2 * 4004.0, 2 * (9.0 + 2 * 9.0), 2 * 4004.0]
    assert blame.components["barrier_attention"].tolist() == [2 * (2005.0 - 4004.0), 2 * (2005.0 - 27.0), -2 * 1999.0]


def test_two_groups_not_padded() -> None:
    blame = in_lockstep(TURNS, [0.0, 0.0], [64, 128], groups=2)
    waits = {"barrier_attention": 1.0, "barrier_transfers": 1.0, "shared_experts": 2.0}
    assert shown(blame, 0) == OWN | waits
    assert shown(blame, 1) == {"attention": 2.5, "transfers": 3.0, "experts": 2.0, "shared_experts": 1.0}


def test_a_prompt_that_comes_after_the_next_batch_was_formed() -> None:
    # 0-4.5 the first; when it began there was nothing for the next iteration, so the group sits that one out:
    # 4.5-7, overhead 0.5 and fixed times 1 + 1; 7-11.5 the second
    blame = in_lockstep(replace(CHUNKS, schedule_ahead=True), [0.0, 1.0], [64, 64])
    assert shown(blame, 0) == OWN
    assert shown(blame, 1) == {"engine_busy": 3.5, "formed_ahead": 2.5} | OWN
    assert blame.ttft_s.tolist() == [4.5, 10.5]
    assert list(blame.devices.loc["devices"]) == [3.0, 0.5, 2 * 2.0 + 1.0, 3.0, 0.0, 0.0]


def test_the_overhead_of_a_group_that_did_not_prepare_holds_up_the_others() -> None:
    # group 0: 128 tokens in two chunks, the second formed ahead; group 1: its prompt comes at 1, forms its batch late
    # 0-4.5, then 4.5-10: 0.5 + 1 + 2 and experts at 128 tokens 2
    blame = in_lockstep(replace(CHUNKS, schedule_ahead=True), [0.0, 1.0], [128, 64], groups=2)
    own = {"attention": 1.5 + 1.0, "transfers": 4.0, "experts": 2.0}
    assert shown(blame, 0) == own | {"barrier_attention": 0.5, "shared_experts": 1.0}
    assert shown(blame, 1) == {"engine_busy": 3.5} | OWN | {"shared_experts": 1.0}


def test_overhead_that_is_not_hidden() -> None:
    # as before, but the second chunk has its overhead too: it is its own
    policy = replace(CHUNKS, schedule_ahead=True, hide_overhead=False)
    blame = in_lockstep(policy, [0.0, 1.0], [128, 64], groups=2)
    assert shown(blame, 0) == {"attention": 3.0, "transfers": 4.0, "experts": 2.0, "shared_experts": 1.0}
    free = freely(policy, [0.0, 1.0, 2.0, 9.0], [64, 64, 64, 64], step=1.0)
    assert shown(free, 3) == {
        "group_busy": 8.75,
        "formed_ahead": 8.875,
        "attention": 5.0,
        "transfers": 1.875,
        "experts": 2.0,
    }


def test_full_iterations_and_iterations_with_room() -> None:
    full = in_lockstep(CHUNKS, [0.0, 0.0], [64, 64])
    assert shown(full, 1) == {"own_queue": 4.5} | OWN
    limited = in_lockstep(replace(CHUNKS, chunk_tokens=128, max_seqs=1), [0.0, 0.0], [64, 64])
    assert shown(limited, 1) == {"prompt_limit": 4.5} | OWN


def test_a_limit_with_one_queue_for_all() -> None:
    policy = Policy(batch_window=0.0, chunk_tokens=128, max_seqs=1)
    blame = in_lockstep(policy, [0.0, 0.0], [64, 64])
    assert shown(blame, 1) == {"prompt_limit": 4.5} | OWN


def test_empty_iterations_go_on() -> None:
    # empty ones take 0.5 + 1 + 1 = 2.5 s; the first prompt ends at 4.5, the seventh empty one after it at 22
    blame = in_lockstep(replace(CHUNKS, idle_steps=True), [0.0, 20.0], [64, 64])
    assert shown(blame, 1) == {"idle_step": 2.0} | OWN
    assert blame.devices.loc["devices", "empty"] == 15.5


def test_halves_of_a_step_are_its_own() -> None:
    # as two batches on one group (test_free_by_hand): A 0-4 | 4-8, s 8-9 | 9.5-10.5, r 9-9.5 | -11, M 9.5-11.5 | -13.5,
    # c -11.75 | -13.75, e -11.875 | -13.875. From the end back: e, c, M of the second, M, r, s of the first, both A
    blame = freely(replace(TURNS, micro_batches="split"), [0.0], [100])
    assert shown(blame, 0) == {"attention": 8.0, "transfers": 1.875, "experts": 4.0}
    assert path(blame, 0) == {
        "own_attention": 8.0, "own_dispatch_send": 1.0, "own_dispatch_recv": 0.5, "own_moe": 4.0,
        "own_combine_send": 0.25, "own_combine_recv": 0.125,
    }  # fmt: skip
    assert blame.ttft_s[0] == 13.875


def test_halves_come_after_their_overhead() -> None:
    blame = freely(replace(TURNS, micro_batches="split"), [0.0], [100], step=1.0, latency=0.5)
    assert shown(blame, 0) == {"request_latency": 0.5, "attention": 9.0, "transfers": 1.875, "experts": 4.0}


def test_two_groups_meet_at_the_experts() -> None:
    # both: A 0-4, s 4-5; first: r 5-5.5, M -7.5, c -7.75, e -7.875; second: r 5.5-6, M 7.5-9.5, c -9.75, e -9.875
    blame = freely(CHUNKS, [0.0, 0.0], [50, 60], groups=2)
    own = {"attention": 4.0, "transfers": 1.875, "experts": 2.0}
    assert shown(blame, 0) == own
    assert shown(blame, 1) == own | {"wait_transfer": 0.5, "wait_pool": 1.5}
    others = {"others_attention": 4.0, "others_dispatch_send": 1.0, "others_dispatch_recv": 0.5, "others_moe": 2.0}
    assert path(blame, 1) == others | {"own_moe": 2.0, "own_combine_send": 0.25, "own_combine_recv": 0.125}


def test_halves_wait_for_another_group() -> None:
    # group 0, halves as above from 0; group 1 the same from 3: A 3-7 | -11, s 11-12 | 12.5-13.5,
    # r 12-12.5 | -14, M: pool free at 13.5: 13.5-15.5 | -17.5, c -15.75 | -17.75, e | -17.875
    blame = freely(replace(TURNS, micro_batches="split"), [0.0, 3.0], [100, 100], groups=2)
    assert shown(blame, 0) == {"attention": 8.0, "transfers": 1.875, "experts": 4.0}
    assert shown(blame, 1) == {"attention": 8.0, "transfers": 1.875, "experts": 4.0, "wait_pool": 1.0}
    assert blame.ttft_s[1] == 14.875
    assert path(blame, 1)["others_moe"] == 4.0


def test_a_prompt_of_two_steps_behind_another() -> None:
    # steps of 7.875 s; 0-7.875 the first; the second, 100 tokens, in two steps of 64 and 36
    blame = freely(CHUNKS, [0.0, 1.0, 2.0], [64, 100, 28])
    own = {"attention": 4.0, "transfers": 1.875, "experts": 2.0}
    assert shown(blame, 1) == {"group_busy": 6.875} | {name: 2 * value for name, value in own.items()}
    assert shown(blame, 2) == {"group_busy": 5.875, "own_queue": 7.875} | own
    assert path(blame, 2)["group_attention"] == 2.0 + 4.0


def test_free_steps_formed_ahead() -> None:
    # steps of 8.875 s, formed ahead of 7.875: 0-8.875 | 8.875-17.75 | 17.75-25.625 | -33.5
    # the third is formed when the second begins, the fourth, which comes after that, when the third does
    blame = freely(replace(CHUNKS, schedule_ahead=True), [0.0, 1.0, 2.0, 9.0], [64, 64, 64, 64], step=1.0)
    own = {"transfers": 1.875, "experts": 2.0}
    assert shown(blame, 1) == {"group_busy": 7.875, "attention": 5.0} | own
    assert shown(blame, 2) == {"group_busy": 6.875, "own_queue": 8.875, "attention": 4.0} | own
    assert shown(blame, 3) == {"group_busy": 8.75, "formed_ahead": 7.875, "attention": 4.0} | own


@pytest.mark.parametrize(("most", "name"), [(1, "prompt_limit"), (0, None)])
def test_free_steps_with_room(most: int, name: str | None) -> None:
    policy = replace(CHUNKS, chunk_tokens=128, max_seqs=most)
    blame = freely(policy, [0.0, 1.0, 1.0], [64, 64, 64])
    wait = {"group_busy": 6.875} | ({name: 7.875} if name else {})
    assert shown(blame, 2) == wait | {"attention": 4.0, "transfers": 1.875, "experts": 2.0}


def test_a_slot_that_a_locked_pair_leaves_empty() -> None:
    pair = replace(TURNS, batching="min_tokens", min_batch_tokens=1)
    blame = freely(pair, [0.0, 1.0], [100, 100])
    assert shown(blame, 1) == {"locked": 6.875, "attention": 4.0, "transfers": 1.875, "experts": 2.0}
    long = freely(replace(pair, exclusive_tokens=1000, pairing="rolling"), [0.0, 1.0, 2.0], [100, 5000, 100])
    assert shown(long, 1)["exclusive"] == 6.875
    assert shown(long, 2)["exclusive"] == 5.875 + 7.875
