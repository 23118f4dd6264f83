"""The figure of `evidence_deployments`: mean and 99th percentile of TTFT against the rate, measured and predicted."""

from collections.abc import Sequence
from typing import Any

from asapmodel.studies.evidence_deployments_data import ASYNC, Cell, Statistics, calibrated

__all__ = ["figure"]


def figure(pairs: Sequence[tuple[Cell, Statistics]]) -> dict[str, Any]:
    """Four panels, a budget and a statistic each; lines are the model, points measurements."""
    rows = [
        {
            "rate": one.rate,
            "system": "asynchronous" if one.system == ASYNC else "synchronous",
            "use": "measured, calibrated on" if calibrated(one) else "measured, predicted",
            "panel": f"{name}, budget {one.budget}",
            "measured": getattr(one, field),
            "model": getattr(found, field),
        }
        for one, found in pairs
        for field, name in (("mean_s", "Mean"), ("p99_s", "99th percentile"))
    ]
    panels = sorted({row["panel"] for row in rows}, key=lambda text: (text[0] != "M", text))
    title = {"text": "Lines: the model. Points: measured.", "fontWeight": "normal", "fontSize": 12, "anchor": "start"}
    return {"title": title, "data": {"values": rows}, "columns": 2, "concat": [_panel(one) for one in panels]}


def _panel(name: str) -> dict[str, Any]:
    colour = {"field": "system", "type": "nominal", "title": None, "scale": {"range": ["#1f6fb4", "#d95f02"]}}
    x = {"field": "rate", "type": "quantitative", "title": "requests/s", "scale": {"domain": [3.5, 12.5]}}
    x["axis"] = {"values": [4, 6, 8, 10, 12]}
    scale = {"type": "log", "domain": [0.3, 20] if name.startswith("Mean") else [1, 32], "nice": False}
    y = {"type": "quantitative", "title": "TTFT (s)", "scale": scale, "axis": {"values": _TICKS}}
    shape = {"field": "use", "type": "nominal", "title": None, "scale": {"range": ["circle", "square"]}}
    return {
        "title": name,
        "width": 290,
        "height": 210,
        "transform": [{"filter": {"field": "panel", "equal": name}}],
        "layer": [
            {"mark": {"type": "line"}, "encoding": {"x": x, "y": {**y, "field": "model"}, "color": colour}},
            {
                "mark": {"type": "point", "size": 60, "filled": True},
                "encoding": {"x": x, "y": {**y, "field": "measured"}, "color": colour, "shape": shape},
            },
        ],
    }


_TICKS = [0.2, 0.5, 1, 2, 5, 10, 20]
