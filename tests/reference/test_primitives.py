"""The four primitives on plain memory, one step after another: what lies where, back-pressure, what they return."""

from typing import Any

import numpy as np
import pytest

from asapmodel.reference.buffers import HEADER, Shape, combined, dispatched, metadata, tokens
from asapmodel.reference.memory import Memory
from asapmodel.reference.primitives import (
    async_combine_recv,
    async_combine_send,
    async_dispatch_recv,
    async_dispatch_send,
)
from asapmodel.reference.steps import AllSet, Await, Phase, Read, Spend, Step, Steps, Unset

SHAPE = Shape(D=2, T=2, E=2, E_total=4, K=2, H=1, S=6)
OWN = {0: np.array([[10.0], [11.0]]), 1: np.array([[12.0]])}  # tokens 10, 11 of member 0, 12 of member 1
EXPERTS = {0: np.array([[0, 3], [0, 1]]), 1: np.array([[2, 3]])}
PHASE = Phase("dispatch_send", 3, 5, 7)


def finish(worker: Steps, memory: Memory) -> tuple[Any, list[Step]]:
    """Run a primitive alone; a wait that does not end fails."""
    steps: list[Step] = []
    given = None
    while True:
        try:
            step = worker.send(given)
        except StopIteration as stop:
            return stop.value, steps
        steps.append(step)
        if isinstance(step, Await):
            assert all(memory.since(one) is not None for one in step.conditions), f"waits for {step.conditions}"
            given = 0
        else:
            given = None if isinstance(step, Spend) else memory.carry_out(step)


def dispatch(memory: Memory, group: int = 1) -> None:
    for j in range(2):
        finish(async_dispatch_send(SHAPE, group, j, 0, PHASE, OWN[j], EXPERTS[j]), memory)


def test_dispatch_writes_rows_by_expert_to_their_devices() -> None:
    memory = Memory(SHAPE)
    dispatch(memory)
    row = memory.carry_out(Read(metadata(0, 1, 0), HEADER + 2))
    assert row.tolist() == [7, 3, 0, 2, 1]  # layer, tokens of the batch, first result; experts 0 and 1
    assert memory.carry_out(Read(tokens(0, 1, 0), 3)).ravel().tolist() == [10, 11, 11]
    row = memory.carry_out(Read(metadata(1, 1, 1), HEADER + 2))
    assert row.tolist() == [7, 3, 0, 1, 1]
    assert memory.carry_out(Read(tokens(1, 1, 1), 2)).ravel().tolist() == [12, 12]
    assert memory.since(AllSet(dispatched(0, 1), 0b11)) is not None
    assert memory.since(Unset(dispatched(0, 0), 0b11)) is not None  # the other group's


def test_a_sender_waits_while_its_flag_is_set() -> None:
    memory = Memory(SHAPE)
    dispatch(memory)
    with pytest.raises(AssertionError, match="waits for"):
        dispatch(memory)
    for e in range(2):
        finish(async_dispatch_recv(SHAPE, e, 1), memory)
    dispatch(memory)


def test_results_come_back_to_the_tokens_they_are_of() -> None:
    memory = Memory(SHAPE)
    dispatch(memory)
    for e in range(2):
        arrived, _ = finish(async_dispatch_recv(SHAPE, e, 1), memory)
        assert (arrived.group, arrived.layer, arrived.n) == (1, 7, 3)
        of_expert = np.concatenate([np.repeat([2 * e, 2 * e + 1], counts) for counts in arrived.counts])
        outcome = 100 * arrived.rows + of_expert[:, None]  # says which token and which expert
        finish(async_combine_send(SHAPE, e, arrived, outcome), memory)
        assert memory.since(Unset(dispatched(e, 1), 0b11)) is not None
    for j in range(2):
        assert memory.since(AllSet(combined(1, j), 0b11)) is not None
        rows, _ = finish(async_combine_recv(SHAPE, 1, j, 0, PHASE, len(OWN[j])), memory)
        np.testing.assert_array_equal(rows[..., 0], 100 * OWN[j] + EXPERTS[j])
        assert memory.since(Unset(combined(1, j), 0b11)) is not None


def test_time_passes_once_a_primitive_after_the_wait_and_before_what_others_see() -> None:
    memory = Memory(SHAPE)
    _, steps = finish(async_dispatch_send(SHAPE, 0, 0, 0, PHASE, OWN[0], EXPERTS[0]), memory)
    names = [type(step).__name__ for step in steps]
    assert names == ["Write", "Await", "Await", "Spend", "Write", "Write", "SetBit", "Write", "Write", "SetBit"]
