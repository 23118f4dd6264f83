"""The command `calibrate`: a profile from tables of measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapmodel.cli.calibrating_system import answer_of_logs
from asapmodel.cli.options import ForceOption, JsonOption
from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.errors import InputError
from asapmodel.files import check_writable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asapmodel.verbs.calibrate import Calibration

__all__ = ["calibrate"]

_WORST = 5  # rows to show
_PICTURES = (".svg", ".png")


def calibrate(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE.csv...", help="Measurements.", show_default=False)],
    model: Annotated[str, typer.Option(metavar="NAME", help="attention, moe, link or system.", show_default=False)],
    out: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT.toml", help="Write the profile.", show_default=False),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Device of rows that name none.", show_default=False),
    ] = None,
    architecture: Annotated[str, typer.Option(metavar="NAME", help="Model of rows that name none.")] = "deepseek-v3.2",
    base: Annotated[
        str, typer.Option(metavar="PROFILE", help="Profile, by name or path, for all that is not fitted.")
    ] = "cloudmatrix384-paper",
    detail: Annotated[bool, typer.Option("--detail", help="Fit also what the planner's law leaves out.")] = False,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="SCENARIO", help="Of logs of requests: the system they are of.", show_default=False),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(metavar="KEYS", help="Of logs: keys of costs to fit, with commas.", show_default=False),
    ] = None,
    execution: Annotated[
        str, typer.Option(metavar="KIND", help="Of a link: collective, or send (one-sided).")
    ] = "collective",
    plot: Annotated[
        str | None,
        typer.Option(metavar="OUT.svg", help="Draw predicted against measured times.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """A profile from measured kernel times, or a scenario from logs of requests, and what they leave open."""
    if plot is not None:
        if not plot.endswith(_PICTURES):
            raise InputError("--plot", "", f"is '{plot}'", "give a name that ends in .svg or .png")
        check_writable(plot, force)
    if model == "system":
        answer_of_logs(tables, scenario, out, fit, plot, as_json, force)
        return
    for option, value in (("--scenario", scenario), ("--fit", fit)):
        if value is not None:
            raise InputError(option, "", f"is not for model '{model}'", "leave it out, or give --model system")
    from asapmodel.verbs.calibrate import calibrate as ask

    with progress(f"calibrating {model}"):
        answer = ask(
            tables,
            model,
            out,
            device=device,
            architecture=architecture,
            base=base,
            detail=detail,
            execution=execution,
            force=force,
        )
    if out is not None:
        note(f"wrote {out}")
    if plot is not None:
        from asapmodel.calibration.picture import write_picture

        write_picture(answer.residuals(), plot, force)
        note(f"wrote {plot}")
    if as_json:
        print_json(answer.to_dict() | {"residuals": answer.residuals()})
    else:
        show(*_answer(answer))


def _answer(answer: Calibration) -> list[RenderableType]:
    from rich.markup import escape

    from asapmodel.cli.text import number, percent, table

    parts: list[RenderableType] = []
    for group, facts in zip(answer.found.groups, answer.to_dict()["groups"], strict=True):
        out = table("parameter", "value", "95 % interval", title=f"{group.name}: {len(group.data)} rows")
        for one in group.values():
            low, high = one.interval
            out.add_row(one.name, number(one.value), f"{number(low)} to {number(high)}")
        names = ("median_error", "cross_validated_median_error", "cross_validated_p95_error")
        median, held_out, tail = (percent(facts[name]) for name in names)
        parts += [out, f"Error: median {median} %; of rows left out of the fit median {held_out} %, p95 {tail} %."]
    worst = table("row", "quantity", "measured (s)", "predicted (s)", "error (%)", title="Largest residuals")
    rows: list[dict[str, Any]] = sorted(answer.residuals(), key=lambda row: -abs(row["error"]))
    for row in rows[:_WORST]:
        times = (number(row["measured_s"]), number(row["predicted_s"]))
        worst.add_row(escape(row["row"]), row["quantity"], *times, f"{100 * row['error']:+.1f}")
    fields = table("field of the profile", "value (SI)")
    for name, value in answer.found.fields.items():
        fields.add_row(name, number(value))
    return [*parts, worst, fields, *(f"Warning: {escape(line)}." for line in answer.found.warnings)]
