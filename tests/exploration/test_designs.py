"""The feasible points of a space against the scenarios themselves, one by one."""

from itertools import product

import pytest

import asapmodel as am
from asapmodel.costing import layer_costs, memory_budget
from asapmodel.exploration.designs import Designs, designs_of
from asapmodel.exploration.space import Space
from asapmodel.exploration.table import points_table
from tests.exploration.spaces import SMALL


def scenarios(designs: Designs) -> list[am.Scenario]:
    return [group.scenario.replace(**changes) for group in designs.groups for changes in group.policies]


def test_every_combination_is_a_point_or_left_out() -> None:
    """What `Scenario.replace` and the cost models accept, and nothing else, is a point."""
    text = """
scenario = "paper-asap"
[vary]
D = [2, 4, 6]
T = [2, 3, 4]
E = [8, 16, 300]
min_batch_tokens = [2048, 16384]
max_batch_tokens = [8192, 32768]
"""
    designs = designs_of(Space.parse(text))
    base = am.Scenario.load("paper-asap")
    accepted = []
    for D, T, E, least, most in product((2, 4, 6), (2, 3, 4), (8, 16, 300), (2048, 16384), (8192, 32768)):
        try:
            one = base.replace(D=D, T=T, E=E, min_batch_tokens=least, max_batch_tokens=most)
            layer_costs(one)
        except am.InputError:
            continue
        accepted.append(one)
    assert 0 < len(accepted) < 108
    assert scenarios(designs) == accepted
    assert designs.combinations == 108
    reasons = {one.reason: one.points for one in designs.left_out}
    # One policy of four contradicts itself, for each of the 27 layouts.
    assert reasons["policy.min_batch_tokens contradicts another key of the policy"] == 27
    assert reasons["T does not divide the model's heads"] == 3 * 3 * 3
    assert reasons["more expert devices than experts"] == 3 * 2 * 3
    assert sum(reasons.values()) == 108 - designs.count


def test_keys_vary_only_where_they_act() -> None:
    text = """
scenario = "paper-asap"
[vary]
system.kind = ["sync", "asap"]
E = [16, 32]
D = [8]
pairing = ["locked", "rolling"]
chunk_tokens = [0, 4096, 8192]
max_batch_tokens = [16384, 32768]
"""
    designs = designs_of(Space.parse(text))
    kinds = [one.layout.kind for one in scenarios(designs)]
    # sync: whole prompts at two sizes, and two chunks; asap: two degrees, two pairings, two sizes.
    assert (kinds.count("sync"), kinds.count("asap") + sum(one.points for one in designs.left_out)) == (4, 8)
    table = points_table(Space.parse(text), designs)
    sync = table[table["system"] == "sync"]
    assert sync["pairing"].isna().all()
    assert sync["E"].tolist() == [32] * 4
    assert sync["chunk_tokens"].tolist() == [0, 0, 4096, 8192]
    assert sync["max_batch_tokens"].isna().tolist() == [False, False, True, True]
    assert table[table["system"] == "asap"]["chunk_tokens"].isna().all()


def test_no_system_is_a_point_twice() -> None:
    points = scenarios(designs_of(Space.parse(SMALL)))
    seen = {(one.name, one.layout, one.policy) for one in points}
    assert len(seen) == len(points) == 15


@pytest.mark.parametrize("size", [1, 2, 7, 15, 100])
def test_pieces_hold_every_point_once_in_order(size: int) -> None:
    designs = designs_of(Space.parse(SMALL))
    pieces = list(designs.pieces(size))
    numbers = [group.first + k for piece in pieces for group in piece for k in range(len(group.policies))]
    assert numbers == list(range(designs.count))
    assert {sum(len(group.policies) for group in piece) for piece in pieces[:-1]} <= {size}
    flat = [group.scenario.replace(**changes) for piece in pieces for group in piece for changes in group.policies]
    assert flat == scenarios(designs)
    alone = [designs.point(number) for number in numbers]
    assert [one.scenario.replace(**one.policies[0]) for one in alone] == flat


def test_constraints_are_kept() -> None:
    text = """
scenario = "paper-asap"
[vary]
D = [2, 3, 4, 5]
T = [2, 4]
E = [16, 20, 32]
[constraints]
devices = { min = 24, max = 44 }
tensor_parallel = 4
attention_devices = { max = 16 }
expert_devices = { min = 17 }
memory_reserve = "10 GB"
buffers = "14 GB"
"""
    designs = designs_of(Space.parse(text))
    kept = {(one.layout.D, one.layout.E) for one in scenarios(designs)}
    base = am.Scenario.load("paper-asap")
    expected = set()
    for D, E in product((2, 3, 4, 5), (20, 32)):
        one = base.replace(D=D, T=4, E=E)
        budget = memory_budget(one)
        buffers = budget.items["moe"]["tokens"] + budget.items["moe"]["token metadata"]
        sizes = 24 <= 4 * D + E <= 44 and 4 * D <= 16
        if sizes and min(budget.headroom.values()) >= 10e9 and buffers <= 14e9:
            expected.add((D, E))
    assert kept == expected == {(2, 20), (2, 32), (3, 20), (3, 32)}


def test_settings_vary_with_layouts() -> None:
    text = """
scenario = "paper-chunked"
[vary]
D = [8, 12]
cluster.memory_bytes = ["64 GB", "32 GB"]
workload.lengths = [{ constant = 1024 }, { constant = 4096 }]
batch_window = ["20 ms", 0.05]
"""
    space = Space.parse(text)
    designs = designs_of(space)
    table = points_table(space, designs)
    assert table["batch_window"].unique().tolist() == [0.02, 0.05]
    assert set(table["lengths"]) == {'{"constant": 1024}', '{"constant": 4096}'}
    base = am.Scenario.load("paper-chunked")
    for D, memory in product((8, 12), ("64 GB", "32 GB")):
        fits = memory_budget(base.replace(D=D, **{"cluster.memory_bytes": memory})).fits
        count = int(((table["D"] == D) & (table["cluster.memory_bytes"] == memory)).sum())
        assert count == (4 if fits else 0)
    assert 8 <= len(table) < 16


def test_copies_of_experts_are_a_layout_key() -> None:
    text = 'scenario = "paper-chunked"\n[vary]\nreplication = [1, 2, 3]\nD = [8]'
    designs = designs_of(Space.parse(text))
    assert [one.system.replication for one in scenarios(designs)] == [1, 2]
    assert [one.reason for one in designs.left_out] == ["memory of a device"]


def test_precision_and_device_vary_together() -> None:
    text = """
scenario = "paper-asap"
[vary]
precision = ["int8", "fp8", "bf16", "w8a16"]
cluster.device = ["ascend-910c-die", "h200"]
"""
    space = Space.parse(text)
    designs = designs_of(space)
    points = points_table(space, designs)
    pairs = list(zip(points["cluster.device"], points["precision"], strict=True))
    on_die = [("ascend-910c-die", one) for one in ("int8", "w8a16")]
    assert pairs == on_die + [("h200", one) for one in ("int8", "fp8", "bf16", "w8a16")]
    reasons = {one.reason: (one.points, one.example) for one in designs.left_out}
    assert reasons["no peak of the device at the precision"][0] == 1
    assert "is 'fp8', but ascend-910c-die has no FP8 peak" in reasons["no peak of the device at the precision"][1]
    assert reasons["memory of an expert device"][0] == 1  # 17 experts of 88 MB in 58 layers are 87 GB
    times = {pair: layer_costs(one).costs.moe.per_token for pair, one in zip(pairs, scenarios(designs), strict=True)}
    assert times["h200", "bf16"] > 1.5 * times["h200", "fp8"] == 1.5 * times["h200", "int8"]
