"""Figures of the paper's evidence, in the style of the paper's Figures 3, 5 and 12 to 18, stated numbers drawn in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from asapmodel.models import attention, link, moe
from asapmodel.models.evaluation import evaluate as number
from asapmodel.models.parameters import Split
from asapmodel.studies.evidence_paper_rows import FITTED
from asapmodel.studies.evidence_paper_systems import Systems
from asapmodel.studies.pages import save_figure

__all__ = ["NAMES", "STATED_SLO", "draw_laws", "draw_runs"]

Range = tuple[float, float, float]

NAMES = {
    "default": "Default",
    "chunked": "ChunkedPrefill",
    "asap": "ASAP",
    "no-super": "ASAP, no super kernel",
    "no-overlap": "ASAP, no overlap",
    "no-dual": "ASAP, no dual batch",
}
STATED_SLO = {"default": 6.8, "chunked": 10.5, "asap": 20.0, "no-super": 18.87, "no-overlap": 17.8, "no-dual": 17.5}
_STATED_LOW = {"default": 0.533, "chunked": 0.388, "asap": 0.350}
_STATED_RATIOS = (("default", 4.0, 0.451), ("chunked", 4.0, 0.582), ("chunked", 8.0, 0.317))
_COLOURS = dict(zip(NAMES.values(), ["#b35806", "#998ec3", "#1b7837", "#5aae61", "#2166ac", "#67a9cf"], strict=True))
_PARTS = {"queueing": "#d95f02", "kernel": "#4d9221", "waiting inside": "#80b1d3"}
EDGES = np.array([0, 512, 1024, 2048, 4096, 8192, 16384, 32769], dtype=np.float64)
_LABELS = ["<0.5k", "0.5-1k", "1-2k", "2-4k", "4-8k", "8-16k", "16-32k"]
_STATED = {"type": "point", "shape": "diamond", "filled": True, "size": 90, "stroke": "black", "strokeWidth": 1}

Spec = dict[str, Any]


def _axis(field: str, title: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _colour(names: Sequence[str], colours: Sequence[str], field: str = "system") -> Spec:
    legend = {"orient": "bottom", "columns": 3, "symbolType": "stroke"}
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(names), "range": list(colours)},
        "legend": legend,
    }


def _panel(title: str, layers: list[Spec], height: int = 190, width: int = 320) -> Spec:
    return {"title": title, "width": width, "height": height, "layer": layers}


def draw_laws(systems: Systems, path: Path) -> None:
    """Kernels and transfers: the paper's Figures 3, 5 and 14."""
    panels = [_latency(systems), _batches(systems), _transfers(systems)]
    save_figure({"hconcat": panels, "spacing": 40, "resolve": {"scale": {"color": "independent"}}}, path)


def _latency(systems: Systems) -> Spec:
    hardware = systems.laws.parts
    tokens = np.geomspace(256, 32768, 40)
    rows = []
    for n in tokens:
        time = attention.batch_time(*hardware, Split(8, 4, 32), [float(n)])
        rows.append({"tokens": float(n), "ms": 1e3 * time, "law": "attention, one prompt"})
        experts = float(number(moe.time_expression(), *hardware, Split(8, 4, 32), n=float(n), chi=1))
        rows.append({"tokens": float(n), "ms": 1e3 * experts, "law": "experts, balanced"})
    x = _axis("tokens", "tokens", scale={"type": "log", "base": 2})
    y = _axis("ms", "ms a layer", scale={"type": "log"})
    colour = _colour(["attention, one prompt", "experts, balanced"], ["#b2182b", "#2166ac"], "law")
    line = {"data": {"values": rows}, "mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour}}
    marks = [
        {"tokens": 2048, "text": "plateau ends, ~2k", "low": 3.0},
        {"tokens": 16384, "text": "< 15 %", "low": 0.11},
    ]
    rule: Spec = {
        "data": {"values": marks},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": "#555"},
        "encoding": {"x": x},
    }
    text: Spec = {
        "data": {"values": marks},
        "mark": {"type": "text", "angle": 270, "dy": -7, "align": "left", "fontSize": 10},
        "encoding": {"x": x, "y": {"field": "low", "type": "quantitative"}, "text": {"field": "text"}},
    }
    return _panel("A layer alone (Figure 3); dashed: stated", [line, rule, text], width=260)


def _batches(systems: Systems) -> Spec:
    counts = [1, 2, 4, 8, 16, 32]
    hardware = systems.laws.parts
    times = [attention.batch_time(*hardware, Split(8, 4, 32), [32768.0 / k] * k) for k in counts]
    rows = [{"count": str(k), "ratio": time / times[-1]} for k, time in zip(counts, times, strict=True)]
    x: Spec = {"field": "count", "type": "ordinal", "sort": None, "title": "prompts that share 32k tokens"}
    x["axis"] = {"labelAngle": 0}
    y = _axis("ratio", "attention time over 32 x 1k")
    bars: Spec = {"data": {"values": rows}, "mark": {"type": "bar", "color": "#b2182b"}, "encoding": {"x": x, "y": y}}
    stated: Spec = {
        "data": {"values": [{"count": "1", "ratio": 4.2}]},
        "mark": {**_STATED, "color": "#fdb863"},
        "encoding": {"x": x, "y": y},
    }
    return _panel("Attention of 32k tokens (Figure 5); diamond: stated", [bars, stated], width=260)


def _transfers(systems: Systems) -> Spec:
    hardware, split = systems.laws.parts, Split(4, 4, 16)
    rows, stated = [], []
    names = ("synchronous P2P", "async-dispatch")
    for n in (512, 1024, 2048, 4096, 8192):
        fast = 1e3 * float(link.async_dispatch_time(*hardware, split, float(n)))
        slow = 1e3 * float(link.p2p_time(*hardware, split, float(n)))
        rows += [{"tokens": n, "ms": time, "law": name} for name, time in zip(names, (slow, fast), strict=True)]
        ratio = {1024: 4.0, 8192: 5.8}.get(n)
        if ratio is not None:
            stated.append({"tokens": n, "ms": ratio * fast, "law": names[0]})
    x, y = _axis("tokens", "tokens"), _axis("ms", "ms")
    colour = _colour(names, ["#b35806", "#1b7837"], "law")
    line: Spec = {"data": {"values": rows}, "mark": {"type": "line", "point": True}}
    point: Spec = {"data": {"values": stated}, "mark": _STATED}
    for layer in (line, point):
        layer["encoding"] = {"x": x, "y": y, "color": colour}
    return _panel("Dispatch (section 5.4); diamonds: stated ratios", [line, point], width=260)


def draw_runs(systems: Systems, slo: Mapping[str, float], ranges: Mapping[str, Range], path: Path) -> None:
    """End to end: the paper's Figures 12 (TTFT), 13 (throughput), 15 (decomposition), 16 to 18 (ablations).

    `ranges` are predicted throughputs: 5 % point, average over what the paper leaves open, 95 % point.
    """
    few = Systems(systems.values, systems.assumption, replications=2)
    rows = (
        [_ttft(few, slo, list(NAMES)[:3]), _throughput(slo, ranges)],
        [_decomposition(systems), _ttft(few, slo, list(NAMES)[2:])],
    )
    apart = {"scale": {"color": "independent"}}
    pairs = [{"hconcat": row, "spacing": 40, "resolve": apart} for row in rows]
    save_figure({"vconcat": pairs, "spacing": 30, "resolve": apart}, path)


def _ttft(systems: Systems, slo: Mapping[str, float], names: list[str]) -> Spec:
    lines: list[Spec] = []
    stated: list[Spec] = []
    low = 0.3 if len(names) == 3 else 8.0
    for name in names:
        limit = slo[name]
        for rate in [*np.linspace(max(low, 0.5), 0.9 * limit, 8), *np.linspace(0.93 * limit, 1.06 * limit, 5)]:
            lines.append({"system": NAMES[name], "rate": float(rate), "ttft": systems.ttft(name, float(rate))})
        stated.append({"system": NAMES[name], "rate": STATED_SLO[name], "ttft": 5.0})
        if name in _STATED_LOW and low < 1.0:
            stated.append({"system": NAMES[name], "rate": 1.0, "ttft": _STATED_LOW[name]})
    implied = [
        {"system": NAMES[name], "rate": rate, "ttft": systems.ttft("asap", rate) / ratio}
        for name, rate, ratio in (_STATED_RATIOS if low < 1.0 else ())
    ]
    top = 10.0
    x = _axis("rate", "requests/s", scale={"zero": False, "nice": True})
    y = _axis("ttft", "mean TTFT, s", scale={"type": "log", "domain": [0.25, top]})
    colour = _colour([NAMES[name] for name in names], [_COLOURS[NAMES[name]] for name in names])
    line: Spec = {
        "data": {"values": [row for row in lines if row["ttft"] <= top]},
        "mark": {"type": "line", "strokeWidth": 2},
    }
    point: Spec = {"data": {"values": stated}, "mark": _STATED}
    hollow: Spec = {"data": {"values": implied}, "mark": {"type": "point", "shape": "diamond", "size": 90}}
    for layer in (line, point, hollow):
        layer["encoding"] = {"x": x, "y": y, "color": colour}
    rule: Spec = {
        "data": {"values": [{"ttft": 5.0}]},
        "mark": {"type": "rule", "strokeDash": [5, 4], "color": "#555"},
        "encoding": {"y": y},
    }
    title = "Mean TTFT (section 5.2)" if low < 1.0 else "Ablations (section 5.5)"
    return _panel(f"{title}; diamonds: stated", [line, rule, point, hollow])


def _throughput(slo: Mapping[str, float], ranges: Mapping[str, Range]) -> Spec:
    labels = {name: f"{label} (fitted)" if f"rps-{name}" in FITTED else label for name, label in NAMES.items()}
    both = {"paper": STATED_SLO, "model": slo}
    rows = [{"system": labels[name], "source": who, "rps": own[name]} for name in labels for who, own in both.items()]
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "system", "type": "nominal", "sort": list(labels.values()), "title": None},
            "yOffset": {"field": "source", "sort": ["paper", "model"]},
            "x": _axis("rps", "requests/s"),
            "color": {
                **_colour(["paper", "model"], ["#bdbdbd", "#1b7837"], "source"),
                "legend": {"orient": "bottom", "columns": 3},
            },
        },
    }
    # on the model's bar: the average over what the paper leaves open
    place = {"y": bars["encoding"]["y"], "yOffset": bars["encoding"]["yOffset"]}
    means = [
        {"system": labels[name], "source": "model", "low": low, "high": high, "rps": middle}
        for name, (low, middle, high) in ranges.items()
    ]
    line: Spec = {
        "data": {"values": means},
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {**place, "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
    }
    dot: Spec = {
        "data": {"values": means},
        "mark": {"type": "point", "filled": True, "color": "black", "size": 30},
        "encoding": {**place, "x": {"field": "rps", "type": "quantitative"}},
    }
    return _panel("SLO throughput (sections 5.2, 5.5)", [bars, line, dot])


def _decomposition(systems: Systems) -> Spec:
    rows = []
    for name in ("default", "asap"):
        parts = systems.parts(name, 4.0, EDGES)
        for row, part, place in zip(parts, _PARTS, (1, 0, 2), strict=True):  # kernel lowest
            rows += [
                {"tokens": label, "system": NAMES[name], "part": part, "place": place, "seconds": float(value)}
                for label, value in zip(_LABELS, row, strict=True)
            ]
    x: Spec = {"field": "tokens", "type": "ordinal", "sort": _LABELS, "axis": {"labelAngle": 0}}
    x["title"] = "prompt, tokens; left Default, right ASAP"
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": x,
            "xOffset": {"field": "system", "sort": ["Default", "ASAP"]},
            "y": _axis("seconds", "s at 4 requests/s"),
            "color": {
                **_colour(list(_PARTS), list(_PARTS.values()), "part"),
                "legend": {"orient": "bottom", "columns": 3},
            },
            "order": {"field": "place"},
        },
    }
    words = ["Stated for Default below 0.5k:", "55 % waiting inside, 30 % queueing, 15 % kernel"]
    note: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "text", "text": words, "align": "left", "baseline": "top", "fontSize": 11},
        "encoding": {"x": {"value": 8}, "y": {"value": 6}},
    }
    return _panel("TTFT by length (Figure 15)", [bars, note])
