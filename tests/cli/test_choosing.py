"""`explore --uncertainty` as a user types it: words, JSON, the file and its reuse, and one line for each mistake."""

import json
from pathlib import Path

import pandas as pd
import pytest

from asapmodel.exploration.space import Space
from asapmodel.exploration.store import read_result
from tests.cli.helpers import ask
from tests.uncertainty.systems import SYNC

Captured = pytest.CaptureFixture[str]

SPACE = """
scenario = "mine.toml"
objectives = ["slo_throughput_per_device", "devices", "ttft_at_rate"]
rate = 60.0
[vary]
D = [2, 3, 4]
[confirm]
top = 0
"""


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(SYNC + '[uncertainty]\ncosts.moe = "10 %"\n')
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path / "space.toml"


def test_words_json_and_the_file(capsys: Captured, space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(space.parent)
    plain = json.loads(ask(capsys, "explore", "space.toml", "-o", "o.parquet", "--json").out)
    before = pd.read_parquet("o.parquet")
    answer = ask(capsys, "explore", "space.toml", "-o", "o.parquet", "--json", "--uncertainty")
    assert (answer.status, answer.err) == (0, "asapmodel: o.parquet is finished, only constants were drawn\n")
    found = json.loads(answer.out)
    choice = found["uncertainty"]
    assert found["objectives"] == plain["objectives"]
    assert [one["point"] for one in found["front"]] == [one["point"] for one in plain["front"]]
    points = choice["contenders"]
    assert len(points) == 3
    names = [one["objective"] for one in points[0]["standings"]]
    assert names == ["slo_throughput_per_device", "ttft_at_rate"]
    for place in range(2):
        assert sum(one["standings"][place]["best"] for one in points) == pytest.approx(1.0)
        assert all(one["standings"][place]["best"] <= one["standings"][place]["close"] for one in points)
    table = pd.read_parquet("o.parquet")
    assert table[before.columns.tolist()].equals(before)
    for one in points:
        row = table.set_index("point").loc[one["point"]]
        first, second = one["standings"]
        assert row["slo_throughput_per_device_rps_low"] == first["interval"]["low"]
        assert row["ttft_at_rate_s_high"] == (second["interval"]["high"] or float("inf"))
        assert (row["best_share"], row["front_share"]) == (first["best"], one["front"])
        assert row["ttft_at_rate_s"] == pytest.approx(second["interval"]["value"], rel=1e-9)
    assert read_result("o.parquet", Space.load(space).digest) is not None  # still the result of this space
    assert not Path("o.parquet.parts").exists()
    again = ask(capsys, "explore", "space.toml", "-o", "o.parquet", "--uncertainty")
    assert pd.read_parquet("o.parquet").equals(table)
    assert max(map(len, again.out.splitlines())) <= 80
    text = " ".join(again.out.split())
    assert "Uncertainty, from 128 draws of the constants, the same for the 3 best points" in text
    assert "better than its strongest rival" in text
    assert "Not in the intervals: constants without a stated error, and the engine's own error." in text
    later = ask(capsys, "explore", "space.toml", "-o", "o.parquet")
    assert later.err == "asapmodel: o.parquet is finished, nothing was computed\n"
    assert "Uncertainty" not in later.out


def test_nothing_is_uncertain(capsys: Captured, space: Path) -> None:
    (space.parent / "mine.toml").write_text(SYNC)
    answer = ask(capsys, "explore", str(space), "--uncertainty")
    assert answer.status == 0
    words = "Uncertainty: no constant of this system has a stated error, so there is no interval."
    assert words in " ".join(answer.out.split())


def test_mistakes_are_told_before_anything_is_computed(capsys: Captured, space: Path) -> None:
    only = SPACE.replace('["slo_throughput_per_device", "devices", "ttft_at_rate"]', '["devices"]')
    space.write_text(only)
    answer = ask(capsys, "explore", str(space), "-o", str(space.parent / "o.parquet"), "--uncertainty")
    assert answer.status == 2
    assert "space.toml: objectives: has only 'devices', which is exact" in answer.error
    assert not (space.parent / "o.parquet").exists()
    space.write_text(SPACE)
    (space.parent / "mine.toml").write_text(SYNC + "[uncertainty]\ncosts.moe = 3\n")
    broken = ask(capsys, "explore", str(space), "--uncertainty")
    assert broken.status == 2
    assert "costs.moe: is 3; give" in broken.error
