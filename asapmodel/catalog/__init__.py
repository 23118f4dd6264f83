"""Facts about models, devices, clusters and how well they are used: TOML files, every number with its source.

::

    from asapmodel.catalog import load_device, names

    names("devices")                                  # ('ascend-910c-die', ...)
    device, assumptions = load_device("ascend-910c-die")
    device.link_bandwidth                             # 196e9, bytes/s
    assumptions[0].source

A new entry is a new file in `models/`, `devices/`, `clusters/` or `profiles/`, in the form of `_schema`. The shipped
scenarios and request traces lie beside them.
"""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from asapmodel.catalog._schema import CHOICES, FIELDS, Cluster, Entry, parse_cluster, parse_entry, value_types
from asapmodel.errors import InputError
from asapmodel.models.parameters import Architecture, Device, Profile
from asapmodel.tables import nearest
from asapmodel.tomlfile import read_text

__all__ = [
    "CHOICES",
    "FIELDS",
    "Cluster",
    "Entry",
    "entry_path",
    "load_architecture",
    "load_cluster",
    "load_device",
    "load_profile",
    "names",
    "parse_profile",
    "value_types",
]

_SUFFIX = {
    "models": ".toml",
    "devices": ".toml",
    "clusters": ".toml",
    "profiles": ".toml",
    "scenarios": ".toml",
    "demands": ".toml",
    "traces": ".csv.gz",
}

T = TypeVar("T")


@cache
def names(kind: str) -> tuple[str, ...]:
    """Return the names of the shipped entries of one kind, sorted.

    Parameters
    ----------
    kind : str
        ``"models"``, ``"devices"``, ``"clusters"``, ``"profiles"``, ``"scenarios"``, ``"demands"`` or
        ``"traces"``.

    Examples
    --------
    >>> names("clusters")[:2]
    ('atlas-a2', 'b200-nvlink')
    """
    if kind not in _SUFFIX:
        raise ValueError(f"no kind {kind!r} in the catalogue; give one of {', '.join(_SUFFIX)}")
    suffix, folder = _SUFFIX[kind], _folder(kind)
    found = folder.iterdir() if folder.is_dir() else ()
    return tuple(sorted(f.name.removesuffix(suffix) for f in found if f.name.endswith(suffix)))


def entry_path(kind: str, name: str, where: str = "catalogue", key: str | None = None) -> Path:
    """Return the file of a shipped entry.

    Parameters
    ----------
    kind, name : str
        See `names`.
    where, key : str, optional
        What to name in the error: the file and key that asked for the entry.

    Raises
    ------
    InputError
        If there is no such entry; names the nearest.
    """
    known = names(kind)
    if name not in known:
        thing = kind.removesuffix("s")
        remedy = f"the nearest {thing} is '{nearest(name, known)}'" if known else f"this installation has no {kind}"
        raise InputError(where, thing if key is None else key, f"no {thing} '{name}' in the catalogue", remedy)
    return _folder(kind) / f"{name}{_SUFFIX[kind]}"


def load_architecture(name: str, where: str = "catalogue", key: str = "model") -> Entry[Architecture]:
    """Return a model's architecture and the origin of its numbers; for `where`, `key`, errors see `entry_path`."""
    entry_path("models", name, where, key)
    return _load(Architecture, "models", name)


def load_device(name: str, where: str = "catalogue", key: str = "device") -> Entry[Device]:
    """Return an accelerator's peaks in SI units and their origin; for `where`, `key`, errors see `entry_path`."""
    entry_path("devices", name, where, key)
    return _load(Device, "devices", name)


def load_profile(name: str, where: str = "catalogue", key: str = "profile") -> Entry[Profile]:
    """Return efficiencies and latencies and their origin; for `where`, `key`, errors see `entry_path`.

    A name that ends in ``.toml`` is the path of a profile of your own, such as `calibrate` writes.
    """
    if name.endswith(".toml"):
        return parse_entry(Profile, read_text(Path(name), name), name, "profile")
    entry_path("profiles", name, where, key)
    return _load(Profile, "profiles", name)


def parse_profile(text: str, where: str) -> Profile:
    """Return the profile that a file's text describes; errors as in `load_profile`."""
    return parse_entry(Profile, text, where, "profile").value


def load_cluster(name: str, where: str = "catalogue", key: str = "cluster") -> Entry[Cluster]:
    """Return a cluster, whose device and profile are catalogue names; for `where`, `key`, errors see `entry_path`."""
    entry_path("clusters", name, where, key)
    return _load_cluster(name)


def _folder(kind: str) -> Path:
    return Path(str(files(__name__) / kind))


@cache
def _load(record: type[T], kind: str, name: str) -> Entry[T]:
    path = entry_path(kind, name)
    where = f"catalog/{kind}/{path.name}"
    return parse_entry(record, read_text(path, where), where, kind.removesuffix("s"))


@cache
def _load_cluster(name: str) -> Entry[Cluster]:
    path = entry_path("clusters", name)
    where = f"catalog/clusters/{path.name}"
    return parse_cluster(read_text(path, where), where)
