"""From the `[model]` and `[cluster]` tables to plain records, with the origin of every number.

A table without keys means the default catalogue entry; with `use`, that entry with the given fields replaced; without
`use`, every field has to be there.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from asapmodel import catalog
from asapmodel.catalog import FIELDS, Cluster, Entry
from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.models.precision import PRECISIONS
from asapmodel.models.volumes import with_copy_bytes
from asapmodel.result import Assumption
from asapmodel.scenario_tables import ClusterFields, UseTable

__all__ = [
    "DEFAULT_CLUSTER",
    "DEFAULT_MODEL",
    "check_precision",
    "resolve_architecture",
    "resolve_cluster",
    "with_copies_stated",
    "with_precision",
]

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
    _check_attention(model, where)
    return entry


_LATENT = ("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim")


def _check_attention(model: Architecture, where: str) -> None:
    """Refuse a model that is neither of latent nor of grouped-query attention."""
    if model.kv_heads:
        mixed = [name for name in (*_LATENT, "index_topk") if getattr(model, name)]
        if mixed:
            remedy = "latent attention has no kv_heads, grouped-query attention no low ranks: give one of the two"
            raise InputError(where, f"model.{mixed[0]}", f"is given beside kv_heads = {model.kv_heads}", remedy)
        if not model.head_dim:
            raise InputError(
                where, "model.head_dim", "is missing", "grouped-query attention needs kv_heads and head_dim"
            )
        if model.heads % model.kv_heads:
            problem = f"is {model.kv_heads} for {model.heads} heads"
            raise InputError(where, "model.kv_heads", problem, "give a divisor: query heads share them evenly")
        if model.windowed_layers > model.layers or (model.windowed_layers and not model.window):
            problem = f"is {model.windowed_layers} of {model.layers} layers, with window = {model.window}"
            raise InputError(where, "model.windowed_layers", problem, "give at most layers, and window in tokens")
        return
    for name in _LATENT:
        if not getattr(model, name):
            remedy = "latent attention needs it; grouped-query attention has kv_heads and head_dim instead"
            raise InputError(where, f"model.{name}", "is missing", remedy)


def resolve_cluster(table: ClusterFields, where: str) -> tuple[Entry[Cluster], Entry[Device], Entry[Profile]]:
    """Return the cluster, its device and its profile as `[cluster]` describes them.

    Raises
    ------
    InputError
        If a name is not in the catalogue, or something is missing without `use`.
    """
    given = table.given()
    use = given.pop("use", None)
    if use is None and given.keys() <= {"profile"}:  # which alone changes the default
        use = DEFAULT_CLUSTER
    needed = {field.name for field in fields(Device) if field.default is MISSING}
    if use is None and "device" not in given and not given.keys() >= needed:
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


def with_precision(device: Entry[Device], precision: str | None, where: str) -> Entry[Device]:
    """Return the device as it computes at `precision`; None: as the catalogue's devices do."""
    if precision is None:
        return device
    chosen = Assumption("system.precision", precision, "", "override", where)
    return Entry(replace(device.value, precision=precision), (*device.assumptions, chosen))


def check_precision(device: Device, name: str, where: str) -> None:
    """Refuse a precision for which the device has no peak.

    Raises
    ------
    InputError
        Names the precision, and the peaks that the device `name` has.
    """
    if device.product_flops > 0:
        return
    wanted, peaks = device.format.peak, device.peaks
    there = ", ".join(f"{one} {peak / 1e12:g} T{'OPS' if one == 'int8' else 'FLOPS'}" for one, peak in peaks.items())
    possible = " or ".join(f"'{one}'" for one, form in PRECISIONS.items() if form.peak in peaks)
    problem = f"is '{device.precision}', but {name} has no {wanted.upper()} peak, only {there}"
    raise InputError(where, "system.precision", problem, f"give {possible}, or cluster.{wanted}_flops")


_filled = lru_cache(maxsize=1024)(with_copy_bytes)


def with_copies_stated(profile: Entry[Profile], architecture: Architecture, device: Device) -> Entry[Profile]:
    """Return the profile with bytes of copies that it does not state, from the model's width and the precision."""
    value = _filled(profile.value, architecture, device)
    names = ("dispatch_bytes_per_copy", "combine_bytes_per_copy")
    new = [name for name in names if getattr(value, name) != getattr(profile.value, name)]
    source = f"{architecture.hidden} values and scales, asapmodel.models.volumes.copy_bytes"
    found = tuple(Assumption(f"profile.{name}", f"{getattr(value, name):g}", "B", "derived", source) for name in new)
    return Entry(value, (*profile.assumptions, *found))


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


def _assumption(record: type, prefix: str, field: str, value: float | str, where: str) -> Assumption:
    if isinstance(value, str):
        return Assumption(f"{prefix}.{field}", value, "", "override", where)
    unit = FIELDS[record][field].unit
    return Assumption(f"{prefix}.{field}", f"{value:.12g}", "" if unit == "1" else unit, "override", where)


def _remedy(kind: str, how: str = "use") -> str:
    return f"give it, or start from {how} = one of {', '.join(catalog.names(kind))}"
