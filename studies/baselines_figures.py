"""Figure of the baselines: SLO throughput of every system, and ASAP's gain against the spread of the experts' load."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asapmodel.studies.baselines_systems import Best
from asapmodel.studies.pages import save_figure

__all__ = ["baselines_figure", "draw_figure"]

_COLOURS = {"synchronous": "#998ec3", "synchronous, bound": "#d8d4ea", "asynchronous": "#1b7837"}
_OVER = {
    "ChunkedPrefill": "#b35806",
    "chunks and split, best": "#542788",
    "two-batch overlap, bound": "#4d4d4d",
}


def draw_figure(own: Mapping[str, Best], found: Mapping[float, Mapping[str, Best]], path: Path) -> None:
    """Write the figure."""
    save_figure(baselines_figure(own, found), path)


def baselines_figure(own: Mapping[str, Best], found: Mapping[float, Mapping[str, Best]]) -> dict[str, Any]:
    """Bars of the systems beside lines of the gains."""
    return {"hconcat": [_bars(own), _gains(found)], "spacing": 40, "resolve": {"scale": {"color": "independent"}}}


def _kind(one: Best) -> str:
    if one.scenario.layout.kind == "asap":
        return "asynchronous"
    return "synchronous, bound" if one.bound else "synchronous"


def _bars(own: Mapping[str, Best]) -> dict[str, Any]:
    values = [{"system": one.family, "kind": _kind(one), "rps": one.slo_rps} for one in own.values()]
    y = {"field": "system", "type": "nominal", "sort": list(own), "title": None, "axis": {"labelLimit": 240}}
    x = {"field": "rps", "type": "quantitative", "title": "SLO throughput (requests/s)", "axis": {"tickCount": 6}}
    scale = {"domain": list(_COLOURS), "range": list(_COLOURS.values())}
    colour = {"field": "kind", "type": "nominal", "title": None, "scale": scale, "legend": {"orient": "bottom"}}
    text = {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"text": {"field": "rps", "format": ".1f"}}}
    return {
        "title": "32 devices, mean TTFT of at most 5 s",
        "width": 330,
        "height": {"step": 20},
        "data": {"values": values},
        "encoding": {"y": y, "x": x},
        "layer": [{"mark": "bar", "encoding": {"color": colour}}, text],
    }


def _gains(found: Mapping[float, Mapping[str, Best]]) -> dict[str, Any]:
    values = [
        {"spread": spread, "over": over, "gain": some["ASAP"].slo_rps / some[over].slo_rps - 1}
        for spread, some in found.items()
        for over in _OVER
    ]
    scale = {"domain": list(_OVER), "range": list(_OVER.values())}
    line = {
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {
                "field": "spread",
                "type": "quantitative",
                "title": "spread of single experts' load (CV)",
                "axis": {"tickCount": 4},
            },
            "y": {
                "field": "gain",
                "type": "quantitative",
                "title": "gain in SLO throughput",
                "axis": {"format": "+.0%"},
            },
            "color": {
                "field": "over",
                "type": "nominal",
                "title": None,
                "scale": scale,
                "legend": {"orient": "bottom", "columns": 1},
            },
        },
    }
    zero = {"data": {"values": [{"gain": 0}]}, "mark": {"type": "rule", "color": "#888888"}}
    zero["encoding"] = {"y": {"field": "gain", "type": "quantitative"}}
    return {"title": "ASAP's gain over", "width": 280, "height": 260, "layer": [zero, line]}
