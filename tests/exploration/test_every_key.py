"""Every kind of key that a planner asks about varies: its column is there, and it makes a difference to the answer."""

from pathlib import Path

import pandas as pd
import pytest

from asapmodel.exploration.space import Space
from asapmodel.verbs.explore import explore

SCENARIO = """
[model]
use = "qwen3-30b-a3b"
[system]
kind = "{kind}"
D = 4
T = 4
{experts}
[workload]
rate = 2.0
lengths = {{ family = "lognormal", mu = 7.9, sigma = 1.2 }}
[slo]
ttft = "5 s"
"""


def explored(folder: Path, vary: str, kind: str = "asap", constraints: str = "") -> pd.DataFrame:
    """The table of a space around a plain scenario of one kind."""
    experts = "E = 16" if kind == "asap" else ""
    (folder / "base.toml").write_text(SCENARIO.format(kind=kind, experts=experts))
    text = f'scenario = "base.toml"\n[vary]\n{vary}\n[constraints]\n{constraints}\n[confirm]\ntop = 0\n'
    found = explore(Space.parse(text, str(folder / "space.toml"), folder), workers=1).table
    assert set(found["status"]) == {"ok"}
    return found


ANSWERS = ("slo_throughput_rps", "ttft_mean_s", "stability_limit_rps", "devices")


@pytest.mark.parametrize(
    ("vary", "columns", "kind"),
    [
        ('system.kind = ["sync", "asap"]', ["system"], "asap"),
        ("D = [2, 4]", ["D"], "asap"),
        ("T = [2, 4]", ["T"], "asap"),
        ("E = [16, 32]", ["E"], "asap"),
        ("replication = [1, 2]", ["replication"], "asap"),
        ("chunk_tokens = [0, 4096, 8192]", ["chunk_tokens"], "sync"),
        ("min_batch_tokens = [1024, 8192]", ["min_batch_tokens"], "asap"),
        ("max_batch_tokens = [4096, 32768]", ["max_batch_tokens"], "asap"),
        ("max_batch_tokens = [4096, 32768]", ["max_batch_tokens"], "sync"),
        ("exclusive_tokens = [4096, 16384]", ["exclusive_tokens"], "asap"),
        ('batch_window = [0.0, "50 ms"]', ["batch_window"], "asap"),
        ("overlap_moe = [true, false]", ["overlap_moe"], "asap"),
        ("overlap_attention = [true, false]", ["overlap_attention"], "asap"),
        ("super_kernel = [true, false]", ["super_kernel"], "asap"),
        ('precision = ["bf16", "int8"]', ["precision"], "asap"),
        ('cluster.use = ["cloudmatrix384", "gb200-nvl72"]', ["cluster.use"], "asap"),
        ('model.use = ["qwen3-30b-a3b", "glm-4.5-air"]', ["model.use"], "asap"),
    ],
)
def test_a_key_varies_and_acts(tmp_path: Path, vary: str, columns: list[str], kind: str) -> None:
    """One point a value, and no two with the same answer."""
    found = explored(tmp_path, vary, kind)
    values = vary.count(",") + 1
    assert len(found) == values
    for name in columns:
        assert found[name].nunique() == values, name
    answers = found[list(ANSWERS)].round(12)
    assert len(answers.drop_duplicates()) == values


def test_all_of_them_together(tmp_path: Path) -> None:
    """Both kinds, every key at once: what acts is filled in, the rest is empty, and devices are limited."""
    vary = """
system.kind = ["sync", "asap"]
D = [4]
T = [2, 4]
E = [16]
replication = [1, 2]
chunk_tokens = [8192]
min_batch_tokens = [2048]
max_batch_tokens = [16384]
exclusive_tokens = [16384]
batch_window = [0.05]
overlap_moe = [true]
overlap_attention = [true, false]
super_kernel = [true]
precision = ["bf16"]
cluster.use = ["cloudmatrix384", "gb200-nvl72"]
model.use = ["qwen3-30b-a3b", "glm-4.5-air"]
"""
    found = explored(tmp_path, vary, constraints="devices = { min = 16, max = 24 }")
    assert set(found["devices"]) == {16, 24}
    own = ["min_batch_tokens", "exclusive_tokens", "overlap_moe", "overlap_attention", "super_kernel"]
    for kind, rows in found.groupby("system"):
        empty = set(rows.columns[rows.isna().all()])
        assert empty >= ({"chunk_tokens"} if kind == "asap" else {*own, "max_batch_tokens"})
        assert not empty & ({*own, "max_batch_tokens"} if kind == "asap" else {"chunk_tokens"})
        assert rows["replication"].nunique() == rows["cluster.use"].nunique() == rows["model.use"].nunique() == 2
    assert found[found["system"] == "asap"]["overlap_attention"].nunique() == 2
