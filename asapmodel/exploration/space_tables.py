"""The tables of a space file, one class each: what keys there are, their types and defaults."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from asapmodel import units
from asapmodel.exploration.objectives import OBJECTIVES
from asapmodel.tables import Count, CountOrZero, PerSecond, Positive, Table, TableError, nearest

__all__ = ["Bounds", "ConfirmTable", "ConstraintsTable", "SpaceTable"]


def _exactly(value: Any) -> Any:
    """Read a bare number as ``{ min = number, max = number }``."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise TableError("", f"is {value!r}"[:60], "give a whole number, or { min = ..., max = ... }")
    return {"min": value, "max": value}


class Bounds(Table):
    """A smallest and a largest value, both allowed; a bare number is both."""

    min: Count | None = None
    max: Count | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "Bounds":
        if self.min is not None and self.max is not None and self.min > self.max:
            raise TableError("min", f"is {self.min}, more than max {self.max}", "exchange them")
        return self

    def hold(self, value: int) -> bool:
        """Whether a value is within."""
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)

    @property
    def words(self) -> str:
        """``= 32``, ``>= 8``, ``<= 64`` or ``8 to 64``."""
        if self.min == self.max:
            return f"= {self.min}"
        if self.min is None:
            return f"<= {self.max}"
        return f">= {self.min}" if self.max is None else f"{self.min} to {self.max}"


_Bounds = Annotated[Bounds, BeforeValidator(_exactly)]
_Bytes = Annotated[float, BeforeValidator(units.bytes_), Field(gt=0.0)]


class ConstraintsTable(Table):
    """`[constraints]`: what a point has to keep; `buffers` and `memory_reserve` are bytes of every device."""

    devices: _Bounds | None = None
    tensor_parallel: _Bounds | None = None
    attention_devices: _Bounds | None = None
    expert_devices: _Bounds | None = None
    memory_reserve: _Bytes | None = None
    buffers: _Bytes | None = None


class ConfirmTable(Table):
    """`[confirm]`: how many candidates the graph engine confirms (0: none), over how many request sequences."""

    top: CountOrZero = 5
    replications: Annotated[int, Field(ge=1, le=1000)] = 8


def _tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


_Names = Annotated[tuple[str, ...], BeforeValidator(_tuple), Field(min_length=1)]


def _prices(value: Any) -> Any:
    return {"": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class SpaceTable(Table):
    """A space file: base scenarios, what varies, what is required, and what is searched for."""

    scenario: _Names
    vary: dict[str, Any] = Field(default_factory=dict)
    constraints: ConstraintsTable = ConstraintsTable()
    objectives: _Names = ("slo_throughput_per_device",)
    rate: PerSecond | None = None
    price: Annotated[dict[str, Positive], BeforeValidator(_prices)] | None = None
    confirm: ConfirmTable = ConfirmTable()

    @field_validator("objectives")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in OBJECTIVES:
                raise TableError("", f"there is no objective '{name}'", f"the nearest is '{nearest(name, OBJECTIVES)}'")
        return tuple(dict.fromkeys(names))
