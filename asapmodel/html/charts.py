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

__all__ = ["cdf", "lost", "shares", "ttft_curves"]

_STEP = 32  # pixels a bar


def ttft_curves(rows: Rows, marks: Rows, colours: dict[str, str], objective: float, detail: float) -> Spec:
    """TTFT against rate; `marks` has `system`, `throughput` (or None), its `label` and `lift` (pixels), and `limit`."""
    # Curves of an overloaded finite run climb far beyond the objective: they would squeeze what matters.
    values = [row["ttft"] for row in rows]
    low, high = min([*values, objective]) * 0.8, max(min(max(values) * 1.15, 6 * objective), 1.5 * objective)
    last = max(row["rate"] for row in rows)
    names = list(dict.fromkeys(row["statistic"] for row in rows))
    dash = {"field": "statistic", "scale": {"domain": names, "range": [[1, 0], [5, 4]]}, "legend": None}
    y = quantity("ttft", "TTFT, seconds (log scale)") | log_scale(low, high)
    x = quantity("rate", "arrival rate, requests/s", scale={"domain": [0, last * 1.02], "nice": False},
                 axis={"tickCount": 8, "format": "~r"})  # fmt: skip
    hover = [{"field": key, "type": "nominal"} for key in ("system", "statistic")]
    hover += [quantity("rate", "requests/s"), quantity("ttft", "TTFT, s")]
    curve = {"x": x, "y": y, "color": colour_of(colours), "strokeDash": dash}
    faint = {"condition": {"test": "datum.beyond", "value": 0.3}, "value": 1}
    points = {"x": x, "y": y, "color": colour_of(colours), "tooltip": hover, "opacity": faint}
    mark_x = {"field": "throughput", "type": "quantitative"}
    number = {"type": "text", "fontWeight": 600, "fontSize": 12, "dy": {"expr": "datum.lift"}}
    halo = number | {"stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
    text = {"text": {"field": "label"}}
    diamond = {"type": "point", "shape": "diamond", "size": 130, "filled": True, "stroke": "white", "opacity": 1}
    layers: list[Spec] = [
        {"data": values_of([{"rate": detail}]), "mark": {"type": "rule", "color": "#d3d9df", "strokeWidth": 5},
         "encoding": {"x": x}},
        *objective_layers(objective, "y"),
        {"data": values_of(marks), "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.5, "clip": True},
         "encoding": {"x": {"field": "limit", "type": "quantitative"}, "color": colour_of(colours)}},
        {"mark": {"type": "line", "strokeWidth": 2, "clip": True},
         "encoding": curve | {"opacity": faint, "detail": {"field": "beyond"}}},
        {"transform": [{"filter": f"datum.point && datum.statistic == '{names[0]}'"}],
         "mark": {"type": "point", "filled": True, "size": 28, "clip": True, "opacity": 1}, "encoding": points},
        {"data": values_of([row for row in marks if row["throughput"] is not None]),
         "layer": [{"mark": diamond}, {"mark": halo, "encoding": text}, {"mark": number, "encoding": text}],
         "encoding": {"x": mark_x, "y": {"datum": objective}, "color": colour_of(colours)}},
    ]  # fmt: skip
    return chart("TTFT against arrival rate, per system", 360, data=values_of(rows), layer=layers)


def cdf(rows: Rows, colours: dict[str, str], objective: float) -> Spec:
    """Share of requests with at most a TTFT, per system."""
    values = [row["ttft"] for row in rows]
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
