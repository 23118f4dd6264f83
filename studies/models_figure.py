"""Figure of the models: gain over the best chunks, with the paper's split and policy and tuned."""

from collections.abc import Sequence
from typing import Any

from asapmodel.studies.models_cases import Model

__all__ = ["models_figure"]

_COLOURS = {"the paper's split and policy": "#a6dba0", "tuned": "#1b7837"}


def models_figure(models: Sequence[Model]) -> dict[str, Any]:
    """Two bars a model, in the order given."""
    values = []
    for one in models:
        for what, gain in zip(_COLOURS, (one.gain, one.tuned_gain), strict=True):
            values.append({"model": one.name, "what": what, "gain": gain})
    kinds = list(_COLOURS)
    return {
        "title": "Gain of asynchrony in SLO throughput, over the best chunks",
        "width": 480,
        "height": {"step": 13},
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "y": {
                "field": "model",
                "type": "nominal",
                "sort": [one.name for one in models],
                "title": None,
                "axis": {"labelLimit": 300},
            },
            "yOffset": {"field": "what", "sort": kinds},
            "x": {"field": "gain", "type": "quantitative", "title": "gain", "axis": {"format": "+.0%"}},
            "color": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "scale": {"domain": kinds, "range": list(_COLOURS.values())},
            },
        },
    }
