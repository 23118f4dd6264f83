"""`calibrate --model system` on the command line: a scenario from logs of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asapmodel.verbs.calibrate_system import SystemCalibration

__all__ = ["answer_of_logs"]


def answer_of_logs(
    logs: Sequence[str], scenario: str | None, out: str | None, fit: str | None, plot: str | None, js: bool, force: bool
) -> None:
    """Calibrate a scenario on logs, write what was asked for, and print the answer."""
    if scenario is None:
        raise InputError("--scenario", "", "is missing", "give the scenario of the system that the logs are of")
    from asapmodel.verbs.calibrate_system import calibrate_system

    keys = [key.strip() for key in fit.split(",")] if fit else None
    with progress("calibrating system"):
        answer = calibrate_system(logs, scenario, out, fit=keys, force=force)
    if out is not None:
        note(f"wrote {out}")
    if plot is not None:
        from asapmodel.calibration.picture import write_picture

        write_picture(answer.residuals(), plot, force)
        note(f"wrote {plot}")
    if js:
        print_json(answer.to_dict() | {"residuals": answer.residuals()})
    else:
        show(*_answer(answer))


def _answer(answer: SystemCalibration) -> list[RenderableType]:
    from rich.markup import escape

    from asapmodel.cli.text import number, percent, table

    facts = answer.to_dict()
    logs = table("log", "requests", "alone in the system")
    for one in facts["logs"]:
        logs.add_row(escape(one["name"]), str(one["requests"]), str(one["lone"]))
    out = table("coefficient", "value (SI)", "95 % interval")
    for key, one in facts["coefficients"].items():
        low, high = one["interval"]
        out.add_row(key, number(one["value"]), f"{number(low)} to {number(high)}")
    names = ("lone_median_error", "window_median_error", "cross_validated_median_error", "cross_validated_p95_error")
    lone, windows, held_out, tail = (percent(facts[name]) for name in names)
    said = f"Median error: alone {lone} %, mean of 25 requests in a row {windows} %; left out of the fit {held_out} %"
    return [logs, out, f"{said}, p95 {tail} %.", *(f"Warning: {escape(line)}." for line in facts["warnings"])]
