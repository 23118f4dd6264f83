"""Vega-Lite specifications of one panel of a figure with many; panels of a figure share their axes.

They are separate charts, not facets, so that a narrow page can break the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from asapmodel.html.style import (
    GREY,
    PART_COLOURS,
    PHASE_STYLES,
    Spec,
    chart,
    colour_of,
    log_scale,
    quantity,
    values_of,
)
from asapmodel.html.tables import Rows

__all__ = ["bins", "cost_laws", "utilisation"]


def bins(title: str, rows: Rows, names: Sequence[str], top: float) -> Spec:
    """Stacked parts of TTFT by prompt length of one system; all panels share `names` and `top`."""
    x = {"field": "bin", "type": "nominal", "sort": list(names), "scale": {"domain": list(names), "padding": 0.15}}
    x |= {"title": "prompt tokens, up to", "axis": {"labelAngle": 0, "ticks": False}}
    y = quantity("low", "mean TTFT, seconds", scale={"domain": [0, top]}, axis={"tickCount": 5})
    hover = [{"field": "bin", "title": "tokens, up to"}, {"field": "part"}]
    hover += [quantity("value", "seconds"), quantity("requests", "requests in the bin")]
    bars = {
        "mark": {"type": "bar"},
        "encoding": {
            "x": x,
            "y": y,
            "y2": {"field": "high"},
            "color": colour_of(PART_COLOURS, "part"),
            "tooltip": hover,
        },
    }
    tops = {
        "transform": [{"aggregate": [{"op": "max", "field": "high", "as": "high"}], "groupby": ["bin", "requests"]}],
        "mark": {"type": "text", "dy": -6, "fontSize": 9, "color": GREY},
        "encoding": {"x": x, "y": quantity("high", ""), "text": {"field": "requests", "format": ","}},
    }  # fmt: skip
    return chart(f"{title}: parts of TTFT by prompt length", 210, title=title, data=values_of(rows), layer=[bars, tops])


def utilisation(title: str, rows: Rows, colours: dict[str, str], last: float, dots: bool) -> Spec:
    """Busy share of one resource against rate, a line a system that has it, with `dots` where it was evaluated."""
    x = quantity("rate", "requests/s", scale={"domain": [0, last * 1.02], "nice": False}, axis={"tickCount": 5})
    y = quantity("busy", "busy, %", scale={"domain": [0, 100]}, axis={"values": [0, 50, 100]})
    hover = [{"field": "system"}, quantity("rate", "requests/s"), quantity("busy", "busy, %")]
    encoding = {"x": x, "y": y, "color": colour_of(colours), "tooltip": hover}
    mark = {"type": "line", "strokeWidth": 2, "clip": True, "point": {"size": 22} if dots else "transparent"}
    return chart(f"{title}: utilisation", 120, title=title, data=values_of(rows), mark=mark, encoding=encoding)


def cost_laws(title: str, subtitle: str, rows: Rows, low: float, high: float) -> Spec:
    """Seconds per layer against tokens, a line a phase; all panels share `low` and `high`."""
    first, last = rows[0]["tokens"], rows[-1]["tokens"]
    kilo = "datum.value >= 1024 ? datum.value / 1024 + 'k' : datum.label"
    powers = [2**k for k in range(6, 40, 2) if first <= 2**k <= last]
    x = quantity("tokens", "tokens of one prompt (log scale)",
                 scale={"type": "log", "domain": [first, last], "nice": False},
                 axis={"values": powers, "labelExpr": kilo})  # fmt: skip
    y = quantity("seconds", "seconds per layer (log scale)") | log_scale(low, high, (1,))
    colours = {phase: style[0] for phase, style in PHASE_STYLES.items()}
    dashes = [list(style[1]) or [1, 0] for style in PHASE_STYLES.values()]
    dash = {"field": "phase", "scale": {"domain": list(PHASE_STYLES), "range": dashes}, "legend": None}
    hover = [{"field": "phase"}, quantity("tokens", "tokens"), quantity("seconds", "seconds")]
    encoding = {"x": x, "y": y, "color": colour_of(colours, "phase"), "strokeDash": dash, "tooltip": hover}
    mark = {"type": "line", "strokeWidth": 2}
    heading = {"text": title, "subtitle": subtitle, "subtitleColor": GREY}
    return chart(f"{title}: cost laws", 230, title=heading, data=values_of(rows), mark=mark, encoding=encoding)
