"""The commands that only look: `list` the catalogue, `show` a scenario."""

from typing import Annotated

import typer

from asapmodel.cli.options import ScenarioArgument, SetOption, load
from asapmodel.cli.output import show

__all__ = ["list_catalogue", "show_scenario"]


def list_catalogue(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[models|devices|clusters|profiles|scenarios|demands|traces]",
            help="Which part of the catalogue; default: all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Names and titles in the catalogue."""
    from asapmodel.cli.showing import catalogue_tables

    show(*catalogue_tables(kind))


def show_scenario(scenario: ScenarioArgument, changes: SetOption = None) -> None:
    """What a scenario amounts to: tables, memory, layer costs, assumptions and their sources."""
    from asapmodel.cli.showing import costing_tables, memory_table, scenario_tables
    from asapmodel.costing import layer_costs, memory_budget

    what = load(scenario, changes)
    # Memory first: where the layout does not fit, this table shows what the error of the costs is about.
    show(*scenario_tables(what), memory_table(memory_budget(what)))
    show("", *costing_tables(layer_costs(what)))
