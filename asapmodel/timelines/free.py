"""The tasks of free execution, from what the event graph has logged."""

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.engines.graph import Run, resource_names
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests
from asapmodel.timelines.spans import Track
from asapmodel.timelines.steps import shades, step_parts
from asapmodel.timelines.tasks import Batches, Tasks, group_track, pool_track

__all__ = ["free_tasks"]

Ints = NDArray[np.int64]

_FIRST_MOE_PHASE = 2  # position in a lane
_POOL_ORDER = ("moe_receive", "moe", "moe_send")  # from top to bottom, as a batch goes through them


def free_tasks(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests, run: Run) -> Tasks:
    """Say of each logged task where it ran, and of which batch and layer it is.

    The positions of a lane are the phases in their order, and the repetitions of its last segment are the MoE layers;
    see `asapmodel.systems.free`.

    Parameters
    ----------
    layout, policy, costs, requests
        What was run; requests in order of arrival.
    run : Run
        With its log.

    Returns
    -------
    Tasks
        Streams from top to bottom: groups, then the pool, each as a batch goes through them. With queues per group a
        batch is a step, or a part of one.
    """
    tracks, place = _tracks(layout, policy)
    log, count = run.log, int(run.log.recorded[0])
    position = log.position[:count]
    return Tasks(
        tracks=tracks,
        batches=_batches(policy.slots, requests, run) if run.steps is None else step_parts(policy, requests, run),
        track=place[log.resource[:count]],
        phase=position,
        layer=log.repetition[:count] + np.where(position >= _FIRST_MOE_PHASE, costs.dense_layers, 0),
        batch=log.run[:count],
        ready=log.ready[:count],
        due=log.due[:count],
        start=log.start[:count],
        end=log.end[:count],
    )


def _tracks(layout: Layout, policy: Policy) -> tuple[tuple[Track, ...], Ints]:
    """Tracks from top to bottom, and the place among them by number of the resource."""
    pool, own = resource_names(policy)

    def stream(name: str, names: list[str]) -> str:
        return "all" if len(names) == 1 else name.partition("_")[2] or "compute"

    groups = [group_track(group, stream(name, own)) for group in range(layout.D) for name in own]
    below = [name for name in _POOL_ORDER if name in pool]
    tracks = (*groups, *(pool_track(stream(name, pool)) for name in below))
    places = [len(groups) + below.index(name) for name in pool] + list(range(len(groups)))
    return tracks, np.array(places)


def _batches(slots: int, requests: Requests, run: Run) -> Batches:
    """All batches of a run in order of release; groups and shades only of those in the log."""
    first = np.concatenate([[0], run.bound[:-1]])
    tokens = requests.prompt - requests.cached
    work = tokens.astype(np.float64) ** 2 + 2.0 * tokens * requests.cached
    group, shade = np.full(len(first), -1), np.zeros(len(first), dtype=np.int64)
    count = int(run.log.recorded[0])
    known, where = np.unique(run.log.run[:count], return_index=True)
    chain = run.log.chain[where]
    group[known] = chain // slots
    shade[known] = shades(chain, slots, run.outcome.start[first[known]], run.outcome.end[first[known]])
    return Batches(
        number=np.arange(len(first)),
        group=group,
        shade=shade,
        prompts=run.bound - first,
        tokens=np.add.reduceat(tokens, first),
        work=np.add.reduceat(work, first),
    )
