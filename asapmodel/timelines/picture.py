"""Pictures of runs in the manner of the ASAP paper's Figures 1 and 8, as Vega-Lite specifications.

A lane is a stream of a device, a box a phase with its layer in it. What is left of a lane is waiting.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asapmodel.timelines.spans import Span, Track

__all__ = ["Panel", "Spec", "figure", "to_png", "to_svg"]

Spec = dict[str, Any]

_INK, _GREY = "#1f2933", "#5f6b76"
_COLOURS = {  # attention, transfers and MoE as in a report; its modules are much to import for three colours
    "step overhead": "#d9c7b8",
    "attention": "#26323d",
    "attention and dense network": "#6b5b73",
    "dispatch": "#7c95a8",
    "MoE": "#a97c1f",
    "combine": "#a9bf9c",
}
_KINDS = {
    "step": "step overhead",
    "attention": "attention",
    "dense": "attention and dense network",
    "dispatch_send": "dispatch",
    "dispatch_recv": "dispatch",
    "moe": "MoE",
    "combine_send": "combine",
    "combine_recv": "combine",
}
_ON_LIGHT = ("dispatch", "combine")  # boxes with dark numbers
_PALE = 0.62  # opacity of every other batch
_EDGE = 0.6  # pixels of white between boxes
_LANE, _NAME = 24, 130  # pixels: height of a lane, width of its name
_CHARACTER, _MARGIN = 3.9, 1.5  # pixels that a character of a label takes, and that are left free
_READING = "Number: layer (on lanes of MoE devices group:layer). Paler: every other batch of a group. Empty: waiting."
_LOOK: Spec = {
    "font": "Helvetica, Arial, sans-serif",
    "background": "white",
    "axis": {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
    "legend": {"labelFontSize": 11, "labelLimit": 300},
    "view": {"stroke": None},
}


@dataclass(frozen=True, slots=True)
class Panel:
    """A run in a picture: its title, the names of its lanes from top to bottom, and its spans in any order."""

    title: str
    lanes: Mapping[Track, str]
    spans: Iterable[Span]


def figure(panels: Sequence[Panel], first: float, last: float, width: int) -> Spec:
    """Pictures of runs below each other with the same time axis.

    Parameters
    ----------
    panels : sequence of Panel
        From top to bottom.
    first, last : float
        From when to when, seconds; boxes are cut there.
    width : int
        Of the lanes, pixels.

    Returns
    -------
    dict
        Vega-Lite specification.

    Raises
    ------
    ValueError
        If `last` is not after `first`.
    """
    if not last > first:
        raise ValueError(f"last = {last:g} s is not after first = {first:g} s; give a stretch of time")
    rows = [_rows(panel, (first, last), width) for panel in panels]
    kinds = {row["kind"] for some in rows for row in some}
    colour = _colour([kind for kind in _COLOURS if kind in kinds])
    x = _time(first, last)
    views: list[Spec] = [
        {
            "title": {"text": panel.title, "fontSize": 13, "anchor": "start", "frame": "group", "color": _INK},
            "width": width,
            "height": _LANE * len(panel.lanes),
            "data": {"values": boxes},
            **_layers(list(panel.lanes.values()), x, colour),
        }
        for panel, boxes in zip(panels, rows, strict=True)
    ]
    views[-1]["encoding"]["x"] = {**x, "axis": {**x["axis"], "title": "time (ms)"}}
    heading = {"text": _READING, "fontSize": 11, "fontWeight": "normal", "color": _GREY, "anchor": "start", "offset": 8}
    return {"title": heading, "vconcat": views, "spacing": 14}


def to_svg(spec: Spec) -> str:
    """Draw a picture as SVG; no browser is needed."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg({"config": _LOOK, **spec}, vl_version="5.21")
    return text


def to_png(spec: Spec) -> bytes:
    """Draw a picture as PNG, two pixels to one of the specification."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png({"config": _LOOK, **spec}, vl_version="5.21", scale=2)
    return data


def _time(first: float, last: float) -> Spec:
    """The axis, in milliseconds."""
    return {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [first * 1e3, last * 1e3], "nice": False, "zero": False},
        "axis": {"title": None, "grid": False, "tickCount": 10, "labelFlush": False},
    }


def _layers(lanes: Sequence[str], x: Spec, colour: Spec) -> Spec:
    """Grounds of the lanes, boxes, and numbers in them."""
    axis = {"title": None, "domain": False, "ticks": False, "labelPadding": 6, "minExtent": _NAME}
    y = {"field": "lane", "type": "nominal", "sort": list(lanes), "scale": {"domain": list(lanes)}, "axis": axis}
    first, last = x["scale"]["domain"]
    ground = {
        "data": {"values": [{"lane": lane, "start": first, "end": last} for lane in lanes]},
        "mark": {"type": "bar", "color": "#eef1f3", "height": {"band": 0.84}},
        "encoding": {"x2": {"field": "end"}},
    }
    boxes = {
        "mark": {"type": "bar", "stroke": "white", "height": {"band": 0.84}},
        "encoding": {
            "x2": {"field": "end"},
            "color": colour,
            "opacity": {"field": "opacity", "type": "quantitative", "scale": None},
            "strokeWidth": {"field": "edge", "type": "quantitative", "scale": None},
        },
    }
    numbers = {
        "transform": [{"filter": "datum.label != ''"}],
        "mark": {"type": "text", "fontSize": 9},
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "text": {"field": "label"},
            "color": {"field": "ink", "type": "nominal", "scale": None},
        },
    }
    return {"encoding": {"x": x, "y": y}, "layer": [ground, boxes, numbers]}


def _colour(kinds: list[str]) -> Spec:
    scale = {"domain": kinds, "range": [_COLOURS[kind] for kind in kinds]}
    # A legend of nothing cannot be drawn.
    legend = {"orient": "top", "title": None, "symbolType": "square"} if kinds else None
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": legend}


def _rows(panel: Panel, window: tuple[float, float], width: int) -> list[Spec]:
    """A row for each box, cut at the ends of the window; times in milliseconds."""
    first, last = window
    rows = []
    for span in panel.spans:
        start, end = max(span.start, first), min(span.end, last)
        if span.track not in panel.lanes or start >= end:
            continue
        label = f"{span.group}:{span.layer}" if span.track.shared else f"{span.layer}"
        pixels = (end - start) / (last - first) * width
        fits = pixels >= _CHARACTER * len(label) + _MARGIN and span.phase != "step"
        kind, pale = _KINDS[span.phase], span.shade == 1
        rows.append(
            {
                "lane": panel.lanes[span.track],
                "start": start * 1e3,
                "end": end * 1e3,
                "middle": (start + end) * 500,
                "kind": kind,
                "edge": _EDGE if pixels > 4 * _EDGE else 0.0,  # a sliver would vanish behind its own edge
                "opacity": _PALE if pale else 1.0,
                "label": label if fits else "",
                "ink": _INK if kind in _ON_LIGHT or (pale and kind != "attention") else "white",
            }
        )
    return rows
