"""Work side by side in threads: compiled loops run without the interpreter's lock."""

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["cores", "side_by_side"]

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(function: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> list[R]:
    """Results in the order of the items, whatever the threads.

    Parameters
    ----------
    function, items
        What to call, with what.
    threads : int, optional
        Default: ``NUMBA_NUM_THREADS``, which is 1 in the workers of an exploration, or one a core.
    """
    count = threads or int(os.environ.get("NUMBA_NUM_THREADS") or cores())
    if count == 1:
        return list(map(function, items))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))
