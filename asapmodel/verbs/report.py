"""`report`: everything about some scenarios as one HTML file that can be mailed, printed and archived."""

from collections.abc import Callable, Sequence
from pathlib import Path

from asapmodel.errors import InputError
from asapmodel.files import check_writable, write_text_atomically
from asapmodel.scenario import Scenario
from asapmodel.verbs.evaluate import check_engine

__all__ = ["report"]


def report(
    scenarios: Sequence[Scenario],
    path: str | Path,
    *,
    force: bool = False,
    engine: str = "graph",
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Write a report on scenarios.

    Scenarios with equal `[workload]` and `[slo]` are compared with each other; each such group is a part of the
    report. The same scenarios give the same bytes.

    Parameters
    ----------
    scenarios : sequence of Scenario
        At least one, in the order to show them; gains are over the first of a group.
    path : path-like
        The HTML file to write.
    force : bool
        Whether an existing file may be replaced.
    engine : str
        See `asapmodel.verbs.evaluate.evaluate`.
    progress : callable, optional
        Called with a line of text as work proceeds.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        If the file exists or cannot be written, which is found out first, or a scenario cannot be evaluated.
    NoAnswer
        If no system of a group has an SLO throughput.
    """
    if not scenarios:
        raise InputError("report", "", "no scenario given", "name at least one")
    check_engine(engine)
    check_writable(path, force)
    # Needs the drawing libraries, which a mistake in the arguments should not wait for.
    from asapmodel.html.data import collect
    from asapmodel.html.page import page

    text = page(collect(scenarios, engine, progress), engine)
    write_text_atomically(path, text, force)
    return Path(path)
