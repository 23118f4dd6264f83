"""Critical path of each request in free execution, which says whose work it was waiting for.

From the end of a request's batch go back to what bound the start of its last task, from there to what bound that one's
start, and so on. Starts equal ends of causes, so the path has no gaps. It leaves the batch wherever a stream or region
was with another, and at the launch: there it goes on with the batch whose end released it. It ends at the request's
own arrival, which cuts the task that was then on the path, or before that where a launch waited for nothing but an
arrival or a window. So::

    end - arrival = sum over owners and phases of path + arrivals + window

Followed on through the arrival the whole path is a derivative: where no order of service changes, lengthening a phase
by a small share moves `end` by that share of the phase's seconds on it.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.free_trace import FreeTrace
from asapmodel.costs import PHASES
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Requests

__all__ = ["OWNERS", "PATH_COLUMNS", "critical_paths"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OWNERS = ("own", "group", "others")
"""Whose work: the request's own batch, other batches of its group, batches of other groups."""

PATH_COLUMNS = (*(f"{owner}_{phase}" for owner in OWNERS for phase in PHASES), "arrivals", "window")
"""Seconds of each owner in each phase (dense layers and step overhead are attention), then of waiting for later
arrivals to fill a batch and for a window to expire."""


def critical_paths(trace: FreeTrace, requests: Requests) -> Floats:
    """Composition of each request's critical path.

    Parameters
    ----------
    trace : FreeTrace
        Of the run.
    requests : Requests
        In arrival order.

    Returns
    -------
    array, shape (requests, 20)
        Seconds by `PATH_COLUMNS`; a row adds up to `end - arrival`.
    """
    release = trace.release
    out = np.zeros((len(requests.arrival), len(PATH_COLUMNS)))
    phase = np.maximum(trace.position - 2, 0)
    last_task = release.tasks[:, -1].copy()
    batches = (release.group, release.first, release.last, last_task)
    path = np.zeros(len(OWNERS) * len(PHASES))
    _walk(trace.start, trace.end, trace.cause, trace.batch, phase, *batches, requests.arrival, path, out)
    return out


@arrays_only
def _walk(
    start: Floats,
    end: Floats,
    cause: Ints,
    batch: Ints,
    phase: Ints,
    group: Ints,
    first: Ints,
    last: Ints,
    last_task: Ints,
    arrival: Floats,
    path: Floats,
    out: Floats,
) -> None:
    """Walk back once a batch, and leave the sums with each of its requests as its arrival is passed, latest first."""
    phases, rest = 6, path.shape[0]
    for b in range(len(group)):
        path[:] = 0.0
        task = last_task[b]
        reached = end[task]
        for k in range(last[b] - 1, first[b] - 1, -1):
            column = 0
            while task >= 0:
                other = batch[task]
                owner = 0 if other == b else 1 if group[other] == group[b] else 2
                column = phases * owner + phase[task]
                if start[task] < arrival[k]:
                    break
                path[column] += end[task] - start[task]
                reached = start[task]
                task = cause[task]
            for i in range(rest):
                out[k, i] = path[i]
            if task < 0:  # ARRIVAL, WINDOW
                column = rest - 1 - task
            out[k, column] += reached - arrival[k]
