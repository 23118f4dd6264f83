"""The figures of the study: six maps with printed ratios, and the factors that a gain is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asapmodel.studies.when_asynchronous_maps import Cell
from asapmodel.studies.when_asynchronous_why import STEPS, Ladder

__all__ = ["Panel", "factor_figure", "map_figure"]

_SIDE = 3.0  # ratios at which the colours end
_COLOURS = ["#b2182b", "#f4a582", "#f7f7f7", "#92c5de", "#2166ac"]
_STEP = {"width": 48, "height": 23}
_PER_ROW = 2
_WHOLE = "all together"
_LABELS = 160  # pixels for the names of rows


@dataclass(frozen=True, slots=True)
class Panel:
    """One map: title, titles of the axes, its cells, what is published there, and names of rows."""

    title: str
    axes: tuple[str, str]
    cells: Sequence[Cell]
    published: Sequence[Cell] = ()
    words: Mapping[float | str, str] = field(default_factory=dict)


def map_figure(panels: Sequence[Panel]) -> dict[str, Any]:
    """All maps on one sheet, two a row, with the same colours."""
    rows = [panels[k : k + _PER_ROW] for k in range(0, len(panels), _PER_ROW)]
    return {
        "vconcat": [{"hconcat": [_panel(one) for one in row], "spacing": 30} for row in rows],
        "spacing": 26,
        "config": {"axis": {"labelLimit": 260}},
    }


def _panel(panel: Panel) -> dict[str, Any]:
    cells = [*panel.cells, *panel.published]
    values = [_value(one, panel.words, False) for one in panel.cells]
    values += [_value(one, panel.words, True) for one in panel.published]
    every = [_value(one, panel.words, False) for one in cells]
    encoding = {axis: _axis(axis, title, every) for axis, title in zip("xy", panel.axes, strict=True)}
    scale = {"type": "log", "domain": _domain(), "range": _COLOURS, "clamp": True, "interpolate": "rgb"}
    colour = {"field": "ratio", "type": "quantitative", "legend": None, "scale": scale}
    dark = "datum.ratio > 2.2 || datum.ratio < 0.5"
    return {
        "title": panel.title,
        "width": {"step": _STEP["width"]},
        "height": {"step": _STEP["height"]},
        "data": {"values": values},
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "rect", "stroke": "white"}, "encoding": {"color": colour}},
            {
                "transform": [{"filter": "datum.published"}],
                "mark": {"type": "rect", "filled": False, "stroke": "black", "strokeWidth": 1.8},
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": {"field": "label", "type": "nominal"},
                    "color": {"condition": {"test": f"({dark}) && datum.fits", "value": "white"}, "value": "#222"},
                    "opacity": {"condition": {"test": "datum.fits", "value": 1}, "value": 0.5},
                },
            },
        ],
        "resolve": {"scale": {"color": "independent"}},
    }


def _domain() -> list[float]:
    return [1 / _SIDE, 1 / _SIDE**0.5, 1.0, _SIDE**0.5, _SIDE]


def _axis(name: str, title: str, values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    axis: dict[str, Any] = {"labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    if name == "y":
        axis["minExtent"] = _LABELS  # so that maps below one another line up
        axis |= {"titleAngle": 0, "titleAlign": "right", "titleX": -6, "titleY": -8}  # above the names of rows
    order = list(dict.fromkeys(one[name] for one in values))
    return {"field": name, "type": "nominal", "title": title, "sort": order, "axis": axis}


def _value(cell: Cell, words: Mapping[float | str, str], published: bool) -> dict[str, Any]:
    digits = 1 if cell.ratio >= 9.95 else 2
    label = f"{cell.ratio:.{digits}f}" + ("" if cell.fits else "*")
    x = cell.x if isinstance(cell.x, str) else f"{cell.x:g}"
    y = words.get(cell.y, cell.y if isinstance(cell.y, str) else f"{cell.y:g}")
    return {"x": x, "y": y, "ratio": cell.ratio, "label": label, "published": published, "fits": cell.fits}


def factor_figure(ladders: Mapping[str, Ladder]) -> dict[str, Any]:
    """Factors of every workload, a panel each, and the whole below."""
    values = [
        {"case": name, "step": step, "factor": factor, "label": f"{factor:.2f}"}
        for name, one in ladders.items()
        for step, factor in zip((*STEPS, _WHOLE), (*one.factors, 1 + one.gain), strict=True)
    ]
    facet = {"field": "case", "type": "nominal", "title": None, "sort": list(ladders), "header": {"labelFontSize": 12}}
    return {
        "title": "What each difference between the best systems multiplies SLO throughput by",
        "data": {"values": values},
        "facet": facet,
        "columns": 3,
        "spec": {
            "width": 190,
            "height": {"step": 20},
            "transform": [{"calculate": "max(datum.factor, 1)", "as": "end"}],
            "layer": _bars(),
        },
    }


def _bars() -> list[dict[str, Any]]:
    """Bars from 1 to each factor, and the number beside them."""
    y = {"field": "step", "type": "nominal", "sort": [*STEPS, _WHOLE], "title": None}
    scale = {"type": "log", "domain": [0.4, 6.0], "nice": False}
    axis = {"values": [0.5, 1.0, 2.0, 4.0], "format": ".1f"}
    x = {"field": "factor", "type": "quantitative", "title": "factor", "scale": scale, "axis": axis}
    whole = {"test": f"datum.step == '{_WHOLE}'", "value": "#444"}
    colour = {"condition": [whole, {"test": "datum.factor < 1", "value": "#d6604d"}], "value": "#4393c3"}
    text = {"field": "label", "type": "nominal"}
    return [
        {"mark": {"type": "bar"}, "encoding": {"x": x, "x2": {"datum": 1}, "y": y, "color": colour}},
        {
            "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11},
            "encoding": {"x": {**x, "field": "end"}, "y": y, "text": text},
        },
    ]
