"""Machine code of compiled loops, kept on disk for the next process, which then needs no compiler and no numba.

A file holds the object code of one loop for one sequence of argument kinds, and what the loop returns. Its name has a
digest of all the code depends on: bytecode of the loop and of every loop it calls, the constants they read, versions of
Python, NumPy, numba and llvmlite, their options in the environment, the processor. So a changed loop is compiled anew,
and a file that is found is the right one. Its first bytes are a digest of the rest; a damaged file is not loaded.

Files lie in ``__pycache__`` beside this module, in ``NUMBA_CACHE_DIR`` where that is set, or, if neither can be
written, in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from asapmodel.solvers.kept_arguments import Kind, Unkept, name_of

__all__ = ["DONE", "FAILED", "FRONT", "REFUSED", "Code", "contents_of", "file_name", "keep", "kept"]

DONE, FAILED, REFUSED = range(3)
FRONT = 2  # slots of a block that describe an error
_FOLDER = Path(__file__).parent
_DIGEST = 32  # bytes of SHA-256
_PLACE = "NUMBA_CACHE_DIR"


class Code(NamedTuple):
    """Object code with its entry (`kept_entry`), the symbols it needs, kinds of its results and if they are a tuple."""

    entry: str
    symbols: list[str]
    results: list[str]
    is_tuple: bool
    binary: bytes


def file_name(function: FunctionType, kinds: Sequence[Kind]) -> str:
    """Name of the file for a loop and the kinds of its arguments: loop, machine and kinds, contents.

    Raises
    ------
    Unkept
        If the loop reads something that has no name and no value, so that its changes would not be seen.
    """
    where = _short("\n".join([_machine(), *map(name_of, kinds)]))
    return f"kept-{function.__module__}.{function.__qualname__}-{where}-{contents_of(function)}.bin"


def contents_of(function: FunctionType) -> str:
    """Digest of a loop, of all loops that it calls, and of the constants they read.

    Raises
    ------
    Unkept
        As `file_name`.
    """
    return _short("\n".join([_workings(), *_contents(function, {})]))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@cache
def _machine() -> str:
    """What the code depends on besides the loop: versions, options, processor."""
    from llvmlite import __version__ as llvmlite
    from llvmlite import binding

    numba = importlib.util.find_spec("numba")  # which finds the package and does not load it
    if numba is None or numba.origin is None:
        raise Unkept("without numba")
    version = Path(numba.origin).with_name("_version.py").read_text(encoding="utf-8")
    options = sorted(f"{name}={value}" for name, value in os.environ.items() if _is_option(name))
    processor = [binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return "\n".join([sys.version, platform.machine(), np.__version__, llvmlite, version, *options, *processor])


def _is_option(name: str) -> bool:
    return name.startswith("NUMBA_") and name not in (_PLACE, "NUMBA_NUM_THREADS")  # workers differ in the threads


@cache
def _workings() -> str:
    """How loops are compiled and called: these modules themselves."""
    ours = [_FOLDER / "compiled.py", *sorted(_FOLDER.glob("kept_*.py"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in ours)


def _contents(function: FunctionType, seen: dict[FunctionType, int]) -> Iterator[str]:
    """Bytecode of a function, of all loops that it calls, and the constants they read."""
    if function in seen:
        yield f"number {seen[function]}"
        return
    seen[function] = len(seen)
    code = function.__code__
    yield from _bytecode(code)
    if code.co_freevars:
        raise Unkept(f"{function.__name__}, which is defined inside another function and reads its variables")
    for name in _names(code):
        if name in function.__globals__:
            yield f"{name}:"
            yield from _value(function.__globals__[name], seen)


def _bytecode(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_argcount} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        yield from _bytecode(constant) if isinstance(constant, CodeType) else [repr(constant)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _value(value: Any, seen: dict[FunctionType, int]) -> Iterator[str]:
    """What a loop reads from its module; types matter, as 1 and 1.0 compile to different code."""
    inner = getattr(value, "py_func", None)
    if isinstance(inner, FunctionType):  # a loop, with the options it is compiled with
        yield repr(sorted(getattr(value, "targetoptions", {}).items()))
        yield from _contents(inner, seen)
    elif isinstance(value, bool | int | float | str | np.generic | None):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple) and type(value) is tuple:
        for part in value:
            yield from _value(part, seen)
    elif isinstance(value, type):
        yield name_of(value) if hasattr(value, "_fields") else f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, ModuleType) and value.__name__ in ("math", "numpy"):
        yield value.__name__
    else:
        raise Unkept(f"{value!r}, which a loop reads and no digest sees")


def kept(name: str) -> Code | None:
    """Read a file; None if there is none that is whole."""
    for folder in _folders():
        with suppress(OSError, ValueError, TypeError):
            contents = (folder / name).read_bytes()
            digest, rest = contents[:_DIGEST], contents[_DIGEST:]
            if hashlib.sha256(rest).digest() == digest:
                head, _, binary = rest.partition(b"\n")
                return Code(**json.loads(head), binary=binary)
    return None


def keep(name: str, code: Code) -> None:
    """Write a file where that is possible, and remove what it replaces."""
    described = {key: value for key, value in code._asdict().items() if key != "binary"}
    rest = json.dumps(described).encode() + b"\n" + code.binary
    for folder in _folders():
        own = folder / f"{name}.{os.getpid()}"  # others may be writing, too
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            own.write_bytes(hashlib.sha256(rest).digest() + rest)
            own.replace(folder / name)
            for old in folder.glob(f"{name.rpartition('-')[0]}-*.bin"):
                if old.name != name:
                    old.unlink(missing_ok=True)
            return


def _folders() -> list[Path]:
    folders = [Path(os.environ.get(_PLACE) or _FOLDER / "__pycache__")]
    users = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not users.startswith("~"):  # there is a home
        folders.append(Path(users) / "asapmodel")
    return folders
