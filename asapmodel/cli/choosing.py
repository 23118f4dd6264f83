"""Whether what `explore`, `tune` and `plan` choose would survive the errors of constants, as tables and lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from asapmodel.cli.uncertain import NOTHING, OUTSIDE, failed_line, interval_span

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from asapmodel.exploration.choice import Choice, Lead
    from asapmodel.planning.drawn_plan import DrawnPlan, Enough
    from asapmodel.tuning.drawn_gain import DrawnGain
    from asapmodel.uncertainties.deciding import Decider

__all__ = ["choice_answer", "gain_answer", "plan_lines"]


def choice_answer(choice: Choice, names: Mapping[int, str], objectives: Sequence[str]) -> list[RenderableType]:
    """How sure the best points of a space are, at 80 columns; `names` are of points."""
    if not choice.constants:
        return [NOTHING]
    count = len(choice.contenders)
    out: list[RenderableType] = [
        f"[bold]Uncertainty[/], from {choice.samples} draws of the constants, the same for the {count} best points (of "
        "each objective, of the front, of every other layout):",
        _contenders_table(choice, names, objectives),
    ]
    if choice.lead is not None:
        out += _lead_lines(choice.lead, names, choice.level)
    failed = max(one.failed for one in choice.contenders)
    if failed:
        out.append(failed_line(failed))
    if choice.without:
        out.append(f"{choice.without} more points were left out: too near to where there is no answer.")
    return [*out, OUTSIDE]


def _contenders_table(choice: Choice, names: Mapping[int, str], objectives: Sequence[str]) -> Table:
    """A row a point and objective; with several objectives also how often the point is in the front."""
    from rich.markup import escape

    from asapmodel.cli.text import number, percent, table, words
    from asapmodel.exploration.choice import CLOSE_BY
    from asapmodel.exploration.objectives import OBJECTIVES

    first = choice.contenders[0].standings
    several = len(first) > 1
    front = ["on front\n(%)"] if len(objectives) > 1 else []
    headings = ["estimate", f"{100 * choice.level:g} %\ninterval", "best\n(%)", f"within\n{100 * CLOSE_BY:g} % (%)"]
    title = "How sure" if several else f"How sure: {OBJECTIVES[first[0].objective].title}"
    out = table("point", *headings, *front, title=title)
    for one in choice.contenders:
        for place, standing in enumerate(one.standings):
            name = [] if place else [names[one.point]]
            name += [f"  {words(standing.objective)}"] if several else []
            cells = [number(standing.interval.value), interval_span(standing.interval)]
            cells += [percent(standing.best), percent(standing.close)]
            out.add_row(escape("\n".join(name)), *cells, *([""] if place else [percent(one.front)])[: len(front)])
    return out


def _lead_lines(lead: Lead, names: Mapping[int, str], level: float) -> list[str]:
    from rich.markup import escape

    from asapmodel.cli.text import percent

    point, rival = (escape(" ".join(names[number].split())) for number in (lead.point, lead.rival))
    low, high = _gain(lead.ratio.low), _gain(lead.ratio.high)
    line = (
        f"[bold]{point}[/] is {_gain(lead.ratio.value).lstrip('+')} better than its strongest rival, {rival} "
        f"({100 * level:g} %: {low} to {high}), and better in [bold]{percent(lead.better)} % of the draws[/]."
    )
    return [line, *_measure_lines(lead.measure, f"the lead, {low} to {high}", _gain)]


def gain_answer(sure: DrawnGain, rate: float | None) -> list[RenderableType]:
    """How sure the gain of a tuned policy is, as lines; `rate`: that of the TTFT, if it was one."""
    from asapmodel.cli.text import percent

    if not sure.constants:
        return [NOTHING]
    level, unit = f"{100 * sure.level:g} %", "requests/s" if rate is None else "s"
    low, high = _gain(1 + sure.gain.low), _gain(1 + sure.gain.high)
    return [
        f"[bold]Uncertainty[/], from {sure.samples} draws of the constants, the same for both policies: the gain is "
        f"{low} to {high} ({level}), and the tuned policy better in [bold]{percent(sure.better)} % of the draws[/].",
        f"{level} intervals: given {interval_span(sure.before)} {unit}, tuned {interval_span(sure.after)} {unit}.",
        *_measure_lines(sure.measure, f"the gain, {low} to {high}", _gain if rate is None else _saving),
        *([failed_line(sure.failed)] if sure.failed else []),
        OUTSIDE,
    ]


def plan_lines(sure: DrawnPlan, unit: str) -> list[RenderableType]:
    """How sure a plan is, at 80 columns; `unit` is that of what it minimises."""
    from asapmodel.cli.text import percent

    if not sure.constants:
        return [NOTHING]
    full = f"how full the fullest pool is, {_full(sure.full.low)} to {_full(sure.full.high)}"
    return [
        f"[bold]Uncertainty[/], from {sure.samples} draws of the constants, the same for all pools:",
        _drawn_pools_table(sure),
        f"The plan carries the demand, reserve failed and forecast exceeded, in [bold]{percent(sure.carried)} % of the "
        f"draws[/]. {_enough(sure.enough, sure.share, unit)}",
        *_measure_lines(sure.measure, full, _full),
        *([failed_line(sure.failed)] if sure.failed else []),
        OUTSIDE,
    ]


def _enough(enough: Enough | None, wanted: float, unit: str) -> str:
    from asapmodel.cli.text import percent

    share = f"{100 * wanted:g} % of the draws"
    if enough is None:
        return f"No number of instances in these pools, within the limits, is enough for {share}."
    if enough.added == 0:
        return f"Nothing has to be added for {share}."
    return (
        f"[bold]{enough.instances} instances[/], {enough.devices:,} devices (+{enough.added:,.6g} {unit}), "
        f"carry it in {percent(enough.carried)} %: the least addition that is enough for {share}."
    )


def _drawn_pools_table(sure: DrawnPlan) -> Table:
    from rich.markup import escape

    from asapmodel.cli.text import number, table

    level = f"{100 * sure.level:g} %\ninterval"
    headings = ("fullest\nat hour", "an instance\ncarries (/s)", level, "needed\nto carry", level, "there")
    out = table("Pool", "type", *headings)
    for one in sure.pools:
        cells = (
            number(one.carries.value),
            interval_span(one.carries),
            number(one.needs.value),
            interval_span(one.needs),
        )
        out.add_row(one.name, escape(one.type), str(one.hour), *cells, str(one.carrying))
    return out


def _measure_lines(measure: Decider | None, what: str, shown: Callable[[float], str]) -> list[str]:
    """Which measurement would narrow most `what`, an interval in words; nothing if none does."""
    from rich.markup import escape

    if measure is None:
        return []
    then = f"{shown(measure.low)} to {shown(measure.high)}"
    return [f"Measuring [bold]{measure.name}[/] would narrow {what}, to {then}: {escape(measure.words)}."]


def _gain(ratio: float) -> str:
    return "no limit" if math.isinf(ratio) else f"{100 * (ratio - 1):+.1f} %"


def _saving(ratio: float) -> str:
    """Of a TTFT that is so many times shorter."""
    return _gain(2 - 1 / ratio)


def _full(ratio: float) -> str:
    return "no limit" if math.isinf(ratio) else f"{100 * ratio:.0f} %"
