"""Figure of the study of imbalance: attention time lost at barriers against the spread of lengths and the groups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asapmodel.studies.dp_imbalance_runs import LOAD, Row
from asapmodel.studies.pages import save_figure

__all__ = ["draw_figure", "waste_figure"]

_COLOURS = {2: "#d6b4de", 4: "#ae7fbb", 8: "#7b3294", 16: "#3b0f4a"}
_AT_LOAD, _WAITING = f"at {LOAD:.0%} of the SLO throughput", "all prompts waiting"
_BATCHES = {0: "whole prompts, up to 8192 tokens", 8192: "chunks of 8192 tokens"}


def draw_figure(rows: Sequence[Row], path: Path) -> None:
    """Write the figure."""
    save_figure(waste_figure(rows), path)


def waste_figure(rows: Sequence[Row]) -> dict[str, Any]:
    """Four panels, whole prompts and chunks by load; the closed form is dashed where every group has work."""
    values = []
    for row in rows:
        place = {"sigma": row.sigma, "D": str(row.groups), "batches": _BATCHES[row.chunk]}
        values.append({**place, "place": _AT_LOAD, "waste": row.waste})
        values.append({**place, "place": _WAITING, "waste": row.waste_waiting, "form": row.predicted_waste})
    panels = [
        {"vconcat": [_panel(values, batches, place) for place in (_AT_LOAD, _WAITING)]} for batches in _BATCHES.values()
    ]
    title = "Attention time lost at barriers; lines and points: engines, dashed: closed form, c κ / (1 + c κ)"
    return {"title": {"text": title, "offset": 14}, "hconcat": panels, "spacing": 40}


def _panel(values: list[dict[str, Any]], batches: str, place: str) -> dict[str, Any]:
    some = [value for value in values if value["batches"] == batches and value["place"] == place]
    colour = {
        "field": "D",
        "type": "nominal",
        "title": "groups D",
        "sort": [str(groups) for groups in _COLOURS],
        "scale": {"domain": [str(groups) for groups in _COLOURS], "range": list(_COLOURS.values())},
    }
    x: dict[str, Any] = {
        "field": "sigma",
        "type": "quantitative",
        "title": "sigma of log-normal lengths, mean 5000 tokens",
    }
    x["axis"] = {"values": [0.5 * k for k in range(5)], "format": ".1f"}
    y = {
        "field": "waste",
        "type": "quantitative",
        "title": "lost share of attention time",
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%"},
    }
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "point": {"size": 36}, "strokeWidth": 1.5}, "encoding": {"x": x, "y": y}}
    ]
    if place == _WAITING:
        layers[0]["mark"] = {"type": "point", "filled": True, "size": 45, "opacity": 1}
        dashed = {"type": "line", "strokeDash": [5, 3], "strokeWidth": 1.5}
        layers.append({"mark": dashed, "encoding": {"x": x, "y": {**y, "field": "form"}}})
    return {
        "title": {"text": f"{batches}, {place}", "fontSize": 12, "fontWeight": "normal"},
        "data": {"values": some},
        "width": 330,
        "height": 210,
        "layer": layers,
        "encoding": {"color": colour},
    }
