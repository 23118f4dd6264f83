"""The look of a report's charts: colours, the Vega-Lite configuration, and pieces that all charts are made of.

Systems have the colours of `SYSTEM_COLOURS` and nothing else has; parts of a TTFT and phases of a layer have muted
ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from asapmodel.html.tables import Rows

__all__ = [
    "GREY",
    "INK",
    "PART_COLOURS",
    "PHASE_STYLES",
    "SYSTEM_COLOURS",
    "Spec",
    "chart",
    "colour_of",
    "log_scale",
    "log_ticks",
    "objective_layers",
    "quantity",
    "system_colour",
    "values_of",
]

Spec = dict[str, Any]

# Okabe and Ito's palette without its yellow, which vanishes on white, darkest contrasts first.
SYSTEM_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
PART_COLOURS = {
    "own kernel": "#3d4f60",
    "waiting inside": "#d8b465",
    "queueing": "#b7c6d2",
    "outside": "#e6e2da",
}
PHASE_STYLES: dict[str, tuple[str, tuple[int, ...]]] = {
    "attention": ("#26323d", ()),
    "MoE": ("#a97c1f", (7, 3)),
    "transfers": ("#7c95a8", (2, 3)),
}
INK, GREY, _FAINT = "#1f2933", "#5f6b76", "#e4e8ec"
_SLO_COLOUR = "#8a1c1c"
_CONFIG: Spec = {
    "font": "Helvetica Neue, Helvetica, Arial, sans-serif",
    "background": "white",
    "view": {"stroke": None},
    "title": {"anchor": "start", "fontSize": 13, "fontWeight": 600, "color": INK, "offset": 6, "frame": "group"},
    "axis": {
        "labelColor": INK,
        "titleColor": GREY,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "gridColor": _FAINT,
        "domainColor": "#9aa5b1",
        "tickColor": "#9aa5b1",
        "labelOverlap": "greedy",
    },
    "axisX": {"grid": False, "labelFlush": False, "titlePadding": 6},
    # Titles of vertical axes lie along the top, where they can be read without turning the head.
    "axisY": {
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "minExtent": 34,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "end",
        "titleBaseline": "bottom",
        "titleX": -34,
        "titleY": -10,
    },
}


def system_colour(look: int) -> str:
    """The colour of a system; they repeat after seven."""
    return SYSTEM_COLOURS[look % len(SYSTEM_COLOURS)]


def chart(description: str, height: int, **parts: Any) -> Spec:
    """A chart as wide as its place on the page; `description` is read to those who cannot see it."""
    base = {"description": description, "width": "container", "height": height, "config": _CONFIG}
    return base | {"padding": {"left": 2, "right": 10, "top": 4, "bottom": 2}} | parts


def values_of(rows: Rows) -> Spec:
    """Rows as inline data."""
    return {"values": rows}


def colour_of(colours: dict[str, str], field: str = "system") -> Spec:
    """Colour by a field, without Vega's own legend."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def quantity(field: str, title: str, **more: Any) -> Spec:
    """A quantitative channel with its title."""
    return {"field": field, "type": "quantitative", "title": title} | more


def log_ticks(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """Round numbers from `low` to `high`, evenly spaced on a log axis.

    Examples
    --------
    >>> log_ticks(0.3, 12)
    [0.5, 1.0, 2.0, 5.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def log_scale(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> Spec:
    """Scale and axis of a logarithmic channel."""
    scale = {"type": "log", "domain": [low, high], "nice": False}
    return {"scale": scale, "axis": {"values": log_ticks(low, high, steps), "format": "~g"}}


def objective_layers(seconds: float, channel: str) -> list[Spec]:
    """The line of the objective, with its name at the free end."""
    text: Spec = {"type": "text", "color": _SLO_COLOUR, "fontSize": 11}
    if channel == "y":
        text |= {"text": ["objective", f"{seconds:g} s"], "align": "left", "dx": 5, "dy": -2, "x": "width"}
    else:
        text |= {
            "text": f"objective {seconds:g} s",
            "align": "right",
            "baseline": "bottom",
            "dx": -5,
            "dy": -4,
            "y": "height",
        }
    position = {channel: {"datum": seconds}}
    return [
        {"data": {"values": [{}]}, "mark": {"type": "rule", "color": _SLO_COLOUR}, "encoding": position},
        {"data": {"values": [{}]}, "mark": text, "encoding": position},
    ]
