"""How inner loops are compiled that read and write the arrays they are given and make none.

numba counts references to an array each time one is read out of a tuple, atomically; in code that works on a dozen
arrays event by event that took three quarters of the time. Nothing can be freed while such a function runs, because
its caller holds every array, so the counting is left out (numba's option `_nrt`, which the public documentation does
not name; where a version of numba lacks it, the same code runs with the counting).
"""

from typing import Any

from numba import njit

__all__ = ["ARRAYS_ONLY"]


def _options() -> dict[str, Any]:
    options = {"cache": True, "nogil": True}
    try:
        njit(_nrt=False)(lambda: None)
    except KeyError:  # an option that this numba does not know
        return options
    return options | {"_nrt": False}


ARRAYS_ONLY: dict[str, Any] = _options()
"""Options of `numba.njit` for a function that makes no array; one that does is refused when it is compiled."""
