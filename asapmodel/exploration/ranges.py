"""The values of a key that a space varies: a list, or a range in steps or factors."""

import math
from collections.abc import Mapping
from typing import Any

from asapmodel.errors import InputError
from asapmodel.tables import nearest

__all__ = ["RANGE_KEYS", "values_of"]

RANGE_KEYS = frozenset({"from", "to", "step", "factor"})
"""Keys of a range; any other table of `[vary]` holds keys one level deeper."""

_MOST = 100_000


def values_of(given: Any, where: str, key: str) -> tuple[Any, ...]:
    """Return the values that a list or a range stands for, in order, each once.

    Parameters
    ----------
    given : list or table
        A list, ``{from, to, step}`` or ``{from, to, factor}``, both ends included.
    where, key : str
        The file, and the key in it, for the message.

    Raises
    ------
    InputError
        If it is neither, empty, or a range that does not end.

    Examples
    --------
    >>> values_of({"from": 4, "to": 16, "step": 4}, "space.toml", "vary.E")
    (4, 8, 12, 16)
    >>> values_of({"from": 1, "to": 8, "factor": 2}, "space.toml", "vary.T")
    (1, 2, 4, 8)
    """
    if isinstance(given, Mapping):
        return _range(given, where, key)
    if not isinstance(given, list):
        remedy = "give a list, [...], or a range, { from = ..., to = ..., step = ... }"
        raise InputError(where, key, f"is {given!r}"[:60], remedy)
    if not given:
        raise InputError(where, key, "is an empty list", "give at least one value, or leave the key out")
    # 1 and true are equal in Python, not in a file.
    return tuple({(type(one).__name__, repr(one)): one for one in given}.values())


def _range(given: Mapping[str, Any], where: str, key: str) -> tuple[Any, ...]:
    for name, value in given.items():
        if name not in RANGE_KEYS:
            remedy = f"the nearest valid key is '{nearest(name, RANGE_KEYS)}'"
            raise InputError(where, f"{key}.{name}", "unknown key of a range", remedy)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(where, f"{key}.{name}", f"is {value!r}"[:60], "give a number, or list the values")
    if not {"from", "to"} <= given.keys() or ("step" in given) == ("factor" in given):
        raise InputError(where, key, "is not a range", "give from, to, and either step or factor")
    low, high = given["from"], given["to"]
    if high < low:
        raise InputError(where, key, f"goes from {low:g} down to {high:g}", "give the lower end first")
    by_step = "step" in given
    pace = given["step"] if by_step else given["factor"]
    if pace <= (0 if by_step else 1) or (not by_step and low <= 0):
        needed = "a step above 0" if by_step else "a factor above 1 and a lower end above 0"
        raise InputError(where, key, f"does not end (from {low:g}, pace {pace:g})", f"give {needed}")
    count = (high - low) / pace if by_step else math.log(high / low) / math.log(pace)
    if count >= _MOST:
        raise InputError(where, key, f"holds more than {_MOST} values", "give a larger pace")
    # The margin and the rounding undo what binary fractions do to steps such as 0.1.
    places = range(math.floor(count + 1e-9) + 1)
    values = [low + k * pace if by_step else low * pace**k for k in places]
    whole = all(isinstance(one, int) for one in (low, pace))
    return tuple(values) if whole else tuple(float(f"{one:.12g}") for one in values)
