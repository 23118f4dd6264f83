"""The tables of a scenario file, one class each: what keys there are, their types, defaults and single-table rules.

`[policy]` and `[costs]` take their keys from the dataclasses `Policy` and `LayerCosts`, and `[model]` and `[cluster]`
from `Architecture`, `Device` and `Profile`: a new field there is a new key here. Rules that span tables are in
`asapmodel.scenario`.
"""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import BeforeValidator, Field, field_validator, model_validator

from asapmodel import catalog
from asapmodel.costs import LayerCosts
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.models.precision import Precision
from asapmodel.policy import Kind, Policy
from asapmodel.result import Assumption
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.tables import (
    Count,
    CountOrZero,
    Overrides,
    PositiveSeconds,
    Seconds,
    Table,
    TableError,
    nearest,
    optional_table,
)
from asapmodel.uncertainties.table import UncertaintyTable

__all__ = [
    "TABLES",
    "ClusterFields",
    "ClusterTable",
    "CostOverrides",
    "CostsTable",
    "ModelTable",
    "PolicyTable",
    "SloTable",
    "SystemTable",
    "UncertaintyTable",
    "UseTable",
]


def _use(value: Any) -> Any:
    """Read a bare name as ``{ use = name }``."""
    return {"use": value} if isinstance(value, str) else value


class UseTable(Overrides):
    """A catalogue entry by name (`use`), with single fields overridden; without `use`, all fields."""

    use: str | None = None


if TYPE_CHECKING:
    ProfileTable = UseTable
else:
    ProfileTable = optional_table("ProfileTable", UseTable, catalog.value_types(Profile))


class ClusterFields(UseTable):
    """`[cluster]`: a catalogue cluster (`use`), or its parts.

    `device` and `profile` are catalogue names, `devices` says how many there are; each replaces the cluster's own.
    Any field of `Device` overrides the device's (``link_bandwidth = "400 GB/s"``). Fields of the profile are
    overridden in its own table, ``profile = { gemm = 0.7 }`` or `[cluster.profile]`, where `use` names a profile
    other than the cluster's.
    """

    device: str | None = None
    devices: Count | None = None
    profile: Annotated[ProfileTable, BeforeValidator(_use)] | None = None


class SystemTable(Table):
    """`[system]`: which system, and its parallel degrees; `E` of a synchronous system is `D T`.

    `replication` is the number of copies of every routed expert. `precision` is that of products with weights; None:
    FP8 if the device has it, else INT8, else BF16.
    """

    kind: Kind
    D: Count
    T: Count
    E: Count | None = None
    replication: Count = 1
    precision: Precision | None = None


class SloTable(Table):
    """`[slo]`: `statistic` of the TTFT (``"mean"``, ``"p99"``) is to stay within `ttft` seconds.

    `attainment` 0.99 is another way to say statistic ``"p99"``, and sets it.
    """

    ttft: PositiveSeconds = 5.0
    statistic: str = "mean"
    attainment: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_attainment(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("attainment") is None:
            return data
        if "statistic" in data:
            raise TableError("attainment", "cannot be combined with statistic", "give one of the two")
        share = data["attainment"]
        return {**data, "statistic": f"p{100 * share:.10g}"} if isinstance(share, float) else data

    @field_validator("statistic")
    @classmethod
    def _known_statistic(cls, value: str) -> str:
        remedy = "give 'mean', or 'p50' to 'p99' (p1 to p99.9)"
        if value != "mean" and not re.fullmatch(r"p\d+(\.\d+)?", value):
            raise TableError("", f"is {value[:40]!r}", remedy)
        return value

    @model_validator(mode="after")
    def _quantile_in_range(self) -> "SloTable":
        if self.attainment is None and self.quantile is not None and not 0.01 <= self.quantile <= 0.999:
            raise TableError("statistic", f"is '{self.statistic}'", "give 'mean', or 'p1' to 'p99.9'")
        return self

    @property
    def quantile(self) -> float | None:
        """The share of requests that `statistic` speaks of, or None for the mean."""
        if self.attainment is not None:
            return self.attainment
        return None if self.statistic == "mean" else round(float(self.statistic[1:]) / 100, 12)


def _flattened(value: Any) -> Any:
    """Read ``{ moe = { floor = x } }`` as ``{ "moe.floor" = x }``: TOML takes a dotted key for a table."""
    if not isinstance(value, Mapping):
        return value
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= {f"{key}.{name}": one for name, one in item.items()} if isinstance(item, Mapping) else {key: item}
    return flat


class CostOverrides(Overrides):
    """`[costs]`: coefficients that replace those of the cost models, one by one.

    `fitted_to` says of coefficients (``"attention.per_token"``, or a law as a whole) what they were calibrated on.
    """

    fitted_to: Annotated[dict[str, str], BeforeValidator(_flattened)] | None = None

    @model_validator(mode="after")
    def _fitted_is_given(self) -> "CostOverrides":
        known = {name for key in self._flat() for name in (key, key.partition(".")[0])}
        for name in self.fitted_to or {}:
            if name not in known:
                remedy = f"the nearest is '{nearest(name, known)}'" if known else "give the coefficients"
                raise TableError(f"fitted_to.{name}", "is no coefficient of this table", remedy)
        return self

    def given(self) -> dict[str, Any]:
        """Return the coefficients and laws that were given, in the order of the fields."""
        return {key: value for key, value in super().given().items() if key != "fitted_to"}

    def _flat(self) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for key, value in self.given().items():
            nested = value.given() if isinstance(value, Overrides) else {"": value}
            flat |= {f"{key}.{name}".rstrip("."): item for name, item in nested.items()}
        return flat

    def apply(self, costs: LayerCosts) -> LayerCosts:
        """Return `costs` with what was given here in place."""
        changes: dict[str, Any] = {}
        for key, value in self.given().items():
            nested = isinstance(value, Overrides)
            changes[key] = replace(getattr(costs, key), **value.given()) if nested else value
        return replace(costs, **changes)

    def assumptions(self, source: str) -> tuple[Assumption, ...]:
        """Return one record of kind ``"override"``, or ``"fitted"``, per coefficient given."""
        units = {"per_token": "s/token", "per_token2": "s/token^2", "layers": "", "dense_layers": ""}
        rows, fitted = [], self.fitted_to or {}
        for key, value in self._flat().items():
            data = fitted.get(key, fitted.get(key.partition(".")[0]))
            kind, origin = ("override", source) if data is None else ("fitted", f"{source} (fitted to {data})")
            unit = units.get(key.rpartition(".")[2], "s")
            rows.append(Assumption(f"costs.{key}", f"{value:.12g}", unit, kind, origin))
        return tuple(rows)


def _types(record: Any) -> dict[str, Any]:
    """Return the table type of every field of `record`: whole numbers are sizes, other numbers are times."""
    types, hints = {}, get_type_hints(record)
    for field in fields(record):
        kind = hints[field.name]
        if is_dataclass(kind):
            types[field.name] = optional_table(f"{field.name}_table", Overrides, _types(kind))
        else:
            whole = CountOrZero if field.default == 0 else Count
            types[field.name] = {int: whole, float: Seconds}.get(kind, kind)
    return types


ModelTable = optional_table("ModelTable", UseTable, catalog.value_types(Architecture))
ClusterTable = optional_table("ClusterTable", ClusterFields, catalog.value_types(Device))
PolicyTable = optional_table("PolicyTable", Overrides, _types(Policy))
CostsTable = optional_table("CostsTable", CostOverrides, _types(LayerCosts))

TABLES: dict[str, type[Table]] = {
    "model": ModelTable,
    "cluster": ClusterTable,
    "system": SystemTable,
    "policy": PolicyTable,
    "workload": WorkloadTable,
    "slo": SloTable,
    "costs": CostsTable,
    "uncertainty": UncertaintyTable,
}
"""The tables of a scenario file, in the order of the file."""
