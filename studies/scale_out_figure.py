"""Figure of scaling out: SLO throughput per device by the size of an instance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapmodel.studies.scale_out import Size

__all__ = ["scale_out_figure"]

_COLOURS = {"asynchronous, 64 GB": "#1b7837", "asynchronous, any memory": "#a6dba0", "synchronous, chunks": "#b35806"}


def scale_out_figure(sizes: Sequence["Size"]) -> dict[str, Any]:
    """Lines by size; labels say which instance is the best with the memory there is."""
    values = []
    for one in sizes:
        for name, best in zip(_COLOURS, (one.fits, one.opened, one.sync), strict=True):
            if best is not None:
                label = best.layout.partition(",")[0] if best is one.fits else ""
                values.append({"devices": best.devices, "each": best.each, "what": name, "label": label})
    x = {
        "field": "devices",
        "type": "quantitative",
        "title": "devices of an instance",
        "scale": {"type": "log", "base": 2, "domain": [24, 450], "nice": False},
        "axis": {"values": sorted({one.devices for one in sizes}), "format": "d"},
    }
    y = {
        "field": "each",
        "type": "quantitative",
        "title": "requests/s per device",
        "scale": {"domain": [0, 1]},
    }
    colour = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    }
    lines = {
        "mark": {"type": "line", "point": True, "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    labels = {
        "mark": {"type": "text", "dy": 16, "dx": -8, "fontSize": 10, "color": "#1b7837"},
        "encoding": {"x": x, "y": y, "text": {"field": "label"}},
    }
    return {
        "title": "SLO throughput per device of the best instance of each size",
        "width": 640,
        "height": 300,
        "data": {"values": values},
        "layer": [lines, labels],
    }
