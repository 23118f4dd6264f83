"""Tables of the design space: splits, runs, bounds, sizes of groups, and how a row is called."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd

from asapmodel.result import Capacity
from asapmodel.studies.design_space_search import DEVICES, OPEN, Bounds, chosen, limits, needs_gb
from asapmodel.studies.pages import markdown_table

__all__ = [
    "bound_table",
    "name_of",
    "policy_of",
    "rps_of",
    "run_table",
    "size_table",
    "split_table",
    "sync_table",
]

Row: TypeAlias = "pd.Series[Any]"


def rps_of(row: Row) -> str:
    """SLO throughput."""
    return f"{row['slo_throughput_rps']:.1f}"


def name_of(row: Row) -> str:
    """Degrees."""
    return f"D{row['D']} T{row['T']} E{row['E']}"


def policy_of(row: Row) -> str:
    """Policy in words."""
    if row["system"] == "sync":
        return f"chunks of {row['chunk_tokens']:.0f}" if row["chunk_tokens"] else "whole prompts"
    limit = row["exclusive_tokens"]
    exclusive = "none exclusive" if limit >= 32768 else f"exclusive above {limit:.0f}"
    return f"{row['pairing']}, batches from {row['min_batch_tokens']:.0f}, {exclusive}"


def _seconds(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.2f}"


def split_table(best: pd.DataFrame, own: pd.DataFrame) -> str:
    """Every split with the paper's policy and its best one, with what binds it."""
    paper = own.set_index(["D", "T"])
    lines = []
    for _, row in best.iterrows():
        first, limit = paper.loc[(row["D"], row["T"])], limits(chosen(row))
        shown = [name_of(row), rps_of(first), _seconds(first["ttft_at_rate_s"]), rps_of(row), policy_of(row)]
        shown += [f"{limit.attention:.1f}", f"{limit.experts:.1f}", f"{needs_gb(chosen(row))['moe']:.0f}"]
        lines.append(shown)
    header = ["split", "paper's policy", "TTFT at 4/s", "best policy", "which", "bound: attention", "experts", "GB"]
    return markdown_table(header, lines, (1, 2, 3, 5, 6, 7))


def run_table(runs: Mapping[str, tuple[Row, Capacity]]) -> str:
    """Candidates by both engines."""
    lines = []
    for name, (row, one) in runs.items():
        low, high = one.interval_rps or (one.slo_throughput_rps,) * 2
        degrees = name_of(row) if row["system"] == "asap" else f"D{row['D']} T{row['T']}"
        what = f"{degrees}, {policy_of(row)}"
        lines.append([name, what, rps_of(row), f"{one.slo_throughput_rps:.1f}", f"{low:.1f} to {high:.1f}"])
    return markdown_table(["candidate", "which", "queueing engine", "runs", "95 % interval"], lines, (2, 3))


def bound_table(bounds: Bounds) -> str:
    """Bounds and throughput by D, T = 4."""
    lines = [
        [f"D{D} E{DEVICES - 4 * D}", *(f"{x:.1f}" for x in (one.attention, one.experts, one.in_flight, slo))]
        for D, (one, slo) in bounds.items()
    ]
    return markdown_table(["split", "attention", "experts", "in flight", "SLO throughput"], lines, range(1, 5))


def size_table(opened: pd.DataFrame, sharp: pd.DataFrame) -> str:
    """The best split of each T without a limit of memory, for two objectives."""
    lines = []
    for T in sorted(set(opened["T"])):
        row = opened[opened["T"] == T].iloc[0]
        sharper = sharp[sharp["T"] == T].iloc[0]
        star = limits(chosen(row, OPEN)).best_groups
        shown = [str(T), name_of(row), rps_of(row), policy_of(row), _seconds(row["ttft_at_rate_s"]), f"{star:.1f}"]
        lines.append([*shown, name_of(sharper), rps_of(sharper)])
    header = ["T", "best, 5 s", "requests/s", "policy", "TTFT, s", "D*", "best, 1 s", "requests/s"]
    return markdown_table(header, lines, (0, 2, 4, 5, 7))


def sync_table(sync: pd.DataFrame) -> str:
    """Synchronous splits with their best chunk."""
    lines = [
        [f"D{row['D']} T{row['T']}", policy_of(row), rps_of(row), str(row["bottleneck"])] for _, row in sync.iterrows()
    ]
    return markdown_table(["split", "best policy", "SLO throughput", "limited by"], lines, (2,))
