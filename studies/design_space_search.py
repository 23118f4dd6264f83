"""All splits of 32 devices and their policies: what is explored, and the bounds that say why one is better.

A split is D groups of T devices for attention, and the other ``E = 32 - D T`` for experts. Every split is taken with
the paper's policy and with a grid of others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from asapmodel.circuits.bounds import throughput_bounds
from asapmodel.closed_forms.advice import of_scenario
from asapmodel.costing import check_degrees, length_grid, memory_budget
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space
from asapmodel.scenario import Scenario
from asapmodel.studies.overlap import backlog
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.explore import explore
from asapmodel.verbs.prepared import prepare

__all__ = [
    "DEVICES",
    "OPEN",
    "Bounds",
    "Limits",
    "best_rows",
    "bounds_of",
    "chosen",
    "explored",
    "limits",
    "needs_gb",
    "own_policy",
    "settled",
    "space",
    "with_fit",
]

DEVICES = 32
OPEN = 1e13
"""Bytes of a device that are no limit."""

_TEXT = """
scenario = [{scenarios}]
objectives = ["slo_throughput"]
rate = {rate}
[vary]
cluster.memory_bytes = [{memory}]
slo.ttft = [{ttft}]
D = {{ from = 1, to = {devices}, step = 1 }}
T = [1, 2, 4, 8]
E = {{ from = 1, to = {last}, step = 1 }}
pairing = ["locked", "rolling"]
min_batch_tokens = [2048, 4096, 8192, 16384]
exclusive_tokens = [16384, 32768]
chunk_tokens = [0, 4096, 8192, 16384, 32768]
[constraints]
devices = {devices}
[confirm]
top = 0
"""
_RATE = 4.0
_OWN = {"pairing": "locked", "min_batch_tokens": 2048, "exclusive_tokens": 16384}
_KNOBS = ("pairing", "min_batch_tokens", "exclusive_tokens", "chunk_tokens")


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of the stability limit in requests/s by what binds, and the best D of the closed form."""

    attention: float
    experts: float
    in_flight: float
    best_groups: float


Bounds: TypeAlias = Mapping[int, tuple[Limits, float]]
"""By D: bounds, and the SLO throughput."""


def space(memory: float = 64e9, ttft: float = 5.0, devices: int = DEVICES, sync: bool = True) -> Space:
    """The space of all splits.

    Parameters
    ----------
    memory : float
        Bytes of a device.
    ttft : float
        Objective, seconds.
    devices : int
        Of an instance.
    sync : bool
        Whether the synchronous systems, whole prompts or chunks of any size, are in it.
    """
    names = ("paper-asap", "paper-chunked") if sync else ("paper-asap",)
    scenarios = ", ".join(f'"{name}"' for name in names)
    text = _TEXT.format(scenarios=scenarios, memory=memory, ttft=ttft, rate=_RATE, devices=devices, last=devices - 1)
    if not sync:  # a key that acts nowhere is no question
        text = "\n".join(line for line in text.splitlines() if not line.startswith("chunk_tokens"))
    return Space.parse(text)


def explored(memory: float = 64e9, ttft: float = 5.0, sync: bool = True) -> Exploration:
    """Evaluate the space in this process."""
    return explore(space(memory, ttft, sync=sync), workers=1)


def best_rows(table: pd.DataFrame, system: str = "asap") -> pd.DataFrame:
    """The best policy of every split, best split first."""
    some = table[(table["system"] == system) & table["slo_throughput_rps"].notna()]
    ordered = some.sort_values(["slo_throughput_rps", "point"], ascending=[False, True])
    return ordered.drop_duplicates(["D", "T", "E"]).reset_index(drop=True)


def own_policy(table: pd.DataFrame) -> pd.DataFrame:
    """Every split with the paper's policy, best split first."""
    mask = table["system"] == "asap"
    for key, value in _OWN.items():
        mask &= table[key] == value
    return best_rows(table[mask])


def chosen(row: "pd.Series[Any]", memory: float = 64e9) -> Scenario:
    """The scenario of a row."""
    changes = {key: _plain(row[key]) for key in _KNOBS if key in row and pd.notna(row[key])}
    degrees = {key: _plain(row[key]) for key in ("D", "T", "E")}
    if row["system"] == "sync":
        del degrees["E"]
    base = Scenario.load("paper-asap" if row["system"] == "asap" else "paper-chunked")
    return base.replace(**{"cluster.memory_bytes": memory}, **degrees, **changes)


def _plain(value: Any) -> str | int:
    return value if isinstance(value, str) else int(value)


def settled(rows: pd.DataFrame, memory: float = 64e9, ttft: float = 5.0) -> pd.DataFrame:
    """The best row of each T, or with the memory there is every row, evaluated in full; best first."""
    again = rows.copy()
    chosen_rows = rows.drop_duplicates("T").index if memory == OPEN else rows.index
    for k in chosen_rows:
        scenario = chosen(rows.loc[k], memory).replace(**{"slo.ttft": ttft})
        ready = prepare(scenario)
        again.loc[k, "slo_throughput_rps"] = capacity(scenario, prepared=ready).slo_throughput_rps
        point = ready.points([_RATE], None)[0]
        again.loc[k, "ttft_at_rate_s"] = float("nan") if point is None else point.ttft.mean
    return again.sort_values("slo_throughput_rps", ascending=False, kind="stable").reset_index(drop=True)


def limits(scenario: Scenario) -> Limits:
    """What bounds an asynchronous system, and how many groups the closed form would take of its devices."""
    ready = prepare(scenario, effort="quick")
    batches = backlog(ready)
    found = throughput_bounds(scenario.layout, scenario.policy, ready.costing.costs, batches)
    advice = of_scenario(ready.costing.costs, scenario.layout, scenario.policy, length_grid(scenario))
    rates = {name: found.prompts * rate for name, rate in found.upper.items()}
    return Limits(
        rates["attention stream of the group"],
        rates["MoE compute"],
        rates["batches in flight"],
        float(advice["best_groups"]),
    )


def needs_gb(scenario: Scenario, token_bytes: float = 2.0) -> dict[str, float]:
    """GB that a device of each role needs, and ``"buffers"``: those of dispatched tokens on an expert device.

    Parameters
    ----------
    scenario : Scenario
        Asynchronous.
    token_bytes : float
        A value in those buffers takes; the paper's Table 2 has 2.
    """
    check_degrees(scenario)
    budget = memory_budget(scenario)
    buffers = budget.items["moe"]["tokens"] / 1e9
    used = {role: value / 1e9 for role, value in budget.used.items()}
    smaller = buffers * token_bytes / 2
    return {"attention": used["attention"], "moe": used["moe"] - buffers + smaller, "buffers": smaller}


def bounds_of(opened: pd.DataFrame, T: int = 4) -> dict[int, tuple[Limits, float]]:
    """Bounds and SLO throughput of every D for one T, each with its best policy and without a limit of memory."""
    rows = opened[opened["T"] == T].sort_values("D")
    return {int(row["D"]): (limits(chosen(row, OPEN)), float(row["slo_throughput_rps"])) for _, row in rows.iterrows()}


def with_fit(opened: pd.DataFrame, fitting: pd.DataFrame) -> pd.DataFrame:
    """Mark in column `fits` the splits that are among those that fit."""
    keys = set(zip(fitting["D"], fitting["T"], fitting["E"], strict=True))
    fits = [key in keys for key in zip(opened["D"], opened["T"], opened["E"], strict=True)]
    return opened.assign(fits=fits)
