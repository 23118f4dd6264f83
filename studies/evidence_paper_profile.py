"""The fitted constants of the paper as a profile of the catalogue: `cloudmatrix384-fitted`.

Written by ``python -m asapmodel.studies.evidence_paper --profile``, some seconds. Values are those of the chosen fit.
Their covariance is that of the fit's posterior, linearised at the minimum: with the Jacobian J of rows and claims in
the logarithms of the constants and the spreads s known before, ``C = (J^T J + diag(1 / s^2))^-1``, of which the
profile has the rows of its own constants. So what the lengths and the window leave open is in it, though a scenario
states both.
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.profile_file import base_tables
from asapmodel.files import write_text_atomically
from asapmodel.studies.evidence_paper_assumptions import CHOSEN
from asapmodel.studies.evidence_paper_fit import covariance, fit_of, jacobian
from asapmodel.studies.evidence_paper_rows import FITTED, HINGES
from asapmodel.studies.evidence_paper_systems import CONSTANTS, EXPERT_LOAD_CV
from asapmodel.tomlfile import format_toml

__all__ = ["NAME", "profile_covariance", "profile_text", "write_profile"]

Array = NDArray[np.float64]

NAME = "cloudmatrix384-fitted"
_BASE = "cloudmatrix384-paper"
_FIELDS = {"core": "core", "indexer": "core", "attention_overhead": "attention_overhead"}
"""Fields of the profile and the constants they are."""
_UNITS = {"core": ("1", 1.0), "indexer": ("1", 1.0), "attention_overhead": ("ms", 1e-3)}
_WARNINGS = [
    "the covariance is linear in the logarithms at the fit, and attention_overhead is known to a factor of two only",
    "it is marginal over sigma and mean of the lengths and the window, which were fitted with these constants: where a "
    "scenario states them as fitted, core is known to about two thirds of its standard error",
    "what the paper leaves open besides (Default's batch budget, the law of collectives) is not in it",
]


def profile_covariance(slopes: Array) -> Array:
    """Covariance of the profile's fitted fields in SI units, to first order, from the Jacobian of the fit."""
    values = fit_of(CHOSEN).values
    names = [one.name for one in CONSTANTS]
    places = [names.index(constant) for constant in _FIELDS.values()]
    size = np.array([values[constant] for constant in _FIELDS.values()])
    found: Array = covariance(slopes)[np.ix_(places, places)] * np.outer(size, size)
    return found


def profile_text(slopes: Array) -> str:
    """The file of the profile."""
    matrix = profile_covariance(slopes)
    numbers = base_tables(_BASE) | _fitted(np.sqrt(np.diag(matrix)))
    numbers["title"] = "CloudMatrix384, fitted to the ASAP paper with an objective"
    tables: dict[str, dict[str, Any]] = {
        "covariance": {"fields": list(_FIELDS), "matrix": [[_rounded(x) for x in row] for row in matrix]},
        "provenance": {
            "base": _BASE,
            "sources": [f"ASAP paper, sections 2.2, 5.2, 5.5: rows {', '.join((*FITTED, *HINGES))}"],
            "fit": f"python -m asapmodel.studies.evidence_paper --fit, assumption '{CHOSEN.name}', {_date()}",
            "warnings": _WARNINGS,
        },
    }
    head = format_toml({"x": numbers}).removeprefix("[x]\n")
    comment = "# Written by `python -m asapmodel.studies.evidence_paper --profile`; do not edit by hand.\n\n"
    return f"{comment}{head}\n{format_toml(tables)}"


def _fitted(errors: Array) -> dict[str, Any]:
    """What differs from the base."""
    values = fit_of(CHOSEN).values
    origin = {
        "kind": "fitted",
        "fitted_to": f"{', '.join(FITTED)}, together with lengths and window; claims {', '.join(HINGES)}",
        "source": f"docs/evidence-paper.md, assumption '{CHOSEN.name}'",
    }
    rows: dict[str, Any] = {}
    for (field, constant), error in zip(_FIELDS.items(), errors, strict=True):
        unit, scale = _UNITS[field]
        value = {"value": _rounded(values[constant] / scale), "unit": unit, **origin}
        rows[field] = value | {"standard_error": _rounded(float(error) / scale, 3)}
    load = "geometric middle of the 1.3 to 3.2 that measurements allow (cloudmatrix384-paper has them); not fitted"
    rows["expert_load_cv"] = {"value": EXPERT_LOAD_CV, "low": 1.3, "high": 3.2, "unit": "1", "kind": "assumed"}
    rows["expert_load_cv"]["source"] = load
    laws = "one of three laws that the fitted rows cannot tell apart, docs/evidence-paper.md"
    rows["collectives"] = {"value": CHOSEN.collectives, "kind": "assumed", "source": laws}
    return rows


def _date() -> str:
    text = files("asapmodel.studies").joinpath("data/evidence_paper_fit.toml").read_text(encoding="utf-8")
    (found,) = re.findall(r"Date: (\S+)", text)
    return str(found)


def _rounded(value: float, digits: int = 6) -> float:
    return float(f"{value:.{digits - 1}e}")


def write_profile(folder: Path | None = None) -> Path:
    """Write the file, to the catalogue by default."""
    path = (folder or Path(str(files("asapmodel.catalog"))) / "profiles") / f"{NAME}.toml"
    slopes = jacobian(fit_of(CHOSEN).values, CHOSEN)
    write_text_atomically(path, profile_text(slopes), force=True)
    return path
