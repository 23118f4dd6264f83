"""Pictures of runs in the manner of the paper's Figures 1 and 8, as Vega-Lite specifications.

A lane is a stream of a device, a box a phase with its layer in it. What is left of a lane is waiting.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from asapmodel.reference.system import Name
from asapmodel.reference.timeline import device_of, lane_order, make_spans, stream_of
from asapmodel.reference.virtual_time import Busy

__all__ = ["comparison_figure", "timeline_figure"]

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


def timeline_figure(
    log: Sequence[Busy], first: float, last: float, *, every_device: bool = False, title: str = "", width: int = 860
) -> Spec:
    """A picture of a part of a run.

    Parameters
    ----------
    log : sequence of Busy
        Of a run in virtual time or in processes.
    first, last : float
        From when to when, seconds.
    every_device : bool
        Whether to show all devices; else the first of every attention group, and the first MoE device.
    title : str
        Above the lanes.
    width : int
        Of the lanes, pixels.

    Returns
    -------
    dict
        Vega-Lite specification.

    Raises
    ------
    ValueError
        If nothing happens in that time.
    """
    return comparison_figure({title: log}, first, last, every_device=every_device, width=width)


def comparison_figure(
    logs: Mapping[str, Sequence[Busy]], first: float, last: float, *, every_device: bool = False, width: int = 860
) -> Spec:
    """Pictures of several runs below each other with the same time axis.

    Parameters
    ----------
    logs : mapping of title to log
        From top to bottom.
    first, last, every_device, width
        As for `timeline_figure`.

    Returns
    -------
    dict
        Vega-Lite specification.

    Raises
    ------
    ValueError
        If nothing happens in a run in that time.
    """
    if not last > first:
        raise ValueError(f"last = {last:g} s is not after first = {first:g} s; give a stretch of time")
    views = []
    for title, log in logs.items():
        lanes = _lanes(log, every_device)
        views.append((title, list(lanes.values()), _rows(log, lanes, (first, last), width)))
    kinds = {row["kind"] for _, _, rows in views for row in rows}
    colour = _colour([kind for kind in _COLOURS if kind in kinds])
    x = _time(first, last)
    panels: list[Spec] = [
        {
            "title": {"text": title, "fontSize": 13, "anchor": "start", "frame": "group", "color": _INK},
            "width": width,
            "height": _LANE * len(lanes),
            "data": {"values": rows},
            **_layers(lanes, x, colour),
        }
        for title, lanes, rows in views
    ]
    panels[-1]["encoding"]["x"] = {**x, "axis": {**x["axis"], "title": "time (ms)"}}
    heading = {"text": _READING, "fontSize": 11, "fontWeight": "normal", "color": _GREY, "anchor": "start", "offset": 8}
    return {"title": heading, "vconcat": panels, "spacing": 14}


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
    legend = {"orient": "top", "title": None, "symbolType": "square"}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": legend}


def _lanes(log: Sequence[Busy], every_device: bool) -> dict[Name, str]:
    """Names of the lanes of the workers to show, from top to bottom."""
    workers = sorted({busy.worker for busy in log}, key=lane_order)
    return {worker: _lane(worker, workers, every_device) for worker in workers if every_device or _is_first(worker)}


def _is_first(worker: Name) -> bool:
    """Whether its device is the first of its group, or of the MoE devices."""
    return bool(device_of(worker)[-1] == 0)


def _lane(worker: Name, workers: Sequence[Name], every_device: bool) -> str:
    """Name of a lane; of a stream only where its device has several."""
    device = device_of(worker)
    streams = sum(device_of(other) == device for other in workers)
    stream = f", {stream_of(worker)}" if streams > 1 else ""
    if device[0] == "moe":
        return f"MoE device {device[1]}{stream}"
    return f"group {device[1]}" + (f", member {device[2]}" if every_device else "") + stream


def _rows(log: Sequence[Busy], lanes: Mapping[Name, str], window: tuple[float, float], width: int) -> list[Spec]:
    """A row for each box, cut at the ends of the window; times in milliseconds."""
    first, last = window
    rows = []
    for span in make_spans(log):
        busy, phase = span.busy, span.busy.phase
        start, end = max(busy.start, first), min(busy.end, last)
        if busy.worker not in lanes or start >= end:
            continue
        label = f"{phase.group}:{phase.layer}" if busy.worker[0] == "moe" else f"{phase.layer}"
        pixels = (end - start) / (last - first) * width
        fits = pixels >= _CHARACTER * len(label) + _MARGIN and phase.name != "step"
        kind, pale = _KINDS[phase.name], span.batch % 2 == 1
        rows.append(
            {
                "lane": lanes[busy.worker],
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
    if not rows:
        end = max((busy.end for busy in log), default=0.0)
        raise ValueError(
            f"nothing happens from {first:g} to {last:g} s; the run ends at {end:g} s: choose a time before that"
        )
    return rows
