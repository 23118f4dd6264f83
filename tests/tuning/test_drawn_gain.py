"""Whether a tuned policy gains in drawn systems: against asking each of them, and by what must hold."""

import re
from pathlib import Path

import numpy as np
import pytest

import asapmodel as am
from asapmodel.cli.text import percent
from asapmodel.tuning.drawn_gain import drawn_gain
from asapmodel.uncertainties.drawing import shared_draws
from asapmodel.verbs.prepared import prepare
from tests.cli.helpers import ask
from tests.uncertainty.systems import SYNC, toy

Captured = pytest.CaptureFixture[str]
LINE = 'costs.moe = "10 %"'
OTHER = {"chunk_tokens": 1024}


def answer(scenario: am.Scenario, factor: float) -> float:
    moe = {"floor": 0.0, "per_token": 2e-7 * factor}
    return am.capacity(scenario.replace(**{"costs.moe": moe, "uncertainty": {}})).slo_throughput_rps


def test_every_draw_is_a_pair_of_systems() -> None:
    """Synchronous systems are asked in full, so the interval is that of `capacity` with the drawn constants."""
    before = toy(LINE)
    after = before.replace(**OTHER)
    found = drawn_gain(before, after, None, samples=16, seed=0, level=0.9)
    ready = prepare(before)
    factors = shared_draws([(before, ready.costing.costs)], 16, 0).values[:, 0].tolist()
    gains = np.array([answer(after, one) / answer(before, one) - 1 for one in factors])
    assert [found.gain.low, found.gain.median, found.gain.high] == pytest.approx(np.quantile(gains, [0.05, 0.5, 0.95]))
    assert found.better == np.mean(gains > 0)
    assert found.gain.value == pytest.approx(answer(after, 1.0) / answer(before, 1.0) - 1)
    assert found.constants == ("costs.moe",)


@pytest.mark.parametrize("rate", [None, 60.0])
def test_equal_policies_gain_nothing(rate: float | None) -> None:
    found = drawn_gain(toy(LINE), toy(LINE), rate, samples=16, seed=1, level=0.9)
    assert (found.gain.low, found.gain.value, found.gain.high) == (0.0, 0.0, 0.0)
    assert found.better == 0
    assert found.measure is None
    assert found.before == found.after
    assert found.before.low < found.before.value < found.before.high


def test_sides_are_exchanged_with_the_sign_of_better() -> None:
    one, other = toy(LINE), toy(LINE).replace(**OTHER)
    there = drawn_gain(one, other, None, samples=16, seed=0, level=0.9)
    back = drawn_gain(other, one, None, samples=16, seed=0, level=0.9)
    assert there.better + back.better == 1
    assert 1 / (1 + there.gain.low) == pytest.approx(1 + back.gain.high, rel=0.01)
    assert there.before == back.after


def test_ttft_at_a_rate_against_evaluating_each() -> None:
    before, rate = toy(LINE), 80.0
    after = before.replace(**OTHER)
    found = drawn_gain(before, after, rate, samples=16, seed=0, level=0.9)
    factors = shared_draws([(before, prepare(before).costing.costs)], 16, 0).values[:, 0].tolist()

    def ttft(scenario: am.Scenario, factor: float) -> float:
        moe = {"floor": 0.0, "per_token": 2e-7 * factor}
        return am.evaluate(scenario.replace(**{"costs.moe": moe, "uncertainty": {}}), rate).slo.value_s

    gains = np.array([1 - ttft(after, one) / ttft(before, one) for one in factors])
    assert found.gain.value == pytest.approx(1 - ttft(after, 1.0) / ttft(before, 1.0))
    assert [found.gain.low, found.gain.high] == pytest.approx(np.quantile(gains, [0.05, 0.95]), abs=0.02)
    assert found.better == pytest.approx(np.mean(gains > 0), abs=0.1)


def test_the_verb() -> None:
    scenario = toy(LINE)
    plain = am.tune(scenario, only=["chunk_tokens"])
    found = am.tune(scenario, only=["chunk_tokens"], uncertainty=True, samples=16)
    sure = found.uncertainty
    assert sure is not None
    assert sure.gain.value == pytest.approx(found.gain)
    assert (sure.before.value, sure.after.value) == (found.before, found.after)
    whole = found.to_dict()
    assert whole.pop("uncertainty") == sure.to_dict()
    assert plain.to_dict() == whole


def test_the_command(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SYNC + "[uncertainty]\n" + LINE + "\n")
    shown = ask(capsys, "tune", str(path), "--only", "balance", "--rate", "80", "--uncertainty")
    assert (shown.status, shown.err) == (0, "")
    assert max(map(len, shown.out.splitlines())) <= 80
    text = " ".join(shown.out.split())
    words = r"from 128 draws of the constants, the same for both policies: the gain is (\S+) % to (\S+) % \(90 %\)"
    found = re.search(words, text)
    assert found is not None
    answer = am.tune(am.Scenario.load(path), 80.0, only=["balance"], uncertainty=True).uncertainty
    assert answer is not None
    assert [float(one) for one in found.groups()] == pytest.approx(
        [100 * answer.gain.low, 100 * answer.gain.high], abs=0.06
    )
    assert f"the tuned policy better in {percent(answer.better)} % of the draws" in text


def test_nothing_uncertain_and_what_is_refused(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text(SYNC)
    shown = ask(capsys, "tune", str(path), "--only", "balance", "--uncertainty")
    assert shown.status == 0
    assert "Uncertainty: no constant of this system has a stated error, so there is no interval." in " ".join(
        shown.out.split()
    )
    path.write_text(SYNC.replace("[workload]", '[workload]\nhorizon = "60 s"'))
    refused = ask(capsys, "tune", str(path), "--only", "balance", "--uncertainty")
    assert refused.status == 2
    assert "workload.horizon: cannot be combined with an uncertainty" in refused.error
