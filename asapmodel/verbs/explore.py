"""`explore`: a design space, its Pareto front, and the best points confirmed by runs."""

import os
from collections.abc import Callable

from asapmodel.errors import InputError
from asapmodel.exploration.explorer import explore_space
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space

__all__ = ["explore"]


def explore(
    space: Space | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Exploration:
    """Evaluate every feasible point of a design space and find the best.

    Parameters
    ----------
    space : Space or path
        See `docs/reference/space.md`.
    output : path, optional
        Parquet file to write. Results are kept beside it as they come, and an interrupted exploration goes on where it
        was; a finished output of the same space is read and nothing is computed.
    force : bool
        Replace an output, or parts of one, whatever they are of.
    workers : int, optional
        Processes; 1 computes in this one. Default: one a core, or this one for a few hundred points. A script that
        starts processes calls this under ``if __name__ == "__main__":``.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers compute instead.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.

    Returns
    -------
    Exploration
        The same whoever computed it. `table` says of each point with which effort it was evaluated: the points of the
        front and the candidates in full, the others less closely (`docs/performance.md` has the errors).

    Raises
    ------
    InputError
        If the space, the output or the scheduler is not valid.
    NoAnswer
        If no point is feasible, or none has a value of every objective.

    Examples
    --------
    >>> text = 'scenario = "paper-chunked"' + chr(10) + "vary = { D = [6, 8] }" + chr(10) + "confirm = { top = 0 }"
    >>> found = explore(Space.parse(text))
    >>> found.front[["D", "T", "E", "devices"]].values.tolist()
    [[6, 4, 24, 24]]
    """
    if workers is not None and workers < 1:
        raise InputError("--workers", "", f"is {workers}", "give a whole number of at least 1")
    what = space if isinstance(space, Space) else Space.load(space)
    return explore_space(what, output, force, workers, scheduler, progress)
