"""Grouped-query attention: counts by hand and against the Step-3 paper, split by heads, windows, memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asapmodel import catalog
from asapmodel.models import attention, grouped_query, memory, moe
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Architecture, Split

MEASURED = Path(__file__).resolve().parents[2] / "studies" / "data" / "measured"
_, DIE, PROFILE, SPLIT = paper_deployment()
QWEN = catalog.load_architecture("qwen3-235b-a22b").value
OSS = catalog.load_architecture("gpt-oss-120b").value
GROUPED = [name for name in catalog.names("models") if catalog.load_architecture(name).value.grouped]


def of(name: str) -> Architecture:
    return catalog.load_architecture(name).value


def test_step_3_s_table() -> None:
    """Core, linear and expert FLOP of a token at 8192 and 32768 tokens, bytes of 8-bit keys and values."""
    rows = pd.read_csv(MEASURED / "step3_flops.csv", comment="#").query("model == 'Qwen3-MoE-235B'")
    count = grouped_query.flops()
    pair, linear = (float(evaluate(count[name], QWEN)) for name in ("pair", "projections"))
    context, core, kept = (rows[name].to_numpy(dtype=np.float64) for name in ("context", "attention_flop", "kv_bytes"))
    assert 94 * pair * context == pytest.approx(core, rel=5e-3)
    assert 94 * context * 2 * 4 * 128 == pytest.approx(kept, rel=2e-3)
    first = rows.iloc[0]
    assert 94 * linear == pytest.approx(first["linear_flop"], rel=5e-3)
    assert 94 * float(evaluate(moe.flop_per_token(), QWEN)) == pytest.approx(first["ffn_flop"], rel=5e-3)
    # By hand: 64 and 2 x 4 heads of 128 from 4096, and back.
    assert linear == 2 * 4096 * (64 + 8) * 128 + 2 * 64 * 128 * 4096
    assert pair == 4 * 64 * 128


def test_published_sizes() -> None:
    """Parameters of the models from their own names or papers, at one byte a weight."""
    billions = {
        "qwen3-235b-a22b": 235,
        "qwen3-30b-a3b": 30.5,
        "glm-4.5": 355,
        "glm-4.5-air": 106,
        "gpt-oss-120b": 117,
        "minimax-m2": 230,
        "mixtral-8x22b": 141,
    }
    assert set(billions) == set(GROUPED)
    one = Split(1, 1, 1)
    for name, size in billions.items():
        items = memory.fits(of(name), DIE, one, "sync", S=1, slots=1).items["device"]
        embeddings = items["embeddings weights"] / 2  # at two bytes
        whole = sum(value for key, value in items.items() if key.endswith("weights")) - embeddings
        assert whole / 1e9 == pytest.approx(size, rel=0.03), name


def test_time_of_a_prompt_by_hand() -> None:
    s, T = 4096, 4
    split = replace(SPLIT, T=T)
    exact = s * (4 * 4096 * 64 * 128 / T + 4 * 4096 * 128) / (752e12 * 0.8)  # one of four key-value heads a device
    exact += 4 * 64 * 128 * (s * (s + 1) / 2) / (T * 376e12 * 0.65)
    assert float(attention.prompt_time(QWEN, DIE, PROFILE, split, s)) == pytest.approx(exact, rel=1e-12)
    slow = replace(PROFILE, token_overhead=1e-7)
    assert float(attention.prompt_time(QWEN, DIE, slow, split, s)) == pytest.approx(exact + s * 1e-7, rel=1e-12)


def test_key_value_heads_are_repeated_beyond_their_number() -> None:
    parts = grouped_query.parts()["projections"]
    at = {T: float(evaluate(parts, QWEN, DIE, PROFILE, Split(1, T, 1), s=1000, p=0)) for T in (1, 2, 4, 8)}
    assert at[1] == pytest.approx(4 * at[4])
    assert at[8] > at[4] / 2
    cache = {T: float(evaluate(grouped_query.cache_bytes(), QWEN, Split(1, T, 1), S=1, N_s=1)) for T in (1, 4, 8)}
    assert cache == {1: 94 * 2048, 4: 94 * 512, 8: 94 * 512}


def test_windows_are_the_mean_of_two_kinds_of_layers() -> None:
    s, p = 300, 100
    full = sum(range(p + 1, s + 1))
    windowed = sum(min(i, 128) for i in range(p + 1, s + 1))
    found = float(evaluate(grouped_query.keys(), OSS, s=s, p=p))
    assert found == pytest.approx((18 * full + 18 * windowed) / 36, rel=1e-12)
    assert float(evaluate(grouped_query.keys(), QWEN, s=s, p=p)) == full


@pytest.mark.parametrize("name", GROUPED)
def test_without_windows_the_reduction_is_exact(name: str) -> None:
    model = replace(of(name), windowed_layers=0)
    law = attention.reduce(model, DIE, PROFILE, SPLIT, [128, 1024, 8192, 32768], [0.4, 0.3, 0.2, 0.1])
    # (s^2 + s) / 2 pairs and s tokens: a quadratic without a constant
    assert law.max_relative_error < 1e-9
    assert law.per_token2 == pytest.approx(2 * model.heads * model.head_dim / (SPLIT.T * 376e12 * 0.65), rel=1e-6)


def test_pieces_cost_as_much_as_the_whole() -> None:
    cuts = np.array([0, 1000, 2500, 8000])
    pieces = attention.prompt_time(OSS, DIE, PROFILE, SPLIT, cuts[1:], cuts[:-1]).sum()
    assert float(pieces) == pytest.approx(float(attention.prompt_time(OSS, DIE, PROFILE, SPLIT, 8000)), rel=1e-12)
