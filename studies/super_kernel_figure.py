"""Figure of the super kernel: share of SLO throughput lost to exposed host dispatch, engine and closed form."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asapmodel.studies.super_kernel import Curve

__all__ = ["loss_figure"]

_COLOURS = ["#b35806", "#1b7837", "#2166ac", "#998ec3"]
_TITLES = {"batches": "Fewest tokens of a batch, E = 16", "devices": "MoE devices, batches of 2,048 tokens"}
_MEASURED_US = 220.0


def loss_figure(curves: Sequence["Curve"], host_us: Sequence[float]) -> dict[str, Any]:
    """Lines of the queueing engine, dashed ones of the closed form, a rule at the paper's 220 us."""
    panels = [_panel(kind, [one for one in curves if one.kind == kind], host_us) for kind in _TITLES]
    return {"spacing": 40, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}


def _panel(kind: str, curves: Sequence["Curve"], host_us: Sequence[float]) -> dict[str, Any]:
    values = [
        {"host": host, "what": one.name, "source": source, "loss": float(loss)}
        for one in curves
        for source, losses in (("queueing engine", one.loss), ("closed form", one.law))
        for host, loss in zip(host_us, losses, strict=True)
    ]
    names = [one.name for one in curves]
    dash = {"domain": ["queueing engine", "closed form"], "range": [[1, 0], [4, 3]]}
    legend = {"orient": "bottom", "columns": 1, "symbolType": "stroke"}
    lines = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": {"field": "host", "type": "quantitative", "title": "host dispatch of a layer (us)"},
            "y": {
                "field": "loss",
                "type": "quantitative",
                "title": "SLO throughput lost",
                "axis": {"format": ".0%"},
                "scale": {"domain": [0, 0.5]},
            },
            "color": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "sort": names,
                "scale": {"domain": names, "range": _COLOURS[: len(names)]},
                "legend": legend,
            },
            "strokeDash": {"field": "source", "type": "nominal", "title": None, "scale": dash, "legend": legend},
        },
    }
    measured = {
        "data": {"values": [{"host": _MEASURED_US}]},
        "mark": {"type": "rule", "color": "#777777", "strokeDash": [2, 3]},
        "encoding": {"x": {"field": "host", "type": "quantitative"}},
    }
    return {"title": _TITLES[kind], "width": 340, "height": 280, "layer": [lines, measured]}
