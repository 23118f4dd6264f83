"""Plans in drawn systems: the program against enumeration, needs against analysing each system, and what must hold."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import asapmodel as am
from asapmodel.cli.choosing import plan_lines
from asapmodel.planning.answer import Plan
from asapmodel.planning.candidates import Pool
from asapmodel.planning.demand import Demand
from asapmodel.planning.dividing import Division
from asapmodel.planning.drawn_needs import drawn_needs
from asapmodel.planning.drawn_plan import DrawnPlan
from asapmodel.planning.program import FleetProblem
from asapmodel.planning.search import Search
from asapmodel.planning.settling import settle
from asapmodel.planning.share_program import counts_for_share
from asapmodel.solvers.integer_program import Infeasible
from tests.cli.helpers import ask
from tests.planning.texts import DEMAND, SYSTEM

Captured = pytest.CaptureFixture[str]

KINDS = ("small", "large", "small")
SERVES = np.array([[True, False], [True, True], [False, True]])
"""Pools by segments: the second pool serves both, so that each segment can be divided."""

NEEDS = arrays(np.float64, (9, 3, 2), elements=st.sampled_from([0.4, 0.9, 1.0, 1.7, 2.0, 2.5, 3.1, np.inf]))


def of_kinds(**rules: object) -> FleetProblem:
    """Sizes, weights and limits; what pools need is no part of it here."""
    pools = [Pool(kind, (k,)) for k, kind in enumerate(KINDS)]
    sizes = {"small": 8, "large": 16}
    weights = {"small": 8.0, "large": 15.0}
    nothing = np.ones((3, 1))
    return FleetProblem(pools, nothing, nothing > 0, weights, sizes, **rules)  # type: ignore[arg-type]


def divided(need: np.ndarray) -> Division:
    return Division(need, SERVES, np.ones((2, need.shape[2]), dtype=np.bool_))


def carries(need: np.ndarray, counts: Sequence[int]) -> bool:
    """Three pools, two segments: what the outer ones cannot serve has to fit into the middle one's one share.

    That serves the same share of both, so it must be at least what is left of either.
    """
    outer = [0.0 if np.isinf(need[p]) else min(1.0, counts[p] / need[p]) for p in (0, 2)]
    left = max(1.0 - one for one in outer)
    return left <= 1e-9 or (np.isfinite(need[1]) and need[1] * left <= counts[1] * (1 + 1e-6))


@settings(max_examples=60, deadline=None)
@given(need=NEEDS, share=st.sampled_from([0.5, 0.8, 0.9]), limit=st.sampled_from([None, 5, 7]))
def test_the_program_equals_enumeration(need: np.ndarray, share: float, limit: int | None) -> None:
    rules = {"reserve": 1} | ({} if limit is None else {"available": {"small": limit}})
    problem, least = of_kinds(**rules), (2, 2, 2)
    values = {}
    for counts in itertools.product(range(1, 5), repeat=3):
        enough = np.mean([all(carries(one[:, h], counts) for h in range(2)) for one in need]) >= share - 1e-9
        if enough and (limit is None or counts[0] + counts[2] + 2 <= limit):
            values[counts] = sum((n + 1) * problem.weights[kind] for n, kind in zip(counts, KINDS, strict=True))
    if not values:
        with pytest.raises(Infeasible):
            counts_for_share(problem, KINDS, least, divided(need), share)
        return
    found = tuple((counts_for_share(problem, KINDS, least, divided(need), share) - 1).tolist())
    assert values[found] == pytest.approx(min(values.values()))


@settings(max_examples=60, deadline=None)
@given(need=NEEDS, counts=st.tuples(*[st.integers(1, 4)] * 3), other=st.tuples(*[st.integers(1, 4)] * 3))
def test_dividing_and_its_cuts(need: np.ndarray, counts: tuple[int, ...], other: tuple[int, ...]) -> None:
    """At most 1 where they carry; the duals are tight where they were found and hold wherever pools carry."""
    found = divided(need).divided(np.array(counts))
    for d, h in itertools.product(range(9), range(2)):
        full, dual = found.full[d, h], found.duals[d, h]
        assert (full <= 1 + 1e-6) == carries(need[d, :, h], counts)
        if np.isfinite(full):
            assert dual @ np.array(counts) == pytest.approx(1.0)
            if carries(need[d, :, h], other):
                assert dual @ np.array(other) >= full * (1 - 1e-6)


def test_a_quantile_of_each_pool_is_not_enough() -> None:
    """Draws that are hard on one pool are easy on the other: nine tenths each, four fifths of both."""
    wanted = np.array([[2.0, 1.0], [1.0, 2.0], *[[1.0, 1.0]] * 8])
    assert np.quantile(wanted, 0.9, axis=0, method="inverted_cdf").tolist() == [1.0, 1.0]
    apart = Division(wanted[:, :, None], np.eye(2, dtype=np.bool_), np.ones((2, 1), dtype=np.bool_))
    assert (apart.divided(np.array([1, 1])).full <= 1).mean() == 0.8
    assert counts_for_share(of_kinds(), KINDS[:2], [1, 1], apart, 0.9).tolist() == [2, 1]  # the small one is cheaper


def test_supernodes_limit_what_is_added() -> None:
    wanted = np.array([[2.0, 1.0], [3.0, 1.0]])[:, :, None]
    apart = Division(wanted, np.eye(2, dtype=np.bool_), np.ones((2, 1), dtype=np.bool_))
    problem = of_kinds(supernode=16, max_supernodes=2)
    assert counts_for_share(problem, KINDS[:2], [1, 1], apart, 0.5).tolist() == [2, 1]
    with pytest.raises(Infeasible):
        counts_for_share(problem, KINDS[:2], [1, 1], apart, 1.0)


ONE = """
[fleet]
reserve = 1
forecast_error = 0.1
[class.chat]
lengths = { values = [500, 1500, 6000] }
max_prompt_tokens = 16384
rate = [100, 400, 390, 90]
slo = { ttft = "1500 ms" }
[type.small]
scenario = "small.toml"
"""
UNSURE = '[uncertainty]\ncosts.moe = "20 %"\ncosts.attention = "20 %"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("demands")
    (there / "small.toml").write_text(SYSTEM + UNSURE)
    (there / "one.toml").write_text(ONE)
    (there / "day.toml").write_text(DEMAND)
    return there


@pytest.fixture(scope="module")
def one(folder: Path) -> Plan:
    return am.plan(str(folder / "one.toml"), uncertainty=True, samples=64)


def sure_of(plan: Plan) -> DrawnPlan:
    assert plan.uncertainty is not None
    return plan.uncertainty


def test_needs_are_those_of_each_system(folder: Path) -> None:
    """Rate over the capacity of a system with the drawn costs, found the ordinary way, behind the plan's router."""
    search = Search(Demand.load(folder / "one.toml"))
    settled = settle(search)
    drawn = drawn_needs(search, settled, 64, 0)
    (pool,) = drawn.pools
    carrying = int(settled.fleet.instances[pool.pool]) - 1
    cv = 1 / math.sqrt(carrying)
    workload = {"lengths": {"values": [500, 1500, 6000]}, "arrivals": "gamma", "cv": cv}
    base = am.Scenario.load(folder / "small.toml").replace(workload=workload, ttft=1.5, uncertainty={})

    def capacity(moe: float, attention: float) -> float:
        own = {"floor": 3.6e-4 * moe, "per_token": 1.8e-7 * moe}
        other = {"fixed": 8e-4 * attention, "per_token": 1.8e-7 * attention, "per_token2": 2.5e-11 * attention}
        return am.capacity(base.replace(**{"costs.moe": own, "costs.attention": other})).slo_throughput_rps

    keys = [source.key for source in drawn.shared.sources.constants]
    for place in range(6):
        factors = dict(zip(keys, drawn.shared.values[place].tolist(), strict=True))
        wanted = 440 / capacity(factors["costs.moe"], factors["costs.attention"])
        assert pool.needs[place] == pytest.approx(wanted, rel=0.02)


def test_shares_agree_with_needs(folder: Path, one: Plan) -> None:
    sure = sure_of(one)
    search = Search(Demand.load(folder / "one.toml"))
    needs = drawn_needs(search, settle(search), 64, 0).pools[0].needs
    carrying = one.instances - 1
    assert sure.carried == np.mean(needs <= carrying)
    enough = sure.enough
    assert enough is not None
    wanted = math.ceil(np.sort(needs)[math.ceil(0.9 * 64) - 1])
    assert enough.instances - 1 == max(wanted, carrying) > carrying
    assert enough.carried == np.mean(needs <= wanted) >= 0.9
    assert enough.added == 8 * (enough.instances - one.instances) == enough.devices - one.devices
    (pool,) = sure.pools
    assert sure.full.value == pool.needs.value / carrying <= 1
    assert sure.full.high == pytest.approx(pool.needs.high / carrying)
    assert pool.carries.value * pool.needs.value == pytest.approx(440, rel=1e-6)
    assert (pool.hour, pool.carrying) == (1, carrying)
    assert sure.measure is not None
    assert sure.full.low < sure.measure.low < sure.measure.high < sure.full.high


def test_other_draws_agree(folder: Path, one: Plan) -> None:
    """What carries in nine tenths of these draws does in as many of others, but for what their number allows."""
    enough = sure_of(one).enough
    assert enough is not None
    search = Search(Demand.load(folder / "one.toml"))
    needs = drawn_needs(search, settle(search), 128, 7).pools[0].needs
    assert np.mean(needs <= enough.instances - 1) >= 0.9 - 3 * math.sqrt(0.09 / 128)


def test_without_errors_the_plan_is_what_it_is(folder: Path) -> None:
    (folder / "known.toml").write_text(SYSTEM + '[uncertainty]\ncosts.moe = "0.0000001 %"\n')
    text = DEMAND.replace("small.toml", "known.toml")
    plan = am.plan(Demand.parse(text, "day.toml", folder), uncertainty=True, samples=16)
    sure = sure_of(plan)
    assert sure.carried == 1
    assert sure.full.width < 1e-5  # walks of nearly equal systems need not be equal to the last digit
    assert sure.full.median == pytest.approx(sure.full.value, rel=1e-5)
    assert sure.enough is not None
    assert (sure.enough.instances, sure.enough.added, sure.enough.carried) == (plan.instances, 0.0, 1.0)
    for pool in sure.pools:
        assert pool.carries.low == pytest.approx(pool.carries.value, rel=1e-5)
    (folder / "plain.toml").write_text(SYSTEM)
    none = am.plan(Demand.parse(DEMAND.replace("small.toml", "plain.toml"), "d", folder), uncertainty=True)
    assert sure_of(none).constants == ()
    assert plan_lines(sure_of(none), "devices")[0] == (
        "[bold]Uncertainty[/]: no constant of this system has a stated error, so there is no interval."
    )


def test_the_command(capsys: Captured, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    answer = ask(capsys, "plan", "one.toml", "--uncertainty", "--json", "-o", "plan.json", "--force")
    assert answer.status == 0
    found = json.loads(answer.out)
    assert found == json.loads((folder / "plan.json").read_text())
    sure = found.pop("uncertainty")
    assert found == json.loads(ask(capsys, "plan", "one.toml", "--json").out)
    assert (sure["samples"], sure["share"], sure["failed"]) == (128, 0.9, 0)
    shown = ask(capsys, "plan", "one.toml", "--uncertainty")
    text = " ".join(shown.out.split())
    assert "Uncertainty, from 128 draws of the constants, the same for all pools:" in text
    assert f"reserve failed and forecast exceeded, in {100 * sure['carried']:.1f} % of the draws." in text
    assert f"{sure['enough']['instances']} instances, {sure['enough']['devices']} devices (+" in text
    assert max(map(len, shown.out.splitlines())) <= 80


def test_limits_are_kept(folder: Path, one: Plan) -> None:
    text = ONE.replace("[type.small]", f"[type.small]\navailable = {one.instances}")
    sure = sure_of(am.plan(Demand.parse(text, "d.toml", folder), uncertainty=True, samples=16))
    assert sure.enough is None
    assert "No number of instances in these pools, within the limits," in str(plan_lines(sure, "devices")[2])
