"""The command `timeline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asapmodel.cli.options import ForceOption, JsonOption, ScenarioArgument, SetOption, load, parse_rate
from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asapmodel.scenario import Scenario
    from asapmodel.verbs.timeline import Timeline

__all__ = ["timeline"]


def timeline(
    scenario: ScenarioArgument,
    rate: Annotated[
        str | None, typer.Option(metavar="R", help="Requests per second; default: the scenario's.", show_default=False)
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Where the window begins, e.g. 10s.", show_default=False)
    ] = "0",
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="How long it lasts, e.g. 2s, or 50ms for a picture; default: to the end of the run.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Write a trace for Perfetto (.json, .json.gz) or a picture (.svg, .png).",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="graph, the only engine that has a timeline.")
    ] = "graph",
    changes: SetOption = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """What every stream did in a window of a run: a table, a trace for Perfetto, or a picture."""
    speed, first, length = parse_rate(rate), _time("--from", start), _time("--for", duration)
    if engine != "graph":
        remedy = "leave --engine out: the graph engine is the one that runs requests"
        raise InputError("--engine", "", f"'{engine}' has no timeline", remedy)
    from asapmodel.verbs.timeline import check_output
    from asapmodel.verbs.timeline import timeline as ask

    if out is not None:
        check_output(out, force)
    what = load(scenario, changes)
    with progress(f"running {what.name}"):
        answer = ask(what, speed, first or 0.0, length)
        if out is not None:
            answer.write(out, force)
    if out is not None:
        note(f"wrote {out}")
    if as_json:
        print_json(answer.to_dict())
    else:
        show(*_answer(what, answer))


def _time(option: str, text: str | None) -> float | str | None:
    """A number of seconds, or text with a unit; None stays None."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _answer(scenario: Scenario, answer: Timeline) -> list[RenderableType]:
    """Shares of the window by stream."""
    from rich.markup import escape

    from asapmodel.cli.text import layout, percent, table
    from asapmodel.timelines.tasks import lane_name

    out = table("Stream", "busy (%)", "blocked (%)", "idle (%)", "tasks")
    for track, one in zip(answer.tasks.tracks, answer.streams, strict=True):
        out.add_row(lane_name(track), percent(one.busy), percent(one.blocked), percent(one.idle), f"{one.tasks:,}")
    window = f"{answer.start_s:.6g} to {answer.end_s:.6g} s"
    cause = "at barriers" if scenario.layout.kind == "sync" else "for a full buffer"
    return [
        f"[bold]{escape(answer.scenario)}[/]: {layout(scenario)}, engine graph",
        f"{answer.rate_rps:g} requests/s, {window} of a run that ends at {answer.run_end_s:.6g} s",
        out,
        f"Blocked: its turn had come, and it stood still {cause}.",
    ]
