"""An exploration against one question at a time: the same numbers, the right front, the right objectives."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import asapmodel as am
from asapmodel.engines.screening import screen
from asapmodel.exploration.designs import designs_of
from asapmodel.exploration.evaluation import Task, evaluate
from asapmodel.exploration.objectives import OBJECTIVES
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space
from asapmodel.solvers.pareto import pareto_front
from asapmodel.verbs.explore import explore
from asapmodel.verbs.prepared import prepare
from tests.exploration.spaces import SMALL


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(Space.parse(SMALL))


def scenario_of(row: pd.Series) -> am.Scenario:
    """The scenario of a row, by its columns alone."""
    base = am.Scenario.load(row["scenario"])
    if row["system"] == "sync":
        return base.replace(D=row["D"], T=row["T"], chunk_tokens=int(row["chunk_tokens"]))
    return base.replace(D=row["D"], T=row["T"], E=row["E"], super_kernel=bool(row["super_kernel"]))


def test_settled_rows_are_what_capacity_and_evaluate_say(found: Exploration) -> None:
    """Bit by bit, although an exploration shares whatever points have in common."""
    assert {"quick", "full"} <= set(found.table["effort"]) <= {"quick", "close", "full"}
    for _, row in found.table[found.table["effort"] == "full"].iterrows():
        scenario = scenario_of(row)
        ready = prepare(scenario)
        answer = am.capacity(scenario, prepared=ready)
        assert row["devices"] == scenario.layout.devices
        assert row["slo_throughput_rps"] == answer.slo_throughput_rps
        assert row["stability_limit_rps"] == answer.stability_limit_rps
        assert row["bottleneck"] == answer.bottleneck
        if 4.0 < answer.stability_limit_rps:
            at_rate = am.evaluate(scenario, 4.0, prepared=ready)
            assert row["ttft_mean_s"] == row["ttft_at_rate_s"] == at_rate.ttft.mean_s
            assert row["ttft_p99_s"] == at_rate.ttft.p99_s
        else:
            assert math.isnan(row["ttft_at_rate_s"])


def test_screened_rows_are_what_screening_says_and_near_the_full_answer(found: Exploration) -> None:
    for _, row in found.table[found.table["effort"] == "quick"].iterrows():
        ready = prepare(scenario_of(row))
        alone = screen(ready.problem, lambda law: law.mean, ready.scenario.slo.ttft, 4.0)
        assert row["slo_throughput_rps"] == alone.throughput_rps
        assert row["stability_limit_rps"] == alone.limit_rps
        assert row["slo_throughput_rps"] == pytest.approx(am.capacity(ready.scenario).slo_throughput_rps, rel=0.05)
        if alone.at_rate is not None:
            assert row["ttft_mean_s"] == row["ttft_at_rate_s"] == alone.at_rate.ttft.mean
            assert row["ttft_p99_s"] == alone.at_rate.ttft.quantile(0.99)
        else:
            assert math.isnan(row["ttft_at_rate_s"])


def test_objectives_by_their_formulas(found: Exploration) -> None:
    tokens = float(prepare(am.Scenario.load("paper-asap")).problem.prompts.prompt.mean())
    for row in found.table.to_dict("records"):
        rate, devices = row["slo_throughput_rps"], row["devices"]
        assert row["slo_throughput_per_device_rps"] == rate / devices
        assert row["devices_for_rate"] == devices * math.ceil(4.0 / rate)
        per_hour = 3600 * rate * tokens / 1e6  # million tokens
        assert row["cost_per_million_tokens"] == pytest.approx(2.5 * devices / per_hour, rel=1e-12)


def test_front_and_best_are_those_of_the_definition(found: Exploration) -> None:
    signs = np.array([-1.0 if OBJECTIVES[name].largest else 1.0 for name in found.objectives])
    costs = found.table[[OBJECTIVES[name].column for name in found.objectives]].to_numpy() * signs
    known = np.isfinite(costs).all(axis=1)
    beaten = [
        not ok or any(o and (q <= p).all() and (q < p).any() for q, o in zip(costs, known, strict=True))
        for p, ok in zip(costs, known, strict=True)
    ]
    assert found.table["on_front"].tolist() == [not one for one in beaten]
    assert found.front["point"].nunique() == len(found.front) == len(beaten) - sum(beaten)
    for k, name in enumerate(found.objectives):
        row = found.best.iloc[k]
        assert row["objective"] == name
        assert row[OBJECTIVES[name].column] * signs[k] == costs[known, k].min()


def test_front_is_settled_in_full(found: Exploration) -> None:
    assert set(found.front["effort"]) == {"full"}


def test_front_of_a_small_space_is_that_of_full_answers() -> None:
    """The best point is the best of full answers, one by one, and the runs confirm what `capacity` finds by runs."""
    text = """
scenario = "paper-asap"
[vary]
D = [3, 4, 5]
T = [2, 4]
E = [12, 16, 20]
[constraints]
devices = { max = 32 }
[confirm]
top = 1
replications = 2
"""
    base = am.Scenario.load("paper-asap")
    found = explore(Space.parse(text))
    best: list[tuple[float, tuple[int, int, int]]] = []
    for D, T, E in product((3, 4, 5), (2, 4), (12, 16, 20)):
        if D * T + E <= 32:
            try:
                answer = am.capacity(base.replace(D=D, T=T, E=E))
            except am.InputError:
                continue
            best.append((answer.slo_throughput_rps / answer.devices, (D, T, E)))
    best.sort(reverse=True)
    row = found.front.iloc[0]
    assert (row["slo_throughput_per_device_rps"], (row["D"], row["T"], row["E"])) == best[0]
    confirmed = found.confirmed
    assert confirmed["point"].tolist() == [row["point"]]
    runs = am.capacity(base.replace(D=row["D"], T=row["T"], E=row["E"]), engine="graph", replications=2)
    assert confirmed["graph_rps"].iloc[0] == runs.slo_throughput_rps
    assert (confirmed["graph_low_rps"].iloc[0], confirmed["graph_high_rps"].iloc[0]) == runs.interval_rps


@pytest.mark.slow
def test_optimum_is_that_of_brute_force_with_the_graph_engine() -> None:
    """No layout is better by runs than the one found, beyond the interval of its own runs."""
    text = """
scenario = "paper-asap"
[vary]
D = [3, 4, 5]
T = [2, 4]
E = [12, 16]
workload.duration = ["150 s"]
[constraints]
devices = { max = 32 }
[confirm]
top = 1
replications = 4
"""
    found = explore(Space.parse(text))
    best = found.confirmed.iloc[0]
    base = am.Scenario.load("paper-asap").replace(duration="150 s")
    runs = {}
    for row in found.table.to_dict("records"):
        scenario = base.replace(D=row["D"], T=row["T"], E=row["E"])
        answer = am.capacity(scenario, engine="graph", replications=4, tolerance=0.02)
        runs[row["point"]] = answer.slo_throughput_rps / row["devices"]
    assert len(runs) == 4
    assert max(runs.values()) <= best["graph_high_rps"] / best["devices"]
    assert max(runs, key=lambda point: runs[point]) == best["point"]


def test_what_screening_puts_too_low_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are lowered by up to the margin on purpose; the front is still that of full answers."""
    text = """
scenario = "paper-asap"
objectives = ["slo_throughput_per_device", "devices"]
[vary]
D = [2, 3, 4]
E = { from = 12, to = 20, step = 2 }
[confirm]
top = 0
"""
    space = Space.parse(text)

    def low(task: Task) -> pd.DataFrame:
        table = evaluate(task)
        if task.effort == "quick":
            full = evaluate(replace(task, effort="full"))["slo_throughput_rps"]
            table["slo_throughput_rps"] = full * (1.0 - 0.019 * (table["point"] % 3 == 0))
        return table

    monkeypatch.setattr("asapmodel.exploration.explorer.evaluate", low)
    found = explore(space)
    pieces = tuple(designs_of(space).pieces(1000))
    settled = evaluate(Task(pieces[0], "full", None))
    costs = np.stack([-settled["slo_throughput_rps"] / found.table["devices"], found.table["devices"]], axis=1)
    assert found.table["on_front"].tolist() == pareto_front(costs).tolist()


def test_equal_points_share_the_front() -> None:
    """An exclusive threshold above every prompt changes nothing: both points are as good."""
    text = """
scenario = "paper-asap"
[vary]
exclusive_tokens = [40000, 50000]
[confirm]
top = 0
"""
    found = explore(Space.parse(text))
    assert found.table["slo_throughput_rps"].nunique() == 1
    assert found.table["on_front"].tolist() == [True, True]
    assert found.best["point"].tolist() == [0]


def test_prices_by_device_and_a_rate_of_the_workload() -> None:
    text = """
scenario = "paper-asap"
objectives = ["cost_per_million_tokens", "ttft_at_rate"]
price = { ascend-910c-die = 3.0 }
[vary]
workload.rate = [2.0, 6.0]
[confirm]
top = 0
"""
    found = explore(Space.parse(text))
    assert found.table["rate"].tolist() == found.table["rate_rps"].tolist() == [2.0, 6.0]
    assert found.table["ttft_at_rate_s"].is_monotonic_increasing
    assert found.table["price"].tolist() == [3.0, 3.0]


def test_copies_of_experts_cost_memory_and_pay_where_routing_is_uneven() -> None:
    text = """
scenario = "paper-chunked"
[vary]
replication = [1, 2]
cluster.profile.expert_load_cv = [0.0, 4.0]
[confirm]
top = 0
"""
    table = explore(Space.parse(text)).table.set_index(["cluster.profile.expert_load_cv", "replication"])
    rate = table["slo_throughput_rps"]
    assert rate[0.0, 2] < rate[0.0, 1]  # more padding and nothing to balance
    assert rate[4.0, 2] > rate[4.0, 1]


def test_workers_below_one_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="--workers: is 0"):
        explore(Space.parse(SMALL), workers=0)
    with pytest.raises(am.InputError, match="no such file"):
        explore(tmp_path / "none.toml")
