"""The figures of one part of a report: heading, a line of explanation, key and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from asapmodel.costs import LayerCosts
from asapmodel.html import charts, panels, tables, words
from asapmodel.html.data import Group
from asapmodel.html.fragments import key, paragraph, stroke, swatch, tag
from asapmodel.html.style import PART_COLOURS, PHASE_STYLES, system_colour
from asapmodel.html.system import System
from asapmodel.policy import Layout

__all__ = ["Figures"]

_RESOURCES = {
    "attention": "attention",
    "attention_send": "attention: sending",
    "attention_receive": "attention: receiving",
    "barrier": "waiting at barriers",
    "transfers": "transfers",
    "moe": "experts (MoE)",
    "moe_send": "MoE: sending",
    "moe_receive": "MoE: receiving",
    "engine": "engine inside a step",
}
_CLOSE = 0.07  # of the axis: numbers of two marks nearer than this would touch


class Figures:
    """Writes figures of `group`; their specifications go to `specs` under ids that begin with `prefix`."""

    def __init__(self, group: Group, prefix: str, specs: dict[str, dict[str, Any]]) -> None:
        self.group, self._prefix, self._specs = group, prefix, specs
        self.colours = {one.label: system_colour(one.look) for one in group.systems}
        self._at = f"at {group.detail_rate:g} requests/s"
        self._dots = group.engine == "graph"  # whose curves are of few rates, which are to be seen

    def all(self) -> str:
        """All figures, each in a block that a printer keeps on one page."""
        makers = (self._curves, self._distribution, self._by_length, self._where_time_goes)
        blocks = [make() for make in (*makers, self._utilisation, self._cost_laws)]
        return "".join(f'<section class="figure">\n{block}</section>\n' for block in blocks if block)

    def _place(self, name: str, spec: dict[str, Any]) -> str:
        place = f"{self._prefix}-{name}"
        self._specs[place] = spec
        return f'<figure><div class="chart" id="{place}"></div></figure>\n'

    def _panels(self, name: str, specs: Sequence[dict[str, Any]], kind: str = "panels") -> str:
        inside = "".join(self._place(f"{name}{k}", spec) for k, spec in enumerate(specs))
        return f'<div class="{kind}">{inside}</div>\n'

    def _systems_key(self) -> list[tuple[str, str]]:
        return [(swatch(colour), label) for label, colour in self.colours.items()]

    def _curves(self) -> str:
        """TTFT against rate."""
        group = self.group
        rows, (judged, other) = tables.curve_rows(group), tables.statistics(group)
        found = tables.measured_rows(group)
        axis = (group.rates[-1], group.detail_rate)
        spec = charts.ttft_curves(rows, self._marks(), found, self.colours, group.slo.ttft, axis, self._dots)
        entries = [
            *self._systems_key(),
            (stroke("#5f6b76"), judged),
            (stroke("#5f6b76", True), other),
        ]
        entries += [('<i class="diamond"></i>', "SLO throughput"), (stroke("#5f6b76", "dotted"), "stability limit")]
        entries += [('<i class="band"></i>', "rate of the detailed figures")]
        entries += [('<i class="whisker"></i>', f"graph engine, {judged} of runs with 95 % interval")] if found else []
        text = f"Each system is judged where its {tables.statistic_name(group)} crosses the objective. "
        if group.law == "stationary":
            text += "No curve passes its stability limit: beyond it queues grow without end."
            if found and group.workload.duration:
                text += f" Runs of {group.workload.duration:g} s end before the queue has become what it will be there."
        else:
            text += "Pale: above the stability limit, where TTFT grows as long as the run lasts."
        return (
            tag("h3", "TTFT against arrival rate") + paragraph(text, "note") + key(entries) + self._place("ttft", spec)
        )

    def _marks(self) -> list[dict[str, Any]]:
        """SLO throughputs and stability limits; numbers too close together alternate above and below the line."""
        rows: list[dict[str, Any]] = []
        for one in sorted(self.group.systems, key=lambda s: s.capacity.slo_throughput_rps if s.capacity else 0.0):
            throughput = one.capacity.slo_throughput_rps if one.capacity else None
            lift = -16
            before = [row for row in rows if row["throughput"] is not None]
            if before and throughput is not None:
                near = throughput - before[-1]["throughput"] < _CLOSE * self.group.rates[-1]
                lift = 18 if near and before[-1]["lift"] < 0 else -16
            label = words.rate_text(throughput) if throughput is not None else ""
            mark = {"throughput": throughput, "label": label, "lift": lift}
            rows.append({"system": one.label, "limit": one.stability_limit} | mark)
        return rows

    def _distribution(self) -> str:
        """Cumulative distribution of TTFT at the common rate."""
        spec = charts.cdf(tables.cdf_rows(self.group), self.colours, self.group.slo.ttft)
        text = tag("h3", f"Distribution of TTFT {self._at}") + paragraph(words.served_in_time(self.group), "note")
        return text + key(self._systems_key()) + self._place("cdf", spec)

    def _parts_key(self, found: set[str]) -> list[tuple[str, str]]:
        meaning = {
            "own kernel": "own kernel: computing and transfers of its own batches",
            "waiting inside": "waiting inside: barriers, other batches",
            "queueing": "queueing: arrival to start",
            "outside": "outside the instance",
        }
        return [(swatch(PART_COLOURS[part]), meaning[part]) for part in tables.PARTS if part in found]

    def _by_length(self) -> str:
        """TTFT by prompt length: parts, a panel a system, or mean and p95 of all systems in one chart."""
        head = tag("h3", f"TTFT by prompt length {self._at}")
        if self.group.engine == "queueing":
            found = tables.length_rows(self.group)
            if not found:
                return ""
            spec = charts.by_length(found, self.colours)
            styles = [(stroke("#5f6b76"), "mean"), (stroke("#5f6b76", True), "p95")]
            return head + key([*self._systems_key(), *styles]) + self._place("length", spec)
        rows = tables.bin_rows(self.group)
        every = [row for one in rows.values() for row in one]
        top = 1.08 * max(row["high"] for row in every)
        names = sorted({row["bin"] for row in every}, key=lambda name: float(name.replace("k", "e3")))
        text = "Mean over the requests of a bin; above each bar, how many they are."
        specs = [panels.bins(label, one, names, top) for label, one in rows.items()]
        parts = key(self._parts_key({row["part"] for row in every}))
        return head + paragraph(text, "note") + parts + self._panels("bins", specs)

    def _where_time_goes(self) -> str:
        """Shares of mean TTFT, and what barriers cost."""
        rows = tables.share_rows(self.group)
        totals = [{"system": one.label, "label": f"{one.law.mean:.2f} s"} for one in self.group.systems]
        head = tag("h3", f"Where the time goes {self._at}")
        head += key(self._parts_key({row["part"] for row in rows}))
        head += self._place("shares", charts.shares(rows, totals, list(self.colours)))
        barriers = [one for one in self.group.systems if one.scenario.layout.kind == "sync"]
        if not barriers:
            return head
        lost = [
            {"system": one.label, "lost": tables.number(100 * one.detail.barrier_waste),
             "label": f"{100 * one.detail.barrier_waste:.0f} %" if one in barriers else "no barriers"}
            for one in self.group.systems
        ]  # fmt: skip
        text = "In a synchronous system attention lasts as long as its slowest group; the others wait at the barrier."
        return head + paragraph(text, "note") + self._place("lost", charts.lost(lost, self.colours))

    def _utilisation(self) -> str:
        """Busy share of every resource against rate, a panel a resource."""
        rows = tables.utilisation_rows(self.group)
        blocked = {name: one for name, one in rows.items() if name.endswith("_blocked")}
        last = self.group.rates[-1]
        specs = [
            panels.utilisation(_RESOURCES.get(name, name.replace("_", " ")), one, self.colours, last, self._dots)
            for name, one in rows.items()
            if name not in blocked
        ]
        text = "Share of the time each resource is busy; groups and devices of a kind are averaged. In a synchronous "
        text += "system all devices do one thing after another; barriers, transfers and the engine exist only there."
        if blocked:
            most = max(row["busy"] for one in blocked.values() for row in one)
            text += f" Not shown: finished work that waits for a free receiver blocks a resource at most {most:.2g} %."
        head = tag("h3", "Utilisation against arrival rate") + paragraph(text, "note")
        return head + key(self._systems_key()) + self._panels("busy", specs, "panels small")

    def _cost_laws(self) -> str:
        """Seconds per layer against tokens, a panel a layout."""
        laws: dict[tuple[Layout, LayerCosts], list[System]] = {}
        for one in self.group.systems:
            layer = replace(one.costing.costs, step_overhead=0.0, request_latency=0.0)  # which are not of a layer
            laws.setdefault((one.scenario.layout, layer), []).append(one)
        rows = [tables.cost_rows(systems[0]) for systems in laws.values()]
        values = [row["seconds"] for one in rows for row in one if row["seconds"] > 0]
        low, high = 0.8 * min(values), 1.2 * max(values)
        specs = [
            panels.cost_laws(_layout(layout), words.listed([system.label for system in systems]), one, low, high)
            for (layout, _), systems, one in zip(laws, laws.values(), rows, strict=True)
        ]
        ends = [
            f"{costs.moe.inflection_tokens:,.0f} tokens ({words.listed([one.label for one in systems])})"
            for (_, costs), systems in laws.items()
            if 0 < costs.moe.inflection_tokens < float("inf")
        ]
        text = "One layer, one prompt alone. Transfers: sending and receiving, there and back."
        if ends:
            text += f" Experts have a floor, the time of reading their weights, up to {words.listed(ends)}."
        styles = [(stroke(colour, _border(dash)), phase) for phase, (colour, dash) in PHASE_STYLES.items()]
        return tag("h3", "Cost laws of a layer") + paragraph(text, "note") + key(styles) + self._panels("laws", specs)


def _layout(layout: Layout) -> str:
    return f"{layout.kind} D{layout.D} T{layout.T} E{layout.E}"


def _border(dash: Sequence[int]) -> str:
    return "solid" if not dash else "dashed" if dash[0] > 3 else "dotted"
