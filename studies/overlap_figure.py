"""Figure of the communication streams: SLO throughput and gain against the length of the transfers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapmodel.studies.overlap import Row

__all__ = ["overlap_figure"]

_COLOURS = ["#b35806", "#998ec3", "#1b7837", "#2166ac"]


def overlap_figure(rows: Sequence["Row"]) -> dict[str, Any]:
    """Left: SLO throughput (lines) and upper bound of the limit (dashed); right: what each kind of stream adds."""
    names = list(dict.fromkeys(row.streams for row in rows))
    values = [
        {"x": row.factor, "streams": row.streams, "kind": kind, "rps": value}
        for row in rows
        for kind, value in (("SLO throughput", row.slo_rps), ("upper bound of the limit", row.bound_rps))
    ]
    at = {(row.factor, row.streams): row.slo_rps for row in rows}
    neither, alone, moe, both = names
    pairs = {"MoE streams": (moe, neither), "attention streams, beside MoE's": (both, moe)}
    pairs["attention streams alone"] = (alone, neither)
    gains = [
        {"x": x, "what": what, "gain": at[x, above] / at[x, below] - 1}
        for x in dict.fromkeys(row.factor for row in rows)
        for what, (above, below) in pairs.items()
    ]
    panels = [_throughput(values, names), _gain(gains, list(pairs))]
    return {"spacing": 40, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}


def _axis() -> dict[str, Any]:
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [0.5, 8], "nice": False},
        "axis": {"values": [0.5, 1, 2, 4, 8], "format": "~g"},
        "title": "transfer times, multiples of the paper's",
    }


def _colour(field: str, domain: list[str], colours: list[str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": domain,
        "scale": {"domain": domain, "range": colours},
        "legend": {"orient": "bottom", "columns": 1, "symbolType": "stroke"},
    }


def _throughput(values: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    dash = {"domain": ["SLO throughput", "upper bound of the limit"], "range": [[1, 0], [4, 3]]}
    return {
        "title": "SLO throughput by who has streams",
        "width": 340,
        "height": 280,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": _axis(),
            "y": {"field": "rps", "type": "quantitative", "title": "requests/s", "scale": {"domain": [0, 25]}},
            "color": _colour("streams", names, _COLOURS),
            "strokeDash": {
                "field": "kind",
                "type": "nominal",
                "title": None,
                "scale": dash,
                "legend": {"orient": "bottom", "columns": 1},
            },
        },
    }


def _gain(gains: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    return {
        "title": "What they add to the SLO throughput",
        "width": 340,
        "height": 280,
        "data": {"values": gains},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": _axis(),
            "y": {"field": "gain", "type": "quantitative", "title": "gain", "axis": {"format": ".0%"}},
            "color": _colour("what", names, ["#1b7837", "#2166ac", "#998ec3"]),
        },
    }
