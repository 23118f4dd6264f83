"""`calibrate`: a profile from tables of measurements, with its uncertainty."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asapmodel import catalog
from asapmodel.calibration.fitting import Calibrated, fit_tables
from asapmodel.calibration.measurements import QUANTITIES
from asapmodel.calibration.profile_file import base_tables, profile_text
from asapmodel.calibration.tables import read_tables
from asapmodel.errors import InputError
from asapmodel.files import check_writable, write_text_atomically
from asapmodel.models.parameters import Profile
from asapmodel.scenario_resolve import DEFAULT_MODEL

__all__ = ["Calibration", "calibrate"]

PathLike = str | os.PathLike[str]
DEFAULT_BASE = "cloudmatrix384-paper"
EXECUTIONS = ("collective", "send")


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """What tables say of a profile.

    Attributes
    ----------
    found : Calibrated
        The fits, the fields that follow from them, and what to know of them.
    profile : Profile
        The base with the fitted fields in place.
    text : str
        The profile's file.
    """

    found: Calibrated
    profile: Profile
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "model": self.found.model,
            "fields": dict(self.found.fields),
            "groups": [
                {
                    "name": group.name,
                    "rows": len(group.data),
                    "parameters": {
                        v.name: {"value": v.value, "interval": list(v.interval), "standard_error": v.standard_error}
                        for v in group.values()
                    },
                    "median_error": float(np.median(np.abs(np.expm1(group.fit.residuals)))),
                    "cross_validated_median_error": float(np.median(np.abs(group.held_out))),
                    "cross_validated_p95_error": float(np.quantile(np.abs(group.held_out), 0.95)),
                    "singular_values": group.fit.singular_values.tolist(),
                }
                for group in self.found.groups
            ],
            "warnings": list(self.found.warnings),
        }

    def residuals(self) -> list[dict[str, Any]]:
        """One row a measurement: origin, quantity, measured and predicted seconds, error, error when left out."""
        return [
            {
                "row": group.data.origin[k],
                "quantity": str(group.data.quantity[k]),
                "measured_s": float(group.data.seconds[k]),
                "predicted_s": float(group.fit.predicted[k]),
                "error": float(np.expm1(group.fit.residuals[k])),
                "held_out_error": float(group.held_out[k]),
            }
            for group in self.found.groups
            for k in range(len(group.data))
        ]


def calibrate(
    tables: Sequence[PathLike] | PathLike,
    model: str,
    out: PathLike | None = None,
    *,
    device: str | None = None,
    architecture: str = DEFAULT_MODEL,
    base: str = DEFAULT_BASE,
    detail: bool = False,
    execution: str = "collective",
    force: bool = False,
) -> Calibration:
    """Fit the physical parameters of a cost model to tables of measurements.

    Parameters
    ----------
    tables : path-like or sequence of them
        CSV files; columns in `asapmodel.calibration.tables`, or those of a public table.
    model : str
        ``"attention"``, ``"moe"`` or ``"link"``.
    out : path-like, optional
        Where to write the profile.
    device, architecture : str
        Catalogue names for rows that do not say.
    base : str
        Profile, by name or path, that gives all that is not fitted.
    detail : bool
        Fit also what the planner's law leaves out, as nuisances that do not go into the profile.
    execution : str
        Of a link: ``"collective"`` or one-sided ``"send"``.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If a table cannot be read, or has fewer rows than parameters.

    Notes
    -----
    Bounded least squares on logarithms with a soft L1 loss (`asapmodel.solvers.robust_fit`). What a table cannot tell
    apart is in ``found.warnings``.
    """
    if model not in QUANTITIES:
        raise InputError("--model", "", f"is '{model}'", f"give one of {', '.join(QUANTITIES)}")
    if execution not in EXECUTIONS:
        raise InputError("--execution", "", f"is '{execution}'", f"give one of {', '.join(EXECUTIONS)}")
    paths = [tables] if isinstance(tables, str | os.PathLike) else list(tables)
    if out is not None:
        check_writable(out, force)
    known = base_tables(base)
    data = read_tables([os.fspath(one) for one in paths], model, device, architecture)
    found = fit_tables(data, model, catalog.load_profile(base, "--base").value, detail, execution)
    from asapmodel import __version__

    facts = {"base": base, "architecture": architecture, "software": f"asapmodel {__version__}"}
    if device is not None:
        facts["device"] = device
    sources = [line for one in paths for line in _source(Path(one))]
    text = profile_text(found, known, f"Calibrated {model}: {', '.join(data.tables())}", facts, sources)
    profile = catalog.parse_profile(text, "calibrated profile")
    if out is not None:
        write_text_atomically(out, text, force)
    return Calibration(found, profile, text)


def _source(path: Path) -> list[str]:
    """The comment at the head of a table."""
    first = path.read_text(encoding="utf-8-sig").splitlines()[0]
    return [first.lstrip("# ")] if first.startswith("#") else [f"{path.name}, no source stated"]
