"""Figure of decode: time of a token against the sequences in the system."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asapmodel.studies.decode_cases import Case
from asapmodel.studies.decode_layers import asynchronous_layer, lockstep_layer, merged_layer

__all__ = ["decode_figure"]

_SYSTEMS = {
    "synchronous": "#b35806",
    "asynchronous": "#1b7837",
    "apart, merged calls (bound)": "#998ec3",
}
_TOKENS = np.geomspace(32, 1e5, 60)


def decode_figure(cases: Sequence[Case]) -> dict[str, Any]:
    """A panel a case; left of the rule the sequences fit the memory."""
    rows = [{"spacing": 30, "hconcat": [_panel(case) for case in cases[k : k + 2]]} for k in range(0, len(cases), 2)]
    return {"spacing": 25, "vconcat": rows}


def _panel(case: Case) -> dict[str, Any]:
    x = {
        "field": "sequences",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [32, 1e5], "nice": False},
        "axis": {"values": [100, 1000, 10000, 100000], "format": "~s"},
        "title": "sequences in the system",
    }
    y = {
        "field": "token",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [20, 5000]},
        "axis": {"values": [20, 50, 100, 200, 500, 1000, 2000, 5000], "format": "~g"},
        "title": "ms a token",
    }
    domain = list(_SYSTEMS)
    colour = {
        "field": "system",
        "type": "nominal",
        "title": None,
        "sort": domain,
        "scale": {"domain": domain, "range": list(_SYSTEMS.values())},
        "legend": {"orient": "top", "symbolType": "stroke"},
    }
    bound = f"datum.system == '{domain[-1]}'"
    dashed = {"condition": {"test": bound, "value": [4, 3]}, "value": [1, 0]}
    lines = {
        "data": {"values": _values(case)},
        "mark": {"type": "line", "strokeWidth": 2, "clip": True},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dashed},
    }
    return {"title": case.name, "width": 340, "height": 230, "layer": [lines, _memory(case)]}


def _values(case: Case) -> list[dict[str, Any]]:
    layers = case.free.architecture.layers
    values = []
    for total in _TOKENS.tolist():
        found = (
            lockstep_layer(case.lockstep, total, case.contexts),
            asynchronous_layer(case.free, total, case.contexts),
            merged_layer(case.free, total, case.contexts),
        )
        for name, one in zip(_SYSTEMS, found, strict=True):
            values.append({"sequences": total, "system": name, "token": 1e3 * layers * one.cycle_s})
    return values


def _memory(case: Case) -> dict[str, Any]:
    return {
        "data": {"values": [{"sequences": case.fits, "what": " memory full"}]},
        "encoding": {"x": {"field": "sequences", "type": "quantitative"}},
        "layer": [
            {"mark": {"type": "rule", "color": "#777777", "strokeDash": [3, 3]}},
            {
                "mark": {"type": "text", "align": "left", "dx": 3, "color": "#555555"},
                "encoding": {"text": {"field": "what", "type": "nominal"}, "y": {"value": 10}},
            },
        ],
    }
