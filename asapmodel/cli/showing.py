"""What is in the catalogue, and what a scenario amounts to, as tables."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from asapmodel import catalog
from asapmodel.cli.text import layout, number, percent, table
from asapmodel.costing import Costing
from asapmodel.costs import PHASES, LayerCosts
from asapmodel.errors import InputError
from asapmodel.models.memory import MemoryBudget
from asapmodel.result import Assumption
from asapmodel.scenario import Scenario
from asapmodel.tables import nearest

__all__ = ["KINDS", "catalogue_tables", "costing_tables", "memory_table", "scenario_tables"]

KINDS = ("models", "devices", "clusters", "profiles", "scenarios", "demands", "traces")
_SMALLEST = 1e6  # bytes that are shown
_DIGITS = 6  # of a fitted number
_EXAMPLE = 8192  # tokens of the prompt whose times are shown


def catalogue_tables(kind: str | None) -> list[RenderableType]:
    """Names and titles of one kind of the catalogue, or of all.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind is not None and kind not in KINDS:
        remedy = f"give one of {', '.join(KINDS)}; the nearest is '{nearest(kind, KINDS)}'"
        raise InputError("list", "", f"no kind '{kind}' in the catalogue", remedy)
    return [_kind_table(one) for one in (KINDS if kind is None else (kind,))]


def _kind_table(kind: str) -> Table:
    out = table(kind)
    out.add_column("")
    for name in catalog.names(kind):
        out.add_row(name, escape(_title(kind, name)))
    return out


def _title(kind: str, name: str) -> str:
    path = catalog.entry_path(kind, name)
    if kind == "traces":  # a row of the table that describes them
        rows = (path.parent / "README.md").read_text(encoding="utf-8")
        found = re.search(rf"^\| `{re.escape(path.name)}` \|([^|]*)\|[^|]*\|([^|]*)\|([^|]*)\|", rows, re.MULTILINE)
        return (
            f"{found[1].strip()} requests at {found[2].strip()}/s, {found[3].strip()} tokens on average"
            if found
            else ""
        )
    text = path.read_text(encoding="utf-8")
    if kind in ("scenarios", "demands"):  # which say it in a comment
        return text.partition("\n")[0].lstrip("# ").rstrip(".") if text.startswith("#") else ""
    return str(tomllib.loads(text).get("title", ""))


def scenario_tables(scenario: Scenario) -> list[RenderableType]:
    """The tables of a scenario with all defaults filled in."""
    system, parts = scenario.layout, scenario.cluster.given()
    model = scenario.model.given()
    cluster = scenario.devices.value
    rows: dict[str, Mapping[str, Any]] = {
        "model": model or {"use": "the default"},
        "cluster": {"devices": cluster.devices, "device": cluster.device, "profile": cluster.profile}
        | {key: value for key, value in parts.items() if key not in ("devices", "device", "profile")},
        "system": asdict(system),
        "policy": asdict(scenario.policy),
        "workload": scenario.workload.model_dump(exclude_none=True),
        "slo": scenario.slo.model_dump(exclude_none=True),
    }
    out = table("Table", title="Scenario, defaults filled in (SI units)")
    out.add_column("key")
    out.add_column("value", overflow="fold")
    for name, values in rows.items():
        for place, (key, value) in enumerate(values.items()):
            out.add_row(f"\\[{name}]" if place == 0 else "", key, escape(_value(value)))
    return [f"[bold]{escape(scenario.name)}[/] ({escape(scenario.source)}): {layout(scenario)}", out]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_value(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and len(value) > 8:
        return f"{len(value)} values"
    return f"{value:g}" if isinstance(value, float) else str(value)


def memory_table(budget: MemoryBudget) -> Table:
    """Bytes on a device by role and item; what does not fit is said by the error that follows."""
    out = table("Role", title=f"Memory of a device (GB of {number(budget.memory_bytes / 1e9)})")
    out.add_column("item")
    out.add_column("GB", justify="right")
    out.add_column("%", justify="right")
    for role, items in budget.items.items():
        rows: Iterable[tuple[str, float]] = [*items.items(), ("total", budget.used[role])]
        for place, (item, used) in enumerate(rows):
            size = number(used / 1e9) if used >= _SMALLEST else f"< {_SMALLEST / 1e9:g}"
            cells = (size, percent(used / budget.memory_bytes))
            out.add_row(role if place == 0 else "", item, *cells, style="bold" if item == "total" else None)
    return out


def costing_tables(costing: Costing) -> list[RenderableType]:
    """The coefficients of a layer, and every number they rest on."""
    costs = costing.costs
    host = f"; host dispatch {number(1e6 * costs.host_dispatch)} us where the order of layers is not known"
    return [
        _costs_table(costs),
        f"{costs.layers} layers, {costs.dense_layers} of them dense{host if costs.host_dispatch else ''}.",
        _assumptions_table(costing.assumptions),
    ]


def _costs_table(costs: LayerCosts) -> Table:
    example = costs.phases(_EXAMPLE, float(_EXAMPLE) ** 2)
    out = table(
        "Phase", "fixed (us)", "per token (ns)", "per token^2 (ps)", f"{_EXAMPLE} tokens (us)", title="Costs of a layer"
    )
    for name, time in zip(PHASES, example, strict=True):
        law = asdict(getattr(costs, name))
        fixed = law["floor"] if "floor" in law else law["fixed"]
        least = "at least " if "floor" in law else ""
        square = number(1e12 * law["per_token2"]) if "per_token2" in law else ""
        cells = (number(1e9 * law["per_token"]), square, number(1e6 * time))
        out.add_row(name.replace("_", " "), f"{least}{number(1e6 * fixed)}", *cells)
    return out


def _short(value: str) -> str:
    """A fitted number to six digits; what people wrote stays as it is."""
    try:
        return value if len(value) <= _DIGITS + 2 else f"{float(value):.{_DIGITS}g}"
    except ValueError:  # a word
        return value


def _assumptions_table(assumptions: Iterable[Assumption]) -> Table:
    """Numbers by where they come from: a source says itself once."""
    sources: dict[tuple[str, str], list[str]] = {}
    for one in assumptions:
        equation = f"  {one.name} = {_short(one.value)} {one.unit}".rstrip()
        sources.setdefault((one.kind, one.source), []).append(equation)
    out = table("Kind", title="Assumptions")
    out.add_column("source, and what it says", overflow="fold")
    for (kind, source), equations in sources.items():
        out.add_row(kind, escape("\n".join([source, *equations])))
    return out
