"""Shared buffers: the paper's byte counts, names and shapes of regions, and what does not fit."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.reference.buffers import (
    HEADER,
    Shape,
    attention_sizes,
    combined,
    dispatched,
    expert_ids,
    metadata,
    moe_sizes,
    places,
    results,
    share,
    tokens,
)
from asapmodel.reference.memory import Memory
from asapmodel.reference.steps import Write

PAPER = Shape(D=4, T=4, E=16, E_total=256, K=8, H=7168, S=32768, itemsize=2)
TINY = Shape(D=2, T=2, E=4, E_total=8, K=2, H=3, S=10)


def test_table_2() -> None:
    attention, moe = attention_sizes(PAPER), moe_sizes(PAPER)
    assert attention.index == 64 * 2**10
    assert attention.payload == 939524096  # 0.875 GiB, "0.9GB"
    assert attention.flags < 2**10
    assert moe.index == 256 < 2**10
    assert moe.payload == 14 * 2**30  # "14GB"
    assert moe.flags == 2


def test_regions_of_a_small_system_have_the_sizes_of_the_formulas() -> None:
    found = places(TINY)
    rows = {name: size for name, (kind, size) in found.items() if kind == "rows"}
    at_attention = rows[results(1, 0)]
    assert np.prod(at_attention) * TINY.itemsize == attention_sizes(TINY).payload
    at_moe = [size for name, size in rows.items() if name.holder == ("moe", 2)]
    assert sum(int(np.prod(size)) for size in at_moe) * TINY.itemsize == moe_sizes(TINY).payload
    assert found[expert_ids(0, 1, 1)][1] == (attention_sizes(TINY).index,)
    counts = [size[0] - HEADER for name, (_, size) in found.items() if name[:2] == (("moe", 3), "metadata")]
    assert sum(counts) == moe_sizes(TINY).index
    assert {metadata(3, 1, 1), tokens(3, 1, 1), dispatched(3, 1), combined(1, 1)} <= set(found)


@given(st.integers(0, 200), st.integers(1, 9))
def test_members_share_all_rows_evenly(n: int, T: int) -> None:
    shares = [share(n, T, j) for j in range(T)]
    assert [k for one in shares for k in one] == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"E": 3}, "E_total = 8 experts do not divide over E = 3 devices"),
        ({"S": 9}, "S = 9 tokens cannot be split over T = 2 devices"),
        ({"K": 9}, "K = 9 experts a token, but there are only E_total = 8"),
        ({"D": 0}, "D must be at least 1, not 0"),
    ],
)
def test_shapes_that_do_not_divide(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(TINY, **changes)


def test_a_batch_too_large_is_refused() -> None:
    TINY.fits(10)
    with pytest.raises(ValueError, match=r"a batch of 11 tokens does not fit .* S = 10; enlarge S"):
        TINY.fits(11)


def test_writing_past_the_end_of_a_row_is_refused() -> None:
    memory = Memory(TINY)
    with pytest.raises(ValueError, match=r"slots 9 to 11 of .*results.*, which has 10"):
        memory.carry_out(Write(results(0, 0), np.zeros((2, 3)), first=9))
