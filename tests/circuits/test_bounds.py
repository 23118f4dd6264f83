"""Bounds of the throughput: runs obey them, simple systems attain them, regimes are named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asapmodel.circuits.batches import Batches, form_batches
from asapmodel.circuits.bounds import JOINT, REGIMES, Bounds, regime_of, throughput_bounds
from asapmodel.circuits.free_bounds import STAY, free_upper, stays
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.studies.bounds import page
from asapmodel.studies.bounds_pairs import PairRow
from asapmodel.studies.bounds_runs import Row, batches_of, measure
from asapmodel.studies.engines_cases import EARLIER_SEED, draw
from asapmodel.systems.arrays import Requests, make_requests
from tests.strategies import Case, cases

SAME = pytest.approx
ONE = Layout("asap", 1, 1, 1)


def layer_costs(a: float, s: float, r: float, m: float, c: float, e: float) -> LayerCosts:
    """Ten layers whose phases take as long for every batch, whatever it holds."""
    send, receive, back, end = (Affine(time, 0.0) for time in (s, r, c, e))
    return LayerCosts(Quadratic(a, 0.0, 0.0), send, receive, Plateau(m, 0.0), back, end, layers=10)


def equal(count: int, exclusive: bool = False) -> Batches:
    return Batches(np.full(count, 2048.0), np.full(count, 2048.0**2), np.full(count, exclusive), 3 * count)


def bounded(layout: Layout, policy: Policy, costs: LayerCosts, batches: Batches) -> Bounds:
    return throughput_bounds(layout, policy, costs, batches)


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    return [measure(case) for case in draw(EARLIER_SEED, 40)]


def test_random_systems_obey_their_bounds(measured: list[Row]) -> None:
    assert [row.index for row in measured if not (row.low_holds and row.high_holds)] == []
    for row in measured:
        assert 0 < row.lower < row.upper
        assert row.regime.margin >= 1
    asynchronous = [row.truth / row.upper for row in measured if row.system == "asap"]
    assert np.median(asynchronous) > 0.95  # a bound that is any good
    assert min(asynchronous) > 0.5
    assert all(row.blocked > 0.2 for row in measured if row.system == "asap" and row.truth < 0.75 * row.upper)
    assert len({row.regime.name for row in measured}) >= 3


def test_page_is_filled_in(measured: list[Row]) -> None:
    pairs = {("drawn", False, True): [PairRow((11.0, 10.0), 10.0, 1), PairRow((10.0, 10.0), 10.0, 1)]}
    text = page(measured, pairs)
    assert "Runs above their upper bound: 0. Runs below their lower bound: 0." in text
    assert "| drawn | 1 / 3 | 2 | 50.0% | 10.0% / 10.0% | 50.0% | 50% |" in text
    assert text.count("| synchronous |") >= 4


@given(cases("asap"))
def test_small_runs_obey_their_bounds(case: Case) -> None:
    """All switches, every number of groups, few batches: the bounds hold for finite runs."""
    requests = Requests(np.zeros_like(case.requests.arrival), case.requests.prompt, case.requests.cached)
    policy = replace(case.policy, min_batch_tokens=1)  # a batch is a prompt: the queue is cut at once
    done = run(case.layout, policy, case.costs, requests)
    batches = form_batches(case.layout, policy, requests)
    assert len(batches.n) == done.batches == len(requests.prompt)
    found = bounded(case.layout, policy, case.costs, batches)
    longest = done.batches / found.lower + found.filling_s + policy.batch_window
    assert done.makespan_s <= longest * (1 + 1e-9)
    for name, rate in found.upper.items():
        if name != STAY:  # who is paired is known once more prompts wait than the groups take
            assert done.batches / done.makespan_s <= rate * (1 + 1e-9), name


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_a_pair_stays_at_least_as_long_as_its_bound(seed: int, attention: bool, moe: bool) -> None:
    """One group, one pair, nobody else; nearly attained where one stream is the bottleneck."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.05, 1.0, 3.0], size=6)
    times = rng.uniform(0.1, 1, size=6) * scale
    a, *moves, floor = (Affine(x, x * rng.uniform(0, 2) / 4000) for x in times[[0, 1, 2, 4, 5, 3]])
    law, plateau = Quadratic(a.fixed, a.per_token, 0.0), Plateau(floor.fixed, floor.per_token)
    costs = LayerCosts(law, moves[0], moves[1], plateau, moves[2], moves[3], layers=int(rng.integers(1, 20)))
    policy = Policy(min_batch_tokens=2000, overlap_attention=attention, overlap_moe=moe)
    requests = make_requests(np.zeros(2), rng.integers(2000, 9000, size=2))
    done = run(ONE, policy, costs, requests)
    stay = 2 / free_upper(ONE, policy, costs, form_batches(ONE, policy, requests))[STAY]
    assert stay <= done.makespan_s * (1 + 1e-9)
    assert stay >= 0.5 * done.makespan_s


def test_formed_batches_are_those_of_a_run() -> None:
    rng = np.random.default_rng(5)
    prompt = np.clip(np.exp(rng.normal(7.5, 1.4, size=4000)), 1, 32768).astype(np.int64)
    requests = make_requests(np.zeros(4000), prompt, (prompt * rng.uniform(0, 0.9, size=4000)).astype(np.int64))
    policy, costs = Policy(pairing="rolling"), layer_costs(1.0, 0.1, 0.1, 1.0, 0.1, 0.1)
    costs = replace(costs, attention=Quadratic(1e-3, 1e-6, 1e-10))
    done = run(Layout("asap", 3, 1, 1), policy, costs, requests)
    head = int(np.searchsorted(done.outcome.start, 0.0, side="right"))
    rest = Requests(requests.arrival[head:], requests.prompt[head:], requests.cached[head:])
    formed, found = form_batches(ONE, policy, rest), batches_of(requests, done)
    assert 0 < head < 100
    assert np.array_equal(found.n[-len(formed.n) :], formed.n)
    assert np.allclose(found.w[-len(formed.w) :], formed.w, rtol=1e-12)
    assert formed.exclusive.sum() == np.sum(rest.prompt > policy.exclusive_tokens)


def test_one_batch_at_a_time_attains_both_bounds() -> None:
    costs = replace(layer_costs(3, 1, 1, 2, 1, 1), step_overhead=7.0, dense_layers=2, dense=Affine(4.0, 0.0))
    policy = Policy(dual_batch=False)
    found = bounded(ONE, policy, costs, equal(5))
    alone = 7 + 2 * (3 + 4) + 8 * 9
    assert found.upper_batches == SAME(1 / alone)
    assert found.lower == SAME(1 / alone)
    assert found.prompt_rates[0] == SAME(3 / alone)
    assert found.token_rates[1] == SAME(2048 / alone)


def test_upper_bounds_by_hand() -> None:
    """Ten layers, two groups; exclusive batches hold both slots."""
    costs = layer_costs(3, 1, 1, 2, 1, 1)
    mixed = replace_exclusive(equal(4), [True, False, False, False])
    found = bounded(Layout("asap", 2, 1, 1), Policy(pairing="rolling"), costs, mixed).upper
    assert found["attention stream of the group"] == SAME(2 / 50)
    assert found["MoE compute"] == SAME(1 / 20)
    assert found["dispatch region"] == SAME(2 / 20)
    assert found["batches in flight"] == SAME(2 * 4 / (90 + 3 * 45))
    assert found[STAY] == SAME(2 * 4 / (90 + 3 * 50))
    apart = replace(Policy(pairing="rolling"), overlap_attention=True, overlap_moe=False)
    found = bounded(Layout("asap", 2, 1, 1), apart, costs, mixed).upper
    assert found["attention compute"] == SAME(2 / 30)
    assert found["sending stream of the group"] == SAME(2 / 10)
    assert found["stream of the MoE devices"] == SAME(1 / 40)


def replace_exclusive(batches: Batches, exclusive: list[bool]) -> Batches:
    return Batches(batches.n, batches.w, np.array(exclusive), batches.prompts)


def test_locked_pairs_by_hand() -> None:
    """An exclusive batch ends a pair before it begins; each stay has its own bound."""
    costs = layer_costs(3, 1, 1, 2, 1, 1)
    batches = replace_exclusive(equal(4), [False, True, False, False])
    assert stays(Policy(), batches) == [(0,), (1,), (2, 3)]
    found = free_upper(ONE, Policy(), costs, batches)
    assert found[STAY] == SAME(4 / (90 + 90 + 100))
    assert found["batches in flight"] == SAME(4 / (90 + 90 + 90))
    slow = layer_costs(1, 1, 1, 9, 1, 1)
    pair = free_upper(ONE, Policy(), slow, equal(2))[STAY]
    assert pair == SAME(2 / (3 + 20 * 9 + 2))  # before the first experts and after the last


def test_a_pair_without_moe_layers() -> None:
    """Two dense layers of 7 s on the group's one compute; the phases of MoE layers, which never run, do not count."""
    costs = replace(layer_costs(3, 9, 9, 9, 9, 9), layers=2, dense_layers=2, dense=Affine(4.0, 0.0))
    found = bounded(ONE, Policy(), costs, equal(2))
    assert found.upper == {
        "attention stream of the group": SAME(2 / 28),
        "batches in flight": SAME(2 / 14),
        STAY: SAME(2 / 28),
    }
    assert run(ONE, Policy(), costs, make_requests(np.zeros(2), np.array([2048, 2048]))).makespan_s == SAME(28.0)


def test_lower_bound_by_hand() -> None:
    """Moe work and combine receives one after another, group work shared by D; or one batch after another."""
    costs = layer_costs(3, 1, 1, 2, 1, 1)
    for groups, dual, seconds in ((4, True, 40 + 10 + 50 / 4), (4, False, 40 + 50 / 4), (1, True, 90)):
        found = bounded(Layout("asap", groups, 1, 1), Policy(dual_batch=dual), costs, equal(8))
        assert found.lower == SAME(1 / seconds)


@pytest.mark.parametrize(
    ("times", "groups", "name", "constraint"),
    [
        ((9, 1, 1, 2, 1, 1), 2, "attention-bound", "attention stream of the group"),
        ((2, 1, 1, 9, 1, 1), 4, "MoE-bound", "MoE compute"),
        ((1, 1, 9, 1, 1, 1), 4, "transfer-bound", "receiving stream of the MoE devices"),
        ((2, 4, 4, 1, 1, 1), 1, "transfer-bound", "dispatch region"),
        ((2, 1, 1, 3, 3, 1), 1, "latency-bound", "batches in flight"),
    ],
)
def test_regimes(times: tuple[float, ...], groups: int, name: str, constraint: str) -> None:
    attention = constraint == "dispatch region"
    policy = Policy(pairing="rolling", overlap_attention=attention)
    found = bounded(Layout("asap", groups, 1, 1), policy, layer_costs(*times), equal(10))
    regime = regime_of(found)
    assert (regime.name, regime.constraint) == (name, constraint)
    assert regime.upper == found.upper[constraint]
    others = [rate for key, rate in found.upper.items() if key not in JOINT.values() and REGIMES[key] != name]
    assert regime.margin == SAME(min(others) / regime.upper)
    assert regime.next_name != name


def test_host_dispatch_is_work_of_the_experts_without_the_super_kernel() -> None:
    costs = replace(layer_costs(1, 1, 1, 2, 1, 1), host_dispatch=3.0)
    with_kernel, without = (
        bounded(ONE, Policy(super_kernel=kernel), costs, equal(4)).upper["MoE compute"] for kernel in (True, False)
    )
    assert with_kernel == SAME(1 / 20)
    assert without == SAME(1 / 50)


def test_batches_without_work_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one batch needs tokens"):
        Batches(np.zeros(2), np.zeros(2), np.zeros(2, dtype=bool), 0)
    with pytest.raises(ValueError, match="shapes"):
        Batches(np.ones(2), np.ones(3), np.zeros(2, dtype=bool), 2)
    some = Batches(np.array([1.0, 0.0]), np.zeros(2), np.zeros(2, dtype=bool), 1)
    with pytest.raises(ValueError, match="the least 0 tokens"):
        bounded(ONE, Policy(), layer_costs(1, 1, 1, 1, 1, 1), some)
