"""Arguments of compiled loops as a block of 8-byte slots, and what they are, so that a kept loop can be found.

A number takes a slot, a named tuple those of its parts, an array one: the address of the array object, from which the
loop reads where the data lies and its shape, once it has seen that it is the array it was compiled for. What an
argument *is* (number, named tuple and its class, element type and dimensions of an array, whether it may be written) is
its kind; a loop is compiled for one sequence of kinds.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ELEMENTS", "Group", "Kind", "Unkept", "flat", "kinds_of", "name_of", "parts_of", "slot_of"]

Kind = str | type
"""``"int"``, ``"float"``, ``"bool"``; element type, dimensions and access of an array; class of a named tuple."""


class Group(NamedTuple):
    """A named tuple: its class, its parts, and whether all of them are arrays."""

    kind: type
    parts: list[Any]  # each a kind or a Group
    only_arrays: bool


ELEMENTS = {"int": np.int64, "float": np.float64, "bool": np.bool_}

_NUMBERS: dict[type, str] = {bool: "bool", np.bool_: "bool", float: "float", np.float64: "float", np.int64: "int"}
_LIKE = frozenset(_NUMBERS.values())
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_ARRAYS = {
    (np.dtype(element).str, dimensions, access == "w"): f"{name} {dimensions} {access}"
    for name, element in ELEMENTS.items()
    for dimensions in range(1, 5)
    for access in "rw"
}


class Unkept(Exception):
    """Something for which no machine code is kept; numba compiles it, or says what is wrong."""


def kinds_of(arguments: Iterable[Any]) -> list[Kind]:
    """Kinds of arguments, those of a named tuple's parts behind its own.

    Raises
    ------
    Unkept
        If one has none: an array that is not contiguous or not of 8-byte numbers or truth values, an integer beyond
        64 bits, any other object.

    Examples
    --------
    >>> kinds_of((3, 0.5, np.zeros((2, 2))))
    ['int', 'float', 'float 2 w']
    """
    kinds: list[Kind] = []
    for one in arguments:
        kind = type(one)
        if kind is np.ndarray:
            kinds.append(_array_kind(one))
        elif number := _number_kind(one):
            kinds.append(number)
        elif isinstance(one, tuple) and hasattr(kind, "_fields"):
            kinds += [kind, *kinds_of(one)]
        else:
            raise Unkept(f"an argument of {kind}")
    return kinds


def _array_kind(array: Any) -> str:
    found = _ARRAYS.get((array.dtype.str, array.ndim, array.flags.writeable))
    if found is None or not (array.flags.c_contiguous and array.flags.aligned):
        raise Unkept(f"an array of {array.ndim} dimensions of {array.dtype}, strides {array.strides}")
    return found


def _number_kind(number: Any) -> str | None:
    if type(number) is int:
        return "int" if _SMALLEST <= number <= _LARGEST else None
    return _NUMBERS.get(type(number))


def parts_of(kinds: Iterator[Kind]) -> Iterator[str | Group]:
    """Arguments of a sequence of kinds; a named tuple takes those of its parts from those that follow."""
    for kind in kinds:
        if isinstance(kind, str):
            yield kind
        else:
            behind = parts_of(kinds)
            parts = [next(behind) for _ in _fields(kind)]
            yield Group(kind, parts, all(isinstance(part, str) and part not in _LIKE for part in parts))


def flat(arguments: Iterable[Any], parts: Sequence[str | Group]) -> list[Any]:
    """Slots of arguments; whether they are the arrays it takes is for the loop to see, all else is checked here.

    Raises
    ------
    Unkept
        If they are not these numbers and named tuples.
    """
    slots: list[Any] = []
    for one, part in zip(arguments, parts, strict=True):
        if isinstance(part, Group):
            kind = type(one)
            if kind is not part.kind:
                raise Unkept("another named tuple")
            slots += map(id, one) if part.only_arrays else flat(one, part.parts)
        elif part in _LIKE:
            if _number_kind(one) != part:
                raise Unkept("another number")
            slots.append(one)
        else:
            slots.append(id(one))
    return slots


def slot_of(kind: Kind) -> str:
    """Letter by which `struct` packs the slot of a kind; none for a named tuple, whose parts have theirs."""
    return "" if isinstance(kind, type) else "d" if kind == "float" else "q"


def name_of(kind: Kind) -> str:
    """Name of a kind that is the same in every process."""
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}{_fields(kind)}"


def _fields(kind: type) -> tuple[str, ...]:
    fields: tuple[str, ...] = getattr(kind, "_fields")  # noqa: B009
    return fields
