"""The command `explain`, as a user types it."""

import json
from pathlib import Path

import pytest

import asapmodel as am
from tests.cli.helpers import SCENARIO, ask, process

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO)
    return str(path)


def test_json_as_a_process() -> None:
    answer = process(["explain", "paper-asap", "--json"])
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["regime"].keys() == {"name", "constraint", "upper", "next_name", "margin"}
    assert found["regime"]["margin"] >= 1
    best = found["improvements"][0]
    assert best["throughput"] == max(one["throughput"] for one in found["improvements"])
    assert found["lower_rps"] < found["stability_limit_rps"] < min(found["bounds_rps"].values())
    assert found["slo_throughput_rps"] == pytest.approx(
        am.capacity(am.Scenario.load("paper-asap")).slo_throughput_rps, rel=2e-3
    )
    assert found["result"]["rate_rps"] == pytest.approx(0.8 * found["slo_throughput_rps"])
    times = [
        one for one in found["elasticities"] if one["name"].startswith("costs.") or one["name"].endswith("_window")
    ]
    assert found["sums"]["throughput"] == pytest.approx(
        sum(one["throughput"] for one in times) + found["objective_elasticity"]
    )
    assert found["sums"]["ttft"] == pytest.approx(sum(one["ttft"] for one in times) - found["rate_elasticity"])
    # With one walk interactions of pairs of numbers are in: some 4 %.
    assert found["sums"] == {"throughput": pytest.approx(-1, abs=0.1), "ttft": pytest.approx(1, abs=0.15)}
    assert {one["name"] for one in found["elasticities"]} >= {"costs.attention.per_token2", "policy.exclusive_tokens"}


@pytest.mark.parametrize("name", ["paper-asap", "paper-default", "afd-async", "afd-sync"])
def test_table(capsys: Captured, name: str) -> None:
    answer = ask(capsys, "explain", name, "--rate", "4")
    assert (answer.status, answer.err) == (0, "")
    for words in (
        "-bound: ",
        "Most valuable, each 10 %: ",
        "Improvement by a tenth",
        "What the answers depend on",
        "slo.ttft",
        "must add up to -1 (here -",
    ):
        assert words in answer.out
    assert answer.out.split("each 10 %: ")[1].split("Improvement")[0].count("+") == 3
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("afd-async", {"batches in flight", "MoE compute"}),
        ("afd-sync", {"experts", "iteration"}),
    ],
)
def test_queues_per_group(name: str, known: set[str]) -> None:
    """Bounds that hold for these policies, no lower one, and the numbers that act."""
    found = am.explain(am.Scenario.load(name), 6.0)
    assert found.lower_rps is None
    assert found.stability_limit_rps < min(found.bounds_rps.values())
    assert found.bounds_rps.keys() >= known
    assert found.regime.name == "attention-bound"
    policy = {one.name for one in found.elasticities if one.name.startswith("policy.")}
    assert policy == {"policy.chunk_tokens"}
    assert found.improvements[0].words == "faster attention"


def test_what_is_left_out_with_queues_per_group_is_said(capsys: Captured) -> None:
    answer = ask(capsys, "explain", "afd-sync", "--rate", "6", "--choices", "--formulas")
    assert (answer.status, answer.err) == (0, "")
    for words in (
        "uneven queues and steps",
        "routing round robin",
        "batches formed when the step starts",
        "any number of prompts in a step",
        "No closed forms: they are of one queue",
    ):
        assert words in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_errors_and_choices(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "explain", scenario, "--walks", "2", "--choices", "--formulas")
    assert (answer.status, answer.err) == (0, "")
    assert "±" in answer.out
    assert "Other choices" in answer.out
    assert "Closed forms, for a mean batch:" in answer.out
    assert "super kernel" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--rate", "-1"), 2, "--rate: is '-1'; give a positive number"),
        (("--walks", "many"), 2, "--walks: is 'many'; give a whole number from 1 to"),
        (("--rate", "1000"), 1, "1000 requests/s is not below the stability limit"),
        (("--set", "slo.ttft=1e-6"), 1, "mean TTFT <= 1e-06 s is missed at every rate"),
    ],
)
def test_no_answer(capsys: Captured, scenario: str, arguments: tuple[str, ...], status: int, message: str) -> None:
    answer = ask(capsys, "explain", scenario, *arguments)
    assert answer.status == status
    assert message in answer.error
