"""Arithmetic that publications print and tables repeat: docs/background/hardware.md, section 5."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

MEASURED = Path(__file__).resolve().parents[2] / "studies" / "data" / "measured"


def values(name: str) -> dict[str, float]:
    """The column `value` of a table by its `quantity`; the first where one is there twice."""
    rows = pd.read_csv(MEASURED / f"{name}.csv", comment="#").drop_duplicates("quantity")
    return {str(key): float(value) for key, value in zip(rows["quantity"], rows["value"], strict=True)}


def test_decode_of_xdeepserve() -> None:
    v = values("xdeepserve_decode")
    each = (v["iteration_time"] + v["scheduling_gap"]) / (1 + v["mtp_acceptance"])
    assert each == pytest.approx(v["tpot"])
    # 60 sequences a die, two dies a chip
    assert 2 * 60 * 1000 / v["tpot"] == v["throughput_per_chip"]
    assert 288 * 60 * 1000 / v["tpot"] == pytest.approx(v["throughput_total"], rel=2e-3)
    stages = v["attention_stage_per_layer"] * 2 * 61 + v["mtp_layer"] + v["scheduler_overhead"]
    assert stages + v["a2e"] + v["moe"] + v["e2a"] == pytest.approx(v["forward_total"], abs=0.15)
    shares = [one for name, one in v.items() if name.startswith("share_")]
    assert sum(shares) == pytest.approx(1.0)


def test_budget_of_step_3_on_l20() -> None:
    v = values("step3_l20_budget")
    bandwidth = 864e9
    assert 16.6e3 / 61 == pytest.approx(v["stage_budget"], rel=1e-3)
    moved = bandwidth * v["stage_budget"] * 1e-6
    assert moved / 1e6 == pytest.approx(v["attention_bytes_per_stage"], rel=1e-3)
    assert v["attention_bytes_per_stage"] - v["linear_weights_bytes"] == v["kv_bytes_left"]
    context = 1e6 * v["kv_bytes_left"] / v["kv_bytes_per_token_layer"]
    assert context == pytest.approx(v["max_total_context"], rel=1e-3)
    assert int(v["max_total_context"] // 8000) == v["max_batch_at_8k"]
    assert moved / 2e6 == pytest.approx(v["ffn_bytes_per_stage"], rel=5e-3)
    assert 61 * moved / 2e9 == pytest.approx(v["ffn_bytes_61_layers_one_gpu"], rel=0.01)
    assert 8 * v["ffn_bytes_61_layers_one_gpu"] == pytest.approx(v["ffn_bytes_server_8_gpus"])
    assert int(np.ceil(300 / v["ffn_bytes_server_8_gpus"])) == v["ffn_servers_for_300gb"]


def test_throughput_of_step_3_scales_with_attention_servers() -> None:
    """x servers of attention to two of experts, which stay full: ``TGS(x) = 4 TGS(2) / (x + 2)``."""
    rows = pd.read_csv(MEASURED / "step3_throughput.csv", comment="#").set_index("config")["tokens_per_s_per_gpu"]
    two = float(rows["FP8 attention 2A2F"])
    predicted = 4 * two / (4 + 2)
    assert predicted == pytest.approx(2693, abs=1)
    assert predicted == pytest.approx(float(rows["4A2F"]), rel=0.02)
    assert 4 * two / (16 + 2) == pytest.approx(898, abs=1)


def test_prefill_as_a_service() -> None:
    """Rates of stages and the share of long prompts give the printed throughput of each deployment."""
    rows = pd.read_csv(MEASURED / "prfaas_config.csv", comment="#").set_index("deployment")
    law = stats.lognorm(1.0, scale=np.exp(9.90))
    low, high = law.cdf(128), law.cdf(131072)
    both = rows.loc["PrfaaS-PD"]
    share = float((high - law.cdf(both["threshold_tokens"])) / (high - low))
    assert share == pytest.approx(0.496, abs=2e-3)
    stages = (both["theta_prfaas_rps"] / share, both["theta_pdp_rps"] / (1 - share), both["theta_pdd_rps"])
    assert min(stages) == pytest.approx(both["lambda_max_rps"], rel=0.01)
    for name, columns in (
        ("homogeneous PD", ("theta_pdp_rps", "theta_pdd_rps")),
        ("naive heterogeneous PD", ("theta_prfaas_rps", "theta_pdd_rps")),
    ):
        rates = rows.loc[name, [*columns, "lambda_max_rps"]].to_numpy(dtype=np.float64)
        assert rates[:-1].min() == rates[-1]


def test_cache_and_time_of_prefill_as_a_service_give_its_bandwidth() -> None:
    rows = pd.read_csv(MEASURED / "prfaas_prefill_1t.csv", comment="#")
    gbps = rows["kv_mib"] * 2**20 * 8 / rows["prefill_s"] / 1e9
    assert (gbps / rows["kv_gbps"] - 1).abs().max() < 0.01


def test_indexer_of_whole_modules_against_the_kernel_of_its_scores() -> None:
    """Time per query-key pair: 14 ps for the scores alone on H800, half as much again in modules on H200, with top-k.

    Beyond 2048 keys the sparse core is linear in the length, so that the curvature of the module is indexer and top-k.
    """
    kernel = pd.read_csv(MEASURED / "infersim_dsa_prefill_logits_h800.csv", comment="#").query("s_kv > 2 * s_q")
    pairs = kernel["s_q"] * (kernel["s_kv"] - kernel["s_q"] / 2)
    alone = float(np.median(1e-6 * kernel["latency_us"] / pairs))
    assert alone == pytest.approx(14.1e-12, rel=0.02)
    rows = pd.read_csv(MEASURED / "aiconfigurator_dsa_context_vllm.csv", comment="#")
    slopes = []
    for _, sweep in rows.query("system == 'h200_sxm' and seq_len >= 4096").groupby(["kv_dtype", "heads", "batch"]):
        if len(sweep) > 3:
            curve = np.polyfit(sweep["seq_len"], 1e-3 * sweep["latency_ms"] / sweep["batch"].iloc[0], 2)
            slopes.append(2 * curve[0])
    assert len(slopes) == 16
    assert float(np.median(slopes)) == pytest.approx(20.6e-12, rel=0.02)
    assert np.ptp(slopes) < 3e-12
