"""Synchronous system: components of every request's TTFT, and what its devices did all the time."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from asapmodel.attribution.components import LOCKSTEP
from asapmodel.attribution.lockstep_trace import IterationTimes, LockstepTrace
from asapmodel.costs import LayerCosts
from asapmodel.systems.arrays import Requests

__all__ = [
    "LOCKSTEP_STATES",
    "in_iterations",
    "lockstep_components",
    "lockstep_devices",
    "over_iterations",
    "straggler_waste",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOCKSTEP_STATES = ("attention", "barrier", "transfers", "experts", "window", "empty")
"""What the devices of a group do: own attention (with dense layers and step overhead); wait for the slowest group's;
move tokens; work as experts; wait for the batch window (or the end of an empty iteration); wait for an arrival. What
groups compute as padding counts as `barrier`."""


def lockstep_components(costs: LayerCosts, requests: Requests, trace: LockstepTrace) -> dict[str, Floats]:
    """Split the TTFT of every request.

    Parameters
    ----------
    costs, requests
        The coefficients and what arrived.
    trace : LockstepTrace
        The iterations.

    Returns
    -------
    dict of arrays, shape (requests,)
        Seconds by the names of `asapmodel.attribution.components.LOCKSTEP`. All prompts of a group's batch share its
        times.
    """
    out = {name: np.zeros(len(requests.arrival)) for name in LOCKSTEP}
    out["request_latency"] += costs.request_latency
    routed = trace.start[trace.routed]
    idle = trace.idle_until[trace.routed] < routed  # the engine stood idle when the request arrived
    out["window"] = np.where(idle, routed - requests.arrival, 0.0)
    out["engine_busy"] = np.where(idle, 0.0, routed - requests.arrival)
    out["own_queue"] = trace.start[trace.first] - routed
    return out | in_iterations(trace)


def in_iterations(trace: LockstepTrace) -> dict[str, Floats]:
    """Split the time of the iterations that compute each request, seconds by component; padding is left out."""
    times = trace.times
    spans = (
        ("attention", "barrier_attention", times.own_attention, times.attention[:, None]),
        ("transfers", "barrier_transfers", times.own_transfers, times.transfers[:, None]),
        ("experts", "shared_experts", times.own_experts, times.experts[:, None] - times.padding),
    )
    out = {}
    for own_name, rest_name, own, together in spans:
        out[own_name] = over_iterations(own, trace.group, trace.first, trace.last)
        out[rest_name] = over_iterations(together - own, trace.group, trace.first, trace.last)
    return out


def over_iterations(values: Floats, group: Ints, first: Ints, last: Ints) -> Floats:
    """Sum of a group's column over iterations `first:last`, by request.

    Differences of running sums, which grow with the run: exact to about 1e-16 of its length.
    """
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return np.asarray(sums[last, group] - sums[first, group])


def straggler_waste(times: IterationTimes) -> float:
    """Share of the attention groups' time that is lost at the barriers before the experts.

    With `A_gi` the attention of group `g` in iteration `i` (0 without work) and `A*_i` the slowest group's (padded: the
    time that all groups take)::

        sum_i sum_g (A*_i - A_gi) / (D sum_i A*_i)

    Every layer is alike, so their number cancels; dense networks and overhead are left out. It equals
    `asapmodel.engines.graph.Run.barrier_waste`.
    """
    pace = float(times.slowest.sum()) * times.layer.shape[1]
    return float((times.slowest[:, None] - times.layer).sum()) / pace if pace > 0 else 0.0


def lockstep_devices(requests: Requests, trace: LockstepTrace) -> pd.DataFrame:
    """Account for the time of the devices from the first arrival to the end of the run.

    Parameters
    ----------
    requests, trace
        See `lockstep_components`.

    Returns
    -------
    pandas.DataFrame
        One row, ``devices``; columns `LOCKSTEP_STATES`, seconds, mean over groups. The row adds up to the length of
        the run.
    """
    times = trace.times
    own = times.own_attention.mean(axis=1).sum()
    before = np.append(requests.arrival[0], trace.end[:-1])
    row = (
        own,
        times.attention.sum() - own,
        times.transfers.sum(),
        times.experts.sum(),
        (trace.start - trace.idle_until).sum(),
        (trace.idle_until - before).sum(),
    )
    return pd.DataFrame([row], index=["devices"], columns=list(LOCKSTEP_STATES))
