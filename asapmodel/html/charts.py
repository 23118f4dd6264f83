"""Vega-Lite specifications, as plain dicts, of the charts that show all systems at once.

Legends are HTML (see `asapmodel.html.page`), one for all panels of a figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from asapmodel.html.style import (
    INK,
    PART_COLOURS,
    Spec,
    chart,
    colour_of,
    log_scale,
    objective_layers,
    quantity,
    values_of,
)
from asapmodel.html.tables import Rows

__all__ = ["by_length", "cdf", "lost", "shares", "ttft_curves"]

_STEP = 32  # pixels a bar


def ttft_curves(
    rows: Rows,
    marks: Rows,
    measured: Rows,
    colours: dict[str, str],
    objective: float,
    axis: tuple[float, float],
    dots: bool,
) -> Spec:
    """TTFT against rate.

    `marks` has `system`, `throughput` (or None), its `label` and `lift` (pixels), and `limit`; `measured` points of
    the graph engine with `low` and `high`; `axis` the last rate and that of the detailed figures. With `dots` the
    evaluated rates are marked.
    """
    # Curves climb far beyond the objective near and above their limit: they would squeeze what matters.
    last, detail = axis
    values = [row["ttft"] for row in [*rows, *measured] if row["rate"] <= last]
    low, high = min([*values, objective]) * 0.8, max(min(max(values) * 1.15, 6 * objective), 1.5 * objective)
    names = list(dict.fromkeys(row["statistic"] for row in rows))
    dash = {"field": "statistic", "scale": {"domain": names, "range": [[1, 0], [5, 4]]}, "legend": None}
    y = quantity("ttft", "TTFT, seconds (log scale)") | log_scale(low, high)
    x = quantity("rate", "arrival rate, requests/s", scale={"domain": [0, last * 1.02], "nice": False},
                 axis={"tickCount": 8, "format": "~r"})  # fmt: skip
    hover = [{"field": key, "type": "nominal"} for key in ("system", "statistic")]
    hover += [quantity("rate", "requests/s"), quantity("ttft", "TTFT, s")]
    curve = {"x": x, "y": y, "color": colour_of(colours), "strokeDash": dash}
    faint = {"condition": {"test": "datum.beyond", "value": 0.3}, "value": 1}
    points = {"x": x, "y": y, "color": colour_of(colours), "tooltip": hover}
    points |= {"opacity": faint if dots else {"value": 0}}  # unseen, for the pointer to find
    layers: list[Spec] = [
        {"data": values_of([{"rate": detail}]), "mark": {"type": "rule", "color": "#d3d9df", "strokeWidth": 5},
         "encoding": {"x": x}},
        *objective_layers(objective, "y"),
        {"data": values_of(marks), "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.5, "clip": True},
         "encoding": {"x": {"field": "limit", "type": "quantitative"}, "color": colour_of(colours)}},
        {"mark": {"type": "line", "strokeWidth": 2, "clip": True},
         "encoding": curve | {"opacity": faint, "detail": {"field": "beyond"}}},
        {"transform": [{"filter": f"datum.point && datum.statistic == '{names[0]}'"}],
         "mark": {"type": "point", "filled": True, "size": 28 if dots else 60, "clip": True}, "encoding": points},
        *_whiskers(measured, x, y, colours),
        _throughputs(marks, objective, colours),
    ]  # fmt: skip
    return chart("TTFT against arrival rate, per system", 360, data=values_of(rows), layer=layers)


def _whiskers(rows: Rows, x: Spec, y: Spec, colours: dict[str, str]) -> list[Spec]:
    """Points of the graph engine with bars over their intervals."""
    if not rows:
        return []
    hover = [{"field": "system"}, quantity("rate", "requests/s"), quantity("ttft", "graph engine, s")]
    hover += [quantity("low", "from, s"), quantity("high", "to, s")]
    place = {"x": x, "color": colour_of(colours)}
    bar = {"mark": {"type": "rule", "strokeWidth": 1.5, "clip": True},
           "encoding": place | {"y": y | {"field": "low"}, "y2": {"field": "high"}}}  # fmt: skip
    dot = {"mark": {"type": "point", "filled": False, "fill": "white", "size": 42, "clip": True},
           "encoding": place | {"y": y, "tooltip": hover}}  # fmt: skip
    return [{"data": values_of(rows), "layer": [bar, dot]}]


def _throughputs(marks: Rows, objective: float, colours: dict[str, str]) -> Spec:
    """Diamonds at the SLO throughputs, with their numbers."""
    number = {"type": "text", "fontWeight": 600, "fontSize": 12, "dy": {"expr": "datum.lift"}}
    halo = number | {"stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
    text = {"text": {"field": "label"}}
    diamond = {"type": "point", "shape": "diamond", "size": 130, "filled": True, "stroke": "white", "opacity": 1}
    x = {"field": "throughput", "type": "quantitative"}
    return {
        "data": values_of([row for row in marks if row["throughput"] is not None]),
        "layer": [{"mark": diamond}, {"mark": halo, "encoding": text}, {"mark": number, "encoding": text}],
        "encoding": {"x": x, "y": {"datum": objective}, "color": colour_of(colours)},
    }


def by_length(rows: Rows, colours: dict[str, str]) -> Spec:
    """Mean and p95 of TTFT against tokens to compute, per system."""
    tokens, values = [row["tokens"] for row in rows], [row["ttft"] for row in rows]
    low, high = 0.9 * min(tokens), 1.1 * max(tokens)
    powers = [2**k for k in range(40) if low <= 2**k <= high] or sorted(set(tokens))
    kilo = "datum.value >= 1024 ? datum.value / 1024 + 'k' : datum.label"
    x = quantity("tokens", "tokens to compute (log scale)",
                 scale={"type": "log", "domain": [low, high], "nice": False},
                 axis={"values": powers, "labelExpr": kilo})  # fmt: skip
    y = quantity("ttft", "TTFT, seconds (log scale)") | log_scale(0.9 * min(values), 1.1 * max(values))
    dash = {"field": "statistic", "scale": {"domain": ["mean", "p95"], "range": [[1, 0], [5, 4]]}, "legend": None}
    hover = [{"field": "system"}, {"field": "statistic"}, quantity("tokens", "tokens, mean of the class")]
    hover += [quantity("share", "% of requests"), quantity("ttft", "TTFT, s")]
    encoding = {"x": x, "y": y, "color": colour_of(colours), "strokeDash": dash, "tooltip": hover}
    mark = {"type": "line", "strokeWidth": 2, "point": {"size": 26}}
    return chart("TTFT by prompt length, per system", 260, data=values_of(rows), mark=mark, encoding=encoding)


def cdf(rows: Rows, colours: dict[str, str], objective: float) -> Spec:
    """Share of requests with at most a TTFT, per system."""
    values = [row["ttft"] for row in rows if row["ttft"] > 0]
    x = quantity("ttft", "TTFT, seconds (log scale)") | log_scale(min(values) * 0.9, max([*values, objective]) * 1.1)
    y = quantity(
        "share", "requests served within, %", scale={"domain": [0, 100]}, axis={"values": [0, 25, 50, 75, 90, 100]}
    )
    hover = [{"field": "system"}, quantity("share", "% of requests"), quantity("ttft", "TTFT, s")]
    line = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour_of(colours), "tooltip": hover},
    }
    return chart(
        "Distribution of TTFT, per system", 280, data=values_of(rows), layer=[*objective_layers(objective, "x"), line]
    )


def shares(rows: Rows, totals: Rows, order: Sequence[str]) -> Spec:
    """Shares of mean TTFT, one bar a system, with percentages where they fit; `totals` has each `system`'s `label`."""
    y = {"field": "system", "type": "nominal", "sort": list(order), "title": None, "axis": {"labelFontSize": 12}}
    x = quantity("low", "share of mean TTFT, %", scale={"domain": [0, 100]}, axis={"values": [0, 25, 50, 75, 100]})
    hover = [{"field": "system"}, {"field": "part"}, quantity("value", "%"), quantity("seconds", "seconds")]
    labels = {
        "transform": [{"filter": "datum.value >= 5"}, {"calculate": "(datum.low + datum.high) / 2", "as": "middle"}],
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {
            "x": quantity("middle", ""),
            "text": {"field": "value", "format": ".0f"},
            "color": {"condition": {"test": "datum.part == 'own kernel'", "value": "white"}, "value": INK},
        },
    }
    bars = {
        "mark": {"type": "bar", "height": {"band": 0.7}},
        "encoding": {"x": x, "x2": {"field": "high"}, "color": colour_of(PART_COLOURS, "part"), "tooltip": hover},
    }
    total = {
        "data": values_of(totals),
        "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 12, "color": INK},
        "encoding": {"x": {"datum": 100}, "text": {"field": "label"}},
    }
    layers = [bars, labels, total]
    height, room = _STEP * len(order), {"left": 2, "right": 16, "top": 4, "bottom": 2}
    return chart("Shares of mean TTFT", height, data=values_of(rows), encoding={"y": y}, layer=layers, padding=room)


def lost(rows: Rows, colours: dict[str, str]) -> Spec:
    """Percent of the attention groups' attention time that is lost at barriers; `lost` of each `system`."""
    y = {"field": "system", "type": "nominal", "sort": list(colours), "title": None, "axis": {"labelFontSize": 12}}
    x = quantity(
        "lost",
        "attention time lost at barriers, %",
        scale={"domain": [0, 100]},
        axis={"values": [0, 25, 50, 75, 100]},
    )
    bars = {"mark": {"type": "bar", "height": {"band": 0.55}}, "encoding": {"x": x, "color": colour_of(colours)}}
    text = {"mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "color": INK},
            "encoding": {"x": x, "text": {"field": "label"}}}  # fmt: skip
    height, room = _STEP * len(colours), {"left": 2, "right": 56, "top": 4, "bottom": 2}
    layers = [bars, text]
    return chart("Time lost at barriers", height, data=values_of(rows), encoding={"y": y}, layer=layers, padding=room)
