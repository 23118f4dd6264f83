"""From the `[model]` and `[cluster]` tables to plain records, with the origin of every number.

A table without keys means the default catalogue entry; with `use`, that entry with the given fields replaced; without
`use`, every field has to be there.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar

from asapmodel import catalog
from asapmodel.catalog import FIELDS, Cluster, Entry
from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.result import Assumption
from asapmodel.scenario_tables import ClusterFields, UseTable

__all__ = ["DEFAULT_CLUSTER", "DEFAULT_MODEL", "resolve_architecture", "resolve_cluster"]

DEFAULT_MODEL = "deepseek-v3.2"
DEFAULT_CLUSTER = "cloudmatrix384"

T = TypeVar("T", Architecture, Device, Profile)


def resolve_architecture(table: UseTable, where: str) -> Entry[Architecture]:
    """Return the architecture that `[model]` describes.

    Raises
    ------
    InputError
        If `use` names no catalogue model, or a field is missing without it.
    """
    given = table.given()
    use = given.pop("use", None)
    if use is None and not given:
        use = DEFAULT_MODEL
    base = None if use is None else catalog.load_architecture(use, where, "model.use")
    entry = _override(Architecture, base, given, where, "model")
    model = entry.value
    if model.dense_layers > model.layers:
        raise InputError(where, "model.dense_layers", f"is {model.dense_layers}", f"give at most {model.layers}")
    if model.experts_per_token > model.routed_experts:
        problem = f"is {model.experts_per_token}"
        raise InputError(where, "model.experts_per_token", problem, f"give at most {model.routed_experts}")
    return entry


def resolve_cluster(table: ClusterFields, where: str) -> tuple[Entry[Cluster], Entry[Device], Entry[Profile]]:
    """Return the cluster, its device and its profile as `[cluster]` describes them.

    Raises
    ------
    InputError
        If a name is not in the catalogue, or something is missing without `use`.
    """
    given = table.given()
    use = given.pop("use", None)
    if use is None and not given:
        use = DEFAULT_CLUSTER
    if use is None and "device" not in given and not given.keys() >= FIELDS[Device].keys():
        remedy = f"give one of {', '.join(catalog.names('clusters'))}, or device, devices and profile"
        raise InputError(where, "cluster.use", "is missing", remedy)
    base = None if use is None else catalog.load_cluster(use, where, "cluster.use")
    device = _device(base, given, where)
    profile = _profile(base, given.get("profile"), where)
    if "devices" not in given and base is None:
        raise InputError(where, "cluster.devices", "is missing", _remedy("clusters"))
    own: dict[str, Any] = {key: given[key] for key in ("devices", "device") if key in given}
    if table.profile is not None and table.profile.use is not None:
        own["profile"] = table.profile.use
    cluster = replace(base.value if base else Cluster(0, "inline", "inline"), **own)
    assumptions = base.assumptions if base else ()
    if "devices" in own:
        assumptions = (Assumption("cluster.devices", str(cluster.devices), "", "override", where),)
    return Entry(cluster, assumptions), device, profile


def _device(base: Entry[Cluster] | None, given: Mapping[str, Any], where: str) -> Entry[Device]:
    """Return the device named in the table, else the cluster's, with the table's own fields in place."""
    own = {name: value for name, value in given.items() if name in FIELDS[Device]}
    name, key = given.get("device"), "cluster.device"
    if name is None and base is not None:
        name, key = base.value.device, "cluster.use"
    entry = None if name is None else catalog.load_device(name, where, key)
    return _override(Device, entry, own, where, "cluster", "device")


def _profile(base: Entry[Cluster] | None, table: UseTable | None, where: str) -> Entry[Profile]:
    """Return the profile named in the table, else the cluster's, with the table's own fields in place."""
    own = {} if table is None else table.given()
    name, key = own.pop("use", None), "cluster.profile.use"
    if name is None and base is not None:
        name, key = base.value.profile, "cluster.use"
    entry = None if name is None else catalog.load_profile(name, where, key)
    return _override(Profile, entry, own, where, "cluster.profile", "profile")


def _override(
    record: type[T],
    base: Entry[T] | None,
    own: Mapping[str, Any],
    where: str,
    key: str,
    prefix: str | None = None,
) -> Entry[T]:
    """Return `base` with the fields `own` replaced, or a record of `own` alone; `key` is the table in the file."""
    prefix = key if prefix is None else prefix
    if base is None:
        remedy = _remedy(f"{prefix}s", "device" if record is Device else "use")
        for field in fields(record):
            if field.name not in own and field.default is MISSING:
                raise InputError(where, f"{key}.{field.name}", "is missing", remedy)
        value: T = record(**own)
        kept: tuple[Assumption, ...] = ()
    else:
        value = replace(base.value, **own)
        kept = tuple(a for a in base.assumptions if a.name.rpartition(".")[2] not in own)
    return Entry(value, kept + tuple(_assumption(record, prefix, *item, where) for item in own.items()))


def _assumption(record: type, prefix: str, field: str, value: float, where: str) -> Assumption:
    unit = FIELDS[record][field].unit
    return Assumption(f"{prefix}.{field}", f"{value:.12g}", "" if unit == "1" else unit, "override", where)


def _remedy(kind: str, how: str = "use") -> str:
    return f"give it, or start from {how} = one of {', '.join(catalog.names(kind))}"
