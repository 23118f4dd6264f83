"""The command `explore`: a design space, what was left out and why, the Pareto front, and what the best points are."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapmodel.cli.options import ForceOption, JsonOption, parse_count
from asapmodel.cli.output import note, print_json, show
from asapmodel.cli.uncertain import UncertaintyOption

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from asapmodel.exploration.result import Exploration

__all__ = ["explore"]

_WIDE = 3  # objectives besides devices that fit a row of 80 columns
_TEXT = 32  # columns of a point's keys


def explore(
    space: Annotated[str, typer.Argument(metavar="SPACE.toml", help="A space file.", show_default=False)],
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT.parquet",
            help="Write all points; an interrupted run goes on where it was.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        str | None, typer.Option(metavar="N", help="Points of the front to show; default 20.", show_default=False)
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(metavar="N", help="Processes; default: one a core, or none for few points.", show_default=False),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers to use, e.g. tcp://10.0.0.1:8786."),
    ] = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """Every feasible point of a design space, its Pareto front, and the best points confirmed."""
    count, processes = parse_count(top, "--top") or 20, parse_count(workers, "--workers")
    from asapmodel.verbs.explore import explore as ask

    with _bar() as report:
        found = ask(
            space,
            out,
            force=force,
            workers=processes,
            scheduler=scheduler,
            progress=report,
            uncertainty=uncertainty,
        )
    if out is not None:
        computed = "only constants were drawn" if uncertainty else "nothing was computed"
        note(f"{out} is finished, {computed}" if found.reused else f"wrote {out}")
    if as_json:
        print_json(found.to_dict())
    else:
        show(*_answer(found, count))


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show progress with the time that remains, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as display:
        tasks: dict[str, Any] = {}

        def report(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = display.add_task(title, total=total)
            display.update(tasks[title], completed=done, total=total)

        yield report


def _answer(found: Exploration, count: int) -> list[RenderableType]:
    from rich.markup import escape

    table = found.table
    usable = int((table["status"] == "ok").sum())
    lines = [
        f"[bold]{escape(found.source)}[/]: {found.combinations:,} points, {len(table):,} feasible, "
        f"{usable:,} with an SLO throughput",
        f"Screened with the queueing engine; {int((table['effort'] == 'full').sum())} points with its full effort.",
    ]
    out: list[RenderableType] = [*lines]
    if found.left_out:
        out.append(_left_out(found))
    out += [_best(found), _front(found, count)]
    if len(found.confirmed):
        out.append(_confirmed(found))
    if found.uncertainty is not None:
        from asapmodel.cli.choosing import choice_answer

        varied = _varied(found)
        drawn = found.table[found.table["point"].isin([one.point for one in found.uncertainty.contenders])]
        names = {row["point"]: _name(row, varied) for row in drawn.to_dict("records")}
        out += choice_answer(found.uncertainty, names, found.objectives)
    return out


def _left_out(found: Exploration) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import table

    out = table("Why points were left out", "points")
    for one in found.left_out:
        out.add_row(escape(one.reason), f"{one.points:,}")
    return out


def _best(found: Exploration) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import table, words
    from asapmodel.exploration.objectives import OBJECTIVES

    out = table("best", "value")
    out.add_column("point", overflow="fold")
    varied = _varied(found)
    for row in found.best.to_dict("records"):
        name = row["objective"]
        out.add_row(words(name), _value(row[OBJECTIVES[name].column]), escape(_name(row, varied)))
    return out


def _front(found: Exploration, count: int) -> Table:
    """Points of the front with their objectives, and below each what else it is."""
    from rich.markup import escape

    from asapmodel.cli.text import table, words
    from asapmodel.exploration.objectives import OBJECTIVES

    rows = found.front
    names = [name for name in found.objectives if name != "devices"][:_WIDE]
    headings = [OBJECTIVES[name].title for name in names]
    title = f"Pareto front, {len(rows)} points" + (f", the first {count}" if len(rows) > count else "")
    out = table("point", "devices", *headings, "limited by", title=title)
    varied = _varied(found)
    for row in rows.head(count).to_dict("records"):
        cells = [_value(row[OBJECTIVES[name].column]) for name in names]
        out.add_row(escape(_name(row, varied)), _value(row["devices"]), *cells, words(row["bottleneck"]))
    return out


def _value(value: float) -> str:
    from asapmodel.cli.text import number

    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def _varied(found: Exploration) -> list[str]:
    """Columns worth a word: keys that vary, among them the base scenario where there are several."""
    bases = ["scenario"] if found.table["scenario"].nunique() > 1 else []
    return [*bases, *found.varied]


def _name(row: dict[Any, Any], varied: Sequence[str]) -> str:
    """A point in words: its layout, and below it the other keys that vary and act."""
    from asapmodel.cli.text import number

    parts = []
    for name in varied:
        value = row[name]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        shown = number(value, 6).removesuffix(".00") if numeric else str(value).lower()
        parts.append(shown if name == "scenario" else f"{name.rpartition('.')[2]}={_short(value, shown)}")
    head = f"{row['system']} D{row['D']} T{row['T']} E{row['E']}"
    below = textwrap.fill(" ".join(parts), _TEXT, initial_indent="  ", subsequent_indent="  ")
    return f"{head}\n{below}" if parts else head


def _short(value: Any, shown: str) -> str:
    return f"{value:g}" if isinstance(value, float) else shown.replace(",", "")


def _confirmed(found: Exploration) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import number, span, table

    title = "SLO throughput (requests/s), confirmed by runs of the graph engine"
    out = table("point", "queueing", "graph", "95 % interval", "difference (%)", title=title)
    varied = _varied(found)
    for row in found.confirmed.to_dict("records"):
        gap = 100.0 * (row["slo_throughput_rps"] / row["graph_rps"] - 1.0)
        interval = span((row["graph_low_rps"], row["graph_high_rps"]))
        cells = (number(row["slo_throughput_rps"]), number(row["graph_rps"]), interval, f"{gap:+.1f}")
        out.add_row(escape(_name(row, varied)), *cells)
    return out
