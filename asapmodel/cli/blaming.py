"""The command `blame`: where the TTFT of a run's requests comes from, and where the devices' time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asapmodel.cli.options import ForceOption, JsonOption, ScenarioArgument, SetOption, load, parse_rate
from asapmodel.cli.output import note, print_json, progress, show
from asapmodel.files import check_writable, write_csv

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from asapmodel.attribution.blame import Blame
    from asapmodel.scenario import Scenario

__all__ = ["blame"]

_LEAST = 5e-4  # shares of the mean TTFT below are left out of the tables


def blame(
    scenario: ScenarioArgument,
    rate: Annotated[
        str | None, typer.Option(metavar="R", help="Requests per second; default: the scenario's.", show_default=False)
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(metavar="OUT.csv", help="Write one row per request: its TTFT and components.", show_default=False),
    ] = None,
    changes: SetOption = None,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Where the TTFT of a run's requests comes from, and where the devices' time goes."""
    from asapmodel.verbs.blame import blame as ask

    speed = parse_rate(rate)
    if requests is not None:
        check_writable(requests, force)
    what = load(scenario, changes)
    with progress(f"running {what.name}"):
        answer = ask(what, speed)
    if requests is not None:
        table = answer.table()
        write_csv(requests, {str(name): table[name].to_numpy() for name in table}, force)
        note(f"wrote {requests}")
    if as_json:
        print_json(answer.to_dict())
    else:
        show(*_answer(what, answer))


def _answer(scenario: Scenario, answer: Blame) -> list[RenderableType]:
    from rich.markup import escape

    from asapmodel.cli.text import layout, number, percent

    mean = float(answer.ttft_s.mean())
    head = [
        f"[bold]{escape(scenario.name)}[/]: {layout(scenario)}, one run of the graph engine",
        f"{len(answer.ttft_s):,} requests, mean TTFT {number(mean)} s",
    ]
    lost = "at barriers or to padding" if scenario.policy.pad_groups else "at barriers"
    waste = f"{percent(answer.straggler_waste)} % of the attention groups' time is lost {lost}."
    paths = [_path_table(answer)] if answer.paths is not None else [waste]
    return [*head, _component_table(answer, mean), _length_table(answer), *paths, _device_table(answer)]


def _component_table(answer: Blame, mean: float) -> Table:
    from asapmodel.cli.text import number, percent, table

    out = table("Mean TTFT is", "s", "%", "part")
    out.add_column("")
    for name, value in answer.means().items():
        if value > _LEAST * mean:
            one = answer.vocabulary[str(name)]
            out.add_row(str(name), number(value), percent(value / mean), one.part, one.meaning)
    return out


def _length_table(answer: Blame) -> Table:
    from asapmodel.cli.text import number, percent, table

    out = table("Tokens to compute", "requests (%)", "TTFT (s)", "queueing", "kernel", "waiting", title="By length, s")
    for row in answer.by_length().to_dict("records"):
        parts = [
            sum(row[name] for name, one in answer.vocabulary.items() if one.part == part)
            for part in ("queueing", "kernel", "waiting")
        ]
        out.add_row(
            f"{row['tokens']:,.0f} on average",
            percent(row["share"]),
            *(number(value) for value in (row["ttft_s"], *parts)),
        )
    return out


def _path_table(answer: Blame) -> Table:
    from asapmodel.cli.text import number, percent, table

    assert answer.paths is not None
    means = answer.paths.mean()
    total = float(means.sum())
    out = table("Whose work it waits for", "s", "%", title="Critical paths, mean")
    owners = {"own": "own batch", "group": "other batches of the group", "others": "batches of other groups"}
    rows = {
        words: float(means[[name for name in means.index if name.startswith(f"{owner}_")]].sum())
        for owner, words in owners.items()
    }
    rows |= {"arrivals of company": float(means["arrivals"]), "the window": float(means["window"])}
    for words, value in rows.items():
        out.add_row(words, number(value), percent(value / total))
    return out


def _device_table(answer: Blame) -> Table:
    from asapmodel.cli.text import percent, table

    shares = answer.devices.div(answer.devices.sum(axis=1), axis=0)
    kept = [name for name in shares if (shares[name] > _LEAST).any()]
    out = table("Device time (%)", *(str(stream).replace("_", " ") for stream in shares.index))
    for name in kept:
        out.add_row(str(name).replace("_", " "), *(percent(float(share)) for share in shares[name]))
    return out
