"""How inner loops are compiled that read and write the arrays they are given and make none.

numba counts references to an array each time one is read out of a tuple, atomically; in code that works on a dozen
arrays event by event that took three quarters of the time. Nothing can be freed while such a function runs, because
its caller holds every array, so the counting is left out (numba's option `_nrt`, which the public documentation does
not name; where a version of numba lacks it, the same code runs with the counting).

At its first use numba loads SciPy's linear algebra, only to see whether it is there, for a third of a second that no
loop of ours needs. Here that look is left out while numba's array functions are loaded; a loop that multiplies matrices
still loads what it needs.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

__all__ = ["arrays_only", "njit"]

F = TypeVar("F", bound=Callable[..., Any])

_jit: Any = njit
_OPTIONS = {"cache": True, "nogil": True, "forceinline": True}


def arrays_only(function: F) -> F:
    """Compile a function that makes no array; one that does is refused when it is compiled."""
    try:
        compiled: F = _jit(**_OPTIONS, _nrt=False)(function)
    except KeyError:  # an option that this numba does not know
        compiled = _jit(**_OPTIONS)(function)
    return compiled


def _load_without_linear_algebra() -> None:
    try:
        from numba.np import linalg

        look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    except (ImportError, AttributeError):  # another version of numba: it looks, and takes its time
        return
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look


_load_without_linear_algebra()
