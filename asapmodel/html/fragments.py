"""Pieces of HTML: tags, keys of charts, and the tables of a report. All text is escaped here and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from asapmodel.html.data import Group
from asapmodel.html.style import system_colour
from asapmodel.html.system import System
from asapmodel.html.tables import assumption_rows
from asapmodel.html.words import holds_for, interval_text, rate_text
from asapmodel.result import Assumption
from asapmodel.uncertainties.answer import Interval

__all__ = [
    "assumption_table",
    "capacity_table",
    "definitions",
    "key",
    "paragraph",
    "scenario_texts",
    "tag",
    "uncertainty_table",
]


def tag(name: str, text: str, **attributes: str) -> str:
    """An element with escaped text; ``class_`` is `class`, and an empty name gives the escaped text alone."""
    inside = escape(text)
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{given}>{inside}</{name}>\n" if name else inside


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of a class."""
    return tag("p", text, class_=kind) if kind else tag("p", text)


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    return "<dl>" + "".join(tag("dt", name) + tag("dd", value) for name, value in rows) + "</dl>\n"


def swatch(colour: str) -> str:
    """A patch of colour."""
    return f'<i class="swatch" style="background:{colour}"></i>'


def stroke(colour: str, dashed: bool | str = False) -> str:
    """A piece of line; `dashed` may name a CSS border style."""
    style = dashed if isinstance(dashed, str) else "dashed" if dashed else "solid"
    return f'<i class="stroke" style="border-top-color:{colour};border-top-style:{style}"></i>'


def key(entries: Iterable[tuple[str, str]]) -> str:
    """A legend: pairs of a mark (HTML) and its name."""
    return '<div class="key">' + "".join(f"<span>{mark}{escape(name)}</span>" for mark, name in entries) + "</div>\n"


def _table(head: Sequence[tuple[str, str]], rows: Iterable[str], kind: str = "") -> str:
    cells = "".join(tag("th", name, class_=style) if style else tag("th", name) for name, style in head)
    table = f'<table class="{kind}"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="wide">{table}</div>\n'


def _number(text: str) -> str:
    return f'<td class="num">{escape(text)}</td>'


def _system(system: System) -> str:
    return f'<span class="system">{swatch(system_colour(system.look))}{escape(system.label)}</span>'


def capacity_table(group: Group) -> str:
    """SLO throughput of every system of a group, in the order given."""
    head = [("system", ""), ("layout", ""), ("devices", "num"), ("SLO throughput, requests/s", "num")]
    head += [("95 % interval", "num")] if group.engine == "graph" else []
    head += [("gain", "num"), ("per device, requests/s", "num")]
    head += [("stability limit, requests/s", "num"), ("limited by", "")]
    return _table(head, [_capacity_row(group, system, len(head)) for system in group.systems], "capacity")


def _capacity_row(group: Group, system: System, columns: int) -> str:
    one, layout = system.capacity, system.scenario.layout
    text = f"<td>{_system(system)}</td><td>{escape(layout.kind)} D{layout.D} T{layout.T} E{layout.E}</td>"
    text += _number(str(layout.devices))
    if one is None:
        return f'<tr>{text}<td colspan="{columns - 3}">none: {escape(system.why)}</td></tr>'
    first = group.answered[0][1].slo_throughput_rps
    text += f'<td class="num"><b>{rate_text(one.slo_throughput_rps)}</b></td>'
    if group.engine == "graph":
        text += _number(interval_text(one.interval_rps) if one.interval_rps else "one run")
    text += _number("1" if system is group.answered[0][0] else rate_text(one.slo_throughput_rps / first))
    text += _number(rate_text(one.slo_throughput_rps / one.devices)) + _number(rate_text(one.stability_limit_rps))
    limit = one.limited_by if one.limited_by == one.bottleneck else f"{one.limited_by} ({one.bottleneck})"
    return f"<tr>{text}<td>{escape(limit.replace('_', ' '))}</td></tr>"


def uncertainty_table(group: Group) -> str:
    """Intervals of SLO throughputs and gains from the errors of constants, and what to measure; empty if not asked."""
    if not group.sure:
        return ""
    level = f"{100 * group.sure[0].level:g} % interval"
    head = [("system", ""), ("SLO throughput, requests/s", "num"), (level, "num")]
    head += [("gain", "num"), (f"{level} of gain", "num"), ("most useful measurement", ""), ("interval then", "num")]
    rows = []
    for k, ((system, _), one) in enumerate(zip(group.answered, group.sure, strict=True)):
        text = f'<td>{_system(system)}</td><td class="num"><b>{rate_text(one.throughput.value)}</b></td>'
        text += _number(_ends(one.throughput) if one.constants else "no error stated")
        gain = group.gains[k - 1].ratio if k else None
        text += _number("1" if gain is None else rate_text(gain.value)) + _number("" if gain is None else _ends(gain))
        best = one.best
        then = "" if best is None else interval_text((best.throughput_low, best.throughput_high))
        rows.append(f"<tr>{text}{tag('td', '' if best is None else best.name)}{_number(then)}</tr>")
    return tag("h3", "How sure the constants make it") + _table(head, rows, "capacity")


def _ends(one: Interval) -> str:
    return interval_text((one.low, one.high))


def scenario_texts(groups: Sequence[Group]) -> str:
    """The scenarios as files, folded."""
    texts = "".join(
        f'<details class="fold"><summary>{_system(system)}</summary>{tag("pre", system.scenario.to_toml())}</details>\n'
        for group in groups
        for system in group.systems
    )
    return f'<div class="scenarios">{texts}</div>\n'


def assumption_table(groups: Sequence[Group]) -> str:
    """All assumptions, folded, with a summary of their kinds that is always there; a source once for its rows."""
    rows = assumption_rows(groups)
    kinds = Counter(assumption.kind for assumption, _ in rows)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))
    head = [(name, "") for name in ("name", "value", "unit", "kind", "holds for", "source")]
    body = []
    for source, run in groupby(rows, key=lambda row: row[0].source):
        together = list(run)
        cell = f'<td class="source" rowspan="{len(together)}">{escape(source)}</td>'
        for k, (assumption, labels) in enumerate(together):
            body.append(_assumption_row(assumption, holds_for(labels, groups), cell if k == 0 else ""))
    summary = tag("summary", f"{len(rows)} values: {counts}")
    return f'<details class="fold">{summary}{_table(head, body, "assumptions")}</details>\n'


def _assumption_row(one: Assumption, holds: str, source: str) -> str:
    cells = "".join(tag("td", text) for text in (one.name, _short(one.value), one.unit))
    cells += f'<td class="kind kind-{escape(one.kind)}">{escape(one.kind)}</td>' + tag("td", holds) + source
    return f'<tr class="{"override" if one.kind == "override" else "plain"}">{cells}</tr>\n'


def _short(value: str) -> str:
    """A number of at most six digits, which is more than any of them is sure to; other values as they are."""
    try:
        return min(value, f"{float(value):.6g}", key=len)
    except ValueError:
        return value
