"""The options that commands share, and how their text is read; every mistake is an `InputError`."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asapmodel.errors import InputError

if TYPE_CHECKING:
    from asapmodel.scenario import Scenario

__all__ = [
    "DEFAULT_ENGINE",
    "EngineOption",
    "ForceOption",
    "HorizonOption",
    "JsonOption",
    "ReplicationsOption",
    "ScenarioArgument",
    "ScenariosArgument",
    "SetOption",
    "load",
    "parse_count",
    "parse_horizon",
    "parse_rate",
    "parse_rates",
]

DEFAULT_ENGINE = "queueing"  # as `asapmodel.verbs.prepared`, whose import would make help wait

_SCENARIO_HELP = "A scenario file, or the name of a shipped one (`asapmodel list scenarios`)."

ScenarioArgument = Annotated[str, typer.Argument(metavar="SCENARIO", help=_SCENARIO_HELP, show_default=False)]
ScenariosArgument = Annotated[list[str], typer.Argument(metavar="SCENARIO...", help=_SCENARIO_HELP, show_default=False)]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="queueing: the law of TTFT, without random numbers. graph: a drawn request sequence, exactly.",
    ),
]
HorizonOption = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        metavar="TIME",
        help="Engine queueing: answer for a run of this length, e.g. 300s, that starts empty; default: a system that "
        "has run forever.",
        show_default=False,
    ),
]
ReplicationsOption = Annotated[
    str | None,
    typer.Option(
        "--replications",
        metavar="N",
        help="Engine graph: independent request sequences. Default 8; of a replayed trace 3 if its ticks are spread, "
        "else 1.",
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help='Change the scenario, e.g. --set D=8 or --set policy.batch_window="0.1 s"; may be repeated.',
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]

_MOST_RATES = 10_000
_MOST_REPLICATIONS = 1000


def load(name: str, changes: Sequence[str] | None = None) -> Scenario:
    """Load a scenario and apply ``--set``.

    Raises
    ------
    InputError
        If the scenario or a change is not valid; a mistake in a change is said to be in ``--set``.
    """
    from asapmodel.scenario import Scenario

    scenario = Scenario.load(name)
    if not changes:
        return scenario
    given = dict(_change(text) for text in changes)
    try:
        return scenario.replace(**given)
    except InputError as error:
        if error.where != scenario.source:
            raise
        # The file itself was valid a moment ago.
        raise InputError("--set", error.key, error.problem, error.remedy) from None


def _change(text: str) -> tuple[str, Any]:
    """Split ``KEY=VALUE``; the value is a TOML literal, or else plain text."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key or not value:
        raise InputError("--set", text[:60], "is not KEY=VALUE", 'write, say, D=8 or policy.batch_window="0.1 s"')
    return key, str(value) if key == "name" else _literal(value)


def _literal(value: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    # Text with line breaks could hold further keys.
    return parsed["value"] if len(parsed) == 1 else value


def parse_count(text: str | None, option: str = "--replications") -> int | None:
    """Read the number of replications, or of walks; None stays None.

    Examples
    --------
    >>> parse_count("8")
    8
    """
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= float(text) <= _MOST_REPLICATIONS):
        remedy = f"give a whole number from 1 to {_MOST_REPLICATIONS}"
        raise InputError(option, "", f"is {text[:40]!r}", remedy)
    return int(text)


def parse_horizon(text: str | None) -> float | None:
    """Read ``--horizon``: a time with its unit, or seconds as a number; None stays None.

    Examples
    --------
    >>> parse_horizon("5 min"), parse_horizon("300")
    (300.0, 300.0)
    """
    from asapmodel.units import UnitError, seconds

    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return seconds(text)
    except UnitError as error:
        raise InputError("--horizon", "", error.problem, error.remedy) from None


def parse_rate(text: str | None) -> float | None:
    """Read ``--rate``, requests/s; None stays None.

    Examples
    --------
    >>> parse_rate("4")
    4.0
    """
    return None if text is None else _number("--rate", text)


def parse_rates(text: str) -> list[float]:
    """Read ``--rates``: ``from:to:step``, both ends included, or a comma list; requests/s.

    Examples
    --------
    >>> parse_rates("1:2:0.25"), parse_rates("1, 4,8")
    ([1.0, 1.25, 1.5, 1.75, 2.0], [1.0, 4.0, 8.0])
    """
    if ":" not in text:
        return [_number("--rates", part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise InputError("--rates", "", f"is {text[:40]!r}", "give from:to:step, e.g. 1:24:1, or a list, e.g. 1,4,8")
    low, high, step = (_number("--rates", part) for part in parts)
    if high < low:
        raise InputError("--rates", "", f"goes from {low:g} down to {high:g}", "give the lower end first")
    steps = (high - low) / step
    if steps >= _MOST_RATES:
        raise InputError("--rates", "", f"holds more than {_MOST_RATES} rates", "give a larger step")
    # The margin and the rounding undo what binary fractions do to steps such as 0.1.
    return [float(f"{low + k * step:.12g}") for k in range(math.floor(steps + 1e-9) + 1)]


def _number(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InputError(option, "", f"is {text.strip()[:40]!r}", "give a positive number of requests per second")
    return value
