"""Cycle times of a group against long runs of the graph engine, closed forms, brute force; names of circuits."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.circuits.floor import layer_floor
from asapmodel.circuits.follow import follow
from asapmodel.circuits.group import GroupCycle, group_cycle, regimes
from asapmodel.circuits.names import NEXT_PHASE, Task, name_circuit
from asapmodel.costs import Affine, LayerCosts
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.cycle_ratio import cycle_time_by_program
from asapmodel.systems.arrays import make_requests
from tests.solvers.table import Row, where
from tests.strategies import random_costs

Floats = NDArray[np.float64]

STREAMS = [(False, True), (False, False), (True, False), (True, True)]
SAME = pytest.approx
CROWDED = [[2.0, 1.0, 1.0, 1.0, 2.0, 2.0]] * 2  # together 11 a layer, apart 10


@st.composite
def phases(draw: st.DrawFn) -> Floats:
    """Two batches, each phase with a scale of its own; also alike, also small whole numbers with ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["any", "alike", "whole"]))
    if kind == "whole":
        return rng.integers(1, 6, size=(2, 6)).astype(np.float64)
    found: Floats = rng.exponential(size=(2, 6)) * rng.choice([0.1, 1.0, 3.0], size=6)
    if kind == "alike":
        found[1] = found[0] * rng.uniform(0.8, 1.25)
    return found


def slower(law: Affine, factor: float) -> Affine:
    return Affine(factor * law.fixed, factor * law.per_token)


def engine_layer(costs: LayerCosts, prompts: list[int], attention: bool, moe: bool) -> float:
    """Seconds a layer of prompts that start together, from two long runs of the graph engine."""
    policy = Policy(
        min_batch_tokens=1,
        max_batch_tokens=1,
        exclusive_tokens=10**6,
        batch_window=0.0,
        pairing="rolling",
        overlap_attention=attention,
        overlap_moe=moe,
    )
    requests = make_requests(np.zeros(len(prompts)), np.array(prompts))
    ends = [
        float(run(Layout("asap", 1, 1, 1), policy, replace(costs, layers=layers), requests).outcome.end.min())
        for layers in (300, 700)
    ]
    return (ends[1] - ends[0]) / 400


@pytest.mark.parametrize(("attention", "moe"), STREAMS)
@pytest.mark.parametrize("transfers", [1.0, 30.0])
def test_cycle_time_is_the_rate_of_the_graph_engine(attention: bool, moe: bool, transfers: float) -> None:
    """With and without binding regions, one batch and two."""
    names = set()
    for seed in range(25):
        rng = np.random.default_rng([seed, int(transfers)])
        drawn = random_costs(rng)
        moved = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
        longer = {name: slower(getattr(drawn, name), transfers) for name in moved}
        costs = replace(drawn, **longer, dense_layers=0, step_overhead=0.0)  # type: ignore[arg-type]
        prompts = [int(s) for s in np.exp(rng.uniform(4, 9.5, size=1 if seed % 5 == 0 else 2))]
        rows = [costs.phases(float(s), float(s) ** 2) for s in prompts]
        found = group_cycle(rows, attention, moe)
        assert found.layer_s == SAME(engine_layer(costs, prompts, attention, moe), rel=1e-9)
        assert found.layer_s == SAME(circuit_mean(found), rel=1e-12)
        names.add(found.name)
    assert len(names) > 1
    assert transfers == 1.0 or not (attention and moe) or any("region (" in name for name in names)


def circuit_mean(found: GroupCycle) -> float:
    """Seconds a layer round the critical circuit."""
    edges = [found.graph.edges[edge] for edge in found.circuit]
    assert all(a[1] == b[0] for a, b in zip(found.circuit, found.circuit[1:] + found.circuit[:1], strict=True))
    return float(sum(e["time"] for e in edges) / sum(e["tokens"] for e in edges) / found.turns)


@pytest.mark.parametrize("row", where("dual-batch interleaving*"))
def test_classic_law_where_transfers_are_pure_delays(row: Row) -> None:
    a1, a2, m1, m2, c = (row.number(name) for name in ("A1", "A2", "M1", "M2", "c"))
    found = group_cycle([[a1, c, 0.0, m1, c, 0.0], [a2, c, 0.0, m2, c, 0.0]], overlap_attention=True)
    row.check(found.layer_s)
    assert found.layer_s == SAME(max(a1 + a2, m1 + m2, a1 + m1 + 2 * c, a2 + m2 + 2 * c), rel=1e-12)


@given(phases(), st.floats(0.0, 30.0))
def test_three_streams_on_both_sides_take_the_floor_from_any_start(durations: Floats, offset: float) -> None:
    a, s, r, m, c, e = durations.sum(axis=0).tolist()
    law = max(a, m, s + r, c + e, *durations.sum(axis=1).tolist())
    assert group_cycle(durations, overlap_attention=True, offset=offset).layer_s == SAME(law, rel=1e-10)
    assert max(layer_floor(durations, overlap_attention=True).values()) == SAME(law, rel=1e-12)


@settings(max_examples=150)
@given(phases(), st.sampled_from(STREAMS), st.floats(0.0, 30.0))
def test_circuits_of_two_tokens_are_not_critical_alone(
    durations: Floats, streams: tuple[bool, bool], offset: float
) -> None:
    found = group_cycle(durations, *streams, offset=offset)
    tokens = sum(found.graph.edges[edge]["tokens"] for edge in found.circuit)
    slowest = float(durations.sum(axis=1).max())
    assert tokens == 1 or found.layer_s <= slowest * (1 + 1e-9)
    assert found.layer_s >= max(layer_floor(durations, *streams).values()) * (1 - 1e-9)


@settings(max_examples=25)
@given(phases(), st.sampled_from(STREAMS))
def test_cycle_time_by_brute_force_and_by_a_linear_program(durations: Floats, streams: tuple[bool, bool]) -> None:
    found = group_cycle(durations, *streams)
    simple = nx.DiGraph()
    for u, v, edge in found.graph.edges(data=True):
        assert edge["tokens"] >= 0
        if not simple.has_edge(u, v) or simple.edges[u, v]["tokens"] > edge["tokens"]:
            simple.add_edge(u, v, **edge)  # all edges from u take the time of u
    means: dict[int, list[float]] = {}
    for nodes in nx.simple_cycles(simple):
        edges = [simple.edges[pair] for pair in zip(nodes, [*nodes[1:], nodes[0]], strict=True)]
        tokens = sum(edge["tokens"] for edge in edges)
        means.setdefault(tokens, []).append(sum(edge["time"] for edge in edges) / tokens)
    assert found.layer_s * found.turns == SAME(max(map(max, means.values())), rel=1e-10)
    assert all(max(some) <= durations.sum(axis=1).max() * (1 + 1e-9) for tokens, some in means.items() if tokens > 1)
    assert cycle_time_by_program(found.graph).time == SAME(found.layer_s * found.turns, rel=1e-7)


@settings(max_examples=60)
@given(phases(), st.sampled_from(STREAMS), st.floats(0.0, 30.0))
def test_circuit_and_recurrence_agree(durations: Floats, streams: tuple[bool, bool], offset: float) -> None:
    """Two ways to the same number: the largest circuit of the order found, and the time until the state recurs."""
    steady = follow(durations, *streams, offset=offset)
    assert group_cycle(durations, *streams, offset=offset).layer_s == SAME(steady.period_s / steady.turns, rel=1e-10)


@given(phases(), st.sampled_from(STREAMS), st.floats(0.0, 3.0), st.integers(1, 40))
def test_whole_layers_of_the_first_batch_alone_do_not_count(
    durations: Floats, streams: tuple[bool, bool], offset: float, layers: int
) -> None:
    eighths = np.round(8 * durations) / 8 + 0.125  # sums of the offset are exact
    start = math.floor(8 * offset) / 8
    one, other = (group_cycle(eighths, *streams, offset=at) for at in (start, start + layers * float(eighths[0].sum())))
    assert one.layer_s == other.layer_s


def test_two_steady_states_of_equal_batches() -> None:
    together, apart = group_cycle(CROWDED), group_cycle(CROWDED, offset=4.5)
    assert together.layer_s == SAME(11.0, rel=1e-12)
    assert apart.layer_s == SAME(10.0, rel=1e-12)
    assert apart.name == "attention stream of the group"
    assert together.name == (
        "way round with waits: e2 behind A1 (attention stream of the group), "
        "s1 behind e2 (attention stream of the group)"
    )
    assert {round(layer, 9) for layer in regimes(CROWDED, offsets=4).values()} == {10.0, 11.0}


@pytest.mark.parametrize(
    ("durations", "streams", "name", "layer"),
    [
        ([[1, 1, 1, 1, 1, 1]], (False, True), "way of batch 1 through a layer (latency)", 6.0),
        ([[1] * 6, [2] * 6], (True, True), "way of batch 2 through a layer (latency)", 12.0),
        ([[9, 1, 1, 2, 1, 1]] * 2, (True, True), "attention compute", 18.0),
        ([[9, 1, 1, 2, 1, 1]] * 2, (False, True), "attention stream of the group", 22.0),
        ([[2, 1, 1, 9, 1, 1]] * 2, (True, True), "MoE compute", 18.0),
        ([[2, 1, 1, 9, 1, 1]] * 2, (True, False), "stream of the MoE devices", 22.0),
        ([[1, 5, 4, 1, 1, 1]] * 2, (True, True), "dispatch region (receive must end before the next send)", 18.0),
        ([[1, 1, 1, 1, 4, 5]] * 2, (True, True), "combine region (receive must end before the next send)", 18.0),
    ],
)
def test_names(durations: list[list[float]], streams: tuple[bool, bool], name: str, layer: float) -> None:
    found = group_cycle(durations, *streams)
    assert found.name == name
    assert found.layer_s == SAME(layer, rel=1e-12)


def test_a_circuit_of_two_regions_is_named_by_its_waits() -> None:
    c1, e1, c2, r1 = Task(1, 0, 4), Task(1, 0, 5), Task(2, 0, 4), Task(1, 0, 2)
    edges = [(c1, e1, NEXT_PHASE), (e1, c2, "combine region"), (c2, r1, "stream of the MoE devices")]
    expected = "way round with waits: c2 behind e1 (combine region), r1 behind c2 (stream of the MoE devices)"
    assert name_circuit(edges) == expected


@pytest.mark.parametrize(
    ("durations", "offset", "words"),
    [
        ([[1.0] * 5], 0.0, "six phases"),
        ([[1.0] * 6] * 3, 0.0, "one or two batches"),
        ([[1.0] * 5 + [-1.0]], 0.0, "finite seconds >= 0"),
        ([[1.0] * 5 + [math.nan]], 0.0, "finite seconds >= 0"),
        ([[0.0] * 6, [1.0] * 6], 0.0, "not all of them 0"),
        ([[1.0] * 6] * 2, -1.0, "0 or more"),
        ([[1.0] * 6] * 2, math.inf, "0 or more"),
    ],
)
def test_bad_durations_are_refused(durations: list[list[float]], offset: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        group_cycle(durations, offset=offset)
