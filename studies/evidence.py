"""Predicted against measured, all sources on one page. Writes `docs/evidence.md`.

Run as ``python -m asapmodel.studies.evidence [--output DIR]``; `make evidence` runs the studies it summarises first.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from asapmodel.studies.evidence_judging import Judged
from asapmodel.studies.evidence_kernels import judgements
from asapmodel.studies.evidence_modules import cross_modules, cross_tables, kernel_shares, own_letters
from asapmodel.studies.evidence_nodes import ascend, hopper, published_s
from asapmodel.studies.evidence_products import modules_by_products
from asapmodel.studies.evidence_summary import Point, Row, row_of
from asapmodel.studies.pages import markdown_table, save_figure
from asapmodel.studies.paired_runs import fill, output_folder

__all__ = ["SOURCES", "kernel_points", "kernel_rows", "main", "overview", "page"]

SOURCES = ("evidence_nodes", "evidence_deployments", "evidence_paper", "when_asynchronous")
"""Studies that hand over rows and points; the kernels' come from their tests."""

_SHOWN = 400  # points of a family in the figure at most
_TIMES = "Times"
_SECONDS = (
    "datum.value < 0.999e-3 ? format(datum.value * 1e6, '~r') + ' us'"
    " : datum.value < 0.999 ? format(datum.value * 1e3, '~r') + ' ms' : format(datum.value, '~r') + ' s'"
)


def main(arguments: list[str] | None = None) -> None:
    """Collect, and write the page and its figure."""
    folder = output_folder(arguments, __doc__)
    tests = judgements()
    modules = [import_module(f"asapmodel.studies.{name}") for name in SOURCES]
    rows = [*kernel_rows(tests), *(row for one in modules for row in one.summary())]
    points = [("kernels", point) for point in kernel_points(tests)]
    points += [(_SOURCE[name], point) for name, one in zip(SOURCES, modules, strict=True) for point in one.points()]
    save_figure(overview(points), folder / "figures" / "evidence.svg")
    text = page(rows)
    (folder / "evidence.md").write_text(text, encoding="utf-8")
    print(text)


_SOURCE = {
    "evidence_nodes": "nodes, modules across teams",
    "evidence_deployments": "deployment",
    "evidence_paper": "paper",
    "when_asynchronous": "paper, gains",
}


def kernel_rows(tests: Sequence[Judged]) -> list[Row]:
    """A row a family of kernels: every measured row once, with the error of the first test that predicts it.

    Later tests of a table are on a narrower domain that was chosen with the first one's errors in view.
    """
    rows = []
    for family in dict.fromkeys(one.family for one in tests):
        own = [one for one in tests if one.family == family]
        met = sum(one.met() for one in own)
        words = ("other rows of the tables", "rows held out; other releases, teams, devices")
        note = f"{met} of {len(own)} single tests meet the target"
        errors = [predicted / seconds - 1 for seconds, predicted in _once(own)]
        rows.append(row_of("public kernel tables", family, words, errors, (0.06, 0.20), note))
    return rows


def _once(tests: Sequence[Judged]) -> list[tuple[float, float]]:
    """Measured and predicted seconds of every row that some test predicts, by the first one that does."""
    found: dict[tuple[str, float], tuple[float, float]] = {}
    for test in tests:
        for origin, seconds, error in zip(test.data.origin, test.data.seconds, test.errors, strict=True):
            found.setdefault((origin, float(seconds)), (float(seconds), float(seconds * (1 + error))))
    return list(found.values())


def kernel_points(tests: Sequence[Judged]) -> list[Point]:
    """Predicted and measured seconds of the kernels; of large families evenly spaced ones."""
    found = []
    for family in dict.fromkeys(one.family for one in tests):
        pairs = _once([one for one in tests if one.family == family])
        found += [Point(family, *pair) for pair in pairs[:: max(1, len(pairs) // _SHOWN)]]
    return found


def page(rows: Sequence[Row]) -> str:
    """The text of the page."""
    judged = [row for row in rows if row.met is not None]
    return fill(
        "evidence",
        rows=_table(rows),
        met=str(sum(bool(row.met) for row in judged)),
        judged=str(len(judged)),
        predictions=f"{sum(row.count for row in rows):,}",
        **_node_fields(),
    )


def _node_fields() -> dict[str, str]:
    times, core = published_s(), 0.654  # CloudMatrix's MLA
    found: dict[str, str] = {}
    for suffix, elementwise in (("", True), ("_products", False)):
        dies, gpus = ascend(elementwise), hopper(elementwise)
        found |= {
            f"of_dies{suffix}": f"{dies.scaled(times['910C']).hidden(times['910C, two']):.2f}",
            f"of_gpus{suffix}": f"{gpus.hidden(times['H800, two']):.2f}",
            f"plain{suffix}": f"{times['910C'] / dies.seconds() - 1:+.0%}",
        }
    return found | {
        **_by_its_authors(times),
        "all_hidden": f"{times['H800, two'] / hopper(True).seconds(1.0) - 1:+.0%}",
        "none_hidden": f"{times['H800, two'] / hopper(True).seconds() - 1:+.0%}",
        "slow_core": f"{times['910C'] / ascend(True, core).seconds() - 1:+.0%}",
        "core": f"{core:.1%}",
        **_module_fields(),
    }


def _by_its_authors(times: Mapping[str, float]) -> dict[str, str]:
    """What cann-recipes-infer says of its own iteration: 30 % communication at most, all of it hidden by two halves."""
    whole, halves, own = times["910C"], times["910C, two"], ascend(True)
    return {
        "ascend_s": f"{whole:.2f}",
        "least_compute": f"{0.7 * whole:.2f}",
        "most_compute": f"{halves:.2f}",
        "least_transfer": f"{whole - halves:.2f}",
        "most_transfer": f"{0.3 * whole:.2f}",
        "own_compute": f"{own.compute_s:.2f}",
        "own_transfer": f"{own.transfer_s:.2f}",
    }


def _module_fields() -> dict[str, str]:
    """Shares of the modules' time that are predicted, in the median, all in all and at both ends of the tables."""
    letters = {"g": (0, "eta_g"), "c": (0, "eta_c"), "x": (1, "eta_x")}
    own, theirs = own_letters(), kernel_shares()
    found = {f"own_{name}": f"{own[k][letter]:.0%}" for name, (k, letter) in letters.items()}
    found |= {f"their_{name}": f"{theirs[k][letter]:.0%}" for name, (k, letter) in letters.items()}
    found["own_launch"] = f"{1e3 * own[1]['tau_k']:.1f}"
    steps, predicted_steps = modules_by_products()["MoE module"]
    found["moe_rest"] = f"{1e3 * np.median((steps - predicted_steps)[steps < 3e-3]):.1f}"
    contents = {name: cross_modules(name) for name in ("law", "timed", "elementwise")}
    for content, modules in (contents | {"products": modules_by_products()}).items():
        pairs = zip(("mla", "moe"), ("s", "E"), cross_tables(), modules.values(), strict=True)
        for name, letter, data, (seconds, predicted) in pairs:
            share, axis = predicted / seconds, data.values[letter]
            found[f"{name}_{content}"] = f"{np.median(share):.0%}"
            for end, value in (("first", axis.min()), ("last", axis.max())):
                found[f"{name}_{content}_{end}"] = f"{np.median(share[axis == value]):.0%}"
    return found


def _table(rows: Sequence[Row]) -> str:
    lines = [
        [
            row.source,
            row.family,
            row.calibrated_on,
            row.predicted,
            str(row.count),
            f"{100 * row.median_error:.1f}",
            f"{100 * row.p95_error:.1f}",
            f"{100 * row.bias:+.1f}",
            _target(row),
            row.note,
        ]
        for row in rows
    ]
    header = ["source", "what", "calibrated on", "predicted", "rows", "median %", "p95 %", "bias %", "target", "note"]
    return markdown_table(header, lines, (4, 5, 6, 7))


def _target(row: Row) -> str:
    """Targets in per cent, and whether they are met."""
    parts = [f"{100 * value:g}" for value in (row.target_median, row.target_p95) if value is not None]
    return f"{' and '.join(parts)} %: {'met' if row.met else 'missed'}" if parts else "none"


def overview(points: Sequence[tuple[str, Point]]) -> dict[str, Any]:
    """Predicted against measured on logarithmic axes: times, and beside them rates and ratios."""
    values = [
        {"source": source, "family": one.family, "measured": one.measured, "predicted": one.predicted, "unit": one.unit}
        for source, one in points
        if one.measured > 0 and one.predicted > 0
    ]
    times = [one for one in values if one["unit"] == "s"]
    others = [one for one in values if one["unit"] != "s"]
    panels = [(_TIMES, times), ("Rates in requests/s, ratios", others)]
    order = list(dict.fromkeys(str(one["source"]) for one in values))
    return {"hconcat": [_panel(title, some, order) for title, some in panels if some], "spacing": 40}


def _panel(title: str, values: Sequence[dict[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    ends = [float(one[axis]) for one in values for axis in ("measured", "predicted")]
    domain = [0.8 * min(ends), 1.25 * max(ends)]
    scale = {"type": "log", "domain": domain, "nice": False}
    axis = {"tickCount": 6, "labelExpr": _SECONDS} if title == _TIMES else {"format": "~g", "tickCount": 6}

    def place(name: str) -> dict[str, Any]:
        return {"field": name, "type": "quantitative", "title": name, "scale": scale, "axis": axis}

    diagonal = [{"measured": x, "predicted": x} for x in domain]
    colour = {"field": "source", "type": "nominal", "sort": list(order), "title": None}
    return {
        "title": title,
        "width": 330,
        "height": 330,
        "layer": [
            {
                "data": {"values": diagonal},
                "mark": {"type": "line", "color": "#999", "strokeWidth": 1},
                "encoding": {"x": place("measured"), "y": place("predicted")},
            },
            {
                "data": {"values": list(values)},
                "mark": {"type": "point", "filled": True, "size": 22 if len(values) > 100 else 60, "opacity": 0.55},
                "encoding": {"x": place("measured"), "y": place("predicted"), "color": colour},
            },
        ],
    }


if __name__ == "__main__":
    main()
