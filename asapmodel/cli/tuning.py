"""The command `tune`: the best policy inside a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asapmodel.cli.options import ForceOption, JsonOption, ScenarioArgument, SetOption, load, parse_rate
from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.cli.uncertain import UncertaintyOption
from asapmodel.files import check_writable, write_text_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asapmodel.scenario import Scenario
    from asapmodel.tuning.search import Flatness
    from asapmodel.verbs.tune import Tuned

__all__ = ["tune"]


def tune(
    scenario: ScenarioArgument,
    rate: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Minimise the TTFT statistic at this rate, requests/s; default: maximise the SLO throughput.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY", help="A key of [policy] to tune, may be repeated; default: all.", show_default=False
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="OUT.toml", help="Write the tuned scenario.", show_default=False),
    ] = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
    uncertainty: UncertaintyOption = False,
) -> None:
    """The best policy inside a layout, what it gains, and how flat the optimum is."""
    from asapmodel.verbs.tune import tune as ask

    speed = parse_rate(rate)
    if out is not None:
        check_writable(out, force)
    what = load(scenario, changes)
    with progress(f"tuning {what.name}") as report_step:
        answer = ask(what, speed, only=only or (), progress=report_step, uncertainty=uncertainty)
    if out is not None:
        write_text_atomically(out, what.replace(**answer.policy).to_toml(), force)
        note(f"wrote {out}")
    if as_json:
        print_json(answer.to_dict())
    else:
        show(*_answer(what, answer))


def _answer(scenario: Scenario, answer: Tuned) -> list[RenderableType]:
    from rich.markup import escape

    from asapmodel.cli.text import layout, number, table

    if answer.rate_rps is None:
        what = f"SLO throughput ({answer.statistic} TTFT <= {scenario.slo.ttft:g} s)"
        numbers = f"{number(answer.before)} to [bold]{number(answer.after)} requests/s[/]"
    else:
        what = f"{answer.statistic} TTFT at {answer.rate_rps:g} requests/s"
        numbers = f"{number(answer.before)} to [bold]{number(answer.after)} s[/]"
    out = table("[policy]", "scenario's", "best", "alone", "within 1 %")
    for one in answer.parameters:
        before, best = _shown(one.key, one.before), _shown(one.key, one.best)
        out.add_row(one.key, before, best, f"{100 * one.alone:+.1f} %", _range(one))
    changed = " ".join(
        f"--set policy.{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in answer.policy.items()
    )
    sure: list[RenderableType] = []
    if answer.uncertainty is not None:
        from asapmodel.cli.choosing import gain_answer

        sure = gain_answer(answer.uncertainty, answer.rate_rps)
    return [
        f"[bold]{escape(answer.scenario)}[/]: {layout(scenario)}",
        f"{what}: {numbers}, {100 * answer.gain:+.1f} %.",
        out,
        "alone: gain of this key by itself. within 1 %: how far it can move from the best, the others as they are.",
        f"{answer.evaluations} policies evaluated. " + (f"As options: {changed}" if changed else "Nothing to change."),
        *sure,
    ]


def _shown(key: str, value: float | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if key == "max_seqs" and value == 0:
        return "any number"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g} s"


def _range(one: Flatness) -> str:
    words = [_shown(one.key, value) for value in one.within]
    if isinstance(one.best, str | bool):
        return " or ".join(words)
    return words[0] if words[0] == words[1] else " to ".join(words)
