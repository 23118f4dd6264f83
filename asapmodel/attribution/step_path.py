"""Critical path of each request in free execution with queues per group.

The path is that of `asapmodel.attribution.critical_path`, walked for each request by itself: requests of a group share
steps, but each has its own first and last one. Own are all steps that compute it.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.critical_path import PATH_COLUMNS
from asapmodel.attribution.step_trace import StepTrace
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Requests

__all__ = ["step_paths"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FIRST_PHASE = 2  # position in a lane; before it come the step overhead and dense layers, which count as attention


def step_paths(trace: StepTrace, requests: Requests) -> Floats:
    """Composition of each request's critical path.

    Parameters
    ----------
    trace : StepTrace
        Of the run.
    requests : Requests
        In arrival order.

    Returns
    -------
    array, shape (requests, 20)
        Seconds by `asapmodel.attribution.critical_path.PATH_COLUMNS`; a row adds up to `end - arrival`.
    """
    out = np.zeros((len(requests.arrival), len(PATH_COLUMNS)))
    phase = np.maximum(trace.position - _FIRST_PHASE, 0)
    steps = (trace.group, trace.last_task, trace.first, trace.last)
    _walk(trace.start, trace.end, trace.cause, trace.step, phase, *steps, requests.arrival, out)
    return out


@arrays_only
def _walk(
    start: Floats,
    end: Floats,
    cause: Ints,
    step: Ints,
    phase: Ints,
    group: Ints,
    last_task: Ints,
    first: Ints,
    last: Ints,
    arrival: Floats,
    out: Floats,
) -> None:
    """Walk back from each request's end to its arrival, which may cut the task that is then on the path."""
    phases, rest = 6, 18
    for k in range(len(arrival)):
        task = last_task[last[k] - 1]
        reached = end[task]
        column = 0
        while task >= 0:
            where = step[task]
            owner = 0 if first[k] <= where < last[k] else 1 if group[where] == group[first[k]] else 2
            column = phases * owner + phase[task]
            if start[task] < arrival[k]:
                break
            out[k, column] += end[task] - start[task]
            reached = start[task]
            task = cause[task]
        if task < 0:  # ARRIVAL
            column = rest - 1 - task
        out[k, column] += reached - arrival[k]
