"""The commands: each reads its options, asks a verb, and hands the answer to a table, to JSON or to a file.

Of a command only its own module is loaded, and inside a command what it needs: help and errors of usage need nothing of
the models.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from asapmodel import __version__

__all__ = ["COMMANDS", "make_app"]

COMMANDS = {
    "evaluate": ("asking", "evaluate"),
    "capacity": ("asking", "capacity"),
    "compare": ("asking", "compare"),
    "sweep": ("asking", "sweep"),
    "report": ("asking", "report"),
    "explain": ("explaining", "explain"),
    "explore": ("exploring", "explore"),
    "blame": ("blaming", "blame"),
    "calibrate": ("calibrating", "calibrate"),
    "plan": ("planning", "plan"),
    "timeline": ("timelining", "timeline"),
    "tune": ("tuning", "tune"),
    "validate": ("validating", "validate"),
    "list": ("looking", "list_catalogue"),
    "show": ("looking", "show_scenario"),
}
"""Module and function of each command, in the order of the help."""


def make_app(commands: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with some of its commands."""
    app = typer.Typer(
        add_completion=False,
        help="Time to first token and capacity of MoE prefill: synchronous, chunked and asynchronous systems.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in commands:
        module, function = COMMANDS[name]
        app.command(name)(getattr(import_module(f"asapmodel.cli.{module}"), function))
    return app


def _version(value: bool) -> None:
    if value:
        print(f"asapmodel {__version__}")
        raise typer.Exit()


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of no command."""
