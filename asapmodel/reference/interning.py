"""Numbers for values: equal contents get the same number, arrays by their bytes."""

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from asapmodel.reference.devices import AttentionDevice, ExpertDevice
from asapmodel.reference.group import Turns

__all__ = ["Interned", "content"]


class Interned:
    """Values by number, and numbers by content."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._values: list[Any] = []

    def number(self, value: Any) -> int:
        """Number of a value; the same for another value of equal content."""
        key = content(value)
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(value)
        return self._numbers[key]

    def value(self, number: int) -> Any:
        """Return the value of that content that came first; nobody may change it."""
        return self._values[number]


def content(value: Any) -> Hashable:
    """What makes a value what it is, as something that can be a key.

    Examples
    --------
    >>> content(np.array([1, 2])) == content(np.array([1, 2]))
    True
    >>> content((1, 2.0)) == content((1.0, 2.0))
    False
    """
    match value:
        case None | str() | bytes() | range() | Callable():
            return value
        case bool() | int() | float():
            return type(value), value
        case np.ndarray():
            return value.dtype.str, value.shape, value.tobytes()
        case tuple() | list():
            return type(value), *map(content, value)
        case dict():
            return "dict", *((key, content(one)) for key, one in sorted(value.items()))
        case AttentionDevice():  # of a device only what it remembers can differ from one moment to the next
            return "attention", value.i, value.j, content(value._caches)
        case ExpertDevice():
            return "moe", value.e
        case Turns():
            return "turns", content(value._early)
        case _ if is_dataclass(value):
            return type(value), *(content(getattr(value, field.name)) for field in fields(value))
    raise TypeError(f"{type(value).__name__} has no content to compare")
