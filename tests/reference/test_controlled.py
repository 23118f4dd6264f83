"""Both systems in any order: the same rows to the last bit, and memory that is used as it should be."""

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.reference.asynchronous import AsyncSystem
from asapmodel.reference.broken import BROKEN
from asapmodel.reference.buffers import combined, metadata, results
from asapmodel.reference.controlled import Choice, Chooser, Controlled, at_random, by_rank, replayed
from asapmodel.reference.counterexample import tell
from asapmodel.reference.random_systems import Drawn
from asapmodel.reference.small_system import SmallSystem, collect, small_system
from asapmodel.reference.steps import Clear, Read, Send, SetBit, Write
from asapmodel.reference.synchronous import SyncSystem
from asapmodel.reference.system import SCHEDULER, System
from asapmodel.reference.watched_memory import Violation, WatchedMemory
from tests.reference.strategies import asynchronous, synchronous

EXPLORE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
TURNS = 40 if EXPLORE else 4
"""Interleavings of each system."""


@st.composite
def small_systems(draw: st.DrawFn) -> SmallSystem:
    E = draw(st.integers(1, 4))
    return small_system(
        D=draw(st.integers(1, 3)),
        T=draw(st.integers(1, 3)),
        E=E,
        layers=draw(st.integers(1, 3)),
        batches=draw(st.integers(1, 2)),
        tokens=draw(st.integers(1, 7)),
        top=draw(st.integers(1, min(E, 2))),
        overlap_attention=draw(st.booleans()),
        overlap_moe=draw(st.booleans()),
        order=draw(st.sampled_from(["oldest", "fair"])),
        seed=draw(st.integers(0, 2**16)),
    )


def chooser(seed: int) -> Chooser:
    random = np.random.default_rng(seed)
    return at_random(random) if seed % 2 else by_rank(random)


def run(small: SmallSystem, choose: Chooser, any_condition: bool) -> tuple[list[Any], list[Choice]]:
    """Run to the end, check what there is to check in one run; give the answers and the schedule."""
    memory = WatchedMemory(small.shape)
    for channel, task in small.messages:
        memory.carry_out(Send(channel, task))
    answers: list[Any] = []
    workers = {name: small.start(name) for name in small.names} | {("collect",): collect(small.answers, answers)}
    controlled = Controlled(workers, memory, choose, any_condition=any_condition)
    assert controlled.run() == small.names, "only the one who collects is done, all others wait for more"
    assert memory.left_over() == []
    assert small.wrong_rows(answers) == []
    return answers, controlled.schedule


@settings(max_examples=100 if EXPLORE else 30)
@given(small_systems(), st.booleans(), st.integers(0, 2**32))
def test_rows_are_the_same_bits_in_every_interleaving(small: SmallSystem, any_condition: bool, seed: int) -> None:
    found = set()
    for turn in range(TURNS):
        answers, _ = run(small, chooser(seed + turn), any_condition)
        found.add(tuple(sorted((number, j, rows.tobytes()) for number, j, rows in answers)))
    assert len(found) == 1


@settings(max_examples=200 if EXPLORE else 15)
@given(asynchronous(requests=5), st.integers(0, 2**32), st.sampled_from(["oldest", "fair"]))
def test_whole_system_computes_the_truth_in_any_order(drawn: Drawn, seed: int, order: Any) -> None:
    """With the scheduler, for whom all times have come: which prompts become a batch depends on the order as well."""
    whole_run(AsyncSystem(drawn.model, drawn.layout, drawn.policy, drawn.prompts, order=order), drawn, seed)


@settings(max_examples=200 if EXPLORE else 15)
@given(synchronous(requests=5), st.integers(0, 2**32))
def test_lockstep_computes_the_truth_in_any_order(drawn: Drawn, seed: int) -> None:
    whole_run(SyncSystem(drawn.model, drawn.layout, drawn.policy, drawn.prompts), drawn, seed)


def whole_run(system: System, drawn: Drawn, seed: int) -> None:
    """Run a system in some order and compare its outputs with the truth."""
    workers = {name: system.start(name) for names in system.devices().values() for name in names}
    memory = WatchedMemory(system.shape)
    left = Controlled(workers, memory, chooser(seed), any_condition=True).run()
    assert SCHEDULER not in left
    assert memory.left_over() == []
    outputs = system.journal.outputs()
    assert set(outputs) == {prompt.index for prompt in drawn.prompts}
    for prompt in drawn.prompts:
        np.testing.assert_allclose(outputs[prompt.index], drawn.model.truth(prompt), rtol=0, atol=1e-10)


def test_a_schedule_can_be_played_again() -> None:
    small = small_system(2, 1, 2, tokens=3)
    _, schedule = run(small, chooser(1), True)
    assert run(small, replayed(schedule), True)[1] == schedule
    assert run(small, chooser(2), True)[1] != schedule
    with pytest.raises(ValueError, match=r"next choice is None, but there are \[\("):
        run(small, replayed(schedule[:-1]), True)
    with pytest.raises(ValueError, match=r"next choice is \(\('moe', 5, 'all'\), 0\)"):
        run(small, replayed([(("moe", 5, "all"), 0)]), True)


def test_a_rank_lets_one_worker_run_ahead() -> None:
    """The choosers differ in what they are for: how often the turn passes to another worker."""

    def passes(choose: Chooser) -> int:
        _, schedule = run(small_system(2, 2, 2), choose, True)
        return sum(one != other for (one, _), (other, _) in zip(schedule[1:], schedule[:-1], strict=True))

    random = np.random.default_rng(0)
    assert passes(by_rank(random, changes=0.0)) < 0.5 * passes(at_random(random))


# ------------------------------------------------------------------------------------------------------ watched memory


SHAPE = small_system(1, 1, 1, tokens=3).shape
MOE, ATTENTION = ("moe", 0, "send"), ("attention", 0, 0, "all")


def test_slots_are_watched_one_by_one() -> None:
    memory = WatchedMemory(SHAPE)
    rows = np.ones((2, SHAPE.H))
    memory.carry_out(Write(results(0, 0), rows, 1), MOE)
    with pytest.raises(Violation, match=r"slots 0 to 2 of results of attention 0\.0, but slot 0 has not been written"):
        memory.carry_out(Read(results(0, 0), 3), ATTENTION)
    memory.carry_out(Write(results(0, 0), rows[:1], 0), MOE)
    with pytest.raises(Violation, match=r"MoE device 0 \(send\) writes slots 0 to 1 .* but slot 0 holds batch"):
        memory.carry_out(Write(results(0, 0), rows, 0), MOE)
    assert memory.left_over() == ["unread: slots 0 to 2 of results of attention 0.0"]
    memory.carry_out(Read(results(0, 0), 3), ATTENTION)
    assert memory.left_over() == []
    with pytest.raises(Violation, match=r"read of incomplete data: attention 0\.0 reads slot 1 of"):
        memory.carry_out(Read(results(0, 0), 1, 1), ATTENTION)


def test_no_slots_are_nothing() -> None:
    memory = WatchedMemory(SHAPE)
    memory.carry_out(Write(metadata(0, 0, 0), np.array([], dtype=int)), ATTENTION)
    memory.carry_out(Read(metadata(0, 0, 0), 0), MOE)
    assert memory.left_over() == []


def test_a_signal_must_not_get_lost() -> None:
    memory = WatchedMemory(SHAPE)
    memory.carry_out(SetBit(combined(0, 0), 0), MOE)
    with pytest.raises(Violation, match=r"lost signal: .* sets bit 0 of the bitmap of attention 0\.0"):
        memory.carry_out(SetBit(combined(0, 0), 0), MOE)
    assert memory.left_over() == ["bits 1 set in the bitmap of attention 0.0"]
    memory.carry_out(Clear(combined(0, 0)), ATTENTION)
    memory.carry_out(SetBit(combined(0, 0), 0), MOE)


@pytest.mark.parametrize("mistake", [name for name in BROKEN if name != "hasty dispatch"])
def test_random_interleavings_find_mistakes(mistake: str) -> None:
    small = small_system(1, 2, 2, top=2, layers=2, primitives=BROKEN[mistake])

    def goes_wrong(seed: int) -> bool:
        try:
            run(small, chooser(seed), True)
        except (Violation, AssertionError):
            return True
        return False

    assert any(goes_wrong(seed) for seed in range(60))


def test_a_good_run_is_told_to_its_end() -> None:
    small = small_system(1, 1, 1, batches=1, tokens=2)
    _, schedule = run(small, chooser(0), True)
    lines = tell(small, [choice for choice in schedule if choice[0] != ("collect",)])
    assert lines == [
        "attention 0.0 writes slots 0 to 3 of metadata 0.0 of MoE device 0 (batch 0 in layer 0)",
        "attention 0.0 writes slots 0 to 1 of tokens 0.0 of MoE device 0 (batch 0 in layer 0)",
        "attention 0.0 sets bit 0 of the bitmap 0 of MoE device 0 (batch 0 in layer 0)",
        "MoE device 0 sees that the bitmap 0 of MoE device 0 is complete",
        "MoE device 0 reads slots 0 to 3 of metadata 0.0 of MoE device 0 (batch 0 in layer 0)",
        "MoE device 0 reads slots 0 to 1 of tokens 0.0 of MoE device 0 (batch 0 in layer 0)",
        "MoE device 0 clears the bitmap 0 of MoE device 0 (batch 0 in layer 0)",
        "MoE device 0 writes slots 0 to 1 of results of attention 0.0 (batch 0 in layer 0)",
        "MoE device 0 sets bit 0 of the bitmap of attention 0.0 (batch 0 in layer 0)",
        "attention 0.0 sees that the bitmap of attention 0.0 is complete",
        "attention 0.0 reads slots 0 to 1 of results of attention 0.0 (batch 0 in layer 0)",
        "attention 0.0 clears the bitmap of attention 0.0 (batch 0 in layer 0)",
        "attention 0.0 has its final rows (batch 0 in layer 0)",
        "nobody has more to do",
    ]
