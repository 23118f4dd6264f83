"""Calibrated profiles of the catalogue, made again from the measured tables.

Run as ``python -m asapmodel.studies.catalogue_profiles [--output DIR]``, about a minute; writes
``asapmodel/catalog/profiles/NAME.toml``. What is fitted to what: `asapmodel.studies.catalogue_recipes`.
"""

import argparse
import logging
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.calibration.profile_file import base_tables
from asapmodel.files import write_text_atomically
from asapmodel.models.parameters import Profile
from asapmodel.studies.catalogue_recipes import RECIPES, Fit, Recipe
from asapmodel.tomlfile import format_toml
from asapmodel.verbs.calibrate import calibrate

__all__ = ["BASE", "main", "profile_text"]

BASE = "cloudmatrix384-paper"
"""Profile that gives what no table or document says."""

Matrix = NDArray[np.float64]
Numbers = dict[str, dict[str, Any]]

_log = logging.getLogger(__name__)


class _Fitted(NamedTuple):
    """Numbers that a fit gives, their covariance, where the rows come from, and what the fit warns of."""

    numbers: Numbers
    covariance: Matrix
    sources: tuple[str, ...]
    warnings: tuple[str, ...]


def main(arguments: list[str] | None = None) -> None:
    """Write all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(str(files("asapmodel.catalog"))) / "profiles"
    parser.add_argument("--output", type=Path, default=default, help="folder to write to")
    folder: Path = parser.parse_args(arguments).output
    for name in RECIPES:
        write_text_atomically(folder / f"{name}.toml", profile_text(name), force=True)
        _log.info("wrote %s", folder / f"{name}.toml")


def profile_text(name: str) -> str:
    """The file of a calibrated profile."""
    found = _fits(name)
    numbers = {field: _number(name, field) for field in catalog.FIELDS[Profile]}
    tables: dict[str, dict[str, Any]] = {"provenance": {"base": BASE}}
    if found:
        fields = [field for one in found for field in one.numbers]
        matrix = _diagonal([one.covariance for one in found])
        covariance = {"fields": fields, "matrix": [[_rounded(x) for x in row] for row in matrix]}
        tables = {"covariance": covariance, **tables}
        tables["provenance"]["sources"] = list(dict.fromkeys(line for one in found for line in one.sources))
        tables["provenance"]["warnings"] = [line for one in found for line in one.warnings]
    known = {field: number for field, number in numbers.items() if number is not None}
    head = format_toml({"x": {"title": RECIPES[name].title, **known}}).removeprefix("[x]\n")
    comment = "# Written by `python -m asapmodel.studies.catalogue_profiles`; do not edit by hand.\n\n"
    return f"{comment}{head}\n{format_toml(tables)}"


def _number(name: str, field: str) -> dict[str, Any] | None:
    """A field of a profile as the file has it; None if it may be, and is, left out."""
    recipe = RECIPES[name]
    for one in _fits(name):
        if field in one.numbers:
            return one.numbers[field]
    if field in recipe.numbers:
        value, unit, kind, source = recipe.numbers[field]
        return {"value": _rounded(value), "unit": unit, "kind": kind, "source": source}
    if field in recipe.taken:
        other = _number(recipe.taken[field], field)
        return None if other is None else _assumed(other, f"as in {recipe.taken[field]}")
    row = base_tables(BASE).get(field)
    if row is None or recipe.own_base:
        return row
    return _assumed(row, "not measured on this device, as in the profile of the ASAP paper")


def _assumed(row: dict[str, Any], why: str) -> dict[str, Any]:
    """A number of elsewhere: assumed here, whatever it is there."""
    origin = f"fitted to {row['fitted_to']}" if "fitted_to" in row else row["source"]
    return {"value": row["value"], "unit": row["unit"], "kind": "assumed", "source": f"{why}: {origin}"}


@cache
def _fits(name: str) -> tuple[_Fitted, ...]:
    return tuple(_fitted(fit, RECIPES[name]) for fit in RECIPES[name].fits)


def _fitted(fit: Fit, recipe: Recipe) -> _Fitted:
    """The fields that a recipe takes from a fit."""
    with TemporaryDirectory() as folder:
        paths, sources, count = [], [], 0
        for name, read in fit.tables.items():
            head, rows = read()
            paths.append(Path(folder) / f"{name}.csv")
            paths[-1].write_text(f"# {head}\n{rows.to_csv(index=False)}", encoding="utf-8")
            sources.append(f"{name}: {head}")
            count += len(rows)
        found = calibrate(
            paths,
            fit.model,
            device=fit.device,
            architecture=fit.architecture,
            base=BASE,
            execution=fit.execution,
        ).found
    taken = {name: field for name, field in fit.fields.items() if field not in recipe.numbers}
    places = [list(found.fields).index(name) for name in taken]
    covariance = found.covariance[np.ix_(places, places)]
    origin = {
        "kind": "fitted",
        "fitted_to": f"{', '.join(fit.tables)} ({count} measurements)",
        "source": f"asapmodel calibrate --model {fit.model}, robust least squares{fit.note and f'; {fit.note}'}",
    }
    numbers: Numbers = {}
    for (name, field), spread in zip(taken.items(), np.sqrt(np.diag(covariance)), strict=True):
        value, unit = _rounded(found.fields[name]), catalog.FIELDS[Profile][field].unit
        numbers[field] = {"value": value, "unit": unit, **origin, "standard_error": _rounded(spread, 3)}
    return _Fitted(numbers, covariance, tuple(sources), found.warnings)


def _diagonal(blocks: list[Matrix]) -> Matrix:
    size = sum(len(block) for block in blocks)
    whole, place = np.zeros((size, size)), 0
    for block in blocks:
        whole[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return whole


def _rounded(value: float, digits: int = 6) -> float:
    """So many significant digits: more are not reproducible across versions of the optimiser."""
    return float(f"{value:.{digits - 1}e}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
