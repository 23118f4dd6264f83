"""The plain tables of a scenario, before validation: unknown keys, relative paths, and the changes of a variant."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asapmodel import catalog
from asapmodel.errors import InputError
from asapmodel.scenario_tables import TABLES
from asapmodel.tables import nearest, unknown_key

__all__ = [
    "assign",
    "check_keys",
    "key_path",
    "make_paths_absolute",
    "make_profile_absolute",
    "nest_dotted_keys",
    "plain",
]

# Keys that need no table in front.
_FLAT = {key: name for name in ("system", "policy", "workload", "slo") for key in TABLES[name].model_fields}


def check_keys(data: Mapping[str, Any], where: str) -> None:
    """Refuse unknown tables and keys, knowing the keys of all tables."""
    for name, table in data.items():
        if name not in TABLES:
            stray = unknown_key(name, TABLES, _FLAT)
            what = stray.problem if name in _FLAT else "unknown table"
            raise InputError(where, name, what, stray.remedy.replace("key is", "table is"))
        if not isinstance(table, Mapping):
            raise InputError(where, name, f"is {table!r}"[:60], f"write a table, [{name}] with key = value lines")
        for key in table:
            if key not in TABLES[name].model_fields:
                wrong = unknown_key(key, TABLES[name].model_fields, _FLAT)
                raise InputError(where, f"{name}.{key}", wrong.problem, wrong.remedy)
    if "system" not in data:
        raise InputError(where, "system", "is missing", "add [system] with kind, D and T, and E for kind = 'asap'")


def make_paths_absolute(workload: Any, base: Path) -> None:
    """Make the relative paths of existing traces absolute, so that variants and copies of the file find them."""
    tables = [workload, workload.get("lengths")] if isinstance(workload, dict) else []
    for table in tables:
        if not isinstance(table, dict):
            continue
        trace = table.get("trace")
        if (
            isinstance(trace, str)
            and "\0" not in trace
            and (os.path.isfile(base / trace) or trace not in catalog.names("traces"))
        ):
            table["trace"] = str((base / trace).absolute())


def make_profile_absolute(cluster: Any, base: Path) -> None:
    """Make the relative path of a profile of one's own absolute, as `make_paths_absolute` does for traces."""
    profile = cluster.get("profile") if isinstance(cluster, dict) else None
    name = profile.get("use") if isinstance(profile, dict) else profile
    if isinstance(name, str) and name.endswith(".toml"):
        path = str((base / name).absolute())
        cluster["profile"] = {**profile, "use": path} if isinstance(profile, dict) else path


def nest_dotted_keys(table: Any) -> None:
    """Read quoted keys with dots, ``"costs.moe.floor"``, as TOML reads them without quotes: as nested tables."""
    if isinstance(table, dict):
        for key in [key for key in table if "." in key]:
            assign(table, key.split("."), table.pop(key))


def key_path(key: str, where: str) -> list[str]:
    """Return the path to a key of `replace` in the tables."""
    parts = key.split(".")
    if parts[0] in TABLES:
        return parts
    if key in _FLAT:
        return [_FLAT[key], key]
    homes = [f"'{name}.{key}'" for name, table in TABLES.items() if key in table.model_fields]
    valid = [f"{name}.{k}" for name, table in TABLES.items() for k in table.model_fields] if "." in key else _FLAT
    remedy = f"write {' or '.join(homes)}" if homes else f"the nearest valid key is '{nearest(key, valid)}'"
    raise InputError(where, key, "unknown key", remedy)


def assign(table: dict[str, Any], path: list[str], value: Any) -> None:
    """Set or, for None, remove an entry of nested tables."""
    *parents, last = path
    for part in parents:
        below = table.get(part, {})
        # A bare catalogue name stands for a table with `use`.
        table[part] = below if isinstance(below, dict) else {"use": below}
        table = table[part]
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def plain(value: Any) -> Any:
    """Return what TOML could hold: NumPy scalars and arrays, paths and tuples become plain."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
