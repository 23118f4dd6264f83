"""The command `plan`: the smallest fleet for a day of demand, as tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from asapmodel.cli.options import ForceOption, JsonOption
from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.cli.uncertain import UncertaintyOption
from asapmodel.errors import InputError
from asapmodel.files import check_writable, write_text_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from asapmodel.planning.answer import Plan

__all__ = ["plan", "plan_answer"]

_UNITS = {"devices": "devices", "cost": "per hour", "power": "kW"}


def plan(
    demand: Annotated[
        str,
        typer.Argument(
            metavar="DEMAND", help="A demand file, or the name of a shipped one (three-classes).", show_default=False
        ),
    ],
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Say also what reserve, forecast, traffic and objectives are worth.")
    ] = False,
    gap: Annotated[
        str, typer.Option("--gap", metavar="SHARE", help="Stop when the fleet is known to be within this of the best.")
    ] = "0.0001",
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="SECONDS", help="For each integer program.")
    ] = "60",
    out: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT.json", help="Write the plan as JSON.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """The smallest fleet that serves a day of demand, and what goes where."""
    share, seconds = _number("--gap", gap), _number("--time-limit", time_limit)
    if out is not None:
        check_writable(out, force)
    from asapmodel.verbs.plan import plan as ask

    with progress("planning") as report_step:
        answer = ask(
            demand, what_if=what_if, gap=share, time_limit=seconds, progress=report_step, uncertainty=uncertainty
        )
    if out is not None:
        write_text_atomically(out, json.dumps(answer.to_dict(), indent=2) + "\n", force)
        note(f"wrote {out}")
    if as_json:
        print_json(answer.to_dict())
    else:
        show(*plan_answer(answer))


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(option, "", f"is {text[:40]!r}", "give a number") from None


def plan_answer(answer: Plan) -> list[RenderableType]:
    """The answer at 80 columns."""
    from rich.markup import escape

    from asapmodel.cli.answers import basis
    from asapmodel.cli.text import number

    costs = [
        *([] if answer.cost_per_hour is None else [f"{number(answer.cost_per_hour)} per hour"]),
        *([] if answer.power_kw is None else [f"{number(answer.power_kw)} kW"]),
        *([] if answer.supernodes is None else [f"{answer.supernodes} supernodes"]),
    ]
    proof = f"no fleet of {answer.candidates} candidate pools is below {number(answer.bound, 4)}"
    whole = all(share in (0.0, 1.0) for one in answer.pools for share in _rounded(one.share))
    worst = 100 * answer.forecast_error
    reserve = max(one.reserve for one in answer.pools)
    sure: list[RenderableType] = []
    if answer.uncertainty is not None:
        from asapmodel.cli.choosing import plan_lines

        sure = plan_lines(answer.uncertainty, _UNITS[answer.minimise])
    return [
        f"[bold]{escape(answer.demand)}[/]: {answer.instances} instances, {answer.devices} devices"
        + "".join(f", {one}" for one in costs),
        f"Least {answer.minimise}: {proof}, gap {100 * answer.gap:.2g} %.",
        _pools_table(answer),
        _ttft_table(answer),
        f"Verified at its fullest hour, with {reserve} of its instances failed and {worst:g} % more traffic.",
        _hours_table(answer, whole),
        *([] if whole else ["Share: what a pool takes, at that hour, of the prompts it serves; others take the rest."]),
        *([_worths_table(answer)] if answer.worths else []),
        *sure,
        basis(answer.assumptions),
    ]


def _rounded(shares: tuple[float, ...]) -> list[float]:
    return [round(share, 6) for share in shares]


def _pools_table(answer: Plan) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import table

    out = table("Pool", "type", "instances", "reserve", "devices")
    out.add_column("serves", overflow="fold")
    for one in answer.pools:
        cells = (str(one.instances), str(one.reserve), str(one.devices))
        out.add_row(one.name, escape(one.type), *cells, escape("; ".join(one.segments)))
    return out


def _ttft_table(answer: Plan) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import number, table

    out = table("Pool", "class", "TTFT", "objective (s)", "predicted (s)", "at hour")
    for pool in answer.pools:
        for place, one in enumerate(pool.ttft):
            value = number(one.value_s) if one.met else f"MISSED {number(one.value_s)}"
            cells = (escape(one.prompt_class), one.statistic, number(one.objective_s), value, str(one.hour))
            out.add_row("" if place else pool.name, *cells)
    return out


def _hours_table(answer: Plan, whole: bool) -> Table:
    from asapmodel.cli.text import percent, table

    headings = [f"{one.name} busy" if whole else f"{one.name} share, busy" for one in answer.pools]
    out = table("Hour", *headings, title="By hour (%)")
    for hour in range(len(answer.pools[0].share)):
        cells = []
        for one in answer.pools:
            busy = percent(one.utilisation[hour])
            cells.append(busy if whole else f"{100 * one.share[hour]:.0f}, {busy}")
        out.add_row(str(hour), *cells)
    return out


def _worths_table(answer: Plan) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import number, table

    out = table("What if", _UNITS[answer.minimise], title="What limits and rules are worth")
    for one in answer.worths:
        sign = "+" if one.change > 0 else ""
        out.add_row(escape(one.what), "no fleet" if one.change == float("inf") else f"{sign}{number(one.change)}")
    return out
