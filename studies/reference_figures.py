"""Figures of the reference system: cost laws with residuals, predicted against measured TTFT, a timeline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asapmodel.reference.prediction import Law, Prediction, RunPair
from asapmodel.studies.pages import save_figure

__all__ = ["draw_figures", "laws_figure", "runs_figure"]

_LOG = {"type": "log", "nice": False, "padding": 12}
_COLOURS = {"synchronous": "#b35806", "asynchronous": "#1b7837"}


def draw_figures(prediction: Prediction, folder: Path) -> None:
    """Write the figures of laws and runs."""
    save_figure(laws_figure(prediction), folder / "reference-laws.svg")
    save_figure(runs_figure(prediction.runs), folder / "reference-runs.svg")


def _axis(field: str, title: str, log: bool = False, **more: Any) -> dict[str, Any]:
    scale = _LOG if log else {}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def _law_panels(name: str, law: Law, x: str, points: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Seconds over tokens above, residuals below."""
    across = _axis("n", x, log=True, axis={"grid": False, "format": "~g"})
    time = _axis("ms", "ms a layer", log=True, axis={"format": "~g"})
    lines = {"x": {"field": "n"}, "y": {"field": "ms"}, "y2": {"field": "fitted"}}
    return {
        "vconcat": [
            {
                "title": f"{name}: R^2 = {law.r2:.3f}",
                "width": 340,
                "height": 220,
                "layer": [
                    {"mark": {"type": "rule", "color": "#999"}, "encoding": lines},
                    {
                        "mark": {"type": "point", "filled": True, "size": 45, "color": "#2166ac"},
                        "encoding": {"x": across, "y": time},
                    },
                    {
                        "mark": {"type": "tick", "thickness": 2, "width": 12, "orient": "horizontal", "color": "black"},
                        "encoding": {"x": {"field": "n"}, "y": {"field": "fitted"}},
                    },
                ],
            },
            {
                "width": 340,
                "height": 90,
                "mark": {"type": "bar", "width": 4, "color": "#777"},
                "encoding": {"x": across, "y": _axis("residual", "fitted / measured - 1", axis={"format": "+.0%"})},
            },
        ],
        "data": {"values": list(points)},
    }


def _typed(panel: dict[str, Any]) -> dict[str, Any]:
    """Marks that share a scale need its type too."""
    for layer in panel["vconcat"][0]["layer"]:
        for channel in ("x", "y"):
            layer["encoding"][channel] = {"type": "quantitative", "scale": _LOG} | layer["encoding"][channel]
    return panel


def laws_figure(prediction: Prediction) -> dict[str, Any]:
    """Dots are measured, ticks fitted; one panel for attention, one for experts."""
    panels = []
    for name, law, x in (
        ("Attention, a0 + a1 n + a2 w", prediction.attention, "tokens of the batch (the same n has several w)"),
        ("Experts, max(floor, m1 n)", prediction.experts, "tokens of the batch"),
    ):
        points = [
            {"n": n, "w": w, "ms": 1e3 * seconds, "fitted": 1e3 * fitted, "residual": fitted / seconds - 1}
            for n, w, seconds, fitted in law.points
        ]
        panels.append(_typed(_law_panels(name, law, x, points)))
    return {"hconcat": panels, "spacing": 40}


def runs_figure(runs: Sequence[RunPair]) -> dict[str, Any]:
    """Every prompt of every run a dot; the line is equality."""
    values = [
        {"system": run.system, "measured": measured, "predicted": predicted}
        for run in runs
        for measured, predicted in zip(run.ttft, run.predicted_ttft, strict=True)
    ]
    both = [seconds for run in runs for seconds in (*run.ttft, *run.predicted_ttft)]
    domain = [min(both) / 1.2, max(both) * 1.2]
    scale = {"type": "log", "domain": domain}
    axis = {"format": "~g"}
    x = {"field": "measured", "type": "quantitative", "title": "measured TTFT (s)", "scale": scale, "axis": axis}
    y = {"field": "predicted", "type": "quantitative", "title": "predicted TTFT (s)", "scale": scale, "axis": axis}
    colour = {
        "field": "system",
        "type": "nominal",
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
        "title": None,
        "legend": {"orient": "top"},
    }
    line = {
        "mark": {"type": "line", "color": "#999", "strokeDash": [4, 3]},
        "data": {"values": [{"measured": end, "predicted": end} for end in domain]},
        "encoding": {"x": x, "y": y},
    }
    dots = {"mark": {"type": "point", "filled": True, "opacity": 0.7}, "encoding": {"x": x, "y": y, "color": colour}}
    return {"width": 340, "height": 340, "data": {"values": values}, "layer": [line, dots]}
