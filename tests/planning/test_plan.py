"""Plans of small demands, against the capacity of the same system found the ordinary way, and by what must hold."""

import math
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel.planning.answer import Plan
from asapmodel.planning.demand import Demand
from asapmodel.planning.search import Search
from asapmodel.planning.settling import settle
from tests.planning.simulation import simulate
from tests.planning.texts import DEMAND, SYSTEM


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("demands")
    (there / "small.toml").write_text(SYSTEM)
    return there


def planned(folder: Path, text: str, *changes: tuple[str, str], what_if: bool = False) -> Plan:
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return am.plan(Demand.parse(text, "day.toml", folder), what_if=what_if)


ONE = """
[class.chat]
lengths = { values = [500, 1500, 6000] }
max_prompt_tokens = 16384
rate = [100, 130, 90]
slo = { ttft = "1500 ms" }
[type.small]
scenario = "small.toml"
"""


@pytest.mark.parametrize(("growth", "reserve", "error"), [(1.0, 0, 0.0), (1.7, 2, 0.1), (3.1, 1, 0.25)])
def test_one_class_on_one_type_is_division(folder: Path, growth: float, reserve: int, error: float) -> None:
    """As many instances as the capacity behind the router goes into the peak."""
    rules = f"[fleet]\nreserve = {reserve}\nforecast_error = {error}\n"
    answer = planned(folder, rules + ONE, ("slo =", f"growth = {growth}\nslo ="))
    (pool,) = answer.pools
    carrying = pool.instances - reserve
    peak = 130 * growth * (1 + error)

    def capacity(instances: int) -> float:
        cv = 1 / math.sqrt(instances)
        workload = {"lengths": {"values": [500, 1500, 6000]}, "arrivals": "gamma", "cv": cv}
        scenario = am.Scenario.load(folder / "small.toml").replace(workload=workload, ttft=1.5)
        return am.capacity(scenario).slo_throughput_rps

    assert peak <= carrying * capacity(carrying) * 1.002
    assert peak > (carrying - 1) * capacity(carrying - 1) * 0.98  # a bound may cost a little, an instance not
    assert answer.devices == answer.value == answer.bound == 8 * pool.instances
    assert answer.gap == 0.0
    assert pool.ttft[0].hour == 1
    assert pool.ttft[0].value_s <= 1.5
    assert max(pool.utilisation) == pool.utilisation[1] < 1


def test_two_classes(folder: Path) -> None:
    answer = planned(folder, DEMAND)
    assert answer.gap <= 0.01
    assert answer.cost_per_hour == 2.0 * answer.devices
    assert answer.power_kw is None
    assert answer.supernodes == -(-answer.instances // 3)
    assert all(one.met for pool in answer.pools for one in pool.ttft)
    shares = answer.routes().groupby(["hour", "segment"])["share"].sum()
    assert len(shares) == 4 * 2
    assert shares.to_numpy() == pytest.approx(1.0)
    assert answer.table()["devices"].sum() == answer.devices
    apart = sum(
        planned(folder, f"{DEMAND[: DEMAND.index('[class.' + other)]}{after}").devices
        for other, after in (
            ("code", DEMAND[DEMAND.index("[type") :]),
            ("chat", DEMAND[DEMAND.index("[class.code") :]),
        )
    )
    assert answer.devices <= apart


def test_monotone(folder: Path) -> None:
    base = planned(folder, DEMAND).devices
    fleet = "supernode = 24"
    assert planned(folder, DEMAND, (fleet, "forecast_error = 0.5")).devices >= base
    assert planned(folder, DEMAND, (fleet, "reserve = 1")).devices >= base + 8
    assert planned(folder, DEMAND, ("rate = [20, 60, 80, 50]", "rate = [20, 60, 160, 50]")).devices >= base
    assert planned(folder, DEMAND, ('slo = { ttft = "2 s" }', 'slo = { ttft = "1 s" }')).devices >= base


def test_the_same_demand_has_the_same_plan(folder: Path) -> None:
    assert planned(folder, DEMAND).to_dict() == planned(folder, DEMAND).to_dict()


def test_cheaper_devices_are_bought_first(folder: Path) -> None:
    two = DEMAND + '[type.cheap]\nscenario = "small.toml"\nprice = 1.0\navailable = 2\n'
    answer = planned(folder, two, ("supernode = 24", 'minimise = "cost"'))
    bought = answer.table().groupby("type")["instances"].sum()
    alone = planned(folder, DEMAND, ("supernode = 24", 'minimise = "cost"'))
    assert bought["cheap"] == 2
    assert answer.value == answer.cost_per_hour
    assert answer.value < alone.value
    (worth,) = answer.worths
    assert worth.what == "one more of type 'cheap'"
    assert worth.change == -8.0


def test_what_if(folder: Path) -> None:
    answer = planned(
        folder, DEMAND, ("supernode = 24", "supernode = 24\nmax_supernodes = 9\nreserve = 1"), what_if=True
    )
    worth = {one.what: one.change for one in answer.worths}
    assert worth["one more supernode"] == 0.0
    assert worth["one instance less in reserve, every pool"] <= -8.0
    assert worth["10 % more traffic"] >= 0.0
    assert {"1 s more for class 'chat'", "1 s more for class 'code'"} <= set(worth)
    assert all(change <= 0 for what, change in worth.items() if what.startswith("1 s more"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [("price = 2.0", "available = 1")],
            r"day.toml: no fleet within the limits; enough would be [2-9] of type 'small' in place of 1$",
        ),
        (
            [("supernode = 24", "supernode = 8\nmax_supernodes = 1")],
            r"day.toml: no fleet within the limits; enough would be [2-9] supernodes in place of 1$",
        ),
        (
            [("supernode = 24", "supernode = 8\nmax_supernodes = 1"), ("price = 2.0", "available = 1")],
            r"within the limits, whichever one of them is lifted; without any the best has [2-9] of type 'small'$",
        ),
        (
            [('ttft = "2 s"', 'ttft = "20 ms"')],
            r"chat.slo: mean TTFT <= 0.02 s can be met by no type for 'chat': a lone prompt has 0.\d+ s on 'small';",
        ),
        (
            [
                ("values = [2048, 4096, 12000]", "values = [2048, 40000]"),
                ("rate = [4, 8, 6, 9]\nmax_prompt_tokens = 16384", "rate = 1\nmax_prompt_tokens = 40000"),
            ],
            r"class.code: its prompts have up to 40,000 tokens, no type takes more than 16,384 \('small'\); raise its",
        ),
    ],
)
def test_infeasible(folder: Path, changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(am.NoAnswer, match=message):
        planned(folder, DEMAND, *changes)


def test_enough_is_enough(folder: Path) -> None:
    """The number that a refusal names is accepted."""
    with pytest.raises(am.NoAnswer, match="in place of 1") as refusal:
        planned(folder, DEMAND, ("price = 2.0", "available = 1"))
    enough = int(str(refusal.value).split("would be ")[1].split()[0])
    assert planned(folder, DEMAND, ("price = 2.0", f"available = {enough}")).instances <= enough


def test_long_prompts_go_to_the_type_that_takes_them(folder: Path) -> None:
    text = DEMAND.replace("values = [2048, 4096, 12000]", "values = [2048, 4096, 30000]")
    text = text.replace("rate = [4, 8, 6, 9]\nmax_prompt_tokens = 16384", "rate = [4, 8, 6, 9]")
    text += '[type.long]\nscenario = "small.toml"\nset = { max_prompt_tokens = 32768 }\nprice = 2.0\n'
    text = text.replace('ttft = "3 s"', 'ttft = "8 s"')
    answer = planned(folder, text)
    serving = {one.type for one in answer.pools if any("32,768" in segment for segment in one.segments)}
    assert serving == {"long"}


def test_bad_options() -> None:
    with pytest.raises(am.InputError, match="gap: is 1; give a share from 0 to below 1"):
        am.plan("three-classes", gap=1.0)
    with pytest.raises(am.InputError, match="time_limit: is 0; give a positive number of seconds"):
        am.plan("three-classes", time_limit=0.0)


def carried_out(demand: Demand, requests: int) -> list[tuple[str, float, float]]:
    """Class, TTFT and objective in every pool at its fullest hour, reserve failed, forecast right: graph engine."""
    search = Search(demand)
    fleet = settle(search).fleet
    found = []
    for p in np.flatnonzero(fleet.instances).tolist():
        carrying = int(fleet.instances[p]) - demand.fleet.reserve
        h = max(np.flatnonzero(fleet.share[p]).tolist(), key=lambda h: fleet.share[p, h] * search.entries[p, h].need)
        one = search.analysed(p, h, carrying, "full").instance
        assert one is not None
        rate = float(fleet.share[p, h] * search.rates_of(p, h).sum()) / (1.0 + demand.fleet.forecast_error)
        ttft, member = simulate(one, carrying, rate, demand.fleet.routing, requests, seed=7)
        for place, name in enumerate(one.mix.origin):
            own, slo = ttft[requests // 10 :][member[requests // 10 :] == place], demand.classes[name].slo
            value = own.mean() if slo.quantile is None else np.quantile(own, slo.quantile)
            found.append((name, float(value), slo.ttft))
    return found


@pytest.mark.parametrize("routing", ["round_robin", "random", "least_work"])
def test_a_plan_carried_out_meets_its_objectives(folder: Path, routing: str) -> None:
    text = DEMAND.replace("supernode = 24", f'routing = "{routing}"\nreserve = 1\nforecast_error = 0.05')
    outcome = carried_out(Demand.parse(text, "day.toml", folder), 40_000)
    assert {name for name, _, _ in outcome} == {"chat", "code"}
    assert all(value <= objective for _, value, objective in outcome)


@pytest.mark.slow
def test_the_shipped_day() -> None:
    answer = am.plan("three-classes")
    assert answer.gap <= 0.01
    assert all(one.met for pool in answer.pools for one in pool.ttft)
    assert all(value <= objective for _, value, objective in carried_out(Demand.load("three-classes"), 60_000))
