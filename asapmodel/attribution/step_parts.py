"""Asynchronous system with queues per group: the components of every request's TTFT.

*In its steps.* From the end of a step go back to its launch: through its tasks, and where one of its halves stands
behind the other (on a stream, or for a region) to that one. What is left is waiting, by where it stands. Nothing is
passed over, so the sums are exact; a step in one piece has nothing to go over to, and every task of it counts.

*Before.* See `asapmodel.attribution.step_queueing`.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.components import FREE_QUEUES
from asapmodel.attribution.free_parts import transfer_streams
from asapmodel.attribution.free_trace import ATTENTION, COMBINE_RECV, COMBINE_SEND, MOE, RECV
from asapmodel.attribution.pieces import sum_between
from asapmodel.attribution.step_queueing import queueing_components
from asapmodel.attribution.step_trace import StepTrace
from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.policy import Layout, Policy
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Requests

__all__ = ["free_queue_components"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_INSIDE = tuple(name for name, one in FREE_QUEUES.items() if one.part in ("kernel", "waiting"))
_OWN_ATTENTION, _OWN_TRANSFERS, _OWN_EXPERTS, _OWN_HOST = range(4)
_WAIT_GROUP, _WAIT_POOL, _WAIT_TRANSFER, _WAIT_BUFFER = range(4, 8)


def free_queue_components(
    layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, trace: StepTrace
) -> dict[str, Floats]:
    """Split the TTFT of every request.

    Parameters
    ----------
    layout, policy, costs, requests
        The system and what arrived.
    trace : StepTrace
        Its run.

    Returns
    -------
    dict of arrays, shape (requests,)
        Seconds by the names of `asapmodel.attribution.components.FREE_QUEUES`. `host` is the dispatch of own experts.
    """
    out = {name: np.zeros(len(requests.arrival)) for name in FREE_QUEUES}
    out["request_latency"] += costs.request_latency
    inside = np.zeros((len(trace.group), len(_INSIDE)))
    own = np.full(COMBINE_RECV + 1, _OWN_TRANSFERS)
    own[: ATTENTION + 1], own[MOE] = _OWN_ATTENTION, _OWN_EXPERTS
    host = exposed_host_dispatch(layout, policy, costs)
    times = (trace.ready, trace.turn, trace.start, trace.end)
    links = (trace.previous, trace.cause, trace.step, trace.last_task)
    _walk(*times, *links, trace.position, own, _places(policy), host, inside)
    out |= {name: sum_between(column, trace.first, trace.last) for name, column in zip(_INSIDE, inside.T, strict=True)}
    return out | queueing_components(policy, requests, trace)


def _places(policy: Policy) -> Ints:
    """Where a task of each position stands in line, as a column of `_INSIDE`."""
    place = np.full(COMBINE_RECV + 1, _WAIT_GROUP)
    place[[RECV, MOE, COMBINE_SEND]] = _WAIT_POOL
    place[list(transfer_streams(policy))] = _WAIT_TRANSFER
    return place


@arrays_only
def _walk(
    ready: Floats,
    turn: Floats,
    start: Floats,
    end: Floats,
    previous: Ints,
    cause: Ints,
    step: Ints,
    last_task: Ints,
    position: Ints,
    own: Ints,
    place: Ints,
    host: float,
    out: Floats,
) -> None:
    """Seconds of each step from its end back to its launch, by column of `_INSIDE`."""
    for row in range(len(last_task)):
        task = last_task[row]
        while task >= 0 and step[task] == row:
            kind = own[position[task]]
            span = end[task] - start[task]
            if kind == _OWN_EXPERTS:
                dispatch = min(host, span)
                out[row, _OWN_HOST] += dispatch
                span -= dispatch
            out[row, kind] += span
            if cause[task] >= 0 and step[cause[task]] == row:
                task = cause[task]
            else:
                out[row, _WAIT_BUFFER] += start[task] - turn[task]
                out[row, place[position[task]]] += turn[task] - ready[task]
                task = previous[task]
