"""Figures of the paper study, in the style of the paper's Figures 14 and 16 to 18, with its stated points drawn in."""

from pathlib import Path
from typing import Any

import numpy as np

from asapmodel.studies.pages import save_figure
from asapmodel.studies.paper_model import Paper

__all__ = ["COLOURS", "draw"]

COLOURS = {"Default": "#b35806", "ChunkedPrefill": "#998ec3", "ASAP": "#1b7837"}
_NAMES = {"default": "Default", "chunked": "ChunkedPrefill", "asap": "ASAP"}
_SLO = {
    "Default": ("default", 6.8),
    "ChunkedPrefill": ("chunked", 10.5),
    "ASAP without dual batch": ("no-dual", 17.5),
    "ASAP without overlap": ("no-overlap", 17.8),
    "ASAP without super kernel": ("no-super", 18.87),
    "ASAP": ("asap", 20.0),
}
_STATED_TTFT = [("Default", 1.0, 0.533), ("ChunkedPrefill", 1.0, 0.388), ("ASAP", 1.0, 0.350)]
_STATED_TTFT += [(name, rate, 5.0) for name, (_, rate) in _SLO.items() if name in COLOURS]


def draw(paper: Paper, folder: Path) -> None:
    """Write `paper_ttft.svg` and `paper_slo.svg`."""
    save_figure(_ttft(paper), folder / "paper_ttft.svg")
    save_figure(_slo(paper), folder / "paper_slo.svg")


def _ttft(paper: Paper) -> dict[str, Any]:
    lines, seconds = [], 10.0
    for key, name in _NAMES.items():
        limit = paper.rps(key).slo_throughput_rps
        for rate in [*np.linspace(0.5, 0.9 * limit, 10), *np.linspace(0.92 * limit, 1.08 * limit, 6)]:
            value = paper.ttft(key, float(rate))
            if value <= seconds:
                lines.append({"system": name, "rate": float(rate), "ttft": value})
    stated = [{"system": name, "rate": rate, "ttft": value} for name, rate, value in _STATED_TTFT]
    colour = {
        "field": "system",
        "type": "nominal",
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
        "title": None,
    }
    x = {"field": "rate", "type": "quantitative", "title": "request rate (requests/s)", "scale": {"domain": [0, 21]}}
    y = {
        "field": "ttft",
        "type": "quantitative",
        "title": "mean TTFT (s)",
        "scale": {"type": "log", "domain": [0.2, 10]},
    }
    return {
        "title": "Mean TTFT: model (lines), numbers stated in the paper (diamonds), objective (dashed)",
        "width": 620,
        "height": 320,
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": stated},
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 110, "stroke": "black"},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": [{"ttft": 5.0}]},
                "mark": {"type": "rule", "strokeDash": [5, 4], "color": "#555555"},
                "encoding": {"y": y},
            },
        ],
    }


def _slo(paper: Paper) -> dict[str, Any]:
    rows = []
    for name, (key, stated) in _SLO.items():
        found = paper.rps(key)
        low, high = found.interval_rps or (found.slo_throughput_rps,) * 2
        rows.append({"system": name, "source": "paper", "rps": stated})
        rows.append({"system": name, "source": "model", "rps": found.slo_throughput_rps, "low": low, "high": high})
    y = {"field": "system", "type": "nominal", "sort": list(_SLO), "title": None, "axis": {"labelLimit": 220}}
    offset = {"field": "source", "sort": ["paper", "model"]}
    scale = {"domain": ["paper", "model"], "range": ["#bdbdbd", "#1b7837"]}
    return {
        "title": "SLO throughput (mean TTFT of at most 5 s); bars at the model: 95 % interval",
        "width": 520,
        "height": {"step": 17},
        "data": {"values": rows},
        "encoding": {"y": y, "yOffset": offset},
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "rps", "type": "quantitative", "title": "requests/s"},
                    "color": {"field": "source", "type": "nominal", "scale": scale, "title": None},
                },
            },
            {
                "transform": [{"filter": "datum.source == 'model'"}],
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
            },
        ],
    }
