"""A design space: base scenarios, the keys that vary and their values, constraints and objectives.

::

    space = Space.load("space.toml")
    space.vary          # {"system.D": (1, 2, 4, 8), "policy.pairing": ("locked", "rolling")}
    space.digest        # of everything that decides the answer

Every mistake in the file is an `InputError` that names file, key and remedy.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from asapmodel.errors import InputError
from asapmodel.exploration.objectives import OBJECTIVES
from asapmodel.exploration.ranges import RANGE_KEYS, values_of
from asapmodel.exploration.space_tables import ConfirmTable, ConstraintsTable, SpaceTable
from asapmodel.scenario import Scenario
from asapmodel.scenario_keys import assign, check_keys, key_path
from asapmodel.scenario_tables import TABLES
from asapmodel.tables import validate
from asapmodel.tomlfile import parse_toml, read_text
from asapmodel.verbs.compare import check_same_workload

__all__ = ["Space"]


@dataclass(frozen=True)
class Space:
    """A validated space; make one with `load` or `parse`.

    Attributes
    ----------
    source : str
        The file, for messages.
    scenarios : tuple of Scenario
        Bases: what does not vary is as in them.
    vary : mapping of str to tuple
        Values by key, the key with its table.
    constraints, confirm, objectives, rate, price
        As given; `price` by device, ``""`` for any, per device-hour.
    """

    source: str
    scenarios: tuple[Scenario, ...]
    vary: Mapping[str, tuple[Any, ...]]
    constraints: ConstraintsTable
    objectives: tuple[str, ...]
    rate: float | None
    price: Mapping[str, float] | None
    confirm: ConfirmTable
    _given: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Space":
        """Return the space of a file.

        Raises
        ------
        InputError
            If it cannot be read, or its content is invalid.
        """
        return cls.parse(read_text(Path(path), os.fspath(path)), os.fspath(path), Path(path).parent)

    @classmethod
    def parse(cls, text: str, where: str = "<text>", base: str | os.PathLike[str] = ".") -> "Space":
        """Return the space that TOML text describes.

        Parameters
        ----------
        text : str
            Content of a space file.
        where : str
            The file to name in errors.
        base : path
            What the paths of scenarios are relative to.

        Raises
        ------
        InputError
            The first mistake found.
        """
        given = parse_toml(text, where)
        table = validate(SpaceTable, given, where)
        scenarios = tuple(_scenario(name, Path(base), where) for name in table.scenario)
        check_same_workload(scenarios)
        vary: dict[str, tuple[Any, ...]] = {}
        for key, values in _flat(table.vary, ()):
            path = _path(key, where)
            vary[".".join(path)] = values_of(values, where, f"vary.{key}")
            _check_values(scenarios[0], path, vary[".".join(path)], where, f"vary.{key}")
        space = cls(
            where, scenarios, vary, table.constraints, table.objectives, table.rate, table.price, table.confirm, given
        )
        _check_needs(space)
        return space

    @cached_property
    def digest(self) -> str:
        """Fingerprint of everything that decides the answer: the same for equal spaces, whatever the file's name."""
        keys = {key: [repr(one) for one in values] for key, values in self.vary.items()}
        rest = {key: value for key, value in self._given.items() if key not in ("vary", "scenario")}
        bases = [(one.name, one.to_toml()) for one in self.scenarios]
        text = json.dumps([bases, keys, rest], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()


def _scenario(name: str, base: Path, where: str) -> Scenario:
    """A base: a file relative to the space's, or a shipped one."""
    file = base / name
    try:
        return Scenario.load(file if os.path.exists(file) else name)
    except InputError as error:
        if error.where == name and not error.key:  # there is no such scenario: the space is at fault
            raise InputError(where, "scenario", f"'{name}': {error.problem}", error.remedy) from None
        raise


def _flat(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Keys with their tables: ``system.D = [...]`` unquoted is a table in a table."""
    for key, value in table.items():
        if isinstance(value, Mapping) and not RANGE_KEYS & value.keys():
            yield from _flat(value, (*above, key))
        else:
            yield ".".join((*above, key)), value


def _path(key: str, where: str) -> list[str]:
    try:
        path = key_path(key, where)
    except InputError as error:
        raise InputError(where, f"vary.{key}", error.problem, error.remedy) from None
    if len(path) < 2:
        raise InputError(where, f"vary.{key}", "is a whole table", f"vary its keys, e.g. {key}.{_first(key)} = [...]")
    return path


def _first(table: str) -> str:
    return next(iter(TABLES[table].model_fields))


def _check_values(scenario: Scenario, path: list[str], values: tuple[Any, ...], where: str, key: str) -> None:
    """Refuse a key that its table has not, and a value that it would refuse whatever its other keys are."""
    table = path[0]
    try:
        check_keys({"system": {}, table: {path[1]: None}}, where)
    except InputError as error:
        raise InputError(where, key, error.problem, error.remedy) from None
    if table not in ("system", "policy", "costs"):  # keys of the other tables depend on one another
        return
    plain = parse_toml(scenario.to_toml(), where).get(table, {})
    for value in values:
        given = {table: deepcopy(plain)}
        assign(given, path, value)
        try:
            validate(TABLES[table], given[table], where, table)
        except InputError as error:
            raise InputError(where, key, error.problem, error.remedy) from None


def _check_needs(space: Space) -> None:
    """Refuse objectives whose rate or price is missing."""
    for name in space.objectives:
        needed = OBJECTIVES[name].needs
        if needed == "rate" and space.rate is None:
            if "workload.rate" in space.vary or all(one.workload.rate is not None for one in space.scenarios):
                continue
            raise InputError(space.source, "rate", "is missing", f"objective '{name}' needs it, e.g. rate = 8.0")
        if needed == "price" and space.price is None:
            remedy = f"objective '{name}' needs it: add the price of a device-hour, e.g. price = 2.5"
            raise InputError(space.source, "price", "is missing", remedy)
