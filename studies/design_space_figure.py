"""Figure of the design space: SLO throughput of every split, and the bounds that cross at the best one."""

from typing import Any

import pandas as pd

from asapmodel.studies.design_space_search import Bounds

__all__ = ["design_space_figure"]

_COLOURS = {"1": "#762a83", "2": "#b35806", "4": "#1b7837", "8": "#2166ac"}
_BOUNDS = ("attention streams", "experts", "batches in flight", "SLO throughput")


def design_space_figure(open_rows: pd.DataFrame, own: pd.DataFrame, sync_rps: float, bounds: Bounds) -> dict[str, Any]:
    """Left: every split with its best policy, filled where it fits the memory. Right: bounds of T = 4 by D.

    Parameters
    ----------
    open_rows : DataFrame
        Best policy of every split without a limit of memory; column `fits`.
    own : DataFrame
        Splits that fit, with the paper's policy.
    sync_rps : float
        The best synchronous system.
    bounds : mapping
        By D, for T = 4: bounds and SLO throughput.
    """
    apart = {"scale": {"color": "independent", "strokeDash": "independent"}}
    return {"spacing": 50, "hconcat": [_splits(open_rows, own, sync_rps), _bounds(bounds)], "resolve": apart}


def _splits(open_rows: pd.DataFrame, own: pd.DataFrame, sync_rps: float) -> dict[str, Any]:
    tuned = [_point(row, "best policy, fits" if row["fits"] else "best policy, too little memory", row["fits"])
             for _, row in open_rows.iterrows()]  # fmt: skip
    ours = [_point(row, "paper's policy, fits", True) for _, row in own.iterrows()]
    paper = [one for one in ours if one["layout"] == "D4 T4 E16"]
    kinds = ["best policy, fits", "best policy, too little memory", "paper's policy, fits"]
    x = {
        "field": "devices",
        "type": "quantitative",
        "title": "devices for attention, D T (of 32)",
        "scale": {"domain": [0, 32]},
    }
    y = {"field": "rps", "type": "quantitative", "title": "SLO throughput (requests/s)"}  # fmt: skip
    colour = {
        "field": "T",
        "type": "nominal",
        "title": "T",
        "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
    }
    shape = {
        "field": "kind",
        "type": "nominal",
        "title": None,
        "scale": {"domain": kinds, "range": ["circle", "circle", "cross"]},
        "legend": None,
    }
    points = {
        "mark": {"type": "point", "size": 60, "strokeWidth": 1.5},
        "encoding": {
            "x": x,
            "y": y,
            "color": colour,
            "shape": shape,
            "fill": {"condition": {"test": "datum.filled", "field": "T", "type": "nominal",
                                   "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
                                   "legend": None},
                     "value": "transparent"},
        },
    }  # fmt: skip
    label = {
        "data": {"values": paper},
        "mark": {"type": "text", "dx": 8, "dy": -4, "align": "left", "fontSize": 11},
        "encoding": {"x": x, "y": y, "text": {"value": "the paper's"}},
    }
    line = {
        "data": {"values": [{"rps": sync_rps, "text": "best synchronous"}]},
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [4, 3], "color": "#555"}, "encoding": {"y": y}},
            {
                "mark": {"type": "text", "align": "left", "x": 3, "dy": -6, "fontSize": 11, "color": "#555"},
                "encoding": {"y": y, "text": {"field": "text"}},
            },
        ],
    }
    return {
        "title": ["Every split: filled circles fit 64 GB, hollow ones do not,", "crosses: with the paper's policy"],
        "width": 400,
        "height": 300,
        "data": {"values": tuned + ours},
        "layer": [points, line, label],
    }


def _point(row: "pd.Series[Any]", kind: str, filled: bool) -> dict[str, Any]:
    D, T, E = (int(row[key]) for key in ("D", "T", "E"))
    return {
        "devices": D * T,
        "rps": float(row["slo_throughput_rps"]),
        "T": str(T),
        "kind": kind,
        "filled": bool(filled),
        "layout": f"D{D} T{T} E{E}",
    }


def _bounds(bounds: Bounds) -> dict[str, Any]:
    values = []
    for D, (limit, slo) in bounds.items():
        found = (limit.attention, limit.experts, limit.in_flight, slo)
        values += [{"D": D, "what": what, "rps": rps} for what, rps in zip(_BOUNDS, found, strict=True)]
    colours = ["#1b7837", "#b35806", "#2166ac", "black"]
    scale = {"domain": list(_BOUNDS), "range": colours}
    return {
        "title": ["T = 4 without a limit of memory, best policy:", "what bounds throughput, and what is reached"],
        "width": 340,
        "height": 300,
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "D", "type": "quantitative", "title": "groups D (E = 32 - 4 D)", "axis": {"tickCount": 7}},
            "y": {"field": "rps", "type": "quantitative", "title": "requests/s", "scale": {"domainMax": 60},
                  "axis": {"tickCount": 6}},
            "color": {"field": "what", "type": "nominal", "title": None, "scale": scale, "sort": list(_BOUNDS),
                      "legend": {"orient": "right"}},
            "strokeDash": {"field": "what", "type": "nominal", "legend": None,
                           "scale": {"domain": list(_BOUNDS), "range": [[4, 3], [4, 3], [4, 3], [1, 0]]}},
        },
    }  # fmt: skip
