"""`report`: everything about some scenarios as one HTML file that can be mailed, printed and archived."""

from collections.abc import Callable, Sequence
from pathlib import Path

from asapmodel.errors import InputError
from asapmodel.files import check_writable, write_text_atomically
from asapmodel.scenario import Scenario
from asapmodel.verbs.prepared import DEFAULT_ENGINE, check_engine, check_horizon

__all__ = ["report"]


def report(
    scenarios: Sequence[Scenario],
    path: str | Path,
    *,
    force: bool = False,
    engine: str = DEFAULT_ENGINE,
    progress: Callable[[str], None] | None = None,
    horizon: float | str | None = None,
    graph_points: bool = False,
    uncertainty: bool = False,
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
    horizon : float or str, optional
        Queueing engine: see `evaluate`.
    graph_points : bool
        Whether to put points of the graph engine, with 95 % intervals, beside the queueing engine's curves.
    uncertainty : bool
        Whether to give SLO throughputs and gains intervals from the errors of constants; queueing engine, no horizon.

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
    if graph_points and engine == "graph":
        raise InputError("--graph-points", "", "are there with engine 'graph'", "leave out one of the two")
    if uncertainty and engine == "graph":
        raise InputError("--uncertainty", "", "is not for engine 'graph'", "leave out one of the two")
    lengths = [check_horizon(scenario, horizon, engine) for scenario in scenarios]
    check_writable(path, force)
    # Needs the drawing libraries, which a mistake in the arguments should not wait for.
    from asapmodel.html.data import collect
    from asapmodel.html.page import page

    if horizon is not None:  # as if the scenarios said so, which the page shows
        scenarios = [one.replace(horizon=length) for one, length in zip(scenarios, lengths, strict=True)]
    text = page(collect(scenarios, engine, progress, graph_points, uncertainty), engine)
    write_text_atomically(path, text, force)
    return Path(path)
