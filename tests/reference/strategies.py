"""Strategies for random small systems."""

from hypothesis import strategies as st

from asapmodel.reference.random_systems import Drawn, draw

__all__ = ["asynchronous", "synchronous"]

_SEEDS = st.integers(0, 2**32 - 1)


def asynchronous(requests: int = 20) -> st.SearchStrategy[Drawn]:
    """Asynchronous systems."""
    return _SEEDS.map(lambda seed: draw("asap", seed, requests))


def synchronous(requests: int = 20) -> st.SearchStrategy[Drawn]:
    """Synchronous systems."""
    return _SEEDS.map(lambda seed: draw("sync", seed, requests))
