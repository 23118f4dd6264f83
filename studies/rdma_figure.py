"""Figure of the network: heat maps of the gain, and what latency costs the asynchronous system."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asapmodel.studies.rdma_laws import Laws

if TYPE_CHECKING:
    from asapmodel.studies.rdma import Cell

__all__ = ["rdma_figure"]

_SOURCES = {
    "queueing engine": ("#1b7837", [1, 0]),
    "bound, latency occupies streams": ("#b35806", [4, 3]),
    "bound, latency is a delay": ("#2166ac", [4, 3]),
}


def rdma_figure(cells: Sequence["Cell"], laws: Laws) -> dict[str, Any]:
    """Above: gain over both synchronous systems. Below: throughput against that at the least latency."""
    maps = [
        _heat("Gain of asap over chunked", [(one, one.asap / one.chunked - 1) for one in cells], [0, 1]),
        _heat("Gain of asap over default", [(one, one.asap / one.default - 1) for one in cells], [0, 5]),
    ]
    upper = {"spacing": 40, "hconcat": maps, "resolve": {"scale": {"color": "independent"}}}
    apart = {"scale": {"color": "independent", "strokeDash": "independent"}}
    return {"spacing": 30, "vconcat": [upper, _losses(cells, laws)], "resolve": apart}


def _heat(title: str, pairs: Sequence[tuple["Cell", float]], domain: list[float]) -> dict[str, Any]:
    values = [{"latency": one.latency, "bandwidth": one.bandwidth, "gain": gain} for one, gain in pairs]
    middle = sum(domain) / 2
    return {
        "title": title,
        "width": 380,
        "height": 150,
        "data": {"values": values},
        "encoding": {
            "x": {"field": "latency", "type": "ordinal", "title": "latency (us)", "axis": {"labelAngle": 0}},
            "y": {"field": "bandwidth", "type": "ordinal", "sort": "descending", "title": "link, one way (GB/s)"},
        },
        "layer": [
            {
                "mark": "rect",
                "encoding": {
                    "color": {
                        "field": "gain",
                        "type": "quantitative",
                        "scale": {"domain": domain, "scheme": "greens", "clamp": True},
                        "legend": None,
                    }
                },
            },
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": {"field": "gain", "type": "quantitative", "format": ".0%"},
                    "color": {"condition": {"test": f"datum.gain > {middle}", "value": "white"}, "value": "black"},
                },
            },
        ],
    }


def _losses(cells: Sequence["Cell"], laws: Laws) -> dict[str, Any]:
    domain = list(_SOURCES)
    legend = {"orient": "right", "symbolType": "stroke"}
    colours, dashes = ([style[k] for style in _SOURCES.values()] for k in (0, 1))
    source = {"field": "source", "type": "nominal", "title": None, "sort": domain, "legend": legend}
    share = {
        "field": "share",
        "type": "quantitative",
        "title": "share left",
        "axis": {"format": ".0%"},
        "scale": {"domain": [0.7, 1.01], "nice": False},
    }
    return {
        "title": "asap at 196 GB/s: SLO throughput, and bounds of mean batches, against those at 10 us",
        "width": 520,
        "height": 220,
        "data": {"values": _shares(cells, laws)},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": {"field": "latency", "type": "quantitative", "title": "latency of a send (us)"},
            "y": share,
            "color": {**source, "scale": {"domain": domain, "range": colours}},
            "strokeDash": {**source, "scale": {"domain": domain, "range": dashes}},
        },
    }


def _shares(cells: Sequence["Cell"], laws: Laws) -> list[dict[str, Any]]:
    """What is left of the throughput at the least latency, on the fastest link."""
    fast = [one for one in cells if one.bandwidth == max(cell.bandwidth for cell in cells)]
    values = []
    for one in fast:
        tau = 1e-6 * one.latency
        first = 1e-6 * fast[0].latency
        found = (
            one.asap / fast[0].asap,
            laws.rate(tau, True) / laws.rate(first, True),
            laws.rate(tau, False) / laws.rate(first, False),
        )
        values += [
            {"latency": one.latency, "source": source, "share": share}
            for source, share in zip(_SOURCES, found, strict=True)
        ]
    return values
