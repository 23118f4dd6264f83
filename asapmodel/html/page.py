"""A report's page: one HTML file that needs nothing else, no network, font or second file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import vl_convert

from asapmodel import __version__
from asapmodel.html import words
from asapmodel.html.data import Group
from asapmodel.html.figures import Figures
from asapmodel.html.fragments import (
    assumption_table,
    capacity_table,
    definitions,
    paragraph,
    scenario_texts,
    tag,
    uncertainty_table,
)

__all__ = ["page"]


def page(groups: Sequence[Group], engine: str) -> str:
    """Return the text of the page; the same groups give the same text."""
    charts: dict[str, dict[str, Any]] = {}
    several = len(groups) > 1
    body = [_head(groups)]
    for k, group in enumerate(groups, 1):
        body.append(_part(group, k if several else None))
        body.append(Figures(group, f"part{k}", charts).all())
    body += [_foundations(groups, engine)]
    return _assemble(_title(groups), "\n".join(body), charts)


def _title(groups: Sequence[Group]) -> str:
    labels = [one.label for group in groups for one in group.systems]
    return "Prefill report: " + words.listed(labels)


def _head(groups: Sequence[Group]) -> str:
    labels = [one.label for group in groups for one in group.systems]
    text = tag("h1", "What the prefill system sustains, and why")
    text += paragraph(f"Time to first token (TTFT) and SLO throughput of {words.listed(labels)}.", "byline")
    if len(groups) == 1:
        return text
    links = [
        f'<li><a href="#part{k}">Part {k}: {tag("", words.traffic(group.workload))}</a>. '
        f"{tag('', words.verdict(group))}.</li>"
        for k, group in enumerate(groups, 1)
    ]
    return text + f'<ul class="toc">{"".join(links)}<li><a href="#inputs">Inputs and method</a></li></ul>'


def _part(group: Group, number: int | None) -> str:
    title = words.traffic(group.workload)
    heading = tag("h2", title if number is None else f"Part {number}: {title}", id=f"part{number or 1}")
    text = heading + paragraph(words.traffic_detail(group), "byline") + _answer(group)
    text += capacity_table(group) + paragraph(_caveat(group), "note")
    return text + uncertainty_table(group) + (paragraph(_SURE, "note") if group.sure else "")


_SURE = (
    "Constants that have a stated error are drawn from it, the same ones for all systems; all others count as exact. "
    "Neither the engine's own error nor that of the model's form is in these intervals."
)


def _caveat(group: Group) -> str:
    note = "Computed by the model, not measured; which constants were fitted, and to what, stands below the scenarios. "
    note += "Gains are over the first system. The stability limit is the rate at which a system with a backlog serves; "
    if group.law == "stationary":
        return note + "TTFT is that of a service that has run forever, and grows without end towards that limit."
    note += "a run of finite length can meet the objective slightly above it."
    if group.workload.trace is not None and group.engine == "graph":
        note += " There is one recorded trace, hence no interval: it does not tell what another day brings."
    return note


def _answer(group: Group) -> str:
    return f'<p class="answer">{tag("b", words.verdict(group)).strip()}{tag("", words.answer(group))}</p>\n'


_NOISE = (
    "Systems of a part see the same requests, so a difference between two is surer than their intervals, taken one by "
    "one, suggest. p99 and rare prompt lengths rest on few requests. Above its stability limit a system's TTFT grows "
    "with the length of the run."
)


def _foundations(groups: Sequence[Group], engine: str) -> str:
    text = tag("h2", "Inputs and method", id="inputs") + definitions(words.method(groups, engine, __version__))
    text += (paragraph(_NOISE, "note") if engine == "graph" else "") + tag("h3", "Scenarios") + scenario_texts(groups)
    return text + tag("h3", "Assumptions") + assumption_table(groups)


def _assemble(title: str, body: str, charts: dict[str, dict[str, Any]]) -> str:
    folder = files("asapmodel.html")
    # "</" may not stand inside a script element; "<\/" is the same string to JavaScript.
    data = json.dumps(charts, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return Template(folder.joinpath("template.html").read_text("utf-8")).substitute(
        title=tag("", title),
        style=folder.joinpath("style.css").read_text("utf-8"),
        body=body,
        library=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script"),
        charts=data,
    )
