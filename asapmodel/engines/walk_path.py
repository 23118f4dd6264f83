"""The path of a walk, and the correction of what was found on it: what both halves of the queueing engine do alike."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.walk_controls import make_controls, matched, moved, regress
from asapmodel.engines.walk_reference import wait_law
from asapmodel.engines.walk_sequences import gamma_shape, prompt_rows, unit_gaps

__all__ = ["Path", "corrected", "path_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_APART = 40_000  # terms of the Weyl sequences between the paths of different loads
_FAR_APART = 4_000_000  # between walks


class Path(NamedTuple):
    """Prompts of a walk at one load: gaps in units of the mean work, rows of the length law, arrivals in seconds."""

    load: float
    gap: Floats
    rows: Ints
    arrival: Floats


def path_of(problem: Problem, limit: float, load: float, count: int, walk: int) -> Path:
    """Path of `count` prompts at a load.

    Parameters
    ----------
    problem : Problem
        Its prompts and the variability of its gaps.
    limit : float
        Stability limit, requests/s.
    load : float
        Between 0 and 1, relative to the limit.
    count : int
        Prompts.
    walk : int
        Which of many; every one is fixed.
    """
    start = 1000 + _APART * round(40 * load) + _FAR_APART * walk
    gap = unit_gaps(problem.gap_cv, count, start) / load
    rows = prompt_rows(len(problem.prompts.prompt), count, start)
    return Path(load, gap, rows, np.cumsum(gap) / limit)


def corrected(
    problem: Problem, path: Path, limit: float, work: Floats, end: Floats, scale: float, kept: slice, lattice: int
) -> tuple[Floats, float]:
    """TTFT on a path as if its arrivals and prompts had their laws, and the mean, which is known better.

    Parameters
    ----------
    problem : Problem
        The system.
    path : Path
        What was walked.
    limit : float
        Stability limit, requests/s: the pace at which a backlog drains.
    work : array
        Work of each row of the length law in the reference queue, mean 1.
    end : array
        End of every prompt of the path, seconds.
    scale : float
        Prompts that arrive while one meets others: unit of the time constants of the discounted work.
    kept : slice
        Prompts of the path that count.
    lattice : int
        Points of the lattice of the reference queue.

    Returns
    -------
    (ttft, mean)
        Seconds; `ttft` of the kept prompts, each moved with its wait in the reference queue to the quantile that has
        its rank in the exact law.
    """
    shape = gamma_shape(problem.gap_cv)
    law = wait_law(work, path.load, shape, lattice)
    ttft = (end - path.arrival)[kept]
    controls = make_controls(path.gap, work, path.rows, _own(problem), law, shape, scale, kept)
    slopes = regress(controls, ttft, 1.0 / limit)
    return ttft + moved(controls, slopes[: len(controls.knots)], matched(controls, law)), float(controls.means @ slopes)


def _own(problem: Problem) -> Floats:
    """Columns of the prompt's own: a constant, tokens, attention work."""
    prompt, cached = problem.prompts.prompt.astype(np.float64), problem.prompts.cached.astype(np.float64)
    return np.stack([np.ones(len(prompt)), prompt - cached, prompt**2 - cached**2], axis=1)
