"""The asynchronous system under a backlog: its stability limit, and what each prompt asks of what limits it."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.free_layers import fewer_layers
from asapmodel.engines.graph import Run, exposed_host_dispatch, run
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.policy_rules import backlogged
from asapmodel.systems.arrays import Requests

__all__ = ["FreeBacklog", "backlog_of", "reduced", "run_rows"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_ELSEWHERE = 389  # prompts between the beginnings of different walks
_EDGE = 0.15  # share of completions left out at either end, while the system fills and empties
_SHARPNESS = 8  # power of the utilisation by which a resource counts as the one that limits


class FreeBacklog(NamedTuple):
    """Largest rate at which the system is stable, requests/s; each prompt's share of what limits it, mean 1.

    `prompts` is the mean number of them in a batch.
    """

    saturation: float
    work: Floats
    prompts: float


def reduced(problem: Problem, effort: Effort = FULL) -> Problem:
    """The system of few layers that stands for the problem's; itself where steps are cut in two.

    There the second half ends a layer's way behind the first: few layers would make that longer.
    """
    if problem.policy.micro == "split":
        return problem
    return replace(problem, costs=fewer_layers(problem.costs, effort.layers))


def run_rows(problem: Problem, arrival: Floats, rows: Ints) -> Run:
    """Run the graph engine on prompts given by their rows, which need no check as requests from outside do."""
    requests = Requests(arrival, problem.prompts.prompt[rows], problem.prompts.cached[rows])
    return run(problem.layout, problem.policy, problem.costs, requests)


def backlog_of(problem: Problem, effort: Effort = FULL, walk: int = 0) -> FreeBacklog:
    """Follow a backlog through the reduced system.

    Parameters
    ----------
    problem : Problem
        With the costs of few layers (`reduced`).
    effort : Effort, optional
        How many batches to follow.
    walk : int
        Which of many: the deck is begun elsewhere.

    Notes
    -----
    An approximation; `docs/engines.md` has the errors of the saturation throughput against long runs.
    """
    problem = replace(problem, policy=backlogged(problem.policy))
    layout, policy = problem.layout, problem.policy
    deck = np.roll(even_deck(len(problem.prompts.prompt), effort.rounds), walk * _ELSEWHERE)
    first = run_rows(problem, np.zeros(len(deck)), deck)
    batches = max(effort.batches, effort.batches_per_slot * layout.D * policy.slots)
    count = int(len(deck) / first.batches * batches)
    done = first if count <= len(deck) else run_rows(problem, np.zeros(count), np.resize(deck, count))
    ends = np.sort(done.outcome.end)
    low, high = int(_EDGE * len(ends)), int((1.0 - _EDGE) * len(ends))
    saturation = (high - low) / float(ends[high] - ends[low])
    prompts = len(ends) / done.batches
    return FreeBacklog(saturation, _work(problem, saturation, prompts), prompts)


def _work(problem: Problem, saturation: float, prompts: float) -> Floats:
    """What each prompt asks, in units of the mean, of the resource that limits the throughput.

    Groups, expert devices, or, where neither is busy all the time, the way through the layers; weighed by the eighth
    power of the utilisation at saturation. What a batch costs whatever its size is shared by its `prompts`.
    """
    c, policy = problem.costs, problem.policy
    prompt, cached = problem.prompts.prompt.astype(np.float64), problem.prompts.cached.astype(np.float64)
    n, w = prompt - cached, prompt**2 - cached**2
    attention = c.attention.fixed / prompts + c.attention.per_token * n + c.attention.per_token2 * w
    send, receive, back, end = (
        law.fixed / prompts + law.per_token * n
        for law in (c.dispatch_send, c.dispatch_recv, c.combine_send, c.combine_recv)
    )
    host = exposed_host_dispatch(problem.layout, policy, c)
    experts = np.maximum(c.moe.floor / prompts, c.moe.per_token * n) + host / prompts
    d = c.dense_layer
    before = c.dense_layers * (d.fixed / prompts + d.per_token * n + d.per_token2 * w) + c.step_overhead / prompts
    group = attention if policy.overlap_attention else attention + send + end
    pool = experts if policy.overlap_moe else experts + receive + back
    way = attention + send + receive + experts + back + end
    group, pool, way = c.moe_layers * group + before, c.moe_layers * pool, c.moe_layers * way + before
    busy = saturation * np.array([group.mean() / problem.layout.D, pool.mean()])
    limits = np.minimum(busy, 1.0) ** _SHARPNESS
    shares = np.array([*limits, 1.0 - limits.max()])
    # A side that does nothing has no law of its own, and does not limit either.
    parts = np.stack([part / max(part.mean(), np.finfo(float).tiny) for part in (group, pool, way)])
    work: Floats = shares @ parts / shares.sum()
    return work
