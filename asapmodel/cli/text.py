"""Numbers, names and empty tables as the command line shows them."""

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import JustifyMethod

    from asapmodel.scenario import Scenario

__all__ = ["layout", "number", "percent", "span", "table", "words"]


def number(value: float | None, digits: int = 3) -> str:
    """Format with `digits` significant digits, whole parts in full, without exponents where people read them.

    Examples
    --------
    >>> number(0.42369), number(21.0), number(1234.5), number(1.5e-7), number(None)
    ('0.424', '21.0', '1,234', '1.5e-07', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    # Rounding first: 9.999 is to become 10.0, not 10.00.
    power = math.floor(math.log10(abs(float(f"{value:.{digits}g}"))))
    return f"{value:,.{max(digits - 1 - power, 0)}f}"


def percent(share: float) -> str:
    """Format a share as percent, one decimal; 100 means all, NaN is ``-``.

    Examples
    --------
    >>> percent(0.2426), percent(1.0), percent(0.99996)
    ('24.3', '100', '99.9')
    """
    if math.isnan(share):
        return "-"
    text = f"{100 * share:.1f}"
    return text if text != "100.0" else "100" if share >= 1 else "99.9"


def span(interval: tuple[float, float] | None, digits: int = 3) -> str:
    """Format an interval: ``13.3 to 14.2``, or ``-`` for None."""
    return "-" if interval is None else f"{number(interval[0], digits)} to {number(interval[1], digits)}"


def words(name: str) -> str:
    """A resource's name as words: ``moe_send`` is ``moe send``."""
    return name.replace("_", " ")


def layout(scenario: "Scenario") -> str:
    """Kind and degrees of a system, and its devices."""
    system = scenario.layout
    return f"{system.kind} D{system.D} T{system.T} E{system.E}, {system.devices} devices"


def table(*headings: str, title: str | None = None, caption: str | None = None) -> Table:
    """An empty table; the first column holds names or rates, the others numbers, to the right."""
    justify: JustifyMethod = "left"
    out = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        title=title,
        caption=caption,
        title_justify=justify,
        caption_justify=justify,
        caption_style="",
    )
    for place, heading in enumerate(headings):
        out.add_column(heading, justify="right" if place else "left", no_wrap=not place)
    return out
