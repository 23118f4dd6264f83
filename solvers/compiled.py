"""How inner loops are compiled, and called without numba where their machine code was kept.

Loading numba takes half a second, more than most answers. So a loop is a light object that loads numba only when it
must: `arrays_only` loops, which read and write the arrays they are given and make none, are called through machine code
kept by an earlier process (`asapmodel.solvers.kept_code`); all others, and arguments of other kinds, by numba. Results
are the same to the last bit.

numba counts references to an array each time one is read out of a tuple, atomically; in code that works on a dozen
arrays event by event that took three quarters of the time. Nothing can be freed while an `arrays_only` loop runs,
because its caller holds every array, so the counting is left out (numba's option `_nrt`, which the public documentation
does not name; where a version of numba lacks it, the same code runs with the counting).

At its first use numba loads SciPy's linear algebra, only to see whether it is there, for a third of a second that no
loop of ours needs. Here that look is left out while numba's array functions are loaded; a loop that multiplies matrices
still loads what it needs.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from asapmodel.solvers.kept_arguments import Kind, Unkept, kinds_of

if TYPE_CHECKING:
    from asapmodel.solvers.kept_code import Code
    from asapmodel.solvers.kept_loading import Loaded

__all__ = ["arrays_only", "njit"]

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = {"cache": True, "nogil": True, "forceinline": True, "_nrt": False}
_loading, _making = RLock(), RLock()  # numba's own lock may be taken under the first, and the second under that


def arrays_only(function: F) -> F:
    """Compile a function that makes no array; one that does is refused when it is compiled."""
    return function if _off() else cast(F, _KeptLoop(cast(FunctionType, function), _OPTIONS))


def njit(**options: Any) -> Callable[[F], F]:
    """Compile a function as `numba.njit` does with the same options, when it is first called."""

    def compiled(function: F) -> F:
        return function if _off() else cast(F, _Loop(cast(FunctionType, function), options))

    return compiled


def _off() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class _Loop:
    """A function that numba compiles on its first call; other compiled functions can call it."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function  # this and the options are where numba looks for what it may inline
        self.targetoptions = options

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @property
    def _numba_type_(self) -> Any:
        return self.inner._numba_type_

    @cached_property
    def inner(self) -> Any:
        """What numba makes of the function for other loops that call it; they are kept, and it with them."""
        with _making:
            options = {**self.targetoptions, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
            return _by_numba(self.py_func, options)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function for calls from Python."""
        with _making:
            return _by_numba(self.py_func, self.targetoptions)


class _KeptLoop(_Loop):
    """A loop whose machine code is kept."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        super().__init__(function, options)
        self._loaded: dict[tuple[Kind, ...], Loaded | None] = {}
        self._last: Loaded | None = None  # as most calls are like the one before

    def __call__(self, *arguments: Any) -> Any:
        with suppress(Unkept):
            if last := self._last:
                return last(arguments)
        with suppress(Unkept):
            kinds = tuple(kinds_of(arguments))
            loaded = self._loaded[kinds] if kinds in self._loaded else self._load(kinds)
            if loaded:
                self._last = loaded
                return loaded(arguments)
        return self.dispatcher(*arguments)

    def _load(self, kinds: tuple[Kind, ...]) -> "Loaded | None":
        from asapmodel.solvers.kept_code import file_name, keep, kept
        from asapmodel.solvers.kept_loading import Loaded

        with _loading:
            if kinds not in self._loaded:
                try:
                    name = file_name(self.py_func, kinds)
                    code = kept(name)
                    if code is None:
                        code = self._made(kinds)
                        keep(name, code)
                    self._loaded[kinds] = Loaded(code, kinds)
                except Exception:  # of whatever kind: numba can do without, and tells what is wrong with the loop
                    self._loaded[kinds] = None
            return self._loaded[kinds]

    def _made(self, kinds: tuple[Kind, ...]) -> "Code":
        _load_numba()
        from asapmodel.solvers.kept_making import make_code

        code: Code = make_code(self.inner, self.py_func.__name__, kinds)
        return code


def _by_numba(function: FunctionType, options: dict[str, Any]) -> Any:
    jit = _load_numba()
    try:
        compiled = jit(**options)(function)
    except KeyError:  # an option that this numba does not know
        compiled = jit(**{name: value for name, value in options.items() if name != "_nrt"})(function)
    if options.get("cache"):
        _tell_callees(compiled, function)
    return compiled


def _tell_callees(dispatcher: Any, function: FunctionType) -> None:
    """Let numba's cache see changes in what the function calls; by itself it looks at the function's file only."""
    from numba.core.caching import FunctionCache

    from asapmodel.solvers.kept_code import contents_of

    try:
        contents = contents_of(function)
    except Unkept:
        return

    class Cache(FunctionCache):
        def _index_key(self, *signature: Any) -> Any:
            return (*super()._index_key(*signature), contents)  # type: ignore[no-untyped-call]

    dispatcher._cache = Cache(function)  # type: ignore[no-untyped-call]


@cache
def _load_numba() -> Any:
    """Load numba without SciPy's linear algebra; return its `njit`."""
    from numba import njit as jit

    try:
        from numba.np import linalg

        look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    except (ImportError, AttributeError):  # another version of numba: it looks, and takes its time
        return jit
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look
    return jit
