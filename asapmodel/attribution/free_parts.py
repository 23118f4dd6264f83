"""Asynchronous system: components of every request's TTFT, and what its devices did all the time."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from asapmodel.attribution.components import FREE
from asapmodel.attribution.free_trace import ATTENTION, COMBINE_RECV, COMBINE_SEND, MOE, RECV, SEND, FreeTrace
from asapmodel.attribution.step_trace import StepTrace
from asapmodel.costs import PHASES, LayerCosts
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests
from asapmodel.systems.free import free_network

__all__ = ["FREE_STATES", "Batches", "covered", "free_components", "free_devices", "transfer_streams"]

Floats = NDArray[np.float64]

FREE_STATES = (*PHASES, "blocked", "away", "unassigned", "empty")
"""What a stream does: works in a phase; is blocked on a region; has none to do, although batches of its group are
active (`away`: they are on other streams), although only the queue or other groups have work (`unassigned`), or
because the system is empty."""

_TRANSFERS = (SEND, RECV, COMBINE_SEND, COMBINE_RECV)


class Batches(NamedTuple):
    """Group, launch and end of every batch (with queues per group: step)."""

    group: NDArray[np.int64]
    launch: Floats
    end: Floats


def free_components(
    layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, trace: FreeTrace
) -> dict[str, Floats]:
    """Split the TTFT of every request.

    Parameters
    ----------
    layout, policy, costs, requests
        The system and what arrived.
    trace : FreeTrace
        Its run.

    Returns
    -------
    dict of arrays, shape (requests,)
        Seconds by the names of `asapmodel.attribution.components.FREE`. All prompts of a batch share its times from its
        launch on. Times are differences of the log's own, so that they telescope to `end - arrival`.
    """
    release = trace.release
    out = {name: np.zeros(len(requests.arrival)) for name in FREE}
    out["request_latency"] += costs.request_latency
    for name, column in zip(("formation", "locked", "exclusive", "group_slots"), release.queueing.T, strict=True):
        out[name] = column
    by_batch = _inside(policy, trace)
    host = exposed_host_dispatch(layout, policy, costs)
    by_batch["host"] = np.minimum(host * costs.moe_layers, by_batch["experts"])
    by_batch["experts"] = by_batch["experts"] - by_batch["host"]
    sizes = release.last - release.first
    return out | {name: np.repeat(values, sizes) for name, values in by_batch.items()}


def _inside(policy: Policy, trace: FreeTrace) -> dict[str, Floats]:
    """Seconds of every batch from its launch to its end; `experts` with host dispatch."""
    tasks = trace.release.tasks
    position = trace.position[tasks[0]]
    own, queued, blocked = (
        (after - before)[tasks]
        for before, after in ((trace.start, trace.end), (trace.ready, trace.turn), (trace.turn, trace.start))
    )
    at_group = (position <= SEND) | (position == COMBINE_RECV)
    alone = np.isin(position, transfer_streams(policy))
    return {
        "attention": own[:, position <= ATTENTION].sum(axis=1),
        "transfers": own[:, np.isin(position, _TRANSFERS)].sum(axis=1),
        "experts": own[:, position == MOE].sum(axis=1),
        "wait_group": queued[:, at_group & ~alone].sum(axis=1),
        "wait_pool": queued[:, ~at_group & ~alone].sum(axis=1),
        "wait_transfer": queued[:, alone].sum(axis=1),
        "wait_buffer": blocked.sum(axis=1),
    }


def transfer_streams(policy: Policy) -> tuple[int, ...]:
    """Positions that run on streams which only transfer.

    Examples
    --------
    >>> transfer_streams(Policy())
    (4, 6)
    """
    group, pool = (SEND, COMBINE_RECV), (RECV, COMBINE_SEND)
    return group * policy.overlap_attention + pool * policy.overlap_moe


def free_devices(
    layout: Layout,
    policy: Policy,
    costs: LayerCosts,
    requests: Requests,
    trace: FreeTrace | StepTrace,
    batches: Batches,
) -> pd.DataFrame:
    """Account for the time of every stream from the first arrival to the end of the run.

    Parameters
    ----------
    layout, policy, costs, requests
        The system and what arrived.
    trace : FreeTrace or StepTrace
        Its run.
    batches : Batches
        Of that run.

    Returns
    -------
    pandas.DataFrame
        A row per stream, named as in `asapmodel.engines.graph.Run.busy_s`; columns `FREE_STATES`, seconds (groups:
        mean over groups). Rows add up to the length of the run.
    """
    group, launch, ended = batches
    table = free_network(layout, policy, costs).resource
    begin, finish = requests.arrival[0], trace.done.makespan_s
    in_system = covered(requests.arrival, trace.done.outcome.end)
    pool_active = covered(launch, ended)
    groups_active = [covered(launch[mine], ended[mine]) for mine in _members(group, layout.D)]
    rows = {}
    for name, position in _streams(policy).items():
        resources = np.unique(table[:, position])
        mine = np.isin(trace.resource, resources)
        phase = np.maximum(trace.position[mine] - ATTENTION, 0)
        busy = np.bincount(phase, (trace.end - trace.start)[mine], minlength=len(PHASES))
        blocked = (trace.start - trace.turn)[mine].sum()
        share = 1 if name.startswith("moe") else layout.D
        used = (busy.sum() + blocked) / share
        active = pool_active if name.startswith("moe") else float(np.mean(groups_active))
        idle = (active - used, in_system - active, finish - begin - in_system)
        rows[name] = [*busy / share, blocked / share, *idle]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(FREE_STATES))


def _streams(policy: Policy) -> dict[str, int]:
    """Streams and a position that runs on each."""
    out = {"attention": ATTENTION}
    if policy.overlap_attention:
        out |= {"attention_send": SEND, "attention_receive": COMBINE_RECV}
    out["moe"] = MOE
    return out | ({"moe_send": COMBINE_SEND, "moe_receive": RECV} if policy.overlap_moe else {})


def _members(group: NDArray[np.int64], groups: int) -> list[NDArray[np.int64]]:
    return [np.flatnonzero(group == one) for one in range(groups)]


def covered(start: Floats, end: Floats) -> float:
    """Length of the union of intervals.

    Examples
    --------
    >>> float(covered(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0])))
    4.0
    """
    order = np.argsort(start)
    reach = np.maximum.accumulate(end[order])
    fresh = np.maximum(start[order], np.append(-np.inf, reach[:-1]))
    return float(np.maximum(reach - fresh, 0.0).sum())
