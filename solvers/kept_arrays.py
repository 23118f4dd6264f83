"""Where array objects of NumPy hold what compiled loops read of them, and whether this process has them so.

The fields of an array object are part of NumPy's binary interface; every extension module reads them in place. Offsets
are in bytes, for 64-bit processors that store the low byte first.
"""

import ctypes
import sys
from functools import cache

import numpy as np

from asapmodel.solvers.kept_arguments import ELEMENTS

__all__ = [
    "BYTE_ORDER",
    "DATA",
    "DIMENSIONS",
    "ELEMENT",
    "FLAGS",
    "NEEDED",
    "SCALAR",
    "SHAPE",
    "TYPE",
    "WRITABLE",
    "readable_arrays",
    "types_to_see",
]

_HEAD = object.__basicsize__
TYPE = _HEAD - 8
DATA, DIMENSIONS, SHAPE, ELEMENT, FLAGS = (_HEAD + offset for offset in (0, 8, 16, 40, 48))
"""Of an array: address of the data, number of dimensions (32 bits), addresses of the shape and of the element type,
flags (32 bits)."""

SCALAR, BYTE_ORDER = _HEAD, _HEAD + 10
"""Of an element type: address of the class of its numbers, byte order (a letter)."""

NEEDED, WRITABLE = 0x101, 0x400
"""Flags: contiguous and aligned; writable."""


def types_to_see() -> list[int]:
    """Addresses of the class of arrays and of the classes of elements, in the order of `ELEMENTS`."""
    return [id(np.ndarray), *map(id, ELEMENTS.values())]


@cache
def readable_arrays() -> bool:
    """Whether arrays of this process are laid out like that, as far as two of them show."""
    if sys.byteorder != "little" or sys.maxsize != 2**63 - 1:
        return False
    ours, other = np.zeros((3, 5)), np.zeros((2, 2), dtype=">i8").T
    other.flags.writeable = False
    return _is_read(ours, np.float64, NEEDED | WRITABLE, b"=") and _is_read(other, np.int64, NEEDED & ~1, b">")


def _is_read(array: np.ndarray, element: type, flags: int, order: bytes) -> bool:
    if _word(id(array) + TYPE) != id(np.ndarray) or _word(id(array) + DATA) != array.ctypes.data:
        return False
    if _half(id(array) + DIMENSIONS) != 2 or _half(id(array) + FLAGS) & (NEEDED | WRITABLE) != flags:
        return False
    shape, described = _word(id(array) + SHAPE), _word(id(array) + ELEMENT)
    if described != id(array.dtype) or (_word(shape), _word(shape + 8)) != array.shape:
        return False
    return _word(described + SCALAR) == id(element) and ctypes.string_at(described + BYTE_ORDER, 1) == order


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _half(address: int) -> int:
    return ctypes.c_int32.from_address(address).value
