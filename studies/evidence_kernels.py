"""Are times of kernels predicted that were not calibrated on? Writes `docs/evidence-kernels.md`.

Run as ``python -m asapmodel.studies.evidence_kernels [--output DIR]``, some seconds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asapmodel.calibration.laws import name_of
from asapmodel.studies.evidence_drawn import DECODE, PREFILL, with_drawn_rows, with_padded_rows
from asapmodel.studies.evidence_families import (
    attention_module,
    cores,
    dense_gemm,
    grouped_gemm,
    moe_module,
)
from asapmodel.studies.evidence_judging import Judged, column_of, measured
from asapmodel.studies.evidence_links import links
from asapmodel.studies.pages import markdown_table, plain, save_figure
from asapmodel.studies.paired_runs import fill, output_folder

__all__ = ["judgements", "main", "page"]

_OVERLAP = name_of("q")
_HEAD = name_of("tau_q")
_SIZES = ("G", "N_x", "N_y", "N_z")


def judgements() -> list[Judged]:
    """All tests, in the order of the page."""
    families = (grouped_gemm, dense_gemm, cores, attention_module, moe_module, links)
    return [one for family in families for one in family()]


def main(arguments: list[str] | None = None) -> None:
    """Compute, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    found = judgements()
    save_figure(_figure(found), folder / "figures" / "evidence-kernels.svg")
    text = page(found)
    (folder / "evidence-kernels.md").write_text(text, encoding="utf-8")
    print(text)


def page(found: Sequence[Judged]) -> str:
    """The text of the page."""
    at = {f"{one.family}, {one.name}": one for one in found}
    missed = [one for one in found if not one.met()]
    table = "DSA, H100, FLASHMLA_SPARSE, bfloat16 cache"
    return fill(
        "evidence_kernels",
        results=_results(found),
        worst=_worst(found),
        met=str(len(found) - len(missed)),
        tests=str(len(found)),
        rows=f"{sum(one.errors.size for one in found):,}",
        missed="; ".join(f"{one.family}, {one.name}" for one in missed),
        **_drawn(),
        **_teams(at),
        **_overlaps(at),
        **_in_tiles(at),
        **_points(),
        **_constants(at[f"attention module, {table}"], at["indexer, H800, InferSim"]),
        head_ns=f"{1e9 * at['attention module, MLA, H100, fa3'].parameters()[_HEAD]:.0f}",
        expert_read=f"{128 * 3 * 7168 * 2048 / 3.35e12 * 1e3:.2f}",
    )


def _teams(at: dict[str, Judged]) -> dict[str, str]:
    keys = {
        "grouped_teams": "grouped GEMM, H800, across teams",
        "dense_teams": "dense GEMM, H800, across teams",
        "gpus": "attention module, DSA, across GPUs",
        "bus_dispatch": "Unified Bus, dispatch, 910C",
        "bus_combine": "Unified Bus, combine, 910C",
    }
    return {field: f"{round(at[key].bias, 2) + 0.0:+.0%}" for field, key in keys.items()}  # + 0.0: no -0


def _drawn() -> dict[str, str]:
    """How far the rows of InferSim's grouped products that were multiplied are from the stated ones."""
    found: dict[str, str] = {}
    for name, table, gpu, true in (
        ("decode", DECODE, "h800", with_drawn_rows),
        ("prefill", PREFILL, "h20", with_padded_rows),
    ):
        stated = measured(table, "moe", gpu)
        work, meant = (np.prod([x.values[y] for y in _SIZES], axis=0) for x in (true(stated), stated))
        found[f"{name}_products"] = str(len(stated))
        found[f"{name}_off"] = str(int((np.abs(work / meant - 1) > 0.05).sum()))
    return found


def _overlaps(at: dict[str, Judged]) -> dict[str, str]:
    tests = {
        "overlap_infersim": "H800, across teams",
        "overlap_deepgemm": "H800, next release",
        "overlap_h20": "H20, InferSim",
    }
    return {field: plain(at[f"grouped GEMM, {name}"].parameters()[_OVERLAP], 2) for field, name in tests.items()}


def _in_tiles(at: dict[str, Judged]) -> dict[str, str]:
    """Constants of dense products in tiles, and what another team's shallow and deep products are off by."""
    h800, h20 = at["dense GEMM, H800, across teams"], at["dense GEMM, H20, InferSim"]
    grouped = at["grouped GEMM, H800, across teams"], at["grouped GEMM, H20, InferSim"]
    found: dict[str, str] = {"clock": f"{64 * 1979e12 / (132 * 8192) / 1e9:.0f}"}  # 8192 FP8 operations, 64 bytes
    for name, one in (("h800", h800), ("h20", h20), *zip(("grouped_h800", "grouped_h20"), grouped, strict=True)):
        values = dict(zip(one.fit.names, one.fit.values.tolist(), strict=True))
        found |= {
            f"tile_share_{name}": f"{values['eta_x']:.2f}",
            f"tile_depth_{name}": f"{values['k_z']:.0f}",
            f"intake_{name}": f"{values['B_t'] / 1e9:.0f}",
        }
    shallow = h800.data.values["N_z"] <= 2048
    for name, rows in (("shallow", shallow), ("deep", ~shallow)):
        found[f"{name}_teams"] = f"{np.median(h800.errors[rows]):+.0%}"
    few = at["dense GEMM, H800, across teams, few rows"]
    return found | {"few_teams": f"{few.bias:+.0%}", "few_us": f"{1e6 * np.median(few.data.seconds * few.errors):.1f}"}


def _points() -> dict[str, str]:
    """Single measurements that the page speaks of."""
    core = measured("infersim_dsa_prefill_attn_h800", "attention", "h800").seconds
    dense = measured("deepgemm_dense", "moe", "h800").seconds.reshape(2, -1)  # two releases, the same rows
    module = measured("aiconfigurator_dsa_context_vllm", "attention")
    kernel = column_of(module, "aiconfigurator_dsa_context_vllm", "kernel")
    fast = (kernel == "FLASHINFER_MLA_SPARSE") & (module.values["T"] == 4) & (module.values["N_b"] == 8)
    old = measured("aiconfigurator_deepep_normal_h100", "link")
    new = measured("aiconfigurator_deepep_normal_single_node", "link")
    gpu = (new.values["B_m"] == old.values["B_m"][0]) & (new.quantity == "dispatch")
    heads = measured("aiconfigurator_mla_context_h100", "attention", "h100", "deepseek-v3")
    whole = (column_of(heads, "aiconfigurator_mla_context_h100", "kernel") == "fa3") & (heads.values["T"] == 1)
    many, few = (whole & (heads.values["s"] == s) & (heads.values["N_b"] * s == 4096) for s in (4, 128))
    experts = measured("aiconfigurator_moe_context_h100", "moe", "h100")
    bus = measured("cloudmatrix_dispatch_combine", "link", "ascend-910c-die").seconds
    ascend = measured("deepep_ascend_low_latency", "link", "ascend-910c-die").seconds
    half = len(ascend) // 2  # dispatches, then combines
    return {
        "growth": f"{core[-1] / core[0] - 1:.0%}",
        "release_moves": f"{np.abs(dense[0] / dense[1] - 1).max():.0%}",
        "tokens_65k": f"{1e3 * float(module.seconds[fast & (module.values['s'] == 8192)][0]):.1f}",
        "tokens_49k": f"{1e3 * float(module.seconds[fast & (module.values['s'] == 6144)][0]):.1f}",
        "short_ms": f"{1e3 * float(heads.seconds[many][0]):.1f}",
        "same_ms": f"{1e3 * float(heads.seconds[few][0]):.1f}",
        "dispatch_old": f"{1e6 * old.seconds[0]:.0f}",
        "dispatch_new": f"{1e6 * new.seconds[gpu][0]:.0f}",
        "expert_measured": f"{1e3 * experts.seconds[experts.values['E'] == 2].max():.2f}",
        "bus_eight_dispatch": f"{abs(ascend[0] / bus[0] - 1):.0%}",
        "bus_eight_combine": f"{abs(ascend[half] / bus[len(bus) // 2] - 1):.0%}",
    }


def _constants(module: Judged, kernel: Judged) -> dict[str, str]:
    values, indexer = module.parameters(), kernel.parameters()["indexer"]
    named = {name.partition(" ")[0]: value for name, value in values.items()}
    return {
        "floor": f"{1e3 * named['tau_f']:.2f}",
        "per_token": f"{1e6 * named['token_overhead']:.2f}",
        "keys": plain(named["k_0"], 2),
        "module_indexer": f"{named['indexer']:.2f}",
        "kernel_indexer": f"{indexer:.2f}",
        "module_core": f"{named['core']:.2f}",
    }


def _results(found: Sequence[Judged]) -> str:
    rows = [
        [
            one.family,
            one.name,
            f"{one.calibrated} ({one.rows_fitted})",
            f"{one.predicted} ({one.errors.size})",
            *(f"{100 * value:.1f}" for value in (one.median, one.p95)),
            f"{100 * one.bias:+.1f}",
            "met" if one.met() else "missed",
        ]
        for one in found
    ]
    header = [
        "family",
        "table",
        "calibrated on (rows)",
        "predicted (rows)",
        "median %",
        "p95 %",
        "bias %",
        "6 and 20 %",
    ]
    return markdown_table(header, rows, (4, 5, 6))


def _worst(found: Sequence[Judged]) -> str:
    rows = [
        [f"{one.family}, {one.name}", f"`{origin}`", f"{1e6 * seconds:.0f}", f"{100 * error:+.0f}"]
        for one in found
        if not one.met()
        for origin, seconds, error in one.worst()
    ]
    return markdown_table(["test", "row of the table", "measured, us", "error %"], rows, (2, 3))


def _figure(found: Sequence[Judged]) -> dict[str, Any]:
    """Errors of all predicted rows, a strip a family."""
    values = [
        {"family": one.family, "error": float(np.clip(error, -0.5, 0.5))} for one in found for error in one.errors
    ]
    order = list(dict.fromkeys(one.family for one in found))
    return {
        "title": "Predicted over measured - 1, rows that were not calibrated on",
        "width": 560,
        "height": 300,
        "data": {"values": values},
        "layer": [
            {"mark": {"type": "rule", "color": "#999"}, "encoding": {"x": {"datum": 0}}},
            {
                "mark": {"type": "tick", "opacity": 0.35, "thickness": 1.5, "color": "#2166ac"},
                "encoding": {
                    "x": {
                        **{"field": "error", "type": "quantitative", "title": "error (beyond 50 % drawn at the edge)"},
                        "axis": {"format": "+.0%"},
                    },
                    "y": {"field": "family", "type": "nominal", "sort": order, "title": None},
                },
            },
        ],
    }


if __name__ == "__main__":
    main()
