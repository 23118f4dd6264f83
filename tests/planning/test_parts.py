"""Segments, mixes, routers and classes' TTFT: against counting, sampling, and the graph engine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.planning.candidates import pools_of
from asapmodel.planning.demand import Demand
from asapmodel.planning.instance import Instance, costs_of
from asapmodel.planning.routing import flow_cv, instance_cv
from asapmodel.planning.segments import Segment, busiest_hours, mix_of, segments_of
from asapmodel.workload import length_law
from tests.planning.simulation import simulate

SHIPPED = Demand.load("three-classes")
SEGMENTS = segments_of(SHIPPED)


def test_segments_of_the_shipped_demand() -> None:
    assert [one.name for one in SEGMENTS] == [
        "chat",
        "code 1-16,384",
        "code 16,385-32,768",
        "documents 1-16,384",
        "documents 16,385-32,768",
    ]
    law = length_law(SHIPPED.classes["code"].workload)
    share = float(law.cdf(np.array([16384.5]))[0])
    assert SEGMENTS[1].rates == pytest.approx(share * SHIPPED.classes["code"].rates)
    for name, one in SHIPPED.classes.items():
        assert sum(part.rates for part in SEGMENTS if part.origin.name == name) == pytest.approx(one.rates)


def test_a_mix_keeps_shares_lengths_and_order() -> None:
    weights = np.array([3.0, 2.0, 0.5, 1.0, 0.001])
    mix = mix_of(SEGMENTS, weights)
    assert len(mix.member) == 1024
    assert np.all(np.diff(mix.tokens) >= 0)
    whole = np.array([weights[0], weights[1] + weights[2], weights[3] + weights[4]])
    shares = np.bincount(mix.member) / len(mix.member)
    assert shares == pytest.approx(whole / whole.sum(), abs=2 / 1024)
    assert mix.tokens[mix.member == 2].max() > 16384  # the rarest range has a prompt, too
    mean = float(length_law(SEGMENTS[0].workload).mean)
    assert mix.tokens[mix.member == 0].mean() == pytest.approx(mean, rel=0.01)


@given(st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2), min_size=1, max_size=12))
def test_busy_hours_beat_all_others_and_none_of_themselves(rates: list[list[int]]) -> None:
    table = np.array(rates, dtype=float).T
    parts = [Segment(SEGMENTS[0].origin, 1, 2, row, SEGMENTS[0].workload, True) for row in table]
    found = busiest_hours(parts)
    assert sorted(found) == list(range(len(rates)))
    kept = set(found.values())
    for hour, stand_in in found.items():
        assert np.all(table[:, stand_in] >= table[:, hour])
    for a in kept:
        assert found[a] == a
        assert not any(a != b and np.all(table[:, b] >= table[:, a]) for b in kept)


def test_every_set_of_segments_is_a_candidate_once() -> None:
    pools = pools_of(SHIPPED, SEGMENTS)
    assert len(pools) == len(set(pools)) == 2 * (2**5 - 1)


@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("routing", ["random", "round_robin"])
def test_variability_behind_a_router(routing: str, cv: float) -> None:
    """Against a sampled flow."""
    rng = np.random.default_rng(5)
    arrival = np.cumsum(rng.gamma(1 / cv**2, cv**2, 600_000))
    place = rng.integers(0, 5, len(arrival)) if routing == "random" else np.arange(len(arrival)) % 5
    gaps = np.diff(arrival[place == 3])
    assert gaps.std() / gaps.mean() == pytest.approx(instance_cv(routing, cv, 5), rel=0.01)


def test_variability_of_a_pool() -> None:
    assert flow_cv(SEGMENTS[:2], [1.0, 3.0]) == 1.0
    assert instance_cv("least_work", 1.0, 4) == instance_cv("round_robin", 1.0, 4) == 0.5
    with pytest.raises(ValueError, match="instances is 0; a router needs one at least"):
        instance_cv("random", 1.0, 0)


def shared_instance(kind: str, routing: str, instances: int) -> Instance:
    weights = np.array([one.rates[15] for one in SEGMENTS])
    mix = mix_of(SEGMENTS, weights)
    objectives = {name: one.slo for name, one in SHIPPED.classes.items()}
    type_ = SHIPPED.types[kind]
    return Instance(type_, costs_of(type_, mix), mix, instance_cv(routing, 1.0, instances), objectives, "full")


@pytest.mark.parametrize("kind", ["asap", "chunked"])
@pytest.mark.parametrize("routing", ["random", "round_robin"])
def test_classes_against_the_graph_engine(kind: str, routing: str) -> None:
    """Six instances behind a router, three classes, at 75 % of their stability limit."""
    one = shared_instance(kind, routing, 6)
    rate = 0.75 * one.limit
    ttft, member = simulate(one, 6, 6 * rate, routing, 60_000, seed=3)
    ttft, member = ttft[5000:], member[5000:]
    point, predicted = one.analysis.at(rate), one.statistics(rate)
    for place, name in enumerate(one.mix.origin):
        own, slo = ttft[member == place], SHIPPED.classes[name].slo
        if slo.quantile is None:
            assert predicted[name] == pytest.approx(own.mean(), rel=0.08)
        else:
            assert predicted[name] == pytest.approx(np.quantile(own, slo.quantile), rel=0.12)
            # What is due to the class alone, without the engine's own error.
            ratio = predicted[name] / point.ttft.quantile(slo.quantile)
            assert ratio == pytest.approx(np.quantile(own, 0.95) / np.quantile(ttft, 0.95), rel=0.03)


@pytest.mark.parametrize("kind", ["asap", "chunked"])
def test_least_work_is_better_than_planned_where_instances_are_nearly_full(kind: str) -> None:
    one = shared_instance(kind, "least_work", 6)
    rate = 0.9 * one.limit
    ttft, member = simulate(one, 6, 6 * rate, "least_work", 40_000, seed=3)
    for place, name in enumerate(one.mix.origin):
        own, slo = ttft[5000:][member[5000:] == place], SHIPPED.classes[name].slo
        found = own.mean() if slo.quantile is None else np.quantile(own, slo.quantile)
        assert found < one.statistics(rate)[name]


def test_capacity_is_where_an_objective_is_just_met() -> None:
    one = shared_instance("chunked", "random", 1)
    below, above = one.statistics(one.capacity), one.statistics(1.01 * one.capacity)
    assert all(value <= SHIPPED.classes[name].slo.ttft for name, value in below.items())
    assert any(value > SHIPPED.classes[name].slo.ttft for name, value in above.items())
