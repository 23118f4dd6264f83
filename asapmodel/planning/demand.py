"""A demand: classes of prompts over the day, the types of instances that could serve them, and the rules of the fleet.

::

    demand = Demand.load("three-classes")             # a shipped one, or a file
    demand.classes["chat"].rates                      # requests/s, hour by hour
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.errors import InputError
from asapmodel.planning.demand_tables import ClassTable, FleetTable, TypeTable, workload_of
from asapmodel.scenario import Scenario
from asapmodel.scenario_keys import make_paths_absolute
from asapmodel.scenario_tables import SloTable
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.tables import Table, unknown_file, unknown_key, validate
from asapmodel.tomlfile import parse_toml, read_text

__all__ = ["Demand", "InstanceType", "PromptClass"]

_TABLES = ("fleet", "class", "type")
_MOST_HOURS = 168


@dataclass(frozen=True, slots=True, eq=False)
class PromptClass:
    """Prompts of one kind: their law, requests/s hour by hour (growth included), gaps' variation, objective."""

    name: str
    workload: WorkloadTable
    rates: NDArray[np.float64]
    cv: float
    slo: SloTable


@dataclass(frozen=True, slots=True, eq=False)
class InstanceType:
    """An instance that can be bought: devices, price per device and hour, kW per device, how many there are."""

    name: str
    scenario: Scenario
    price: float | None
    power: float | None
    available: int | None

    @property
    def devices(self) -> int:
        """Devices of one instance."""
        return self.scenario.layout.devices

    @property
    def longest(self) -> int:
        """Longest prompt it takes, tokens: what its buffers and memory are laid out for."""
        return self.scenario.workload.max_prompt_tokens

    def weight(self, minimise: str) -> float:
        """What one instance adds to the objective."""
        each = {"devices": 1.0, "cost": self.price, "power": self.power}[minimise]
        assert each is not None
        return self.devices * each


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A validated demand; make one with `load` or `parse`."""

    name: str
    source: str
    classes: dict[str, PromptClass]
    types: dict[str, InstanceType]
    fleet: FleetTable

    @classmethod
    def load(cls, path_or_name: str | os.PathLike[str]) -> "Demand":
        """Return the demand of a file, or a shipped one.

        Raises
        ------
        InputError
            If there is neither such a file nor such a shipped demand, or its content is invalid.

        Examples
        --------
        >>> list(Demand.load("three-classes").classes)
        ['chat', 'code', 'documents']
        """
        path, given = Path(path_or_name), os.fspath(path_or_name)
        shipped = catalog.names("demands")
        if not os.path.exists(path) and given in shipped:
            path, where = catalog.entry_path("demands", given), f"<{given}>"
        elif os.path.exists(path) or not shipped:
            where = given
        else:
            raise InputError(given, "", *unknown_file(path.stem, "demand", shipped))
        return cls.parse(read_text(path, where), where, path.parent)

    @classmethod
    def parse(cls, text: str, where: str = "<text>", base: str | os.PathLike[str] = ".") -> "Demand":
        """Return the demand that TOML text describes; relative paths in it are relative to `base`.

        Raises
        ------
        InputError
            The first mistake found.
        """
        data = parse_toml(text, where)
        for key in data:
            if key not in _TABLES:
                stray = unknown_key(key, _TABLES)
                raise InputError(where, key, "unknown table", stray.remedy.replace("key is", "table is"))
        fleet = validate(FleetTable, data.get("fleet", {}), where, "fleet")
        classes = _named(data, "class", ClassTable, where)
        types = _named(data, "type", TypeTable, where)
        name = where.strip("<>") if where.startswith("<") else Path(where).stem
        demand = cls(
            name=name,
            source=where,
            classes=_classes(classes, where, Path(base)),
            types={name: _type(name, table, where, Path(base)) for name, table in types.items()},
            fleet=fleet,
        )
        _check_types(demand)
        return demand

    @property
    def hours(self) -> int:
        """Hours there are rates for."""
        return len(next(iter(self.classes.values())).rates)


def _named(data: Mapping[str, Any], key: str, kind: type[Table], where: str) -> dict[str, Any]:
    """The tables of one kind by name."""
    tables = data.get(key)
    if not tables or not isinstance(tables, Mapping) or not all(isinstance(one, Mapping) for one in tables.values()):
        raise InputError(where, key, "is missing or no table", f"add a table [{key}.NAME] for each {key}")
    return {name: validate(kind, table, where, f"{key}.{name}") for name, table in tables.items()}


def _classes(tables: Mapping[str, ClassTable], where: str, base: Path) -> dict[str, PromptClass]:
    hours = max(len(table.rate) for table in tables.values())
    if hours > _MOST_HOURS:
        raise InputError(where, "class", f"has rates for {hours} hours", f"give {_MOST_HOURS} at most, a week")
    found = {}
    for name, table in tables.items():
        if len(table.rate) not in (1, hours):
            problem = f"has {len(table.rate)} hours, another class has {hours}"
            raise InputError(where, f"class.{name}.rate", problem, "give a rate for each hour, or one for all")
        rates = np.broadcast_to(np.array(table.rate) * table.growth, hours)
        make_paths_absolute({"lengths": table.lengths}, base)
        workload = workload_of(table, where, f"class.{name}")
        found[name] = PromptClass(name, workload, rates, table.cv, table.slo)
    return found


def _type(name: str, table: TypeTable, where: str, base: Path) -> InstanceType:
    path = base / table.scenario
    try:
        scenario = Scenario.load(path if path.is_file() else table.scenario)
    except InputError as error:
        if error.where != table.scenario or error.key:  # a mistake inside the scenario's own file
            raise
        problem = f"'{table.scenario}' is no file or shipped scenario"
        raise InputError(where, f"type.{name}.scenario", problem, error.remedy) from None
    try:
        scenario = scenario.replace(**table.set)
    except InputError as error:
        raise InputError(where, f"type.{name}.set.{error.key}", error.problem, error.remedy) from None
    return InstanceType(name, scenario, table.price, table.power, table.available)


def _check_types(demand: Demand) -> None:
    where, fleet = demand.source, demand.fleet
    needed = {"cost": "price", "power": "power"}.get(fleet.minimise)
    for name, one in demand.types.items():
        if needed is not None and getattr(one, needed) is None:
            unit = "per device and hour" if needed == "price" else "in kW per device"
            problem = f"is missing, and fleet.minimise is '{fleet.minimise}'"
            raise InputError(where, f"type.{name}.{needed}", problem, f"give it, {unit}, for every type")
        if fleet.supernode is not None and one.devices > fleet.supernode:
            problem = f"is {fleet.supernode}, an instance of '{name}' has {one.devices} devices"
            raise InputError(where, "fleet.supernode", problem, "no instance spans two: use a smaller one")
