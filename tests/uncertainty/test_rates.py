"""Intervals at many rates: those of each rate alone, in the table and on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import asapmodel as am
from tests.cli.helpers import ask
from tests.uncertainty.systems import SYNC, toy

Captured = pytest.CaptureFixture[str]
COLUMNS = ["ttft_mean_low_s", "ttft_mean_high_s", "ttft_p99_low_s", "ttft_p99_high_s", "slo_met_share"]


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SYNC + '[uncertainty]\ncosts.moe = "10 %"\ncosts.attention = "3 %"\n')
    return str(path)


@pytest.mark.parametrize("name", ["toy", "paper-asap"])
def test_an_interval_is_that_of_the_rate_alone(name: str) -> None:
    system = toy('costs.moe = "10 %"', 'costs.attention = "5 %"') if name == "toy" else am.Scenario.load(name)
    rates = [20.0, 100.0] if name == "toy" else [4.0, 12.0]
    table = am.sweep(system, rates, uncertainty=True, samples=16, seed=3)
    plain = am.sweep(system, rates)
    pd.testing.assert_frame_equal(table.drop(columns=COLUMNS), plain)
    for rate, row in zip(rates, table.to_dict("records"), strict=True):
        alone = am.uncertainty(system, rate, samples=16, seed=3)
        assert alone.ttft_mean is not None
        assert alone.ttft_p99 is not None
        assert (row["ttft_mean_low_s"], row["ttft_mean_high_s"]) == (alone.ttft_mean.low, alone.ttft_mean.high)
        assert (row["ttft_p99_low_s"], row["ttft_p99_high_s"]) == (alone.ttft_p99.low, alone.ttft_p99.high)
        assert row["ttft_mean_low_s"] < row["ttft_mean_s"] < row["ttft_mean_high_s"]


def test_share_that_meets_the_objective_is_that_of_larger_throughputs() -> None:
    """With one factor f ~ N(1, 0.1) on all times the SLO throughput, near the limit, is near 1/f of its estimate."""
    system = toy(together=0.1)
    estimate = am.capacity(system).slo_throughput_rps
    rates = [0.7 * estimate, 0.9 * estimate, estimate]
    share = am.sweep(system, rates, uncertainty=True, samples=128)["slo_met_share"].to_numpy()
    # P(f < 1 / 0.7) = 1 - 9e-6, P(f < 1 / 0.9) = 0.867, P(f < 1) = 1/2
    assert share == pytest.approx([1.0, 0.867, 0.5], abs=0.02)


def test_rates_without_a_law() -> None:
    system = toy(together=0.1)
    limit = am.capacity(system).stability_limit_rps
    table = am.sweep(system, [0.95 * limit, 1.5 * limit], uncertainty=True, samples=64)
    assert np.isinf(table["ttft_mean_high_s"][0])  # f > 1 / 0.95: 30 %
    assert np.isfinite(table["ttft_mean_low_s"][0])
    assert table.loc[1, COLUMNS].isna().all()


def test_without_stated_errors_both_ends_are_the_estimate() -> None:
    table = am.sweep(toy(), [20.0, 1e6], uncertainty=True, samples=16)
    assert table["ttft_mean_low_s"][0] == table["ttft_mean_s"][0] == table["ttft_mean_high_s"][0]
    assert table["slo_met_share"][0] == 1.0
    assert table.loc[1, COLUMNS].isna().all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"engine": "graph"}, "uncertainty: is not for engine 'graph'"),
        ({"horizon": 60.0}, "uncertainty: cannot be combined with a horizon"),
        ({"samples": 3}, "samples: is 3"),
        ({"level": 0.0}, "level: is 0"),
    ],
)
def test_refusals(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(am.InputError, match=words):
        am.sweep(toy(), [20.0], uncertainty=True, **arguments)  # type: ignore[arg-type]
    with pytest.raises(am.InputError, match=r"workload\.horizon: cannot be combined"):
        am.sweep(toy().replace(horizon="60 s"), [20.0], uncertainty=True)


def test_on_the_command_line(capsys: Captured, scenario: str, tmp_path: Path) -> None:
    out = str(tmp_path / "curve.csv")
    answer = ask(capsys, "sweep", scenario, "--rates", "20,155,1000", "--uncertainty", "-o", out)
    assert (answer.status, answer.err) == (0, f"asapmodel: wrote {out}\n")
    for words in ("90 % intervals of TTFT (s), from 128 systems", "no limit", "objective met", "Not in the intervals"):
        assert words in " ".join(answer.out.split()), words
    assert max(map(len, answer.out.splitlines())) <= 80
    table = pd.read_csv(out)
    want = am.sweep(am.Scenario.load(scenario), [20.0, 155.0, 1000.0], uncertainty=True)
    pd.testing.assert_frame_equal(table[COLUMNS], want[COLUMNS], rtol=1e-12)

    found = json.loads(ask(capsys, "sweep", scenario, "--rates", "20,155,1000", "--uncertainty", "--json").out)
    sure = found["uncertainty"]
    assert (sure["samples"], sure["constants"]) == (128, ["costs.moe", "costs.attention"])
    assert sure["rates"][0]["ttft_mean"]["low"] == pytest.approx(table["ttft_mean_low_s"][0], rel=1e-12)
    assert sure["rates"][1]["ttft_mean"]["high"] is None
    assert sure["rates"][2]["met"] is None
    plain = json.loads(ask(capsys, "sweep", scenario, "--rates", "20", "--json").out)
    assert "uncertainty" not in plain


@pytest.mark.parametrize("option", [("--engine", "graph"), ("--horizon", "60s")])
def test_options_that_do_not_go_together(capsys: Captured, scenario: str, option: tuple[str, str]) -> None:
    answer = ask(capsys, "sweep", scenario, "--rates", "20", "--uncertainty", *option)
    assert answer.status == 2
    assert answer.error.startswith("--uncertainty: ")


def test_nothing_is_uncertain(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(SYNC)
    answer = ask(capsys, "sweep", str(tmp_path / "plain.toml"), "--rates", "20", "--uncertainty")
    assert answer.status == 0
    assert "no constant of this system has a stated error" in " ".join(answer.out.split())
