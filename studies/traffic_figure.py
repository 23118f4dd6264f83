"""Figure of the traffic: gain of asynchrony by trace, by burstiness and by cached share."""

from collections.abc import Mapping
from typing import Any

from asapmodel.studies.traffic_runs import Row

__all__ = ["traffic_figure"]

_COLOURS = {"the paper's policy": "#a6dba0", "tuned": "#1b7837"}
_GAIN = {"field": "gain", "type": "quantitative", "title": "gain over chunks", "axis": {"format": "+.0%"}}


def traffic_figure(
    traces: Mapping[str, Row], bursts: Mapping[float, Row], cached: Mapping[float, Row]
) -> dict[str, Any]:
    """Three panels of the gain over chunked prefill."""
    names = {name: name.partition("_")[0] for name in traces}
    first = _panel("Lengths of public traces", {names[name]: row for name, row in traces.items()})
    first |= {"mark": "bar", "width": {"step": 26}}
    first["encoding"] |= {
        "x": {"field": "x", "type": "nominal", "title": None, "axis": {"labelAngle": 0}},
        "xOffset": {"field": "what", "sort": list(_COLOURS)},
    }
    panels = [first]
    lines = (("Bursts", bursts, "variation of gaps", ".1f"), ("Cached prefixes", cached, "share cached", ".0%"))
    for title, rows, name, shown in lines:
        panel = _panel(title, rows) | {"mark": {"type": "line", "point": True, "strokeWidth": 2}, "width": 220}
        panel["encoding"] |= {"x": {"field": "x", "type": "quantitative", "title": name, "axis": {"format": shown}}}
        panels.append(panel)
    return {"spacing": 40, "hconcat": panels, "resolve": {"scale": {"y": "shared"}}}


def _panel(title: str, rows: Mapping[Any, Row]) -> dict[str, Any]:
    values = []
    for x, row in rows.items():
        for what, gain in zip(_COLOURS, (row.gain, row.tuned_gain), strict=True):
            values.append({"x": x, "what": what, "gain": gain})
    scale = {"domain": list(_COLOURS), "range": list(_COLOURS.values())}
    colour = {"field": "what", "type": "nominal", "title": None, "scale": scale}
    return {"title": title, "height": 220, "data": {"values": values}, "encoding": {"y": _GAIN, "color": colour}}
