"""How sure an answer is, as tables and lines under it: intervals, shares, what to measure, what is taken as exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from asapmodel.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from asapmodel.scenario import Scenario
    from asapmodel.uncertainties.answer import Exact, Gain, Interval, Uncertainty
    from asapmodel.uncertainties.rates import RateIntervals

__all__ = [
    "NOTHING",
    "OUTSIDE",
    "UncertaintyOption",
    "check_uncertainty",
    "failed_line",
    "gain_lines",
    "interval_lines",
    "interval_span",
    "rate_intervals_answer",
    "uncertainty_answer",
    "uncertainty_json",
    "uncertainty_of",
]

UncertaintyOption = Annotated[
    bool, typer.Option("--uncertainty", help="Intervals from the errors of constants, and what to measure.")
]

OUTSIDE = "Not in the intervals: constants without a stated error, and the engine's own error."
NOTHING = "[bold]Uncertainty[/]: no constant of this system has a stated error, so there is no interval."
_APART = 0.25  # relative difference of widths that is worth a line
_SHOWN = 3  # exact constants to name
_SLIGHT = 0.005  # share of the variance that a table leaves out
_TIED = 0.02  # by which *alone* exceeds *in all* where constants are correlated, and not by the error of shares


def check_uncertainty(engine: str, horizon: float | None) -> None:
    """Refuse what intervals are not made for.

    Raises
    ------
    InputError
        For the graph engine, or a run of finite length.
    """
    if engine != "queueing":
        remedy = "its systems are asked by the law: leave one of the two out"
        raise InputError("--uncertainty", "", f"is not for engine '{engine}'", remedy)
    if horizon is not None:
        raise InputError("--uncertainty", "", "cannot be combined with --horizon", "leave one of the two out")


def uncertainty_of(scenario: Scenario, rate: float | None) -> Uncertainty:
    """Ask."""
    from asapmodel.verbs.uncertainty import uncertainty

    return uncertainty(scenario, rate)


def uncertainty_json(answer: Uncertainty | None) -> dict[str, Any]:
    """What goes into the object of ``--json``: nothing if nobody asked."""
    return {} if answer is None else {"uncertainty": answer.to_dict()}


def uncertainty_answer(answer: Uncertainty | None) -> list[RenderableType]:
    """The answer at 80 columns; nothing if nobody asked."""
    if answer is None:
        return []
    level = f"{100 * answer.level:g} %"
    out: list[RenderableType] = []
    if not answer.constants:
        out.append(NOTHING)
    else:
        out.append(f"[bold]Uncertainty[/], from {answer.samples} systems with constants drawn from their errors:")
        out += [_intervals_table(answer, level), *_counts(answer)]
        if answer.measurements:
            out += [_measurements_table(answer, level), *_tied(answer), *_best(answer, level)]
        out += _linear(answer)
    return [*out, *_left_out(answer)]


def rate_intervals_answer(answer: RateIntervals | None) -> list[RenderableType]:
    """Intervals of TTFT, a row a rate, at 80 columns; nothing if nobody asked."""
    from asapmodel.cli.text import percent, table

    if answer is None:
        return []
    if not answer.constants:
        return [NOTHING]
    level = f"{100 * answer.level:g} %"
    title = f"{level} intervals of TTFT (s), from {answer.samples} systems with constants drawn from their errors"
    out = table("rate\n(req/s)", "mean", "p99", "objective met\n(% of systems)", title=title)
    for one in answer.rates:
        out.add_row(f"{one.rate_rps:g}", interval_span(one.ttft_mean), interval_span(one.ttft_p99), percent(one.met))
    failed = max(one.failed for one in answer.rates)
    lines = [failed_line(failed)] if failed else []
    return [out, *lines, OUTSIDE]


def _intervals_table(answer: Uncertainty, level: str) -> Table:
    from asapmodel.cli.text import number, table

    out = table("", "estimate", f"{level} interval")
    rows = [("SLO throughput (requests/s)", answer.throughput), ("Stability limit (requests/s)", answer.limit)]
    if answer.ttft_mean is not None and answer.ttft_p99 is not None:
        at = f"at {number(answer.rate_rps)}/s (s)"
        rows += [(f"Mean TTFT {at}", answer.ttft_mean), (f"p99 TTFT {at}", answer.ttft_p99)]
    for name, one in rows:
        out.add_row(name, number(one.value), interval_span(one))
    return out


def interval_span(interval: Interval) -> str:
    """The ends, with as many digits as tell them apart."""
    from asapmodel.cli.text import number

    if math.isnan(interval.low):
        return "-"
    if math.isinf(interval.high):
        return f"{number(interval.low)} to no limit"
    low, high = number(interval.low), number(interval.high)
    digits = 3 if low != high else 4
    return f"{number(interval.low, digits)} to {number(interval.high, digits)}"


def _counts(answer: Uncertainty) -> list[str]:
    lines = []
    if answer.outside:
        lines.append(f"{answer.outside} more draws were left out: a share above 1, or a time below 0.")
    if answer.missed:
        lines.append(f"{answer.missed} of these systems miss the objective at every rate: throughput 0.")
    if answer.unstable:
        lines.append(f"{answer.unstable} of these systems are not stable at this rate: TTFT without limit.")
    if answer.failed:
        lines.append(failed_line(answer.failed))
    return lines


def failed_line(count: int) -> str:
    """That so many drawn systems have no answer."""
    return f"[bold]{count} of these systems have no answer in this model, and are left out.[/]"


def _measurements_table(answer: Uncertainty, level: str) -> Table:
    from asapmodel.cli.text import number, percent, table

    out = table("Constant", "alone (%)", "in all (%)", f"middle {level} of its law", title="Variance by constant")
    for one in answer.constants:
        if one.total >= _SLIGHT:
            name = escape(one.key.removeprefix("cluster."))
            law = f"{number(one.low)} to {number(one.high)}"
            out.add_row(name, percent(one.alone), percent(one.total), f"{law}{_unit(one.key)}")
    return out


def _tied(answer: Uncertainty) -> list[RenderableType]:
    """What to know of shares of constants that were calibrated together."""
    if all(one.alone <= one.total + _TIED for one in answer.constants):
        return []
    return ["Constants of one calibration tell of each other: *alone* counts that, *in all* is what the others leave."]


def _unit(key: str) -> str:
    return " times" if key.startswith("costs.") else ""


def _best(answer: Uncertainty, level: str) -> list[RenderableType]:
    from asapmodel.cli.text import number, table

    title = f"If measured within {100 * answer.noise:g} %"
    out = table("Measurement", f"{level} then (/s)", "narrower by", title=title)
    for one in answer.measurements:
        then = f"{number(one.throughput_low)} to {number(one.throughput_high)}"
        out.add_row(one.name, then, f"{100 * max(1 - one.width, 0):.0f} %")
    lines: list[RenderableType] = [out]
    best = answer.best
    if best is not None:
        lines.append(
            f"Measuring [bold]{best.name}[/] would narrow {interval_span(answer.throughput)} to "
            f"{number(best.throughput_low)} to {number(best.throughput_high)} requests/s: {escape(best.words)}."
        )
    if answer.explained < 1 - _APART:
        explained = 100 * max(0.0, answer.explained)
        lines.append(f"Shares are of the {explained:.0f} % of the variance that a quadratic explains.")
    return lines


def _linear(answer: Uncertainty) -> list[str]:
    from asapmodel.cli.text import span

    if answer.linear is None:
        return []
    width = answer.linear[1] - answer.linear[0]
    if abs(width - answer.throughput.width) <= _APART * max(width, answer.throughput.width):
        return []
    return [f"To first order, by elasticities: {span(answer.linear)} requests/s; the answer bends over these errors."]


def _left_out(answer: Uncertainty) -> list[str]:
    """What no interval knows of."""
    lines = []
    if answer.exact:
        count = len(answer.exact)
        named = "; ".join(map(_exact, answer.exact[:_SHOWN]))
        lines.append(f"Taken as exact, no error being stated: {count} constants. Most influential: {named}.")
    median, most = (f"{100 * share:g} %" for share in answer.engine_error)
    lines.append(f"Not in the interval: the engine's own error, {median} (median) to {most} (95th percentile).")
    return lines


def _exact(one: Exact) -> str:
    name = escape(one.key.removeprefix("cluster."))
    if math.isnan(one.elasticity):
        return f"{name} ({one.kind})"
    return f"{name} ({one.kind}; 10 % more: {10 * one.elasticity:+.1f} %)"


def interval_lines(answers: Sequence[Uncertainty]) -> list[str]:
    """A line a scenario."""
    from asapmodel.cli.text import number

    lines = []
    for one in answers:
        best = one.best
        measure = f"; best measured: {best.name}" if best is not None else ""
        interval = f"{interval_span(one.throughput)} requests/s" if one.constants else "no constant has a stated error"
        lines.append(
            f"{escape(one.scenario)}: {number(one.throughput.value)} ({100 * one.level:g} %: {interval}){measure}"
        )
    return lines


def gain_lines(gains: Sequence[Gain]) -> list[str]:
    """A line a gain: shared constants are the same on both sides."""
    lines = []
    for one in gains:
        low, high = 100 * (one.ratio.low - 1), 100 * (one.ratio.high - 1)
        apart = " to ".join(f"{100 * (end - 1):+.0f}" for end in one.apart)
        lines.append(
            f"{escape(one.scenario)} over {escape(one.over)}: [bold]{100 * (one.ratio.value - 1):+.0f} %[/] "
            f"({100 * one.level:g} %: {low:+.0f} to {high:+.0f}; if nothing were shared: {apart}); better in "
            f"{100 * one.better:.0f} % of the draws"
        )
    return lines
