"""Readers of public kernel tables: their own columns to those of our own form, see `asapmodel.calibration.tables`.

A table is known by its columns. Each reader returns a frame in the generic columns, of one model. What a column means
is said in the first line of the shipped copies (`asapmodel/studies/data/measured/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["READERS", "Reader", "reader_of"]

_SYSTEMS = {"h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200"}
_FP8, _BF16 = 7392.0, 14336.0  # bytes of 7168 values: one byte each with a scale for 128; two bytes each
_PADDED = 7680.0  # 7168 INT8 values and scales, padded


class Reader(NamedTuple):
    """Columns by which a table is known, the model it measures, and how it is read."""

    columns: frozenset[str]
    model: str
    read: Callable[[pd.DataFrame], pd.DataFrame]


def _frame(columns: Mapping[str, object], like: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(columns), index=like.index)


def _module(table: pd.DataFrame) -> pd.DataFrame:
    """Whole attention modules of aiconfigurator: one device's heads, equal prompts."""
    columns: dict[str, object] = {
        "quantity": "module",
        "length": table["seq_len"],
        "batch": table["batch"],
        "T": 128 // table["heads"],
        "seconds": 1e-3 * table["latency_ms"],
    }
    if "system" in table:
        columns["device"] = table["system"].map(lambda name: _SYSTEMS.get(name, name))
    return _frame(columns, table)


def _sparse_core(table: pd.DataFrame) -> pd.DataFrame:
    """InferSim's sparse core: random keys, so that every query has all 2048 of them wherever it stands."""
    before = (table["s_kv"] - table["s_q"]).clip(lower=2048)
    columns = {"quantity": "sparse_core", "length": before + table["s_q"], "prefix": before}
    return _frame({**columns, "seconds": 1e-6 * table["latency_us"]}, table)


def _indexer(table: pd.DataFrame) -> pd.DataFrame:
    columns = {"quantity": "indexer", "length": table["s_kv"], "prefix": table["s_kv"] - table["s_q"]}
    return _frame({**columns, "seconds": 1e-6 * table["latency_us"]}, table)


def _dense_core(table: pd.DataFrame) -> pd.DataFrame:
    columns = {"quantity": "dense_core", "length": table["seq_len"], "seconds": 1e-6 * table["latency_us"]}
    return _frame(columns, table)


def _grouped_core(table: pd.DataFrame) -> pd.DataFrame:
    """InferSim's grouped-query core: as many heads as a device has of Qwen3-235B-A22B, 64 heads 128 wide over T."""
    columns = {"quantity": "grouped_core", "architecture": "qwen3-235b-a22b", "length": table["seq_len"]}
    T = 64 * 128 / (table["heads"] * table["head_dim"])
    return _frame({**columns, "T": T, "seconds": 1e-6 * table["latency_us"]}, table)


def _moe_module(table: pd.DataFrame) -> pd.DataFrame:
    """Balanced steps of aiconfigurator; those with drawn power laws have no stated load of the busiest device."""
    even = table[table["routing"] == "uniform"]
    columns = {"quantity": "module", "tokens": even["tokens_global"], "E": even["ep"]}
    return _frame({**columns, "seconds": 1e-3 * even["latency_ms"]}, even)


def _gemm(groups: object, rows: object, width: object, depth: object, seconds: object) -> dict[str, object]:
    names = ("groups", "rows", "width", "depth", "seconds")
    return {"quantity": "grouped_gemm", **dict(zip(names, (groups, rows, width, depth, seconds), strict=True))}


def _deepgemm(table: pd.DataFrame) -> pd.DataFrame:
    groups = table.get("groups", 1)
    rows = table["m_per_group"] if "m_per_group" in table else table["m"]
    seconds = 2.0 * groups * rows * table["n"] * table["k"] / (1e12 * table["tflops"])
    return _frame(_gemm(groups, rows, table["n"], table["k"], seconds), table)


def _infersim_gemm(table: pd.DataFrame) -> pd.DataFrame:
    return _frame(_gemm(1, table["m"], table["n"], table["k"], 1e-6 * table["latency_us"]), table)


def _infersim_grouped(table: pd.DataFrame) -> pd.DataFrame:
    """Two products a row: up (and gate) and down."""
    import pandas as pd

    groups, rows, H, m = (
        table[name] for name in ("num_local_experts", "tokens_per_expert", "hidden_size", "intermediate_size")
    )
    up = _frame(_gemm(groups, rows, 2 * m, H, 1e-6 * table["up_proj_us"]), table)
    down = _frame(_gemm(groups, rows, H, m, 1e-6 * table["down_proj_us"]), table)
    return pd.concat([up, down])


def _both(table: pd.DataFrame, dispatch: object, combine: object, share: object, **more: object) -> pd.DataFrame:
    """A dispatch and a combine a row, of which the `share` of the bytes of 8 copies crosses the link."""
    import pandas as pd

    tokens = table["tokens_per_rank"]
    pairs = (("dispatch", dispatch, _FP8 * share), ("combine", combine, _BF16 * share))  # type: ignore[operator]
    shared = {"tokens": tokens, "T": 1, **more}
    parts = [{"quantity": op, "seconds": s, "bytes_per_copy": b, **shared} for op, s, b in pairs]
    return pd.concat([_frame(one, table) for one in parts])


def _deepep_sweep(table: pd.DataFrame) -> pd.DataFrame:
    """DeepEP on 1 to 4 nodes, 20 SMs; a call is transmission and notification. Those of 8 nodes are an artefact."""
    ours = table[(table["comm_sms"] == 20) & (table["nodes"] <= 4)]
    device = ours["nodes"].map(lambda count: "h100" if count == 1 else "h100-network")
    merged = ours["nodes"].map(_merged)
    sent, back = (1e-6 * (ours[f"{op}_transmit_us"] + ours[f"{op}_notify_us"]) for op in ("dispatch", "combine"))
    return _both(ours, sent, back, merged, nodes=ours["nodes"], device=device)


def _merged(nodes: int) -> float:
    """Share of a token's 8 copies that cross the link when those to one device, or one other node, are merged.

    Of 8 devices (one node), or of `nodes`, a token's experts hit another one with probability ``1 - (1 - 1/x)^8``.
    """
    places = 8 if nodes == 1 else nodes
    return (places - 1) * (1 - (1 - 1 / places) ** 8) / 8


def _deepep_node(table: pd.DataFrame) -> pd.DataFrame:
    ours = table[table["comm_sms"] == 20]
    device = ours["system"].map(lambda name: _SYSTEMS.get(name, name))
    return _both(ours, 1e-6 * ours["dispatch_us"], 1e-6 * ours["combine_us"], _merged(1), nodes=1, device=device)


def _low_latency(table: pd.DataFrame) -> pd.DataFrame:
    nodes = table["nodes"] if "nodes" in table else (table["ep"] // 8).clip(lower=1)
    return _both(table, 1e-6 * table["dispatch_us"], 1e-6 * table["combine_us"], 1.0, nodes=nodes)


def _latency_rows(table: pd.DataFrame) -> pd.DataFrame:
    """CloudMatrix's table: one operation a row; INT8 copies padded to 7.5 KiB."""
    sent = table["op"].map({"dispatch": _PADDED, "combine": _BF16})
    ranks = (table["ep"] // 8).clip(lower=1)
    columns = {"quantity": table["op"], "tokens": table["tokens_per_rank"], "bytes_per_copy": sent, "nodes": ranks}
    return _frame({**columns, "T": 1, "seconds": 1e-6 * table["latency_us"]}, table)


def _reader(columns: str, model: str, read: Callable[[pd.DataFrame], pd.DataFrame]) -> Reader:
    return Reader(frozenset(columns.split()), model, read)


READERS: Mapping[str, Reader] = {
    "aiconfigurator_dsa_context": _reader("system heads batch seq_len latency_ms", "attention", _module),
    "aiconfigurator_mla_context": _reader("kernel heads batch seq_len latency_ms", "attention", _module),
    "infersim_dsa_prefill_attn": _reader("dtype s_q s_kv latency_us", "attention", _sparse_core),
    "infersim_dsa_prefill_logits": _reader("s_q s_kv latency_us", "attention", _indexer),
    "infersim_mha_prefill": _reader("heads kv_heads head_dim seq_len latency_us", "attention", _grouped_core),
    "infersim_mla_prefill": _reader("dtype seq_len latency_us", "attention", _dense_core),
    "aiconfigurator_moe_context": _reader("ep tokens_global routing latency_ms", "moe", _moe_module),
    "deepgemm_grouped": _reader("layout groups m_per_group n k tflops", "moe", _deepgemm),
    "deepgemm_dense": _reader("m n k tflops", "moe", _deepgemm),
    "infersim_gemm": _reader("m k n latency_us mfu", "moe", _infersim_gemm),
    "infersim_grouped_gemm": _reader("num_local_experts tokens_per_expert up_proj_us", "moe", _infersim_grouped),
    "aiconfigurator_deepep_normal": _reader("nodes comm_sms dispatch_transmit_us", "link", _deepep_sweep),
    "aiconfigurator_deepep_node": _reader("system comm_sms dispatch_us combine_us", "link", _deepep_node),
    "cloudmatrix_dispatch_combine": _reader("op ep tokens_per_rank latency_us", "link", _latency_rows),
    "deepep_low_latency": _reader("tokens_per_rank dispatch_us combine_us", "link", _low_latency),
}
"""Public tables; the first whose columns are all there reads a file."""


def reader_of(columns: set[str]) -> Reader | None:
    """The reader of a table with these columns, or None."""
    return next((one for one in READERS.values() if one.columns <= columns), None)
