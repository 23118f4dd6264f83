"""Walks of one analysis side by side: compiled loops run without the interpreter's lock."""

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["side_by_side"]

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results in the order of the items, from as many threads as there are cores for this process.

    ``NUMBA_NUM_THREADS`` says how many there are for it where several processes share the machine, as the workers of an
    exploration do.
    """
    threads = int(os.environ.get("NUMBA_NUM_THREADS") or os.cpu_count() or 1)
    if threads == 1:
        return list(map(function, items))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
