"""The ways out: the answer on standard output, all else on standard error, per-request records to a file."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asapmodel.files import write_csv

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asapmodel.result import Records

__all__ = ["note", "print_json", "progress", "show", "write_requests"]

Progress = Callable[[str], None]

_COLUMNS = ("arrival_s", "prompt_tokens", "cached_tokens", "start_s", "end_s", "ttft_s")


def show(*parts: RenderableType) -> None:
    """Print tables and lines on standard output."""
    from rich.console import Console

    # No highlighting and no emoji codes: names and numbers appear as they are.
    console = Console(highlight=False, emoji=False)
    for place, part in enumerate(parts):
        # A table stands on its own; lines of text stay together.
        if place and not (isinstance(part, str) and isinstance(parts[place - 1], str)):
            console.print()
        console.print(part)


def note(text: str) -> None:
    """Print a line on standard error."""
    print(f"asapmodel: {text}", file=sys.stderr)


def print_json(answer: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output; NaN and infinities become null."""
    print(json.dumps(_finite(answer), allow_nan=False, indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@contextmanager
def progress(title: str, steps: int | None = None) -> Iterator[Progress | None]:
    """Show progress on standard error while the block runs, if that is a terminal.

    Parameters
    ----------
    title : str
        What is going on, until the first report.
    steps : int, optional
        How many reports there will be; without it the bar only moves.

    Yields
    ------
    callable or None
        To be given to a verb as `progress`.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Display(*columns, console=Console(stderr=True, highlight=False), transient=True) as display:
        task = display.add_task(title, total=steps)
        yield lambda text: display.update(task, advance=1, description=text)


def write_requests(path: str, records: Records, force: bool) -> None:
    """Write one row per request; `asapmodel.models.trace.read_trace` reads the file again."""
    write_csv(path, {name: getattr(records, name) for name in _COLUMNS}, force)
