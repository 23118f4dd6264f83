"""`explore`: a design space, its Pareto front, and the best points confirmed by runs."""

import os
from collections.abc import Callable
from dataclasses import replace

from asapmodel.errors import InputError
from asapmodel.exploration.explorer import explore_space
from asapmodel.exploration.result import Exploration
from asapmodel.exploration.space import Space
from asapmodel.exploration.store import rewrite_result

__all__ = ["explore"]

Progress = Callable[[str, int, int], None] | None


def explore(
    space: Space | str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress = None,
    uncertainty: bool = False,
    samples: int = 128,
    seed: int = 0,
    level: float = 0.9,
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
    uncertainty : bool
        Say also whether the choice would survive the errors of constants: the ten best points (of each objective, of
        the front, of every other layout) are asked again with drawn constants, the same for all. The answer is
        `uncertainty` and some columns of the table; an output is written again with them.
    samples, seed, level
        See `asapmodel.verbs.uncertainty.uncertainty`.

    Returns
    -------
    Exploration
        The same whoever computed it. `table` says of each point with which effort it was evaluated: the points of the
        front and the candidates in full, the others less closely (`docs/performance.md` has the errors).

    Raises
    ------
    InputError
        If the space, the output or the scheduler is not valid; with `uncertainty` also if constants move none of the
        objectives, or runs are of finite length.
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
    if not uncertainty:
        return explore_space(what, output, force, workers, scheduler, progress)
    from asapmodel.exploration.drawn_choice import check_drawable
    from asapmodel.verbs.uncertainty import check_draws

    check_draws(samples, level)
    check_drawable(what)
    found = explore_space(what, output, force, workers, scheduler, progress)
    found = _with_choice(what, found, samples, seed, level, progress)
    if output is not None:
        rewrite_result(output, what.digest, found.table)
    return found


def _with_choice(
    space: Space, found: Exploration, samples: int, seed: int, level: float, progress: Progress
) -> Exploration:
    """The same with its `uncertainty`, and its columns in the table in place of what is there of an earlier one."""
    from asapmodel.exploration.drawn_choice import choice_columns, choice_of

    choice = choice_of(space, found, samples, seed, level, progress)
    columns = choice_columns(choice, space.objectives)
    kept = found.table.drop(columns=[name for name in columns if name != "point"], errors="ignore")
    return replace(found, table=kept.merge(columns, on="point", how="left"), uncertainty=choice)
