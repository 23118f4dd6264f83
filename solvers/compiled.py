"""How inner loops are compiled that read and write the arrays they are given and make none.

numba counts references to an array each time one is read out of a tuple, atomically; in code that works on a dozen
arrays event by event that took three quarters of the time. Nothing can be freed while such a function runs, because
its caller holds every array, so the counting is left out (numba's option `_nrt`, which the public documentation does
not name; where a version of numba lacks it, the same code runs with the counting).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["arrays_only"]

F = TypeVar("F", bound=Callable[..., Any])

_jit: Any = numba.njit
_OPTIONS = {"cache": True, "nogil": True, "forceinline": True}


def arrays_only(function: F) -> F:
    """Compile a function that makes no array; one that does is refused when it is compiled."""
    try:
        compiled: F = _jit(**_OPTIONS, _nrt=False)(function)
    except KeyError:  # an option that this numba does not know
        compiled = _jit(**_OPTIONS)(function)
    return compiled
