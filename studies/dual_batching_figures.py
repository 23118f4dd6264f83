"""Figure of dual batching: SLO throughput by batch size, gain of equal batches, gain by groups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asapmodel.studies.dual_batching_runs import MODES, Curve, Row
from asapmodel.studies.pages import save_figure

__all__ = ["draw_figure", "dual_figure"]

_COLOURS = {"one batch at a time": "#b35806", "locked pairs": "#80c490", "rolling pairs": "#1b7837"}
_WORDS = dict(zip(MODES, _COLOURS, strict=True))
_FORM, _HALVING = "closed form, over one of the same size", "closed form, over one of twice the tokens"
_TOKENS = {"values": [512, 2048, 8192, 32768], "format": "d"}


def draw_figure(sizes: Sequence[Row], curves: Sequence[Curve], groups: Sequence[Row], path: Path) -> None:
    """Write the figure."""
    save_figure(dual_figure(sizes, curves, groups), path)


def dual_figure(sizes: Sequence[Row], curves: Sequence[Curve], groups: Sequence[Row]) -> dict[str, Any]:
    """Three panels side by side."""
    panels = [_by_size(sizes), _equal(curves), _by_groups(groups)]
    return {"hconcat": panels, "spacing": 30, "resolve": {"scale": {"color": "independent"}}}


def _colour(scale: dict[str, str]) -> dict[str, Any]:
    return {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(scale), "range": list(scale.values())},
        "legend": {"orient": "bottom", "columns": 1},
    }


def _tokens(title: str) -> dict[str, Any]:
    scale = {"type": "log", "base": 2}
    return {"field": "tokens", "type": "quantitative", "scale": scale, "title": title, "axis": _TOKENS}


def _by_size(sizes: Sequence[Row]) -> dict[str, Any]:
    values = [
        {"tokens": row.min_batch_tokens, "kind": _WORDS[mode], "rps": row.slo_rps[mode]}
        for row in sizes
        for mode in MODES
    ]
    y = {"field": "rps", "type": "quantitative", "title": "requests/s", "scale": {"zero": False}}
    return {
        "title": "SLO throughput",
        "width": 250,
        "height": 230,
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {"x": _tokens("min_batch_tokens"), "y": y, "color": _colour(_COLOURS)},
    }


def _equal(curves: Sequence[Curve]) -> dict[str, Any]:
    lines = [{"tokens": one.tokens, "kind": _FORM, "gain": one.form} for one in curves]
    lines += [{"tokens": one.tokens, "kind": _HALVING, "gain": one.halving} for one in curves]
    exact = [{"tokens": one.tokens, "gain": one.exact} for one in curves]
    x = _tokens("tokens of each of two equal batches (dots: exact cycle)")
    y = {"field": "gain", "type": "quantitative", "title": "gain", "axis": {"format": "+.0%"}}
    colours = {_FORM: "#1b7837", _HALVING: "#762a83"}
    return {
        "title": "One group, MoE devices to itself",
        "width": 250,
        "height": 230,
        "encoding": {"x": x, "y": y},
        "layer": [
            {"data": {"values": lines}, "mark": "line", "encoding": {"color": _colour(colours)}},
            {"data": {"values": exact}, "mark": {"type": "point", "filled": True, "color": "black", "size": 30}},
        ],
    }


def _by_groups(groups: Sequence[Row]) -> dict[str, Any]:
    values = [
        {"groups": row.groups, "kind": _WORDS[mode], "gain": row.limit_gain(mode)}
        for row in groups
        for mode in MODES
        if mode != "single"
    ]
    x = {"field": "groups", "type": "quantitative", "title": "groups D, 16 MoE devices", "axis": {"tickCount": 6}}
    y = {"field": "gain", "type": "quantitative", "title": "gain", "axis": {"format": "+.0%"}}
    colours = {word: colour for word, colour in _COLOURS.items() if word != _WORDS["single"]}
    return {
        "title": "Gain in the stability limit",
        "width": 250,
        "height": 230,
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {"x": x, "y": y, "color": _colour(colours)},
    }
