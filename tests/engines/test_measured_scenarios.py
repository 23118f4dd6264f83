"""The scenarios of the two measured systems, their requests, and the measurements beside them."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel.models.trace import read_trace

ROOT = Path(__file__).resolve().parents[2]
RUNS = sorted((ROOT / "studies" / "data" / "afd" / "requests").glob("*.csv.gz"))
TRACE = read_trace(ROOT / "asapmodel" / "catalog" / "traces" / "afd_prefill.csv.gz")


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as stream:
        return list(csv.DictReader(stream))


def test_all_measured_runs_are_the_trace_scaled_by_the_rate() -> None:
    assert len(RUNS) == 12
    for path in RUNS:
        rows = rows_of(path)
        rate = float(path.name.split("-r")[1].split("-")[0])
        assert [int(row["prompt_tokens"]) for row in rows] == TRACE.prompt_tokens.tolist()
        arrival = np.array([float(row["arrival_s"]) for row in rows])
        assert np.abs(arrival - TRACE.arrival_s * 4.0 / rate).max() < 0.02
        assert all(float(row["ttft_s"]) > 0 for row in rows)


def test_the_measurements_agree_with_their_summary() -> None:
    with (ROOT / "studies" / "data" / "afd" / "summary.csv").open() as stream:
        summary = {
            (row["system"], row["token_budget"], row["rate_rps"]): row
            for row in csv.DictReader(stream)
            if row["prefix_ratio"] == "0"
        }
    assert len(summary) == 20
    for path in RUNS:
        system, budget, rate, _ = path.name.split("-")
        ttft = [float(row["ttft_s"]) for row in rows_of(path)]
        row = summary[system, budget[1:], rate[1:]]
        assert np.mean(ttft) == pytest.approx(float(row["ttft_mean_s"]), rel=1e-5)
        assert np.quantile(ttft, 0.99) == pytest.approx(float(row["ttft_p99_s"]), rel=1e-5)


@pytest.mark.parametrize("name", ["afd-async", "afd-sync"])
def test_the_scenarios_replay_every_request_at_any_measured_rate(name: str) -> None:
    scenario = am.Scenario.load(name)
    for rate in (4.0, 12.0):
        result = am.evaluate(scenario, rate, engine="graph")
        assert result.requests == 875
        assert result.ttft.mean_s > 0.2
    assert am.evaluate(scenario, 4.0).ttft.mean_s < am.evaluate(scenario, 8.0).ttft.mean_s


def test_the_policies_are_those_of_the_measured_systems() -> None:
    free, lockstep = (am.Scenario.load(name) for name in ("afd-async", "afd-sync"))
    assert (free.layout.devices, lockstep.layout.devices) == (32, 32)
    assert (free.policy.routing, free.policy.micro, free.policy.chunk_tokens) == ("round_robin", "split", 65536)
    shared = lockstep.policy
    assert (shared.routing, shared.counts, shared.max_seqs) == ("fewest_requests", "exact", 8)
    assert free.policy.schedule_ahead is lockstep.policy.schedule_ahead is True
    for key in ("hide_overhead", "pad_groups", "idle_steps", "context_parallel"):
        assert (getattr(free.policy, key), getattr(lockstep.policy, key)) == (False, True)


def test_a_backlog_of_counts_of_the_last_step_is_spread_over_the_groups() -> None:
    """All to one group, as the rule says of one instant, would be a quarter of the throughput."""
    step, exact = (am.Scenario.load("afd-sync").replace(counts=counts) for counts in ("step", "exact"))
    limits = [am.evaluate(one, 4.0, engine="graph").saturation_rps for one in (step, exact)]
    assert limits[0] == limits[1]
