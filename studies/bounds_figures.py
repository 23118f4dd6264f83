"""Figure of the bounds: how much of the upper bound is reached, against the distance to the next regime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asapmodel.studies.bounds_runs import Row
from asapmodel.studies.pages import save_figure

__all__ = ["SYSTEMS", "draw_figure", "tightness_figure"]

SYSTEMS = {"asap": "asynchronous", "sync": "synchronous"}

_COLOURS = {
    "attention-bound": "#b35806",
    "MoE-bound": "#542788",
    "transfer-bound": "#1b7837",
    "latency-bound": "#4d4d4d",
}

_COLOUR = {
    "field": "regime",
    "type": "nominal",
    "title": None,
    "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    "legend": {"orient": "top"},
}


def draw_figure(rows: Sequence[Row], folder: Path) -> None:
    """Write the figure."""
    save_figure(tightness_figure(rows), folder / "bounds-tightness.svg")


def tightness_figure(rows: Sequence[Row]) -> dict[str, Any]:
    """A dot a case: throughput of the run over its upper bound, and the margin of its regime."""
    values = [
        {
            "system": SYSTEMS[row.system],
            "regime": row.regime.name,
            "margin": row.regime.margin,
            "reached": row.truth / row.upper,
        }
        for row in rows
    ]
    x = {
        "field": "margin",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, 20], "clamp": True},
        "axis": {"values": [1, 1.5, 2, 3, 5, 10, 20], "format": "~g"},
        "title": "next regime's bound / this one's (20: or more)",
    }
    y = {
        "field": "reached",
        "type": "quantitative",
        "scale": {"domain": [0.3, 1]},
        "axis": {"format": ".0%"},
        "title": "throughput / upper bound",
    }
    return {
        "data": {"values": values},
        "facet": {"field": "system", "title": None, "sort": list(SYSTEMS.values()), "header": {"labelFontSize": 12}},
        "spec": {
            "width": 340,
            "height": 280,
            "mark": {"type": "point", "filled": True, "opacity": 0.6, "size": 30},
            "encoding": {"x": x, "y": y, "color": _COLOUR},
        },
    }
