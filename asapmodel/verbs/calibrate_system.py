"""`calibrate --model system`: the cost coefficients of a scenario from logs of requests, with their uncertainty."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asapmodel.calibration.replay import Replay, coefficient, replay_of
from asapmodel.calibration.request_log import read_log, split_argument
from asapmodel.calibration.system import DEFAULT_KEYS, SystemFit, fit_system
from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.errors import InputError
from asapmodel.files import check_writable, write_text_atomically
from asapmodel.scenario import Scenario

__all__ = ["SystemCalibration", "calibrate_system"]

PathLike = str | os.PathLike[str]
_WIDE = 3.0  # ratio of the ends of an interval that is worth a warning


@dataclass(frozen=True, slots=True, eq=False)
class SystemCalibration:
    """What logs say of a system.

    Attributes
    ----------
    found : SystemFit
        Coefficients, covariance, errors.
    replays : tuple of Replay
        The logs, each with its system.
    scenario : Scenario
        The given one with the coefficients, and their uncertainty, in place.
    text : str
        Its file.
    warnings : tuple of str
        What the logs leave open.
    """

    found: SystemFit
    replays: tuple[Replay, ...]
    scenario: Scenario
    text: str
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        fit = self.found
        rows = zip(fit.keys, fit.values, fit.intervals, np.sqrt(np.diag(fit.covariance)), strict=True)
        return {
            "model": "system",
            "logs": [{"name": x.log.name, "requests": len(x.log), "lone": len(x.lone)} for x in self.replays],
            "coefficients": {
                key: {"value": float(value), "interval": interval.tolist(), "standard_error": float(error)}
                for key, value, interval, error in rows
            },
            "lone_median_error": float(np.median(np.abs(fit.lone))),
            "window_median_error": float(np.median(np.abs(fit.windows))),
            "cross_validated_median_error": float(np.median(np.abs(fit.held_out))),
            "cross_validated_p95_error": float(np.quantile(np.abs(fit.held_out), 0.95)),
            "singular_values": fit.singular_values.tolist(),
            "warnings": list(self.warnings),
        }

    def residuals(self) -> list[dict[str, Any]]:
        """One row a request: log, measured and replayed TTFT, error; lone requests are marked."""
        rows = []
        for one in self.replays:
            lone, ttft = set(one.lone.tolist()), one.ttft(self.found.costs)
            for k in np.flatnonzero(np.isfinite(one.log.ttft)).tolist():
                measured, predicted = float(one.log.ttft[k]), float(ttft[k])
                rows.append(
                    {
                        "row": f"{one.log.name}:{k + 1}",
                        "quantity": "alone" if k in lone else "among others",
                        "measured_s": measured,
                        "predicted_s": predicted,
                        "error": predicted / measured - 1.0,
                    }
                )
        return rows


def calibrate_system(
    logs: Sequence[PathLike] | PathLike,
    scenario: Scenario | PathLike,
    out: PathLike | None = None,
    *,
    fit: Sequence[str] | None = None,
    force: bool = False,
) -> SystemCalibration:
    """Fit cost coefficients of a scenario to logs of requests.

    Parameters
    ----------
    logs : path-like or sequence of them
        CSV files with `arrival_s`, `prompt_tokens`, `ttft_s` and, where there are any, `cached_tokens`; a run each.
        What differs from the scenario stands behind a colon: ``"small.csv:chunk_tokens=16384"``.
    scenario : Scenario or path-like
        The system; its costs are where the search starts, and all that is not fitted.
    out : path-like, optional
        Where to write the calibrated scenario.
    fit : sequence of str, optional
        Keys of `[costs]`; default `asapmodel.calibration.system.DEFAULT_KEYS`.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If a log cannot be read or has no request that was alone, or a key is none.
    """
    base = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    if out is not None:
        check_writable(out, force)
    paths = [logs] if isinstance(logs, str | os.PathLike) else list(logs)
    replays = tuple(_replay(base, one) for one in paths)
    costs, keys = layer_costs(base).costs, tuple(fit or DEFAULT_KEYS)
    for key in keys:
        try:
            coefficient(costs, key)
        except ValueError as error:
            raise InputError("--fit", "", *str(error).split("; ", 1)) from None
    try:
        found = fit_system(replays, costs, keys)
    except ValueError as error:
        raise InputError(", ".join(x.log.name for x in replays), "", *str(error).split("; ", 1)) from None
    calibrated = _with_costs(base, found, replays)
    text = _header(found, replays, base) + calibrated.to_toml()
    if out is not None:
        write_text_atomically(out, text, force)
    return SystemCalibration(found, replays, calibrated, text, _warnings(found, replays))


def _replay(base: Scenario, argument: PathLike) -> Replay:
    path, changes = split_argument(argument)
    scenario = base.replace(**{key: _plain(value) for key, value in changes.items()}) if changes else base
    return replay_of(read_log(path, changes), scenario.layout, scenario.policy)


def _plain(text: str) -> int | float | bool | str:
    """A value as TOML would have it."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _with_costs(base: Scenario, found: SystemFit, replays: Sequence[Replay]) -> Scenario:
    """The scenario with all coefficients spelt out, and the covariance of those that were fitted."""
    keys = [f"costs.{key}" for key in found.keys]
    covariance = {"keys": keys, "matrix": [[float(x) for x in row] for row in found.covariance]}
    return base.replace(costs=_table(found.costs, found.keys, replays), **{"uncertainty.covariance": covariance})


def _table(costs: LayerCosts, keys: Sequence[str], replays: Sequence[Replay]) -> dict[str, Any]:
    from dataclasses import asdict

    logs = ", ".join(one.log.name for one in replays)
    return asdict(costs) | {"fitted_to": dict.fromkeys(keys, logs)}


def _header(found: SystemFit, replays: Sequence[Replay], base: Scenario) -> str:
    from asapmodel import __version__

    lines = [f"# {base.name}, calibrated on logs of requests by asapmodel {__version__}:"]
    for one in replays:
        changes = "".join(f", {key} = {value}" for key, value in one.log.changes.items())
        lines.append(f"#   {one.log.name}: {len(one.log)} requests, {len(one.lone)} of them alone{changes}")
    lines.append(
        f"# Median errors: alone {np.median(np.abs(found.lone)):.1%}, windows {np.median(np.abs(found.windows)):.1%}, "
        f"left out of the fit {np.median(np.abs(found.held_out)):.1%}. 95 % intervals:"
    )
    for key, value, (low, high) in zip(found.keys, found.values, found.intervals, strict=True):
        lines.append(f"#   {key} = {value:.4g}, {low:.4g} to {high:.4g}")
    return "\n".join(lines) + "\n\n"


def _warnings(found: SystemFit, replays: Sequence[Replay]) -> tuple[str, ...]:
    out = [f"{key} is at the end of its range: the logs want less or more than it can be" for key in found.at_bound]
    for key, (low, high) in zip(found.keys, found.intervals, strict=True):
        if high > _WIDE * low and key not in found.at_bound:
            out.append(f"{key} is known to a factor {high / low:.1f} only")
    if any(one.layout.kind == "sync" for one in replays):
        out.append("groups in lockstep make the fit jump: intervals may be too narrow, compare logs of several runs")
    for open_one in found.unidentified():
        up = " and ".join(key for key, x in open_one.items() if x > 0)
        down = " and ".join(key for key, x in open_one.items() if x < 0)
        out.append(f"the logs cannot tell {up} up from {down} down" if down else f"the logs do not determine {up}")
    return tuple(out)
