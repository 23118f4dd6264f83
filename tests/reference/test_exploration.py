"""All interleavings of small systems: the protocol is right, mistakes are found, less work gives the same verdict."""

import os
import re
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel.reference.broken import BROKEN
from asapmodel.reference.buffers import combined, dispatched, expert_ids
from asapmodel.reference.counterexample import tell
from asapmodel.reference.exploration import Exploration, Verdict
from asapmodel.reference.primitives import ASYNC
from asapmodel.reference.small_system import SmallSystem, small_system
from asapmodel.reference.steps import (
    AllSet,
    Await,
    Channel,
    Clear,
    Pending,
    Read,
    Receive,
    Send,
    SetBit,
    Step,
    Steps,
    Test,
    Unset,
    Write,
)

EXPLORE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"

Way = Literal["oldest", "fair", "any"]
WAYS: tuple[Way, ...] = ("oldest", "fair", "any")
"""In which order MoE devices take complete rows; `any` is the worker of `oldest`, given whichever condition holds."""


def make(way: Way, *sizes: int, **options: Any) -> SmallSystem:
    return small_system(*sizes, order="fair" if way == "fair" else "oldest", **options)


def explore(small: SmallSystem, way: Way, search: Literal["depth", "breadth"] = "depth", **options: Any) -> Verdict:
    return Exploration(small, any_condition=way != "oldest").run(search, **options)


# ----------------------------------------------------------------------------------------------- the protocol is right


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((2, 1, 2), {"overlap_moe": True}),
        ((1, 2, 2), {}),
        ((1, 2, 2), {"overlap_attention": True}),
        ((1, 1, 3), {"layers": 2, "overlap_attention": True, "overlap_moe": True, "top": 2}),
        ((1, 1, 1), {"layers": 3}),
        ((3, 1, 1), {"batches": 1, "overlap_moe": True}),
    ],
)
def test_no_interleaving_breaks_the_protocol(way: Way, sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    verdict = explore(make(way, *sizes, **options), way)
    assert verdict.exhausted, str(verdict)
    assert verdict.violation is None


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overlap_attention", [False, True])
def test_no_interleaving_of_two_groups_and_two_layers(way: Way, overlap_attention: bool) -> None:
    """Minutes together. Three streams on MoE devices; with one there are too many interleavings."""
    small = make(way, 2, 1, 2, layers=2, overlap_attention=overlap_attention, overlap_moe=True)
    verdict = explore(small, way, max_states=5_000_000)
    assert (verdict.exhausted, verdict.violation) == (True, None)


# -------------------------------------------------------------------------------------------------- mistakes are found


FOUND = {
    "dispatch flag before payload": ("read of incomplete data: MoE device 0 reads .* of metadata 0.0", 13),
    "combine flag before payload": ("read of incomplete data: attention 0.0 reads .* of results", 30),
    "dispatch cleared before copy": (
        "overwrite of unread data: attention 0.0 writes .* of metadata 0.0 .* batch 1",
        21,
    ),
    "combine cleared before copy": ("overwrite of unread data: MoE device 0 writes .* of results", 50),
    "dispatch without back-pressure": ("overwrite of unread data: attention 0.0 writes .* of metadata 0.0", 17),
    "combine without back-pressure": ("overwrite of unread data: MoE device 0 writes .* of results", 44),
}
"""What is wrong, and steps of the shortest run that shows it, with one device each."""


@pytest.mark.parametrize("mistake", FOUND)
def test_mistakes_are_found_in_the_shortest_way(mistake: str) -> None:
    words, steps = FOUND[mistake]
    small = make("any", 1, 1, 1, primitives=BROKEN[mistake])
    verdict = explore(small, "any", "breadth", reduce=False)
    assert not verdict.exhausted
    assert len(verdict.schedule) == steps
    lines = tell(small, verdict.schedule)
    assert re.match(words, lines[-1]), lines[-1]
    assert lines[-1].startswith(str(verdict.violation)), "memory itself says the same when it happens"


@pytest.mark.parametrize("mistake", [name for name in BROKEN if name != "hasty dispatch"])
def test_mistakes_are_found_with_little_work_as_well(mistake: str) -> None:
    small = make("fair", 1, 2, 1, overlap_moe=True, primitives=BROKEN[mistake])
    full, reduced = (explore(small, "fair", "breadth", reduce=reduce) for reduce in (False, True))
    assert full.violation is not None
    assert reduced.violation is not None
    assert len(reduced.schedule) >= len(full.schedule)
    for verdict in (full, reduced):
        assert tell(small, verdict.schedule)[-1].startswith(str(verdict.violation))


def test_one_flag_for_all_members() -> None:
    small = make("any", 1, 2, 1, primitives=BROKEN["one flag for all members"])
    verdict = explore(small, "any", "breadth", reduce=False)
    assert tell(small, verdict.schedule)[-1] == (
        "read of incomplete data: MoE device 0 reads slots 0 to 3 of metadata 0.1 of MoE device 0 for batch 0 in layer "
        "0, but slot 0 has not been written"
    )


# ----------------------------------------------------------------------------------------------------------- deadlocks


def test_hasty_dispatch_and_rows_in_any_order_deadlock() -> None:
    """Each MoE device has the second batch of one group ahead of the first batch of the other."""
    small = make("any", 2, 1, 2, overlap_moe=True, primitives=BROKEN["hasty dispatch"])
    verdict = explore(small, "any", "breadth")
    assert verdict.violation == "deadlock: 0 of 4 answers are there, nobody can go on"
    assert len(verdict.schedule) == 138
    lines = tell(small, verdict.schedule)
    assert lines[-3:] == [
        "MoE device 0 (send) waits until bit 0 of the bitmap of attention 0.0 is clear (batch 1 in layer 0)",
        "MoE device 1 (send) waits until bit 1 of the bitmap of attention 1.0 is clear (batch 3 in layer 0)",
        "deadlock: nobody can go on",
    ]
    taken: dict[str, list[int]] = {"0": [], "1": []}
    for line in lines:
        if "reads" in line and "metadata" in line:
            taken[line.split()[2]].append(int(line.split("(batch ")[1].split()[0]))
    assert taken["0"].index(1) < taken["0"].index(2)
    assert taken["1"].index(3) < taken["1"].index(0)


def test_hasty_dispatch_is_safe_if_rows_are_taken_oldest_first() -> None:
    verdict = explore(make("oldest", 2, 1, 2, overlap_moe=True, primitives=BROKEN["hasty dispatch"]), "oldest")
    assert (verdict.exhausted, verdict.violation) == (True, None)


def stop_half_way(shape: Any, e: int, i: int) -> Steps:
    """Receive a batch of the second layer, but on the first MoE device wait until its senders have sent once more."""
    arrived = yield from ASYNC.dispatch_recv(shape, e, i)
    if e == 0 and arrived.layer == 1:
        yield Await((AllSet(dispatched(e, i), 1),))
    return arrived


@pytest.mark.parametrize("overlap_moe", [False, True])
def test_deadlocks_are_found_as_fast_and_all_of_them(overlap_moe: bool) -> None:
    primitives = ASYNC._replace(dispatch_recv=stop_half_way)
    small = make("any", 1, 1, 2, layers=2, batches=1, overlap_moe=overlap_moe, primitives=primitives)
    exploration = Exploration(small, any_condition=True)
    full, reduced = (exploration.run("breadth", reduce=reduce, stop=False) for reduce in (False, True))
    assert full.violation == "deadlock: 0 of 1 answers are there, nobody can go on"
    assert full.violation == reduced.violation
    assert len(full.schedule) == len(reduced.schedule)
    assert full.ends == reduced.ends


# ---------------------------------------------------------------------------------------------- less work, same verdict


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overlap_moe", [False, True])
@pytest.mark.parametrize(
    ("sizes", "options"),
    [((1, 1, 1), {"layers": 2}), ((1, 1, 2), {}), ((2, 1, 1), {"batches": 1})],
)
def test_reduction_changes_neither_verdict_nor_ends(
    way: Way, overlap_moe: bool, sizes: tuple[int, ...], options: dict[str, Any]
) -> None:
    small = make(way, *sizes, overlap_moe=overlap_moe, **options)
    exploration = Exploration(small, any_condition=way != "oldest")
    full, reduced = (exploration.run(reduce=reduce, stop=False) for reduce in (False, True))
    assert (full.exhausted, reduced.exhausted) == (True, True)
    assert full.violation == reduced.violation
    assert full.ends == reduced.ends
    assert reduced.states < full.states


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mistake", [None, "combine without back-pressure", "one flag for all members"])
def test_forgetting_what_is_done_changes_no_verdict(way: Way, mistake: str | None) -> None:
    primitives = ASYNC if mistake is None else BROKEN[mistake]
    small = make(way, 1, 2 if mistake == "one flag for all members" else 1, 1, layers=2, primitives=primitives)
    whole, merged = (
        Exploration(small, any_condition=way != "oldest", merge=merge).run("breadth", reduce=False)
        for merge in (False, True)
    )
    assert whole.violation == merged.violation
    assert len(whole.schedule) == len(merged.schedule)
    assert whole.states >= merged.states


class StepsOnly(Exploration):
    """Exploration that notes where workers end, and finds nothing wrong with it."""

    def _end(self, state: Any, seen: Any) -> None:
        seen.ends.add((state[: len(self._system.names)], frozenset(self._system.contents(state).items())))


BITS = [combined(0, 0), dispatched(0, 0)]
LINKS = [Channel(("moe", 0), "one"), Channel(("moe", 0), "two")]
EVENTS = [*(AllSet(bits, 3) for bits in BITS), *map(Pending, LINKS)]
conditions = st.one_of(
    st.builds(AllSet, st.sampled_from(BITS), st.integers(1, 3)),
    st.builds(Unset, st.sampled_from(BITS), st.integers(1, 3)),
    st.builds(Pending, st.sampled_from(LINKS)),
)
steps = st.one_of(
    st.builds(SetBit, st.sampled_from(BITS), st.integers(0, 1)),
    st.builds(Clear, st.sampled_from(BITS)),
    st.builds(Send, st.sampled_from(LINKS), st.integers(0, 1)),
    st.builds(Receive, st.sampled_from(LINKS)),
    st.builds(Await, st.tuples(conditions)),
    st.builds(Await, st.lists(st.sampled_from(EVENTS), min_size=2, max_size=3, unique=True).map(tuple)),
    st.builds(Test, conditions),
    st.builds(Write, st.just(expert_ids(0, 0, 0)), st.just([1]), st.integers(0, 1)),
    st.builds(Read, st.just(expert_ids(0, 0, 0)), st.just(1), st.integers(0, 1)),
)


@settings(max_examples=2000 if EXPLORE else 250)
@given(st.lists(st.lists(steps, min_size=1, max_size=5), min_size=2, max_size=3), st.booleans())
def test_reduction_of_workers_that_do_anything(programs: list[list[Step]], any_condition: bool) -> None:
    """No protocol at all: everything that can depend on each other does."""

    def start(name: int) -> Steps:
        for k in range(len(programs[name])):
            yield programs[name][k]
        yield Receive(Channel(("moe", 0), "never"))

    names: Any = list(range(len(programs)))
    shape = small_system(1, 1, 1).shape
    small: Any = SimpleNamespace(names=names, messages=[], shape=shape, start=start)
    exploration = StepsOnly(small, any_condition=any_condition, merge=False)
    full, reduced = (exploration.run(reduce=reduce, stop=False) for reduce in (False, True))
    assert (full.violation is None) == (reduced.violation is None)
    if full.violation is None:
        assert full.ends == reduced.ends


# --------------------------------------------------------------------------------------------------------- the explorer


def test_limits_are_told() -> None:
    verdict = explore(make("any", 2, 1, 2), "any", max_states=1000)
    assert (verdict.exhausted, verdict.violation, verdict.states) == (False, None, 1000)
    assert "NOT EXHAUSTED" in str(verdict)


def test_going_round_in_circles_is_found() -> None:
    def circle(name: Any) -> Steps:
        while True:
            yield SetBit(combined(0, 0), 0)
            yield Clear(combined(0, 0))

    shape = small_system(1, 1, 1).shape
    small: Any = SimpleNamespace(names=[("moe", 0, "all")], messages=[], answers=1, shape=shape, start=circle)
    assert explore(small, "any").violation == "livelock: the same state comes back"
