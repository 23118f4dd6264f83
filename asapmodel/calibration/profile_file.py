"""The profile that a calibration writes: numbers with uncertainty and provenance, in the catalogue's form.

Fitted fields replace those of a base profile, whose other numbers keep value, kind and source. ``[covariance]`` holds
`fields` and `matrix` in SI units; blocks of the base's own calibration are kept for fields that were not fitted again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.calibration.fitting import Calibrated
from asapmodel.calibration.laws import name_of
from asapmodel.errors import InputError
from asapmodel.models.parameters import Profile
from asapmodel.tomlfile import format_toml, parse_toml, read_text

__all__ = ["base_tables", "profile_text", "read_covariance"]

Array = NDArray[np.float64]


def base_tables(name: str) -> dict[str, Any]:
    """Return the tables of a profile as its file has them; `name` as in `asapmodel.catalog.load_profile`."""
    path = Path(name) if name.endswith(".toml") else catalog.entry_path("profiles", name, "--base", "profile")
    return parse_toml(read_text(path, name), name)


def profile_text(
    found: Calibrated, base: dict[str, Any], title: str, facts: dict[str, str], sources: Sequence[str]
) -> str:
    """Return the text of the profile.

    Parameters
    ----------
    found : Calibrated
        What was fitted.
    base : dict
        `base_tables` of the profile that gives the other numbers.
    title : str
        One line.
    facts : dict
        Names to keep: device, model, base, software.
    sources : sequence of str
        Where the tables come from, one line each.
    """
    tables = sorted({file for group in found.groups for file in group.data.tables()})
    fitted_to = f"{', '.join(tables)} ({sum(len(g.data) for g in found.groups)} rows)"
    numbers = {name: base[name] for name in (*catalog.FIELDS[Profile], *catalog.CHOICES[Profile]) if name in base}
    spread = np.sqrt(np.diag(found.covariance))
    ends = {name_of(x) for group in found.groups for x in group.fit.at_bound}
    for (name, value), error in zip(found.fields.items(), spread, strict=True):
        origin = _origin(name, fitted_to, name in ends)
        numbers[name] = {"value": value, "unit": catalog.FIELDS[Profile][name].unit, **origin}
        if error > 0:
            numbers[name]["standard_error"] = float(error)
    names, matrix = _merged(found, base)
    tail = {
        "covariance": {"fields": names, "matrix": matrix.tolist()},
        "provenance": {"model": found.model, "tables": tables, "sources": list(sources), **facts, **_besides(found)},
    }
    head = format_toml({"x": {"title": title, **numbers}}).removeprefix("[x]\n")
    return f"{head}\n{format_toml(tail)}"


def _origin(name: str, fitted_to: str, at_end: bool) -> dict[str, str]:
    if name.endswith("_bytes_per_copy"):
        return {"kind": "stated", "source": f"bytes of a copy, stated with {fitted_to}"}
    source = "asapmodel calibrate, robust least squares" + "; at the end of its range" * at_end
    return {"kind": "fitted", "fitted_to": fitted_to, "source": source}


def _besides(found: Calibrated) -> dict[str, Any]:
    """What was fitted and is not a field, and how well unseen rows are predicted."""
    errors = np.abs(np.concatenate([group.held_out for group in found.groups]))
    other = {f"{g.name}: {v.name}": v.value for g in found.groups for v in g.values() if v.name not in found.fields}
    out: dict[str, Any] = {"other_parameters": [f"{name} = {value:.6g}" for name, value in other.items()]}
    if np.all(np.isfinite(errors)):
        out["cross_validated_median_error"] = float(np.median(errors))
    return out


def _merged(found: Calibrated, base: dict[str, Any]) -> tuple[list[str], Array]:
    """Covariance of the fitted fields, and the base's of the others; between the two there is none."""
    own = [name for name, spread in zip(found.fields, np.diag(found.covariance), strict=True) if spread > 0]
    known = list(base.get("covariance", {}).get("fields", []))
    kept = [k for k, name in enumerate(known) if name not in found.fields]
    names = [*own, *(known[k] for k in kept)]
    matrix = np.zeros((len(names), len(names)))
    rows = [list(found.fields).index(name) for name in own]
    matrix[: len(own), : len(own)] = found.covariance[np.ix_(rows, rows)]
    if kept:
        matrix[len(own) :, len(own) :] = np.array(base["covariance"]["matrix"], dtype=np.float64)[np.ix_(kept, kept)]
    return names, matrix


def read_covariance(path: str | Path) -> tuple[tuple[str, ...], Array]:
    """Return the fields of a calibrated profile that are uncertain, and their covariance in SI units.

    Raises
    ------
    InputError
        If the file has no such table, or its matrix does not fit its fields.
    """
    where = str(path)
    table = parse_toml(read_text(Path(path), where), where).get("covariance")
    if not isinstance(table, dict) or not {"fields", "matrix"} <= table.keys():
        raise InputError(where, "covariance", "is missing", "give a profile that `asapmodel calibrate` wrote")
    names, matrix = tuple(table["fields"]), np.array(table["matrix"], dtype=np.float64)
    if matrix.shape != (len(names), len(names)):
        problem = f"has shape {matrix.shape} for {len(names)} fields"
        raise InputError(where, "covariance.matrix", problem, "give a square matrix, a row a field")
    return names, matrix
