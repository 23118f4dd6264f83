"""Asynchronous system, a few requests, every component worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from asapmodel.attribution.blame import Blame, blame_of
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.attribution.systems import flat_costs

ONE = Layout("asap", 1, 1, 1)
PAIR = Policy(min_batch_tokens=1, pairing="rolling", batch_window=0.0)
OWN = {"attention": 4.0, "transfers": 1.875, "experts": 2.0}  # flat_costs(): 7.875 in all


def blamed(policy: Policy, arrivals: list[float], prompts: list[int], **costs: float) -> Blame:
    return blame_of(ONE, policy, flat_costs(**costs), make_requests(np.array(arrivals), np.array(prompts)))


def shown(blame: Blame, k: int) -> dict[str, float]:
    """Components of a request that are not 0."""
    return {name: float(values[k]) for name, values in blame.components.items() if values[k]}


def path(blame: Blame, k: int) -> dict[str, float]:
    assert blame.paths is not None
    return {str(name): float(value) for name, value in blame.paths.iloc[k].items() if value}


def test_two_batches_on_one_group() -> None:
    # first:  A 0-4, waits for A of the second, s 8-9, r 9-9.5, M 9.5-11.5, c -11.75, e -11.875
    # second: A 4-8, s: its turn at 9, region free at 9.5, -10.5, r -11, M 11.5-13.5, c -13.75, e -13.875
    blame = blamed(PAIR, [0, 0], [100, 100])
    assert shown(blame, 0) == OWN | {"wait_group": 4.0}
    assert shown(blame, 1) == OWN | {"wait_group": 5.0, "wait_buffer": 0.5, "wait_pool": 0.5}
    assert blame.ttft_s.tolist() == [11.875, 13.875]
    # the second ends when it does because of: A, s, r, M of the first, after its own A
    first = {"group_attention": 4.0, "group_dispatch_send": 1.0, "group_dispatch_recv": 0.5, "group_moe": 2.0}
    own = {"own_moe": 2.0, "own_combine_send": 0.25, "own_combine_recv": 0.125}
    assert path(blame, 1) == {"own_attention": 4.0} | first | own
    assert {state: seconds for state, seconds in blame.devices.loc["attention"].items() if seconds} == {
        "attention": 8.0, "dispatch_send": 2.0, "combine_recv": 0.25, "blocked": 0.5, "away": 3.125
    }  # fmt: skip
    assert list(blame.devices.loc["moe"][["moe", "away", "unassigned", "empty"]]) == [4.0, 9.875, 0.0, 0.0]


def test_two_batches_without_streams_of_the_pool() -> None:
    # second: r 11.5-12 behind the first's M, M behind the first's c 12-12.25; the first's c behind the second's r
    blame = blamed(replace(PAIR, overlap_moe=False), [0, 0], [100, 100])
    assert shown(blame, 0) == OWN | {"wait_group": 4.0, "wait_pool": 0.5}
    assert shown(blame, 1) == OWN | {"wait_group": 5.0, "wait_buffer": 0.5, "wait_pool": 1.25}
    assert list(blame.devices.index) == ["attention", "moe"]


def test_streams_that_only_transfer() -> None:
    # first: A 0-1, s 1-5, r -5.5, ...; second: A 1-2, s: its turn at 5, region free at 5.5
    blame = blamed(replace(PAIR, overlap_attention=True), [0, 0], [100, 100], attention=1.0, send=4.0)
    own = {"attention": 1.0, "transfers": 4.875, "experts": 2.0}
    assert shown(blame, 0) == own
    assert shown(blame, 1) == own | {"wait_group": 1.0, "wait_transfer": 3.0, "wait_buffer": 0.5}
    assert blame.devices.loc["attention_send", "blocked"] == 0.5


def test_receive_behind_the_attention_of_the_other() -> None:
    # first:  A 0-4, s -5, r -5.5, M -7.5, c -7.75, e behind A of the second (7-11): -11.125
    # second: s behind it
    blame = blamed(PAIR, [0.0, 7.0], [100, 100])
    assert shown(blame, 0) == OWN | {"wait_group": 3.25}
    assert shown(blame, 1) == OWN | {"wait_group": 0.125}


def test_of_two_causes_at_one_instant_the_own_counts() -> None:
    # as in the first test, but M of the first ends (11) as M of the second becomes ready
    blame = blamed(PAIR, [0, 0], [100, 100], experts=1.5)
    assert shown(blame, 1)["wait_group"] == 5.0
    assert "wait_pool" not in shown(blame, 1)
    own = {"own_attention": 4.0, "own_dispatch_send": 1.0, "own_dispatch_recv": 0.5, "own_moe": 1.5}
    first = {"group_attention": 4.0, "group_dispatch_send": 1.0, "group_dispatch_recv": 0.5}
    assert path(blame, 1) == own | first | {"own_combine_send": 0.25, "own_combine_recv": 0.125}


def test_region_of_a_group_held() -> None:
    costs = {"attention": 4.0, "send": 0.25, "receive": 0.25, "experts": 0.5, "combine": 0.5, "take": 1.0}
    requests = make_requests(np.array([0, 0, 2.5]), np.full(3, 100))
    blame = blame_of(Layout("asap", 2, 1, 1), PAIR, flat_costs(**costs), requests)
    # groups: 0 and 1 get one each at 0, group 0 (ties: lowest index) the third at 2.5
    # request 0: A 0-4; then A of request 2 4-8; s 8-8.25, r -8.5, M -9, c 9-9.5, e 9.5-10.5
    assert shown(blame, 0) == {"attention": 4.0, "transfers": 2.0, "experts": 0.5, "wait_group": 4.0}
    # request 1: alone in group 1: A 0-4, s -4.25, r -4.5, M -5, c -5.5, e -6.5
    assert shown(blame, 1) == {"attention": 4.0, "transfers": 2.0, "experts": 0.5}
    # request 2: A 4-8, s: turn 8.25, region free at 8.5, -8.75, r -9, M 9-9.5
    #            c: turn 9.5, region free at 10.5, -11, e 11-12
    waits = {"wait_group": 1.5 + 0.25, "wait_buffer": 0.25 + 1.0}
    assert shown(blame, 2) == {"attention": 4.0, "transfers": 2.0, "experts": 0.5} | waits
    assert blame.ttft_s[2] == 12.0 - 2.5
    assert blame.devices.loc["moe_send", "blocked"] == 1.0


def test_host_dispatch_and_latency_and_overhead() -> None:
    lone = replace(PAIR, super_kernel=False)
    blame = blamed(lone, [3.0], [100], host=0.5, latency=0.25, step=1.0)
    assert shown(blame, 0) == OWN | {"request_latency": 0.25, "attention": 5.0, "host": 0.5}
    assert path(blame, 0)["own_moe"] == 2.5
    assert path(blame, 0)["own_attention"] == 5.0


def test_locked_pair_keeps_the_second_slot_empty() -> None:
    blame = blamed(replace(PAIR, pairing="locked"), [0.0, 1.0], [100, 100])
    assert shown(blame, 0) == OWN
    assert shown(blame, 1) == OWN | {"locked": 6.875}
    # cut at its arrival, in the middle of the first's attention
    assert path(blame, 1)["group_attention"] == 3.0
    assert path(blame, 1)["own_attention"] == 4.0


def test_exclusive_prompt_holds_up_who_is_behind() -> None:
    policy = replace(PAIR, exclusive_tokens=1000)
    blame = blamed(policy, [0.0, 1.0, 2.0], [100, 5000, 100])
    assert shown(blame, 1) == OWN | {"exclusive": 6.875}
    assert shown(blame, 2) == OWN | {"exclusive": 5.875 + 7.875}  # until the group is free, then while it is held


def test_every_slot_taken() -> None:
    blame = blamed(replace(PAIR, dual_batch=False), [0.0, 1.0], [100, 100])
    assert shown(blame, 1) == OWN | {"group_slots": 6.875}


def test_formation_by_tokens_and_by_window() -> None:
    policy = Policy(min_batch_tokens=1000, batch_window=10.0)
    blame = blamed(policy, [0.0, 3.0], [600, 1400])
    assert shown(blame, 0) == OWN | {"formation": 3.0}
    assert shown(blame, 1) == OWN
    assert path(blame, 0)["arrivals"] == 3.0
    late = blamed(policy, [0.0, 7.0], [600, 100])
    assert shown(late, 0) == OWN | {"formation": 10.0}
    assert path(late, 0)["window"] == 10.0
    assert path(late, 1)["window"] == 3.0
    assert late.devices["unassigned"].tolist() == [10.0] * 4


def test_a_window_that_ends_as_a_prompt_arrives_ends_first() -> None:
    blame = blamed(Policy(min_batch_tokens=1000, batch_window=3.0), [0.0, 3.0], [600, 100])
    assert shown(blame, 0) == OWN | {"formation": 3.0}
    assert path(blame, 0)["window"] == 3.0
    assert shown(blame, 1) == OWN | {"locked": 7.875}


def test_idle_while_empty() -> None:
    blame = blamed(PAIR, [0.0, 100.0], [100, 100])
    for _, row in blame.devices.iterrows():
        assert row["empty"] == pytest.approx(100.0 - 7.875)
        assert row["unassigned"] == 0.0
