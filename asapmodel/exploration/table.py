"""The table of an exploration: what each point is, before what it does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asapmodel.errors import InputError
from asapmodel.exploration.keys import column, part

if TYPE_CHECKING:
    import pandas as pd

    from asapmodel.exploration.designs import Designs
    from asapmodel.exploration.space import Space
    from asapmodel.scenario import Scenario

__all__ = ["points_table", "varied_columns"]

_ALWAYS = ("system.kind", "system.D", "system.T", "system.E")


def varied_columns(space: Space) -> list[str]:
    """Columns of the keys that vary, beyond the kind of system and its degrees."""
    return [column(key) for key in space.vary if key not in _ALWAYS]


def points_table(space: Space, designs: Designs) -> pd.DataFrame:
    """A row per point: `point`, `scenario`, `system`, `D`, `T`, `E`, `devices`, the varied keys, `price`.

    Values of `[policy]` are as the policy reads them (times in seconds); others as the space gives them. Empty where a
    key does not act on the kind of system. `price` is per device-hour, NaN where the space has none.

    Raises
    ------
    InputError
        If the price of a device is missing.
    """
    import pandas as pd

    keys = [key for key in space.vary if key not in _ALWAYS]
    columns: dict[str, list[Any]] = {name: [] for name in ("scenario", "system", "D", "T", "E", "devices")}
    varied: dict[str, list[Any]] = {column(key): [] for key in keys}
    prices: list[float] = []
    plain: dict[str, Any] = {}  # a policy's value, as it reads it
    for group in designs.groups:
        count, layout = len(group.policies), group.scenario.layout
        known = (group.scenario.name, layout.kind, layout.D, layout.T, layout.E, layout.devices)
        for values, one in zip(columns.values(), known, strict=True):
            values += [one] * count
        prices += [_price(space, group.scenario)] * count
        for key in keys:
            if part(key) != "policy":
                varied[column(key)] += [_cell(group.values.get(key))] * count
                continue
            for changes in group.policies:
                place = f"{key} {changes.get(key)!r}"
                if place not in plain:
                    plain[place] = _policy_value(group.scenario, key, changes.get(key))
                varied[column(key)].append(plain[place])
    table = pd.DataFrame({"point": range(designs.count), **columns, **{k: _uniform(v) for k, v in varied.items()}})
    return table.assign(price=prices)


def _policy_value(scenario: Scenario, key: str, value: Any) -> Any:
    if value is None:
        return None
    name = key.partition(".")[2]
    # Unlike a number a time may be text; no other key of a policy has to be read.
    return getattr(scenario.replace(**{key: value}).policy, name) if name == "batch_window" else value


def _cell(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value


def _uniform(values: list[Any]) -> list[Any]:
    """Values of one type, so that they make a column: numbers stay, other mixtures become text."""
    types = {type(one) for one in values if one is not None}
    if len(types) < 2 or types == {int, float}:
        return values
    return [one if one is None else str(one) for one in values]


def _price(space: Space, scenario: Scenario) -> float:
    if space.price is None:
        return float("nan")
    device = scenario.devices.value.device
    price = space.price.get("", space.price.get(device))
    if price is None:
        remedy = f'add it, e.g. price = {{ "{device}" = 2.5 }}, or give one number for all'
        raise InputError(space.source, "price", f"has none for device '{device}'", remedy)
    return price
