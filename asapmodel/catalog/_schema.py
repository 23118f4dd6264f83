"""What a catalogue file must look like: every number with value, unit, source and kind.

::

    title = "Ascend 910C, one die"
    memory_bytes = { value = 64, unit = "GB", kind = "stated", source = "CloudMatrix384 paper" }

`kind` is stated, measured, fitted (then `fitted_to` says to what) or assumed; the unit of a plain number is ``"1"``, or
``"%"``. A number may say how sure it is, in its unit: a `standard_error`, or the ends `low` and `high` of a range,
`law` ``"uniform"`` (default) or ``"triangular"``. A calibrated profile also has the tables `[covariance]` and
`[provenance]`. Of these only `asapmodel.uncertainties` makes use. The fields are those of the dataclass that the file
fills; `FIELDS` says what each number is, `CHOICES` which words a field that is no number may have::

    collectives = { value = "contention", kind = "assumed", source = "own traces" }
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeVar, cast

from pydantic import BeforeValidator, Field, create_model, model_validator

from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Collectives, Device, Profile
from asapmodel.result import Assumption
from asapmodel.tables import (
    Bytes,
    BytesPerSecond,
    Count,
    CountOrZero,
    FlopsPerSecond,
    Fraction,
    NonNegative,
    Overrides,
    Quantity,
    Seconds,
    Table,
    TableError,
    optional_table,
    validate,
)
from asapmodel.tomlfile import parse_toml

__all__ = ["CHOICES", "FIELDS", "Cluster", "Entry", "parse_cluster", "parse_entry", "value_types"]

COUNT, COUNT_OR_ZERO = Quantity(Count, "1"), Quantity(CountOrZero, "1")
FRACTION, RATIO = Quantity(Fraction, "1"), Quantity(NonNegative, "1")
TIME, SIZE = Quantity(Seconds, "s"), Quantity(Bytes, "B")
BANDWIDTH, SPEED = Quantity(BytesPerSecond, "B/s"), Quantity(FlopsPerSecond, "FLOP/s")

_MAY_BE_ZERO = {
    *("dense_layers", "dense_intermediate", "shared_experts"),
    *("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"),
    *("index_heads", "index_head_dim", "index_topk"),
    *("kv_heads", "head_dim", "window", "windowed_layers"),
}

FIELDS: dict[type, dict[str, Quantity]] = {
    Architecture: {f.name: COUNT_OR_ZERO if f.name in _MAY_BE_ZERO else COUNT for f in fields(Architecture)},
    Device: {
        **dict.fromkeys(("bf16_flops", "vector_flops"), SPEED),
        "memory_bytes": SIZE,
        **dict.fromkeys(("memory_bandwidth", "link_bandwidth"), BANDWIDTH),
        **dict.fromkeys(("int8_flops", "fp8_flops"), SPEED),
        "multiprocessors": COUNT,
    },
    Profile: {
        **dict.fromkeys(("gemm", "core", "indexer", "vector", "grouped_gemm", "memory", "link"), FRACTION),
        **dict.fromkeys(("attention_overhead", "send_latency", "recv_latency", "host_dispatch"), TIME),
        "expert_load_cv": RATIO,
        "collective_latency": TIME,
        "collective_link": FRACTION,
        **dict.fromkeys(("p2p_handshake", "p2p_receiver_delay"), TIME),
        "p2p_link": FRACTION,
        **dict.fromkeys(("request_latency", "step_overhead"), TIME),
        "tile_padding": RATIO,
        **dict.fromkeys(("dispatch_bytes_per_copy", "combine_bytes_per_copy"), SIZE),
        "copies_sent": FRACTION,
        "token_overhead": TIME,
        "elementwise": FRACTION,
    },
}
"""What every number of the cost models' inputs is; a new field there needs its line here.

`Device.precision` is no number: the scenario chooses it.
"""

CHOICES: dict[type, dict[str, Any]] = {Architecture: {}, Device: {}, Profile: {"collectives": Collectives}}
"""Types of the fields that are words."""

T = TypeVar("T")


class Entry(NamedTuple, Generic[T]):
    """A catalogue entry: the plain record, and where each of its numbers comes from."""

    value: T
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """`devices` accelerators of one kind, by catalogue name, and the profile that suits them."""

    devices: int
    device: str
    profile: str


def _plain_number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TableError("", f"is {value!r}", "give a finite number")
    return value


Text = Annotated[str, Field(pattern=r"\S")]


class _Sourced(Table):
    """Something of the catalogue with its origin."""

    source: Text
    kind: Literal["stated", "measured", "fitted", "assumed"]
    fitted_to: Text | None = None

    @model_validator(mode="after")
    def _says_to_what(self) -> Self:
        if (self.kind == "fitted") != (self.fitted_to is not None):
            raise TableError("fitted_to", "goes with kind 'fitted', and only with it", "say what it was fitted to")
        return self

    @property
    def origin(self) -> str:
        """Source, and what it was fitted to."""
        return self.source if self.fitted_to is None else f"{self.source} (fitted to {self.fitted_to})"


class Choice(_Sourced):
    """A word of the catalogue."""

    value: Text

    def assumption(self, name: str) -> Assumption:
        """Return the record that a report prints."""
        return Assumption(name, self.value, "", self.kind, self.origin)


class Number(_Sourced):
    """A number of the catalogue."""

    value: Annotated[Any, BeforeValidator(_plain_number)]
    unit: Text
    standard_error: Annotated[Any, BeforeValidator(_plain_number)] | None = None
    low: Annotated[Any, BeforeValidator(_plain_number)] | None = None
    high: Annotated[Any, BeforeValidator(_plain_number)] | None = None
    law: Literal["uniform", "triangular"] | None = None

    @model_validator(mode="after")
    def _range_holds_value(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise TableError("low" if self.low is None else "high", "is missing", "give both ends of the range")
        if self.law is not None and self.low is None:
            raise TableError("law", f"is '{self.law}' without a range", "give low and high, or leave it out")
        if self.low is None:
            return self
        if self.standard_error is not None:
            raise TableError("low", "cannot be combined with standard_error", "give one of the two")
        if not self.low <= self.value <= self.high:
            problem = f"and high are {self.low:g} and {self.high:g}, but the value is {self.value:g}"
            raise TableError("low", problem, "give a range that holds the value")
        return self

    def si(self, quantity: Quantity) -> Any:
        """Return what the quantity's type parses: the plain number, or text with the unit."""
        if quantity.unit != "1":
            return f"{self.value!r} {self.unit}"
        if self.unit not in ("1", "%"):
            raise TableError("unit", f"is {self.unit!r}", "give '1' or '%' for a plain number")
        return self.value if self.unit == "1" else self.value / 100

    def assumption(self, name: str) -> Assumption:
        """Return the record that a report prints."""
        unit = "" if self.unit == "1" else self.unit
        return Assumption(name, str(self.value), unit, self.kind, self.origin)


class _EntryFile(Overrides):
    title: Text
    covariance: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None


class _ClusterFile(_EntryFile):
    device: Text
    profile: Text
    devices: Number


def value_types(record: type) -> dict[str, Any]:
    """Return the annotated type of every field of `record`, for tables that hold the values alone."""
    return {name: quantity.type for name, quantity in FIELDS[record].items()} | CHOICES[record]


@cache
def _tables(record: Any) -> tuple[type[_EntryFile], type[Overrides]]:
    """Return the table of numbers that fills `record`, and the table of their values."""
    numbers: dict[str, Any] = {
        f.name: (Number, ...) if f.default is MISSING else (Number | None, None)
        for f in fields(record)
        if f.name in FIELDS[record]
    }
    words: dict[str, Any] = dict.fromkeys(CHOICES[record], (Choice | None, None))
    file = create_model(f"{record.__name__}File", __base__=_EntryFile, **numbers, **words)
    return file, optional_table(f"{record.__name__}Values", Overrides, value_types(record))


def parse_entry(record: type[T], text: str, where: str, prefix: str) -> Entry[T]:
    """Return the `record` that the catalogue text fills.

    Parameters
    ----------
    record : type
        `Architecture`, `Device` or `Profile`.
    text, where : str
        The TOML text, and the file it comes from.
    prefix : str
        First part of the names of the assumptions, e.g. ``"device"``.

    Raises
    ------
    InputError
        If a number is missing, has no source, an unsuitable unit or an impossible value.
    """
    file, values = _tables(cast(Hashable, record))
    numbers = validate(file, parse_toml(text, where), where).given()
    for name in ("title", "covariance", "provenance"):
        numbers.pop(name, None)
    plain: dict[str, Any] = {}
    for name, number in numbers.items():
        try:
            plain[name] = number.value if isinstance(number, Choice) else number.si(FIELDS[record][name])
        except TableError as error:
            raise InputError(where, f"{name}.{error.key}", error.problem, error.remedy) from None
    value = record(**validate(values, plain, where).given())
    return Entry(value, tuple(number.assumption(f"{prefix}.{name}") for name, number in numbers.items()))


def parse_cluster(text: str, where: str) -> Entry[Cluster]:
    """Return the cluster that the catalogue text describes; raises as `parse_entry`."""
    file = validate(_ClusterFile, parse_toml(text, where), where)
    values: Mapping[str, Any] = {"devices": file.devices.si(COUNT)}
    devices = validate(_CLUSTER_VALUES, values, where).given()["devices"]
    return Entry(Cluster(devices, file.device, file.profile), (file.devices.assumption("cluster.devices"),))


_CLUSTER_VALUES = optional_table("ClusterValues", Overrides, {"devices": Count})
