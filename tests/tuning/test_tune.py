"""Tuning: the search against trying everything, and the verb against evaluating what it says."""

import itertools
import json
import math
from pathlib import Path

import pytest

import asapmodel as am
from asapmodel.errors import InputError, NoAnswer
from asapmodel.tuning.parameters import Parameter, Value, parameters_of
from asapmodel.tuning.search import Evaluations, flatness, search
from tests.cli.helpers import ask, process

ASAP = am.Scenario.load("paper-asap")


def bowl(policy: dict[str, Value]) -> float:
    """Best at x = 37, y = 5, z = "b"; y hardly matters."""
    x, y = float(policy["x"]), float(policy["y"])
    return 100 - (x - 37) ** 2 / 50 - 1e-4 * (y - 5) ** 2 + (policy["z"] == "b")


PARAMETERS = [Parameter("x", tuple(range(60))), Parameter("y", tuple(range(12))), Parameter("z", ("a", "b"))]


def test_the_search_finds_what_trying_everything_finds() -> None:
    found = Evaluations(PARAMETERS, bowl)
    best = search(found, (10, 3, 0))
    every = max(bowl(found.policy(places)) for places in itertools.product(range(60), range(12), range(2)))
    assert found(best) >= 0.9995 * every
    assert best[1:] == (3, 1)  # what gains nothing stays
    assert len(found.seen) < 60 * 12 * 2 / 3
    again = Evaluations(PARAMETERS, bowl)
    assert search(again, (10, 3, 0)) == best
    assert again.seen == found.seen


def test_flatness_is_where_a_share_is_lost() -> None:
    found = Evaluations(PARAMETERS, bowl)
    rows = {one.key: one for one in flatness(found, (10, 3, 0), (37, 3, 1), 0.02)}
    reach = math.sqrt(50 * 0.02 * found((37, 3, 1)))
    assert rows["x"].within == (math.ceil(37 - reach), math.floor(37 + reach))
    assert rows["y"].within == (0, 11)
    assert rows["z"].within == ("a", "b")
    assert rows["x"].alone == pytest.approx(found((37, 3, 0)) / found((10, 3, 0)) - 1)


def test_ranges_hold_the_policies_own_bounds() -> None:
    found = {one.key: one.values for one in parameters_of(ASAP)}
    assert found["min_batch_tokens"][-1] == ASAP.policy.max_batch_tokens
    assert found["exclusive_tokens"][-1] == ASAP.workload.max_prompt_tokens
    assert 2048 in found["min_batch_tokens"]
    assert "pairing" not in {one.key for one in parameters_of(ASAP.replace(dual_batch=False))}


def test_one_key_against_trying_all_its_values() -> None:
    tuned = am.tune(ASAP, only=["pairing"])
    rates = {value: am.capacity(ASAP.replace(pairing=value)).slo_throughput_rps for value in ("locked", "rolling")}
    assert tuned.policy == {"pairing": max(rates, key=lambda value: rates[value])}
    assert tuned.after == max(rates.values())
    assert tuned.before == rates["locked"]
    assert tuned.gain == pytest.approx(tuned.after / tuned.before - 1)


def test_ttft_at_a_rate() -> None:
    tuned = am.tune(ASAP, rate=4.0, only=["batch_window"])
    assert tuned.policy == {"batch_window": 0.0}  # nothing to wait for at so low a rate
    assert tuned.after == am.evaluate(ASAP.replace(batch_window=0.0), 4.0).ttft.mean_s
    assert tuned.gain == pytest.approx(1 - tuned.after / tuned.before)


def test_no_answer_and_bad_keys() -> None:
    with pytest.raises(NoAnswer, match="missed at every rate, with every policy"):
        am.tune(ASAP.replace(**{"slo.ttft": 1e-4}), only=["pairing"])
    with pytest.raises(NoAnswer, match="1000 requests/s is not below"):
        am.tune(ASAP, rate=1000.0, only=["pairing"])
    with pytest.raises(InputError, match=r"policy.pairin: cannot be tuned.*nearest is 'pairing'"):
        am.tune(ASAP, only=["pairin"])


@pytest.mark.slow
def test_the_whole_policy() -> None:
    tuned = am.tune(ASAP)
    assert tuned.gain > 0.2  # 24 % with the shipped costs: larger batches, no exclusive prompts, rolling pairs
    assert am.capacity(ASAP.replace(**tuned.policy)).slo_throughput_rps == tuned.after
    graph = am.capacity(ASAP.replace(**tuned.policy), engine="graph").slo_throughput_rps
    assert graph == pytest.approx(tuned.after, rel=0.06)


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "tuned.toml"
    answer = ask(capsys, "tune", "paper-asap", "--only", "pairing", "-o", str(out))
    assert answer.status == 0
    assert answer.err == f"asapmodel: wrote {out}\n"
    assert "--set policy.pairing=rolling" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    assert am.Scenario.load(out).policy.pairing == "rolling"
    assert ask(capsys, "tune", "paper-asap", "--only", "pairing", "-o", str(out)).status == 2
    wrong = ask(capsys, "tune", "paper-asap", "--only", "chunk_tokens")
    assert wrong.status == 2
    assert wrong.error.startswith("<paper-asap>: policy.chunk_tokens: cannot be tuned; give one of min_batch_tokens")


def test_queues_per_group_are_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    """Against the two values of a switch; what is asked for stands in the words of a scenario."""
    sync = am.Scenario.load("afd-sync")
    tuned = am.tune(sync, only=["max_seqs"])
    by_seqs = {seqs: am.capacity(sync.replace(max_seqs=seqs)).slo_throughput_rps for seqs in (8, 256)}
    assert by_seqs[256] > 1.03 * by_seqs[8]
    assert tuned.after > 0.995 * by_seqs[256]
    assert tuned.before == by_seqs[8]
    answer = ask(capsys, "tune", "afd-sync", "--only", "schedule_ahead", "--set", "policy.schedule_ahead=true")
    assert (answer.status, answer.err) == (0, "")
    rates = {flag: am.capacity(sync.replace(schedule_ahead=flag)).slo_throughput_rps for flag in (True, False)}
    better = max(rates, key=lambda flag: rates[flag])
    change = f"--set policy.schedule_ahead={str(better).lower()}" if not better else "Nothing to change."
    assert change in answer.out


def test_parameters_of_queues_per_group() -> None:
    def keys(name: str, **changes: object) -> list[str]:
        return [one.key for one in parameters_of(am.Scenario.load(name).replace(**changes))]

    assert keys("afd-sync") == ["routing", "chunk_tokens", "max_seqs", "schedule_ahead", "batch_window"]
    limited = keys("paper-chunked", max_seqs=4)  # prompts are still routed by iteration
    assert limited == ["balance", "chunk_tokens", "max_seqs", "batch_window"]
    whole = keys("paper-asap", routing="round_robin", batching="prompts")
    assert whole == ["routing", "max_batch_tokens", "micro_batches"]
    some = keys("paper-asap", routing="least_work")
    assert some == ["routing", "min_batch_tokens", "exclusive_tokens", "micro_batches"]


def test_json_as_a_process() -> None:
    answer = process(["tune", "paper-chunked", "--only", "balance", "--json"])
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["objective"] == "slo_throughput_rps"
    assert found["parameters"][0]["within"] == ["tokens", "work"]
    assert found["gain"] == pytest.approx(found["after"] / found["before"] - 1)
