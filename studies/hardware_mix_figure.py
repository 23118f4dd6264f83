"""Figure of the hardware mix: requests per price by the price of the special device."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asapmodel.studies.hardware_mix_devices import Point, best_value

__all__ = ["hardware_mix_figure"]

Pairs = Mapping[tuple[str, str], Sequence[Point]]

_COLOURS = {"plain": "#555555", "attention special": "#1b7837", "experts special": "#2166ac", "all special": "#b35806"}
_RANGES = {"compute-rich": (1.0, 2.4), "bandwidth-rich": (0.3, 1.0)}


def hardware_mix_figure(fits: Pairs, found: Pairs) -> dict[str, Any]:
    """A row for each memory, a panel for each special kind."""
    rows = []
    for memory, some in (("64 GB", fits), ("any memory", found)):
        panels = [_panel(f"special: {kind}, {memory}", kind, some) for kind in _RANGES]
        rows.append({"spacing": 40, "hconcat": panels})
    return {"spacing": 30, "vconcat": rows}


def _panel(title: str, kind: str, found: Pairs) -> dict[str, Any]:
    low, high = _RANGES[kind]
    systems = {
        "plain": (("plain", "plain"), (0, 0)),
        "attention special": ((kind, "plain"), (1, 0)),
        "experts special": (("plain", kind), (0, 1)),
        "all special": ((kind, kind), (1, 1)),
    }
    values = []
    for price in np.linspace(low, high, 36):
        for name, (pair, special) in systems.items():
            prices = [float(price) if one else 1.0 for one in special]
            best = best_value(found[pair], prices[0], prices[1])
            values.append({"price": float(price), "value": best.value(prices[0], prices[1]), "system": name})
    return {
        "title": title,
        "width": 330,
        "height": 200,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": {
                "field": "price",
                "type": "quantitative",
                "title": "price of a special device (plain = 1)",
                "scale": {"domain": [low, high], "nice": False},
            },
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": "requests/s per price",
                "scale": {"domain": [0.3, 1.5], "clamp": True},
            },
            "color": {
                "field": "system",
                "type": "nominal",
                "title": None,
                "scale": {"domain": list(_COLOURS), "range": list(_COLOURS.values())},
            },
        },
    }
