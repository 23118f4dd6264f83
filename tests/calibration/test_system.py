"""Calibration of a whole system on logs of requests: recovered coefficients, what is read, and what is refused."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel.calibration.replay import coefficient, replay_of, with_coefficients
from asapmodel.calibration.request_log import RequestLog, lone_requests, read_log, split_argument
from asapmodel.calibration.system import fit_system
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.errors import InputError
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests
from tests.cli.helpers import ask

SOME = Affine(1e-5, 2e-8)
TRUE = LayerCosts(
    Quadratic(1e-4, 1e-6, 1.2e-11), SOME, SOME, Plateau(1e-3, 2e-7), SOME, SOME, layers=10, dense_layers=2
)
TRUE = replace(TRUE, step_overhead=0.02, request_latency=0.015)
KEYS = ("attention.per_token", "attention.per_token2", "step_overhead", "request_latency")
FREE = Policy(routing="round_robin", chunk_tokens=32768, micro_batches="split")
LOCKSTEP = Policy(routing="fewest_requests", chunk_tokens=16384, batch_window=0.0, schedule_ahead=True)


def made(layout: Layout, policy: Policy, costs: LayerCosts, rate: float, count: int, seed: int) -> RequestLog:
    """A log that the graph engine made, with 3 % of noise on every TTFT."""
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(1.0 / rate, count))
    requests = make_requests(arrival, rng.integers(500, 40_000, count))
    empty = RequestLog("made", requests, np.ones(count))
    ttft = replay_of(empty, layout, policy).ttft(costs) * np.exp(0.03 * rng.standard_normal(count))
    return replace(empty, ttft=ttft)


def test_coefficients_are_recovered_from_logs_of_the_graph_engine() -> None:
    layout, small = Layout("asap", 3, 8, 8), replace(FREE, chunk_tokens=8192)
    logs = [
        replay_of(made(layout, FREE, TRUE, 3.0, 300, 1), layout, FREE),
        replay_of(made(layout, small, TRUE, 5.0, 300, 2), layout, small),
    ]
    start = with_coefficients(TRUE, dict.fromkeys(KEYS, 0.0) | {"attention.per_token": 3e-6, "step_overhead": 5e-3})
    found = fit_system(logs, start, KEYS)
    for key, value, (low, high) in zip(found.keys, found.values, found.intervals, strict=True):
        assert low <= coefficient(TRUE, key) <= high, key
        assert value == pytest.approx(coefficient(TRUE, key), rel=0.3), key
    assert np.median(np.abs(found.lone)) < 0.04
    assert np.median(np.abs(found.held_out)) < 0.04
    assert not found.unidentified()
    assert np.all(np.linalg.eigvalsh(found.covariance / np.outer(found.values, found.values)) >= -1e-12)


def test_one_overhead_is_recovered_from_a_system_in_lockstep() -> None:
    layout = Layout("sync", 2, 8, 16)
    logs = [replay_of(made(layout, LOCKSTEP, TRUE, rate, 300, 3), layout, LOCKSTEP) for rate in (0.8, 2.0)]
    found = fit_system(logs, replace(TRUE, step_overhead=0.06), ("step_overhead",))
    assert found.values[0] == pytest.approx(TRUE.step_overhead, rel=0.3)


def test_lone_requests_meet_empty_iterations_at_all_phases() -> None:
    """In the mean they wait for half of one: overhead, and eight layers with the fixed times and the experts' floor."""
    layout, empty = Layout("sync", 2, 8, 16), 0.02 + 8 * (4 * 1e-5 + 1e-3)
    quiet = replay_of(made(layout, LOCKSTEP, TRUE, 0.05, 40, 3), layout, LOCKSTEP)
    idle = replace(quiet, policy=replace(LOCKSTEP, idle_steps=True))
    waited = idle.alone(TRUE) - quiet.alone(TRUE)
    np.testing.assert_allclose(waited, empty / 2, atol=empty / 63)


def test_one_budget_cannot_tell_an_overhead_from_a_latency() -> None:
    """Lone requests of one budget see the sum of the two: what is open trades one for the other."""
    layout = Layout("asap", 3, 8, 8)
    quiet = replay_of(made(layout, FREE, TRUE, 0.05, 60, 4), layout, FREE)
    assert len(quiet.lone) > 50
    found = fit_system([quiet], TRUE, KEYS)
    (least,) = found.unidentified(spread=0.3)[-1:]
    assert least["step_overhead"] * least["request_latency"] < 0


def test_lone_requests_are_those_that_meet_nobody() -> None:
    requests = make_requests(np.array([0.0, 2.0, 2.5, 9.0, 20.0]), np.full(5, 10))
    assert lone_requests(RequestLog("x", requests, np.array([1.0, 1.0, 1.0, 2.0, np.nan]))).tolist() == [0, 3]


def test_without_a_lone_request_or_with_an_unknown_key_it_says_so() -> None:
    layout = Layout("asap", 3, 8, 8)
    log = RequestLog("busy", make_requests(np.zeros(30), np.full(30, 5000)), np.full(30, 2.0))
    with pytest.raises(ValueError, match=r"no request had the system to itself.*add the log of a lower rate"):
        fit_system([replay_of(log, layout, FREE)], TRUE)
    with pytest.raises(ValueError, match=r"'attention\.per_tokens' is no cost coefficient; give one of att"):
        coefficient(TRUE, "attention.per_tokens")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arrival_s,prompt_tokens\n0,5\n", "ttft_s: is missing; give the columns arrival_s, prompt_tokens, ttft_s"),
        ("arrival_s,prompt_tokens,ttft_s\n", "has no rows"),
        ("arrival_s,prompt_tokens,ttft_s\n0,5,1\n1,0,1\n", "row 2, prompt_tokens: is no such number"),
        ("arrival_s,prompt_tokens,ttft_s\n-1,5,1\n", "row 1, arrival_s: is no such number"),
        ("arrival_s,prompt_tokens,cached_tokens,ttft_s\n0,5,5,1\n", "row 1, cached_tokens: is no such number"),
        ("arrival_s,prompt_tokens,ttft_s\n0,5,0\n", "row 1, ttft_s: is no such number; give seconds above 0"),
    ],
)
def test_what_a_log_must_have(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_log(str(path))


def test_settings_behind_a_colon() -> None:
    assert split_argument("a.csv:max_seqs=8,policy.chunk_tokens=16384") == (
        "a.csv",
        {"max_seqs": "8", "policy.chunk_tokens": "16384"},
    )
    assert split_argument(Path("a:b/c.csv")) == ("a:b/c.csv", {})
    with pytest.raises(InputError, match=r"'=8' is no setting; give FILE\.csv:key=value"):
        split_argument("a.csv:max_seqs=4,=8")


def test_from_the_command_line_to_a_scenario_that_evaluates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = am.Scenario.load("afd-async")
    log = made(scenario.layout, scenario.policy, TRUE, 2.0, 120, 5)
    path, out = tmp_path / "log.csv", tmp_path / "fitted.toml"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["arrival_s", "prompt_tokens", "ttft_s"])
        writer.writerows(zip(log.requests.arrival, log.requests.prompt, log.ttft, strict=True))
    arguments = ["calibrate", str(path), "--model", "system", "--scenario", "afd-async"]
    picture = tmp_path / "errors.svg"
    extra = ("--fit", "attention.per_token,step_overhead", "-o", str(out), "--plot", str(picture))
    answer = ask(capsys, *arguments, *extra)
    assert answer.status == 0, answer.err
    assert "alone in the system" in answer.out
    assert picture.read_text().startswith("<svg")
    fitted = am.Scenario.load(out)
    again = am.calibrate_system(path, "afd-async", fit=["attention.per_token", "step_overhead"])
    assert am.Scenario.parse(again.text).costs == fitted.costs
    assert fitted.uncertainty.covariance.keys == ("costs.attention.per_token", "costs.step_overhead")
    assert am.evaluate(fitted, 2.0, engine="graph").ttft.mean_s == pytest.approx(log.ttft.mean(), rel=0.3)
    assert ask(capsys, "calibrate", str(path), "--model", "system").error.startswith("--scenario: is missing; give")
    assert "'nothing' is no cost coefficient" in ask(capsys, *arguments, "--fit", "nothing").error
    other = ask(capsys, "calibrate", str(path), "--model", "moe", "--fit", "attention.per_token")
    assert other.error == "--fit: is not for model 'moe'; leave it out, or give --model system"
