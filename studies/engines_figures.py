"""Figures of the comparison of the engines: errors against utilisation, predicted against measured, whole laws."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from asapmodel.engines.graph import run
from asapmodel.studies.engines_errors import Error
from asapmodel.studies.engines_runs import requests_of
from asapmodel.studies.pages import save_figure

__all__ = ["draw_figures"]

_COLOURS = {"sync": "#b35806", "asap": "#1b7837"}
_NAMES = {"sync": "synchronous", "asap": "asynchronous"}
_CLIP = 0.5  # errors beyond are drawn at the edge
_REQUESTS = {"sync": 400_000, "asap": 60_000}  # of a law
_HEADER = {"labelFontSize": 12}
_SCALE = {"domain": list(_NAMES.values()), "range": list(_COLOURS.values())}


def draw_figures(errors: Sequence[Error], folder: Path) -> list[Error]:
    """Write the three figures; return the errors whose laws are drawn."""
    save_figure(errors_figure(errors), folder / "engines-errors.svg")
    save_figure(parity_figure(errors), folder / "engines-parity.svg")
    chosen = chosen_laws(errors)
    save_figure(laws_figure(chosen), folder / "engines-laws.svg")
    return chosen


def _colour(legend: bool = True) -> dict[str, Any]:
    return {
        "field": "system",
        "type": "nominal",
        "scale": _SCALE,
        "title": None,
        "legend": {"orient": "top"} if legend else None,
    }


def _error_values(errors: Sequence[Error]) -> list[dict[str, Any]]:
    """A row per case and statistic, and rows with `low` and `high` for median and range."""
    table: dict[tuple[str, str, str], list[float]] = {}
    for error in errors:
        for name, value in (("mean TTFT", error.mean), ("99th percentile", error.p99)):
            key = name, _NAMES[error.case.system], f"{error.row.utilisation:g}"
            table.setdefault(key, []).append(float(np.clip(value, -_CLIP, _CLIP)))
    values: list[dict[str, Any]] = []
    for (name, system, share), some in sorted(table.items()):
        place = {"of": name, "system": system, "utilisation": share}
        low, middle, high = np.quantile(np.array(some), [0.05, 0.5, 0.95])
        values += [{**place, "error": value} for value in some]
        values.append({**place, "low": float(low), "error": float(middle), "high": float(high)})
    return values


def errors_figure(errors: Sequence[Error]) -> dict[str, Any]:
    """Errors of mean and 99th percentile by utilisation: every case a tick, median and 5 to 95 % range in black."""
    title = "utilisation (share of the saturation throughput)"
    x = {"field": "utilisation", "type": "nominal", "title": title, "axis": {"labelAngle": 0}}
    y = {
        "field": "error",
        "type": "quantitative",
        "title": f"relative error (clipped at {_CLIP:.0%})",
        "axis": {"format": "+.0%"},
        "scale": {"domain": [-_CLIP, _CLIP]},
    }
    shared = {"x": x, "xOffset": {"field": "system", "scale": {"domain": list(_NAMES.values())}}}
    summary = [{"filter": "isValid(datum.low)"}]
    ticks = {
        "mark": {"type": "tick", "opacity": 0.45, "thickness": 1, "width": 16},
        "transform": [{"filter": "!isValid(datum.low)"}],
        "encoding": {**shared, "y": y, "color": _colour()},
    }
    bars = {
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "transform": summary,
        "encoding": {**shared, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
    }
    dots = {
        "mark": {"type": "point", "filled": True, "color": "black", "size": 45},
        "transform": summary,
        "encoding": {**shared, "y": y},
    }
    return {
        "title": "Queueing engine against graph engine: a tick is a random case; dot and bar are median and 5 to 95 %",
        "data": {"values": _error_values(errors)},
        "facet": {"field": "of", "title": None, "sort": ["mean TTFT", "99th percentile"], "header": _HEADER},
        "spec": {"width": 360, "height": 300, "layer": [ticks, bars, dots]},
    }


def parity_figure(errors: Sequence[Error]) -> dict[str, Any]:
    """Predicted against measured mean TTFT, and saturation throughput."""
    panels = []
    pairs = [
        ("mean TTFT (s), all utilisations", [(e.row.mean_s, e.mean_s, e.case.system) for e in errors]),
        (
            "saturation throughput (requests/s)",
            [(e.row.saturation_rps, e.saturation_rps, e.case.system) for e in errors if e.row.utilisation == 0.6],
        ),
    ]
    for title, points in pairs:
        finite = [(a, b, _NAMES[s]) for a, b, s in points if np.isfinite(b)]
        low, high = min(a for a, _, _ in finite) / 1.2, max(a for a, _, _ in finite) * 1.2
        scale = {"type": "log", "domain": [low, high]}
        axis = {"values": [10.0**k for k in range(-3, 6)], "format": "~g"}  # in between labels run into each other
        shared = {"type": "quantitative", "scale": scale, "axis": axis}
        dots = {
            "data": {"values": [{"measured": a, "predicted": b, "system": s} for a, b, s in finite]},
            "mark": {"type": "point", "filled": True, "opacity": 0.5, "size": 22, "clip": True},
            "encoding": {
                "x": {"field": "measured", "title": "graph engine", **shared},
                "y": {"field": "predicted", "title": "queueing engine", **shared},
                "color": _colour(),
            },
        }
        line = {
            "data": {"values": [{"measured": low, "predicted": low}, {"measured": high, "predicted": high}]},
            "mark": {"type": "line", "color": "black", "strokeWidth": 1},
            "encoding": {"x": {"field": "measured", **shared}, "y": {"field": "predicted", **shared}},
        }
        panels.append({"title": title, "width": 330, "height": 330, "layer": [line, dots]})
    return {"hconcat": panels}


def chosen_laws(errors: Sequence[Error]) -> list[Error]:
    """Per system, at utilisation 0.8, the cases of median and 90th percentile absolute error of the 99th percentile."""
    chosen = []
    for system in _NAMES:
        some = [e for e in errors if e.case.system == system and e.row.utilisation == 0.8 and e.point is not None]
        ordered = sorted(some, key=lambda e: abs(e.p99))
        chosen += [ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.9) if ordered]
    return chosen


def _law_values(error: Error) -> list[dict[str, Any]]:
    """Share of requests with a longer TTFT, of a run of the graph engine and of the law."""
    case, point = error.case, error.point
    assert point is not None
    requests = requests_of(case, error.row.rate_rps, _REQUESTS[case.system], 50_000)
    end = run(case.scenario.layout, case.scenario.policy, case.problem.costs, requests).outcome.end
    ttft = (end - requests.arrival)[len(end) // 10 :] + case.problem.costs.request_latency
    shares = np.concatenate([np.linspace(0, 0.9, 46), 1 - np.geomspace(0.1, 1e-3, 41)])
    law = point.ttft
    keep = law.cdf <= 0.999
    both = {"graph": (np.quantile(ttft, shares), shares), "queueing": (law.time[keep], law.cdf[keep])}
    return [
        {"ttft": float(time), "longer": float(1 - share), "engine": engine}
        for engine, (times, cdf) in both.items()
        for time, share in zip(times, cdf, strict=True)
    ]


def laws_figure(chosen: Sequence[Error]) -> dict[str, Any]:
    """Share of requests with a longer TTFT: the law of the queueing engine and the graph engine's."""
    panels = []
    for error in chosen:
        colours = ["#888888", _COLOURS[error.case.system]]
        engine = {"field": "engine", "type": "nominal", "title": "engine"}
        names = ["graph", "queueing"]
        scale = {"type": "log", "domain": [1e-3, 1]}
        y = {"field": "longer", "type": "quantitative", "title": "share of requests with a longer one", "scale": scale}
        panels.append(
            {
                "title": f"{_NAMES[error.case.system]} case {error.case.index}: p99 {error.p99:+.1%}",
                "width": 330,
                "height": 200,
                "data": {"values": _law_values(error)},
                "mark": {"type": "line", "clip": True},
                "encoding": {
                    "x": {"field": "ttft", "type": "quantitative", "title": "TTFT (s)"},
                    "y": y,
                    "color": {**engine, "scale": {"domain": names, "range": colours}},
                    "strokeDash": {**engine, "scale": {"domain": names, "range": [[1, 0], [5, 3]]}},
                },
            }
        )
    own = {"scale": {"color": "independent", "strokeDash": "independent"}}
    rows = [{"hconcat": panels[k : k + 2], "resolve": own} for k in range(0, len(panels), 2)]
    return {"vconcat": rows, "resolve": own}
