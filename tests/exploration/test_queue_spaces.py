"""Spaces around systems with queues per group: which points there are, and how far a rough look is off."""

from collections import Counter

import numpy as np
import pytest

import asapmodel as am
from asapmodel.exploration import explorer
from asapmodel.exploration.designs import designs_of
from asapmodel.exploration.evaluation import Task, evaluate, measure
from asapmodel.exploration.objectives import add_derived, front_of
from asapmodel.exploration.space import Space
from asapmodel.exploration.table import points_table
from asapmodel.policy import AT_ARRIVAL
from asapmodel.verbs.explore import explore

BOTH = """
scenario = ["afd-async", "afd-sync"]
[vary]
system.kind = ["asap", "sync"]
D = [2, 3]
T = [8]
E = [8]
policy.chunk_tokens = [8192, 16384]
policy.max_seqs = [0, 8]
policy.schedule_ahead = [true, false]
policy.hide_overhead = [true, false]
policy.micro_batches = ["none", "split"]
policy.routing = ["round_robin", "pull", "auto"]
policy.min_batch_tokens = [2048, 4096]
policy.batch_window = [0.0, 0.05]
[confirm]
top = 0
"""
SMALL = """
scenario = "afd-sync"
objectives = ["slo_throughput_per_device", "devices", "ttft_at_rate"]
rate = 4.0
[vary]
D = [3, 4]
T = [8]
chunk_tokens = [16384, 65536]
max_seqs = [8, 32]
routing = ["fewest_requests", "fewest_tokens"]
[confirm]
top = 0
"""


def test_keys_vary_where_they_act_and_no_system_is_a_point_twice() -> None:
    text = BOTH.replace('["afd-async", "afd-sync"]', '"afd-async"')
    space = Space.parse(text)
    designs = designs_of(space)
    points = [group.scenario.replace(**changes) for group in designs.groups for changes in group.policies]
    assert len({(one.layout, one.policy) for one in points}) == len(points)
    count = Counter((one.layout.kind, one.policy.routing) for one in points)
    # One queue for all: minimum and window act, besides the micro-batches, of which "split" is not possible.
    assert count["asap", "pull"] == 2 * 2 * 2
    # Queues per group: chunks, limit, ahead with overhead hidden or not, micro-batches; nothing waits.
    assert count["asap", "round_robin"] == 2 * 2 * 2 * 3 * 2
    assert count["sync", "round_robin"] == 2 * 2 * 2 * 3 * 2
    assert ("sync", "pull") not in count
    table = points_table(space, designs)
    queues = table[(table["system"] == "asap") & (table["routing"] == "round_robin")]
    assert queues["batch_window"].isna().all()
    assert queues["min_batch_tokens"].isna().all()
    assert set(queues["chunk_tokens"]) == {8192, 16384}
    assert not (queues["hide_overhead"].notna() & ~queues["schedule_ahead"].astype(bool)).any()
    pull = table[(table["system"] == "asap") & (table["routing"] == "pull")]
    assert pull[["chunk_tokens", "max_seqs", "schedule_ahead"]].isna().all(axis=None)
    assert set(pull["min_batch_tokens"]) == {2048, 4096}


def test_points_are_what_the_table_says() -> None:
    """Whatever policy comes first in a group: none keeps a key of another."""
    space = Space.parse(BOTH)
    designs = designs_of(space)
    table = points_table(space, designs)
    assert designs.count == len(table) > 100
    for row in table.to_dict("records"):
        group = designs.point(row["point"])
        policy = group.scenario.replace(**group.policies[0]).policy
        for key in ("chunk_tokens", "max_seqs", "schedule_ahead", "hide_overhead", "routing", "batch_window"):
            if row[key] is not None and row[key] == row[key]:
                assert getattr(policy, key) == row[key], (row, key)
        if row["system"] == "asap" and row["routing"] == "pull":
            assert (policy.chunk_tokens, policy.max_seqs, policy.schedule_ahead) == (0, 0, False)


def test_a_measured_system_is_explored() -> None:
    found = explore(Space.parse(SMALL), workers=1)
    assert len(found.table) == 16
    assert set(found.table["status"]) == {"ok"}
    best = found.table.iloc[int(found.table["slo_throughput_per_device_rps"].argmax())]
    assert best["effort"] == "full"
    scenario = am.Scenario.load("afd-sync").replace(
        **{key: best[key] for key in ("D", "chunk_tokens", "max_seqs", "routing")}
    )
    assert best["slo_throughput_rps"] == am.capacity(scenario).slo_throughput_rps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["afd-sync", "afd-async"])
def test_front_is_that_of_full_answers_everywhere(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(explorer, "FEW_POINTS", 0)  # as if the space were large
    text = SMALL if name == "afd-sync" else SMALL.replace("afd-sync", name).replace("T = [8]", "E = [8]")
    space = Space.parse(text)
    designs = designs_of(space)
    found = explore(space, workers=1)
    table = points_table(space, designs).merge(evaluate(Task(designs.groups, "full", space.rate)), on="point")
    expected = set(table.loc[front_of(add_derived(table), space.objectives), "point"])
    assert set(found.table.loc[found.table["on_front"], "point"]) == expected


def drawn(seed: int) -> am.Scenario:
    """A system around one of the measured ones, with measured costs or those of the cost models."""
    rng = np.random.default_rng(seed)
    free = bool(seed % 2)
    changes: dict[str, object] = {
        "D": int(rng.integers(1, 7)),
        "chunk_tokens": int(rng.choice([4096, 8192, 16384, 32768, 65536])),
        "max_seqs": int(rng.choice([0, 2, 8, 32])),
        "schedule_ahead": (ahead := bool(rng.random() < 0.5)),
        "hide_overhead": not ahead or seed % 3 > 0,
        "routing": str(rng.choice(AT_ARRIVAL)),
        "slo.ttft": float(rng.choice([1.0, 2.0, 5.0])),
        "slo.statistic": str(rng.choice(["mean", "p99"])),
    }
    if rng.random() < 0.5:
        changes |= {"costs": {}, "cluster.memory_bytes": "256 GB"}
    if free:
        changes |= {"micro_batches": str(rng.choice(["none", "split"])), "E": int(rng.choice([4, 8, 16]))}
    else:
        changes["batch_window"] = float(rng.choice([0.0, 0.1]))
    return am.Scenario.load("afd-async" if free else "afd-sync").replace(**changes)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 40), marks=pytest.mark.slow)])
def test_a_rough_look_is_within_its_margins(seeds: range) -> None:
    """What it says the SLO throughput may be is never less than the full answer; limits are good to 3 %."""
    errors = []
    for seed in seeds:
        scenario = drawn(seed)
        rough, full = (measure(0, scenario, effort, None) for effort in ("rough", "full"))
        assert rough.effort == "rough", seed
        assert rough.stability_limit_rps == pytest.approx(full.stability_limit_rps, rel=0.03), seed
        if full.status == "ok":
            assert rough.slo_throughput_most_rps >= full.slo_throughput_rps, seed
            errors.append(abs(rough.slo_throughput_rps / full.slo_throughput_rps - 1))
    assert np.median(errors) < 0.03
