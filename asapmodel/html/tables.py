"""Rows for the charts of a report: plain dicts of names and rounded numbers, few enough to embed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.html.data import Group
from asapmodel.html.system import System
from asapmodel.result import Assumption, Records

__all__ = [
    "PARTS",
    "Rows",
    "assumption_rows",
    "attainment",
    "bin_rows",
    "cdf_rows",
    "cost_rows",
    "curve_rows",
    "length_rows",
    "measured_rows",
    "number",
    "share_rows",
    "statistic_name",
    "statistics",
    "utilisation_rows",
]

Rows = list[dict[str, Any]]
Floats = NDArray[np.float64]

PARTS = ("own kernel", "waiting inside", "queueing", "outside")
"""What a TTFT is made of, from the bottom of a bar up; `outside` is the request latency the scenario adds."""

_QUANTILES = np.unique(
    np.concatenate([np.linspace(0.0, 0.9, 91), np.linspace(0.9, 0.99, 46), np.linspace(0.99, 0.999, 19), [1.0]])
)
_SMALLEST_BIN = 512  # tokens; as figure 15 of the ASAP paper


def number(value: float) -> float:
    """Five significant digits: more than a screen shows, and a third of the bytes."""
    return float(f"{value:.5g}")


def statistics(group: Group) -> tuple[str, str]:
    """What the curves show: the objective's own statistic, and another to see beside it."""
    return (group.slo.statistic, "p99" if group.slo.statistic == "mean" else "mean")


def curve_rows(group: Group) -> Rows:
    """TTFT per system and rate: the objective's statistic, and p99 beside a mean or the mean beside a quantile.

    `beyond` above the stability limit, at which both pieces of a curve get an end that is no `point`.
    """
    rows: Rows = []
    judged, other = statistics(group)
    for system in group.systems:
        rates, limit = np.array([one.rate_rps for one in system.curve]), system.stability_limit
        for statistic, values in (
            (judged, [one.judged_s for one in system.curve]),
            (other, [one.other_s for one in system.curve]),
        ):
            name = {"system": system.label, "statistic": statistic}
            for rate, value in zip(rates, values, strict=True):
                rows.append(name | {"rate": number(rate), "ttft": number(value), "beyond": bool(rate > limit)})
                rows[-1]["point"] = True
            if rates[0] < limit < rates[-1]:
                value = float(np.exp(np.interp(limit, rates, np.log(values))))  # straight on the log axis of the chart
                end = name | {"rate": number(limit), "ttft": number(value), "point": False}
                rows += [end | {"beyond": False}, end | {"beyond": True}]
    return rows


def measured_rows(group: Group) -> Rows:
    """Points of the graph engine with the ends of their intervals, per system."""
    rows: Rows = []
    for system in group.systems:
        for one in system.measured:
            low, high = one.interval_s or (one.judged_s, one.judged_s)
            row = {"rate": number(one.rate_rps), "ttft": number(one.judged_s), "low": number(low), "high": number(high)}
            rows.append({"system": system.label} | row)
    return rows


def cdf_rows(group: Group) -> Rows:
    """Quantiles of TTFT per system at the common rate; `share` in percent.

    A law's ends are of no use: it may begin at 0 and have no largest time. It is shown from 1 to 99.9 %.
    """
    rows: Rows = []
    for system in group.systems:
        shares = _QUANTILES if system.records is not None else _QUANTILES[1:-1]
        values = np.interp(shares, system.law.cdf, system.law.time)
        for share, value in zip(shares, values, strict=True):
            rows.append({"system": system.label, "share": number(100 * float(share)), "ttft": number(float(value))})
    return rows


def length_rows(group: Group) -> Rows:
    """Mean and p95 of TTFT by tokens to compute, per system; `share` of the requests in percent."""
    rows: Rows = []
    for system in group.systems:
        found = system.detail.by_length
        assert found is not None  # there is a law at the common rate
        for tokens, share, mean, p95 in zip(*found, strict=True):
            row = {"system": system.label, "tokens": number(float(tokens)), "share": number(100 * float(share))}
            rows.append(row | {"statistic": "mean", "ttft": number(float(mean))})
            rows.append(row | {"statistic": "p95", "ttft": number(float(p95))})
    return rows


def bin_rows(group: Group) -> dict[str, Rows]:
    """Per run system, the mean parts of TTFT by prompt length (up to 512, 1024, 2048 ... tokens) as stacked bars."""
    runs = [(system, system.records) for system in group.systems if system.records is not None]
    longest = max(int(records.prompt_tokens.max()) for _, records in runs)
    count = max(int(np.ceil(np.log2(longest / _SMALLEST_BIN))), 0) + 1
    edges = _SMALLEST_BIN * 2 ** np.arange(count)
    names = [f"{edge // 1024}k" if edge >= 1024 else str(edge) for edge in edges]
    return {system.label: _bins(system, records, edges, names) for system, records in runs}


def _bins(system: System, records: Records, edges: NDArray[np.int64], names: Sequence[str]) -> Rows:
    parts = _parts(system, records)
    place = np.searchsorted(edges, records.prompt_tokens)
    rows: Rows = []
    for k, name in enumerate(names):
        inside = place == k
        if inside.any():
            means = {part: float(values[inside].mean()) for part, values in parts.items()}
            rows += [{"bin": name, "requests": int(inside.sum())} | bar for bar in _stacked(means)]
    return rows


def _parts(system: System, records: Records) -> dict[str, Floats]:
    latency = system.costing.costs.request_latency
    parts = {
        PARTS[0]: records.kernel_s,
        PARTS[1]: np.maximum(records.end_s - records.start_s - records.kernel_s, 0.0),
        PARTS[2]: records.start_s - records.arrival_s,
    }
    return parts | ({PARTS[3]: np.full_like(records.kernel_s, latency)} if latency > 0 else {})


def _mean_parts(system: System) -> dict[str, float]:
    if system.records is not None:
        return {part: float(values.mean()) for part, values in _parts(system, system.records).items()}
    parts, latency = system.detail.parts, system.costing.costs.request_latency
    means = dict(zip(PARTS, (parts.kernel_s, max(parts.waiting_s, 0.0), parts.queueing_s), strict=False))
    return means | ({PARTS[3]: latency} if latency > 0 else {})


def _stacked(values: dict[str, float]) -> Rows:
    ends = np.cumsum(list(values.values()))
    return [
        {"part": part, "low": number(float(end) - value), "high": number(float(end)), "value": number(value)}
        for (part, value), end in zip(values.items(), ends, strict=True)
    ]


def share_rows(group: Group) -> Rows:
    """Shares of each system's mean TTFT in percent, as stacked bars."""
    rows: Rows = []
    for system in group.systems:
        means = _mean_parts(system)
        total = sum(means.values())
        shares = {part: 100 * value / total for part, value in means.items()}
        for bar, seconds in zip(_stacked(shares), means.values(), strict=True):
            rows.append({"system": system.label, "seconds": number(seconds)} | bar)
    return rows


def utilisation_rows(group: Group) -> dict[str, Rows]:
    """Per resource, percent busy per system and rate; resources in the order of a layer, blocked shares last."""
    order = ["attention", "attention_send", "attention_receive", "barrier", "transfers", "moe"]
    order += ["moe_send", "moe_receive", "engine"]
    found = {name for system in group.systems for one in system.results for name in one.utilisation}
    rest = sorted(found - set(order), key=lambda name: (name.endswith("_blocked"), name))
    rows: dict[str, Rows] = {name: [] for name in [*order, *rest] if name in found}
    for system in group.systems:
        own = {name for one in system.results for name in one.utilisation}
        for name in own:
            rows[name] += [
                {
                    "system": system.label,
                    "rate": number(one.rate_rps),
                    "busy": number(100 * one.utilisation.get(name, 0.0)),
                }
                for one in system.results
            ]
    return rows


def cost_rows(system: System) -> Rows:
    """Seconds of one layer for one prompt of `tokens` alone, by phase: attention, MoE, the four transfers together."""
    costs, scenario = system.costing.costs, system.scenario
    host = exposed_host_dispatch(scenario.layout, scenario.policy, costs)
    rows: Rows = []
    for tokens in np.unique(np.round(np.geomspace(64, max(scenario.workload.max_prompt_tokens, 128), 40))):
        n = float(tokens)
        attention, send, receive, moe, back, last = costs.phases(n, n * n, host)
        phases = {"attention": attention, "MoE": moe, "transfers": send + receive + back + last}
        present = {name: value for name, value in phases.items() if value > 0}  # the axis is logarithmic
        rows += [{"phase": name, "tokens": int(n), "seconds": number(value)} for name, value in present.items()]
    return rows


def assumption_rows(groups: Sequence[Group]) -> list[tuple[Assumption, list[str]]]:
    """Every assumption once, with the labels of the systems it holds for; same names stay together."""
    holders: dict[Assumption, list[str]] = {}
    for group in groups:
        for system in group.systems:
            for assumption in system.detail.assumptions:
                labels = holders.setdefault(assumption, [])
                labels += [] if system.label in labels else [system.label]
    first: dict[str, int] = {}
    for assumption in holders:
        first.setdefault(assumption.name, len(first))
    return sorted(holders.items(), key=lambda item: first[item[0].name])


def statistic_name(group: Group) -> str:
    """The objective's statistic in words."""
    return "mean TTFT" if group.slo.statistic == "mean" else f"{group.slo.statistic} of TTFT"


def attainment(system: System, group: Group) -> float:
    """Share of requests within the objective's time at the common rate."""
    return system.law.within(group.slo.ttft)
