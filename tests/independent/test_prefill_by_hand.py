"""The independent program against cases worked out by hand.

Unless said otherwise a batch takes, whatever its size, per layer: attention 1, dispatch send 1/2, dispatch
receive 1/4, MoE 2, combine send 1/2, combine receive 1/4, together 4.5. All numbers are exact in binary.
"""

from dataclasses import replace

import pytest

from tests.independent.events import Costs, Outcome, Policy
from tests.independent.prefill import simulate, simulate_tasks

FLAT = Costs(
    attention=(1.0, 0.0, 0.0),
    dispatch_send=(0.5, 0.0),
    dispatch_recv=(0.25, 0.0),
    moe=(2.0, 0.0),
    combine_send=(0.5, 0.0),
    combine_recv=(0.25, 0.0),
    layers=1,
)
K = 2.0**-10  # a second per 1024 tokens


def starts(outcomes: list[Outcome]) -> list[float]:
    return [o.start for o in outcomes]


def ends(outcomes: list[Outcome]) -> list[float]:
    return [o.end for o in outcomes]


# ------------------------------------------------------------------------------------ free execution


def test_one_request() -> None:
    # n = 1024 - 512 = 512, w = 1024^2 - 512^2 = 0.75 x 2^20. Attention 1 + 0.5 + 0.75 = 2.25;
    # dispatch send 0.5 + 0.5 = 1; dispatch receive 0.25; MoE max(2, 0.5) + 0.125 (host) = 2.125;
    # combine 0.5 + 0.25. A layer is 6.375. One dense layer: 2.25 + (0.25 + 0.5) = 3. Overhead 0.125.
    # Together 0.125 + 3 + 2 x 6.375 = 15.875; the TTFT has 1 more for the network.
    costs = replace(
        FLAT,
        attention=(1.0, K, K * K),
        dispatch_send=(0.5, K),
        moe=(2.0, K),
        host_dispatch=0.125,
        layers=3,
        dense=(0.25, K),
        dense_layers=1,
        step_overhead=0.125,
        request_latency=1.0,
    )
    policy = Policy("asap", 2, super_kernel=False)
    assert simulate(policy, costs, [(10.0, 1024, 512)]) == [Outcome(10.0, 1024, 512, 10.0, 25.875, 16.875, 15.875)]
    # With the super kernel 2 x 0.125 less; with a batch of 4096 tokens the MoE takes 4.
    assert simulate(replace(policy, super_kernel=True), costs, [(10.0, 1024, 512)])[0].end == 25.625
    assert simulate(policy, replace(FLAT, moe=(2.0, K)), [(0.0, 4096, 0)])[0].end == 6.5


def test_two_batches_on_one_group_and_a_blocked_dispatch_region() -> None:
    # Both go at once when the second arrives (4096 tokens = 2 x 2048). A's send becomes ready at 1, after
    # B's attention. B's send, served at 2.5, waits until A's receive has emptied the region at 2.75.
    policy = Policy("asap", 1, batch_window=10.0)
    outcomes, tasks = simulate_tasks(policy, FLAT, [(0.0, 2048, 0), (0.0, 2048, 0)])
    assert tasks == [
        ("attention", 0, 0, 0, 0.0, 1.0),  # A
        ("attention", 0, 0, 0, 1.0, 2.0),  # B
        ("attention", 0, 0, 1, 2.0, 2.5),  # A
        ("moe.receive", 0, 0, 2, 2.5, 2.75),  # A
        ("attention", 0, 0, 1, 2.75, 3.25),  # B, blocked from 2.5
        ("moe.compute", 0, 0, 3, 2.75, 4.75),  # A
        ("moe.receive", 0, 0, 2, 3.25, 3.5),  # B
        ("moe.send", 0, 0, 4, 4.75, 5.25),  # A
        ("moe.compute", 0, 0, 3, 4.75, 6.75),  # B
        ("attention", 0, 0, 5, 5.25, 5.5),  # A
        ("moe.send", 0, 0, 4, 6.75, 7.25),  # B
        ("attention", 0, 0, 5, 7.25, 7.5),  # B
    ]
    assert ends(outcomes) == [5.5, 7.5]
    assert [o.kernel for o in outcomes] == [4.5, 4.5]


def test_two_batches_with_other_streams() -> None:
    requests = [(0.0, 2048, 0), (0.0, 2048, 0)]
    policy = Policy("asap", 1, batch_window=10.0)
    # Attention streams: A sends at 1-1.5 beside B's attention, MoE 1.75-3.75, done 4.5; B sends at 2-2.5,
    # MoE 3.75-5.75, done 6.5.
    assert ends(simulate(replace(policy, overlap_attention=True), FLAT, requests)) == [4.5, 6.5]
    # No MoE streams: A receive 2.5-2.75, MoE 2.75-4.75. B's receive, ready at 3.25, is before A's combine
    # send, ready at 4.75: 4.75-5, then A's send 5-5.5, and B's MoE 5.5-7.5, B's send 7.5-8.
    assert ends(simulate(replace(policy, overlap_moe=False), FLAT, requests)) == [5.75, 8.25]
    # One batch at a time: the first goes at once (2048 tokens), the second when it is done.
    one = simulate(replace(policy, dual_batch=False), FLAT, requests)
    assert starts(one) == [0.0, 4.5]
    assert ends(one) == [4.5, 9.0]
    # The overhead of 0.5 is paid twice on the attention group before anything else: all is 1 later.
    assert ends(simulate(policy, replace(FLAT, step_overhead=0.5), requests)) == [6.5, 8.5]
    # Two dense layers of 1.5 each, alternating: A 0-1.5, B -3, A -4.5, B -6, one MoE layer as above.
    dense = replace(FLAT, layers=3, dense_layers=2, dense=(0.5, 0.0))
    assert ends(simulate(policy, dense, requests)) == [11.5, 13.5]


def test_a_blocked_combine_buffer() -> None:
    # Combine receive takes 3: A's is 5.25-8.25. B's MoE ends at 6.75, its send waits until 8.25, and ends at
    # 8.75; its receive ends at 11.75.
    costs = replace(FLAT, combine_recv=(3.0, 0.0))
    policy = Policy("asap", 1, batch_window=10.0)
    assert ends(simulate(policy, costs, [(0.0, 2048, 0), (0.0, 2048, 0)])) == [8.25, 11.75]


def test_two_groups_share_the_moe_devices() -> None:
    # No window: A goes to group 0, B to group 1. B's receive waits for A's (1.5-1.75-2), its MoE for A's
    # (1.75-3.75-5.75). C waits for group 0, done at 4.5: its MoE is 6.25-8.25.
    outcomes = simulate(Policy("asap", 2), FLAT, [(0.0, 2048, 0)] * 3)
    assert starts(outcomes) == [0.0, 0.0, 4.5]
    assert ends(outcomes) == [4.5, 6.5, 9.0]


def test_an_exclusive_prompt() -> None:
    requests = [(0.0, 1024, 0), (0.0, 16385, 0), (0.0, 2048, 0)]
    # One group: each alone, in order, with either pairing; X never joins A though A is below 2048 tokens.
    for pairing in ("locked", "rolling"):
        outcomes = simulate(Policy("asap", 1, pairing=pairing), FLAT, requests)
        assert starts(outcomes) == [0.0, 4.5, 9.0]
        assert ends(outcomes) == [4.5, 9.0, 13.5]
    # 16384 tokens are not exclusive: B joins A's group in the free slot as soon as it arrives.
    rolling = Policy("asap", 1, pairing="rolling")
    assert starts(simulate(rolling, FLAT, [(0.0, 1024, 0), (0.0, 16384, 0)])) == [0.0, 0.0]
    # Two groups, rolling: X holds group 1; C goes to group 0 beside A. X is done at 4.5 (MoE 1.75-3.75);
    # A receives at 2.5-2.75, MoE 3.75-5.75, done 6.5; C's MoE 5.75-7.75, done 8.5.
    outcomes = simulate(Policy("asap", 2, pairing="rolling"), FLAT, requests)
    assert starts(outcomes) == [0.0, 0.0, 0.0]
    assert ends(outcomes) == [6.5, 4.5, 8.5]
    # The exclusive prompt does not wait for the window, the others do.
    outcomes = simulate(Policy("asap", 1, batch_window=8.0), FLAT, [(0.0, 16385, 0), (0.0, 1024, 0)])
    assert starts(outcomes) == [0.0, 8.0]


def test_window_expiry() -> None:
    # A waits from 1 to 1.5; B joins its batch; C arrives at the instant of expiry, which comes first.
    requests = [(1.0, 100, 0), (1.25, 100, 0), (1.5, 100, 0)]
    locked = simulate(Policy("asap", 1, batch_window=0.5), FLAT, requests)
    assert starts(locked) == [1.5, 1.5, 6.0]
    assert ends(locked) == [6.0, 6.0, 10.5]
    rolling = simulate(Policy("asap", 1, batch_window=0.5, pairing="rolling"), FLAT, requests)
    assert starts(rolling) == [1.5, 1.5, 2.0]  # C in the second slot when its own wait is over


def test_batches_are_filled_to_the_minimum() -> None:
    # 1500 + 600 reach 2048, the next two make the second batch of the pair, the last is left: it has to wait
    # although the pair was released by the count of tokens.
    requests = [(0.0, 1500, 0), (0.0, 600, 0), (0.0, 1000, 0), (0.0, 1000, 0), (0.0, 50, 0)]
    outcomes, tasks = simulate_tasks(Policy("asap", 1, batch_window=1.0), FLAT, requests)
    assert starts(outcomes) == [0.0, 0.0, 0.0, 0.0, 7.5]
    assert ends(outcomes) == [5.5, 5.5, 7.5, 7.5, 12.0]
    assert sum(phase == 0 for _, _, _, phase, _, _ in tasks) == 3
    # The next prompt would pass the maximum: the first two are apart.
    tight = Policy("asap", 1, max_batch_tokens=2000, batch_window=1.0)
    assert ends(simulate(tight, FLAT, requests[:2])) == [6.5, 8.5]


# -------------------------------------------------------------------------------- lockstep execution


def test_lockstep_with_two_groups() -> None:
    # Groups of 1024 and 2048 tokens: attention 2 and 3. MoE layer 3 + (1.5 + 0.25 + 0.5 + 0.25) + 3 = 8.5,
    # dense layer 3 + 0.5; with the overhead 12.25 after the window of 0.5. The host takes no time here.
    # Alone: 0.25 + 2.5 + (2 + 2 + 2) = 8.75 and 0.25 + 3.5 + (3 + 2.5 + 2) = 11.25.
    costs = replace(
        FLAT,
        attention=(1.0, K, 0.0),
        dispatch_send=(0.5, K / 2),
        moe=(2.0, K),
        host_dispatch=7.0,
        layers=2,
        dense=(0.5, 0.0),
        dense_layers=1,
        step_overhead=0.25,
    )
    policy = Policy("sync", 2, batch_window=0.5, super_kernel=False)
    assert simulate(policy, costs, [(0.0, 1024, 0), (0.25, 2048, 0)]) == [
        Outcome(0.0, 1024, 0, 0.5, 12.75, 12.75, 8.75),
        Outcome(0.25, 2048, 0, 0.5, 12.75, 12.5, 11.25),
    ]


def test_lockstep_goes_on_without_the_window_while_there_is_work() -> None:
    # A alone 1-5.5. B and C arrive meanwhile and start at 5.5; D arrives after the end, 10, finds the engine
    # idle, and waits for the window again. Had it come at 10 it would have gone at once.
    requests = [(0.0, 10, 0), (2.0, 10, 0), (3.0, 10, 0), (10.25, 10, 0)]
    outcomes = simulate(Policy("sync", 1, batch_window=1.0), FLAT, requests)
    assert starts(outcomes) == [1.0, 5.5, 5.5, 11.25]
    assert ends(outcomes) == [5.5, 10.0, 10.0, 15.75]
    together = simulate(Policy("sync", 1, batch_window=1.0), FLAT, [*requests[:3], (10.0, 10, 0)])
    assert starts(together) == [1.0, 5.5, 5.5, 10.0]
    # Whole prompts within the maximum: B and C no longer fit together, D arrives during C.
    outcomes = simulate(Policy("sync", 1, batch_window=1.0, max_batch_tokens=15), FLAT, requests)
    assert starts(outcomes) == [1.0, 5.5, 10.0, 14.5]


def test_lockstep_chunks() -> None:
    # Attention w / 2^20, MoE 1/2. Iteration 1 (0-1.5): 1024 of A. Iteration 2: the other 512 of A
    # (512^2 + 2 x 512 x 1024 = 1.25 x 2^20) and B's 512 after 512 cached (0.75 x 2^20): 2 + 0.5, to 4.
    free = (0.0, 0.0)
    costs = Costs((0.0, 0.0, K * K), free, free, (0.5, 0.0), free, free, layers=1)
    policy = Policy("sync", 1, chunk_tokens=1024)
    assert simulate(policy, costs, [(0.0, 1536, 0), (1.0, 1024, 512)]) == [
        Outcome(0.0, 1536, 0, 0.0, 4.0, 4.0, 4.0),
        Outcome(1.0, 1024, 512, 1.5, 4.0, 3.0, 2.5),
    ]


@pytest.mark.parametrize(("balance", "end"), [("tokens", 6.0), ("work", 5.0)])
def test_lockstep_balance(balance: str, end: float) -> None:
    # 2048 to group 0, 1024 twice to group 1. By tokens a tie: the last to group 0, work 4 + 1 and 2.
    # By work 4 against 2: the last to group 1, work 4 and 3.
    free = (0.0, 0.0)
    costs = Costs((0.0, 0.0, K * K), free, free, free, free, free, layers=1)
    requests = [(0.0, 2048, 0), (0.0, 1024, 0), (0.0, 1024, 0), (0.0, 1024, 0)]
    policy = Policy("sync", 2, batch_window=1.0, balance=balance)
    assert ends(simulate(policy, costs, requests)) == [end] * 4


def test_tasks_are_for_free_execution() -> None:
    with pytest.raises(ValueError, match="free execution"):
        simulate_tasks(Policy("sync", 1), FLAT, [])
