"""Kernel evidence: published identities of the tables, what is held out is held out, the page says what was found."""

from importlib.resources import files
from math import ceil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asapmodel import catalog
from asapmodel.calibration.tables import read_tables
from asapmodel.models.evaluation import evaluate
from asapmodel.models.flops import attended, flops, pairs
from asapmodel.models.moe import flop_per_token
from asapmodel.studies.evidence_drawn import (
    DECODE,
    PREFILL,
    draws,
    with_drawn_rows,
    with_equal_rows,
    with_multiplied_rows,
    with_padded_rows,
)
from asapmodel.studies.evidence_judging import judge, measured
from asapmodel.studies.evidence_kernels import judgements, page


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(str(files("asapmodel.studies").joinpath(f"data/measured/{name}.csv")), comment="#")


@pytest.mark.parametrize("name", ["deepgemm_dense", "deepgemm_grouped"])
def test_printed_bandwidths_follow_from_printed_rates(name: str) -> None:
    rows = table(name)
    groups = rows["groups"].to_numpy() if "groups" in rows else 1.0
    m = rows["m_per_group" if "m_per_group" in rows else "m"]
    seconds = 2.0 * groups * m * rows.n * rows.k / (rows.tflops * 1e12)
    moved = groups * (m * rows.k + rows.n * rows.k + 2.0 * m * rows.n)
    np.testing.assert_allclose(moved / seconds / 1e9, rows.memory_bandwidth_gbps, rtol=2.5e-3)


def test_shares_of_peak_follow_from_times_and_our_flop_counts() -> None:
    """Sparse core, dense core and indexer scores of InferSim: all 23 rows."""
    model = catalog.load_architecture("deepseek-v3.2").value
    core = table("infersim_dsa_prefill_attn_h800")
    keys = evaluate(attended(), model, s=4096.0 + 8192.0, p=8192.0)
    work = float(evaluate(flops()["absorbed_key"], model)) * keys
    np.testing.assert_allclose(work / (989e12 * 1e-6 * core.latency_us), core.mfu, atol=1e-3)
    scores = table("infersim_dsa_prefill_logits_h800")
    seen = evaluate(pairs(), s=scores.s_kv.to_numpy(float), p=(scores.s_kv - scores.s_q).to_numpy(float))
    work = float(evaluate(flops()["indexer_pair"], model)) * seen
    np.testing.assert_allclose(work / (1979e12 * 1e-6 * scores.latency_us), scores.mfu, atol=1e-3)
    dense = table("infersim_mla_prefill_h800")
    squared = float(evaluate(flops()["dense_pair"], model)) * dense.seq_len**2 / 2
    np.testing.assert_allclose(squared / (989e12 * 1e-6 * dense.latency_us), dense.mfu, atol=1e-3)


def test_step_3_s_flop_counts() -> None:
    model = catalog.load_architecture("deepseek-v3").value
    row = table("step3_flops").query("model == 'DeepSeek-V3' and context == 8192").iloc[0]
    linear, ffn = (float(evaluate(x, model)) for x in (flops()["projections"], flop_per_token()))
    assert 61 * linear == pytest.approx(row.linear_flop, rel=5e-3)
    assert 61 * ffn == pytest.approx(row.ffn_flop, rel=5e-3)
    assert 61 * 2 * 128 * (576 + 576) * 8192 == pytest.approx(row.attention_flop, rel=5e-3)


def test_published_throughputs_and_rates_are_consistent() -> None:
    prefill = table("cann_recipes_prefill_a3")
    balanced = prefill[prefill.prompts == 64]
    np.testing.assert_allclose(64 * 4096 / (1e-3 * balanced.latency_ms), balanced.tokens_per_s, rtol=1e-3)
    offload = table("prfaas_prefill_1t")
    np.testing.assert_allclose(offload.kv_mib * 2**20 * 8 / 1e9 / offload.prefill_s, offload.kv_gbps, rtol=0.015)


def test_low_latency_volumes() -> None:
    first = table("deepep_low_latency").iloc[0]
    assert first.dispatch_us * first.dispatch_gbps * 1e3 == pytest.approx(128 * 8 * 7392, rel=0.02)
    assert first.combine_us * first.combine_gbps * 1e3 == pytest.approx(128 * 8 * 14336, rel=0.02)


def test_readers_keep_rows_and_times() -> None:
    """By hand: first rows of three tables."""
    link = measured("aiconfigurator_deepep_normal_h100", "link")
    assert link.seconds[0] == pytest.approx(37.28e-6)
    assert set(link.nodes.tolist()) == {1, 2, 4}
    decode = measured("infersim_grouped_gemm_decode_h800", "moe", "h800")
    assert (decode.values["N_y"][0], decode.values["N_z"][0], decode.seconds[0]) == (4096, 7168, 1297e-6)
    core = measured("infersim_dsa_prefill_attn_h800", "attention", "h800")
    assert np.all(core.values["p"] >= 2048)


def printed_rows(name: str, peak: float, padded: int) -> np.ndarray:
    """Rows by the printed shares of peak, all up products first; widths are rounded up to a multiple of `padded`."""
    rows = table(name)
    width = padded * np.ceil(rows.intermediate_size / padded)
    work = [4 * width * rows.hidden_size, 2 * width * rows.hidden_size]
    pairs = zip((rows.up_mfu, rows.down_mfu), (rows.up_proj_us, rows.down_proj_us), work, strict=True)
    return np.concatenate([share * peak * 1e-6 * time / one for share, time, one in pairs])


def test_the_benchmark_s_draws_can_be_done_again() -> None:
    """Decode on H800: all 94 printed shares give the drawn rows; of one stated row half of the groups get none."""
    stated = measured(DECODE, "moe", "h800")
    drawn = with_drawn_rows(stated)
    total = drawn.values["G"] * drawn.values["N_x"]
    printed = printed_rows(DECODE, 1979e12, 1)
    np.testing.assert_array_equal(np.round(printed), np.round(total))
    assert np.abs(printed - total).max() < 0.05
    single = stated.values["N_x"] == 1
    assert drawn.values["G"][single].tolist() == [127, 136]
    assert np.all(drawn.values["G"][~single] == stated.values["G"][~single])
    twice = np.flatnonzero((stated.values["G"] == 256) & (stated.values["N_x"] == 2))
    np.testing.assert_allclose(stated.seconds[single] / stated.seconds[twice], [127 / 256, 136 / 256], rtol=0.025)


def test_padded_rows_of_the_prefill_table() -> None:
    """H20: printed shares count drawn rows, later padded ones; both agree within the last digit, line by line."""
    padded = with_padded_rows(measured(PREFILL, "moe", "h20"))
    rows, lines = np.round(padded.values["G"] * padded.values["N_x"], 6), table(PREFILL)
    printed, share = printed_rows(PREFILL, 296e12, 128), np.concatenate([lines.up_mfu, lines.down_mfu])
    assert not np.any(rows % 128)
    later = np.tile(lines.num_experts >= 256, 2)
    np.testing.assert_allclose(printed[later], rows[later], rtol=1e-5)
    again = draws(list(zip(lines.num_local_experts[:25], lines.tokens_per_expert[:25], strict=True)), 1)
    drawn = np.array([one.sum() for one in again])
    first = np.r_[printed[:25], printed[160:185]], np.r_[drawn[0::2], drawn[1::2]], np.r_[share[:25], share[160:185]]
    assert np.all(np.abs(first[0] / first[1] - 1) < 6e-4 / first[2])
    assert np.all(np.abs(printed[~later] - rows[~later]) < 128 * padded.values["G"][~later])
    widths = sorted({*padded.values["N_z"][160:].tolist()})
    assert widths == [512, 768, 1024, 1536, 1664]  # two models' 912 and 1560 rounded up


def test_tiles_of_the_drawn_rows() -> None:
    """Two groups of 512 stated rows: 256 x 128 for those; three and two of them high, 32 wide make two waves."""
    drawn = with_drawn_rows(measured(DECODE, "moe", "h800"))
    (row,) = np.flatnonzero((drawn.values["G"] == 2) & (np.round(2 * drawn.values["N_x"]) == 983))
    assert [drawn.values[x][row] for x in ("t_x", "t_y", "N_w")] == [256, 128, 2]
    equal = with_equal_rows(measured("deepgemm_grouped", "moe", "h800"), np.arange(20) < 1)
    assert [equal.values[x][0] for x in ("t_x", "t_y", "N_w")] == [128, 152, ceil(256 * 27 / 132)]


def test_whole_tiles_are_multiplied_and_moved() -> None:
    """Rows of H800 in whole tiles, by hand; one tile a group takes the same time whatever it holds."""
    stated = measured(DECODE, "moe", "h800")
    whole, drawn = (read(stated).values for read in (with_multiplied_rows, with_drawn_rows))
    (row,) = np.flatnonzero((drawn["G"] == 2) & (np.round(2 * drawn["N_x"]) == 983))  # three tiles of 256 and two
    assert 2 * whole["N_x"][row] == 5 * 256
    assert np.all(whole["N_x"] >= drawn["N_x"])
    for letter in ("G", "N_y", "t_x", "t_y", "N_w"):
        np.testing.assert_array_equal(whole[letter], drawn[letter])
    rows, groups, depth = (stated.values[x] for x in ("N_x", "G", "N_z"))
    few = (rows >= 2) & (rows <= 32)
    np.testing.assert_array_equal(whole["N_x"][few], 64)
    for kind in {*zip(groups[few], depth[few], strict=True)}:
        seconds = stated.seconds[few & (groups == kind[0]) & (depth == kind[1])]
        assert seconds.max() < 1.003 * seconds.min()
    share = {}
    for name, v in (("whole", whole), ("drawn", drawn)):
        moved = v["G"] * (v["N_y"] * v["N_z"] + v["N_x"] * (v["N_z"] + 2 * v["N_y"]))
        reached = moved / v["B_m"] / (stated.seconds - 9e-6)  # less the launch
        share[name] = [float(reached[few & (groups >= 16) & (depth == z)].mean()) for z in (7168, 2048)]
    assert share["whole"] == pytest.approx([0.877, 0.877], abs=0.004)
    assert share["drawn"] == pytest.approx([0.857, 0.827], abs=0.004)


def test_kinds_of_products_are_judged_apart() -> None:
    """Dense products are cut into tiles, grouped ones are not: one cannot be predicted by the other's constants."""
    dense, grouped = (measured(f"deepgemm_{name}", "moe", "h800") for name in ("dense", "grouped"))
    with pytest.raises(ValueError, match="different laws"):
        judge("x", "x", ("dense", dense), ("grouped", grouped), "moe")


def test_what_is_calibrated_on_is_not_predicted() -> None:
    data = measured("infersim_dsa_prefill_logits_h800", "attention", "h800")
    with pytest.raises(ValueError, match="12 rows are calibrated on and predicted"):
        judge("indexer", "x", ("all", data), ("all", data), "attention")


@pytest.mark.parametrize("name", ["h800", "h20"])
def test_a_law_that_is_wrong_is_found_out(name: str) -> None:
    """The same table read as if of another GPU: times are predicted all the same, and the shares tell."""
    path = str(files("asapmodel.studies").joinpath("data/measured/infersim_dsa_prefill_logits_h800.csv"))
    data = read_tables([path], "attention", name)
    odd = np.arange(len(data)) % 2 == 1
    found = judge("indexer", "x", ("even", data.take(~odd)), ("odd", data.take(odd)), "attention")
    assert found.met() is (name == "h800")


def test_the_page() -> None:
    found = judgements()
    at = {f"{one.family}, {one.name}": one for one in found}
    for name in ("MLA core, H800, InferSim", "sparse core, H800, InferSim", "indexer, H800, InferSim"):
        assert at[name].met()
    modules = [one for one in found if one.name.startswith("DSA, H") and one.family == "attention module"]
    assert len(modules) == 4
    assert all(one.median < 0.015 for one in modules)
    dense = [at[f"dense GEMM, {name}, InferSim"] for name in ("H800", "H20")]
    assert all(one.met() for one in dense)
    assert dense[0].p95 < 0.5 * 0.579  # without tiles
    assert dense[1].median < 0.5 * 0.044
    grouped = [at[f"grouped GEMM, {name}"] for name in ("H800, InferSim", "H20, InferSim", "H20, across models")]
    assert all(one.met() for one in grouped)
    assert grouped[2].median < 0.2 * 0.078  # with stated rows and widths
    families = {one.family for one in found if one.met()}
    assert {"grouped GEMM", "dense GEMM", "MoE module", "NVLink", "RDMA"} <= families
    text = page(found)
    assert "{" not in text
    assert f"**{sum(one.met() for one in found)} of {len(found)} meet it.**" in text
    written = Path(__file__).resolve().parents[2] / "docs" / "evidence-kernels.md"
    assert written.read_text(encoding="utf-8") == text
