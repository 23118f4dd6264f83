"""Predicted over measured times of a calibration, as a Vega-Lite figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asapmodel.files import check_writable

__all__ = ["residual_figure", "write_picture"]


def residual_figure(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The specification: measured time against error, one point a row, colours by quantity.

    Parameters
    ----------
    rows : sequence of mapping
        With `measured_s`, `error` and `quantity`, as `Calibration.residuals` gives them.
    """
    percent = {"format": "+.0%"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 480,
        "height": 260,
        "data": {"values": list(rows)},
        "layer": [
            {"mark": {"type": "rule", "color": "#999"}, "encoding": {"y": {"datum": 0}}},
            {
                "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.7},
                "encoding": {
                    "x": {
                        **{"field": "measured_s", "type": "quantitative", "title": "measured (s)"},
                        "scale": {"type": "log"},
                    },
                    "y": {
                        **{"field": "error", "type": "quantitative", "title": "predicted over measured - 1"},
                        "axis": percent,
                    },
                    "color": {"field": "quantity", "type": "nominal", "title": None},
                },
            },
        ],
    }


def write_picture(rows: Sequence[Mapping[str, Any]], path: str, force: bool = False) -> None:
    """Draw the figure into a ``.svg`` or ``.png`` file."""
    import vl_convert

    check_writable(path, force)
    figure = residual_figure(rows)
    if path.endswith(".png"):
        Path(path).write_bytes(vl_convert.vegalite_to_png(figure, vl_version="5.21", scale=2))
    else:
        Path(path).write_text(vl_convert.vegalite_to_svg(figure, vl_version="5.21"), encoding="utf-8")
