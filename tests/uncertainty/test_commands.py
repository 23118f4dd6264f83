"""`--uncertainty` as a user types it."""

import json
import re
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.cli.uncertain import gain_lines, interval_lines
from tests.calibration.test_calibrate import DIE, attention_table
from tests.cli.helpers import ask
from tests.uncertainty.systems import SYNC

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SYNC + '[uncertainty]\ncosts.moe = "10 %"\ncosts.attention = "3 %"\n')
    return str(path)


def test_capacity_in_words(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "capacity", scenario, "--uncertainty")
    assert (answer.status, answer.err) == (0, "")
    for words in (
        "90 % interval",
        "Variance by constant",
        "Measuring expert kernels would narrow",
        "calibrate --model moe",
        "Taken as exact, no error being stated:",
        "Not in the interval: the engine's own error, 0.2 % (median)",
    ):
        assert words in " ".join(answer.out.split()), words
    assert max(map(len, answer.out.splitlines())) <= 80


def test_evaluate_as_json(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "evaluate", scenario, "--rate", "155", "--uncertainty", "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    sure = found["uncertainty"]
    assert sure["ttft_mean"]["value"] == found["ttft"]["mean_s"]
    assert sure["ttft_p99"]["value"] == found["ttft"]["p99_s"]
    assert sure["ttft_mean"]["high"] is None  # infinite: some are not stable
    assert sure["unstable"] > 0
    assert sure["constants"][0]["key"] == "costs.moe"
    assert sure["measurements"][0].keys() == {
        *("name", "words", "constants", "alone", "total", "throughput_low", "throughput_high", "width"),
    }
    plain = json.loads(ask(capsys, "evaluate", scenario, "--rate", "155", "--json").out)
    assert "uncertainty" not in plain


def test_compare(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "compare", scenario, scenario, "--uncertainty", "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert (len(found["uncertainty"]), len(found["gains"])) == (2, 1)
    assert found["gains"][0]["ratio"]["low"] == pytest.approx(1.0)


def test_lines_of_a_comparison(scenario: str) -> None:
    one = am.Scenario.load(scenario)
    answers, gains = am.uncertain_gains([one, one], samples=16)
    (line,) = gain_lines(gains)
    assert "mine over mine: [bold]+0 %[/] (90 %: +0 to +0; if nothing were shared: -" in line
    lines = interval_lines(answers)
    assert len(lines) == 2
    assert lines[0].startswith("mine: ")
    assert lines[0].endswith("; best measured: expert kernels")


def test_explain(capsys: Captured, scenario: str) -> None:
    answer = ask(capsys, "explain", scenario, "--uncertainty")
    assert (answer.status, answer.err) == (0, "")
    assert "Variance by constant" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_report(capsys: Captured, scenario: str, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert ask(capsys, "report", scenario, scenario, "-o", str(page), "--uncertainty").status == 0
    text = page.read_text().partition("How sure the constants make it")[2]
    assert "expert kernels" in text
    assert "mine (2)" in text
    assert re.search(r">1[.0]*\D{1,9}1[.0]*<", text), text[:3000]  # the gain of equal systems


@pytest.mark.parametrize("command", ["capacity", "evaluate", "compare"])
@pytest.mark.parametrize("option", [("--engine", "graph"), ("--horizon", "60s")])
def test_refusals(capsys: Captured, scenario: str, command: str, option: tuple[str, str]) -> None:
    answer = ask(capsys, command, scenario, "--uncertainty", *option)
    assert answer.status == 2
    assert answer.error.startswith("--uncertainty: ")


def test_nothing_is_uncertain(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(SYNC)
    answer = ask(capsys, "capacity", str(tmp_path / "plain.toml"), "--uncertainty")
    assert answer.status == 0
    assert "no constant of this system has a stated error" in " ".join(answer.out.split())


def test_from_calibrate_to_an_interval(capsys: Captured, tmp_path: Path) -> None:
    """The whole way: a table, a profile with its covariance, an interval, and attention is what to measure again."""
    attention_table(tmp_path / "a.csv", seed=4, noise=0.1)
    table, profile, name = (str(tmp_path / one) for one in ("a.csv", "p.toml", "s.toml"))
    assert ask(capsys, "calibrate", table, "--model", "attention", "--device", DIE, "-o", profile).status == 0
    Path(name).write_text(
        '[cluster]\nuse = "cloudmatrix384"\nprofile = "p.toml"\n[system]\nkind = "sync"\nD = 8\nT = 4\n'
        '[policy]\nchunk_tokens = 8192\n[uncertainty]\ncluster.profile.expert_load_cv = "exact"\n'
    )
    answer = ask(capsys, "capacity", name, "--uncertainty", "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    sure = found["uncertainty"]
    assert sure["throughput"]["value"] == found["slo_throughput_rps"]
    by_key = {one["key"]: one for one in sure["constants"]}
    wanted = [f"cluster.profile.{one}" for one in ("gemm", "core", "indexer", "attention_overhead")]
    assert set(wanted) <= by_key.keys()
    assert by_key[wanted[0]]["origin"] == "profile p.toml"
    assert by_key["cluster.profile.collective_link"]["origin"] == "profile p.toml"  # the base's word
    assert sure["measurements"][0]["name"] == "attention kernels"
    interval = sure["throughput"]["high"] - sure["throughput"]["low"]
    assert interval > 0.02 * sure["throughput"]["value"]
    assert sure["linear"][1] - sure["linear"][0] == pytest.approx(interval, rel=0.3)
    assert sure["failed"] == 0
