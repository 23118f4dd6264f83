"""A cached property that threads compute side by side."""

from functools import cached_property
from typing import Any, Self, TypeVar, overload

__all__ = ["unlocked_property"]

T = TypeVar("T")


class unlocked_property(cached_property[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` as from Python 3.12 on: without a lock that all instances share.

    Until then a walk of one system in one thread kept those of all others waiting. Two threads that ask the same
    instance at once may both compute the value, which is the same.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        """Compute the value and keep it."""
        if instance is None:
            return self
        assert self.attrname is not None
        value = instance.__dict__[self.attrname] = self.func(instance)
        return value
