"""One load of the asynchronous system: a fixed walk through a reduced system, corrected by what is known exactly.

The scheduler's own rules and the event graph run on a fixed sequence of some thousand prompts, with few layers
(`free_layers`). What so short a walk gets wrong is mostly known: how its arrivals and prompts differ from their laws.
It is corrected by regression on controls with exactly known means, the wait in a single-server reference queue with the
same arrivals and the work that each prompt asks of the resource that limits, and discounted work around an arrival
(`walk_controls`), as in the synchronous half.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import Effort
from asapmodel.engines.free_backlog import FreeBacklog, run_rows
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.engines.walk_nodes import Node, node_of
from asapmodel.engines.walk_path import corrected, path_of

__all__ = ["Alone", "alone_of", "free_node", "lone_node", "resources"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_FEW_PROMPTS = 1.5  # in a batch


def resources(problem: Problem) -> tuple[str, ...]:
    """Names of what is busy, as the graph engine reports them."""
    pool = ("moe", "moe_send", "moe_receive") if problem.policy.overlap_moe else ("moe",)
    group = ("attention", "attention_send", "attention_receive") if problem.policy.overlap_attention else ("attention",)
    return pool + group


@dataclass(frozen=True, slots=True, eq=False)
class _Walked:
    """Prompts of a walk: row of the length law and TTFT; means of start to end and of own batches alone."""

    rows: Ints
    ttft: Floats
    service: float
    kernel: float
    busy: Floats
    batch_tokens: float


class Alone(NamedTuple):
    """Prompts alone, whatever the window: time in the system by prompt, s; who is released at once; busy seconds."""

    kernel: Floats
    at_once: NDArray[np.bool_]
    busy: Floats
    tokens: float


def alone_of(problem: Problem) -> Alone:
    """What prompts alone take. Exact."""
    policy, prompts = problem.policy, problem.prompts
    host = exposed_host_dispatch(problem.layout, policy, problem.costs)
    prompt, cached = prompts.prompt.astype(np.float64), prompts.cached.astype(np.float64)
    n, w = prompt - cached, prompt**2 - cached**2
    at_once = (n >= policy.min_batch_tokens * policy.slots) | (prompt > policy.exclusive_tokens)
    return Alone(problem.costs.alone(n, w, host), at_once, _busy_alone(problem, n, w), float(n.mean()))


def lone_node(problem: Problem, alone: Alone | None = None) -> tuple[Node, Floats]:
    """The limit of load 0, every prompt alone, and its TTFT by prompt. Exact.

    A prompt that is too short to be released at once waits for the whole window. `alone` is `alone_of(problem)`.
    """
    if problem.policy.queue_per_group:
        return _lone_steps(problem)
    kernel, at_once, busy, tokens = alone or alone_of(problem)
    ttft = kernel + np.where(at_once, 0.0, problem.policy.batch_window)
    mean = float(kernel.mean())
    walked = _Walked(np.arange(len(kernel)), ttft, mean, mean, busy, tokens)
    return _node(0.0, problem, walked, ttft, float(ttft.mean())), ttft


def _lone_steps(problem: Problem) -> tuple[Node, Floats]:
    """The same where groups form steps of their own and nothing waits: prompts so far apart that none meets another."""
    count = len(problem.prompts.prompt)
    rows = np.arange(count)
    apart = 2.0 * float(run_rows(problem, np.zeros(count), rows).outcome.kernel.max()) + 1.0
    arrival = apart * np.arange(count, dtype=np.float64)
    done = run_rows(problem, arrival, rows)
    ttft = done.outcome.end - arrival
    walked = _Walked(
        rows,
        ttft,
        float((done.outcome.end - done.outcome.start).mean()),
        float(done.outcome.kernel.mean()),
        np.array([done.busy_s[name] for name in resources(problem)]) / count,
        done.batch_tokens / done.batches,
    )
    return _node(0.0, problem, walked, ttft, float(ttft.mean())), ttft


def _busy_alone(problem: Problem, n: Floats, w: Floats) -> Floats:
    """Busy seconds per request of each resource when every prompt is a batch of its own."""
    c, policy = problem.costs, problem.policy
    host = exposed_host_dispatch(problem.layout, policy, c)
    attention, send, receive, experts, back, end = (float(np.mean(phase)) for phase in c.phases(n, w, host))
    dense = c.dense_layers * c.dense_layer(float(n.mean()), float(w.mean())) + c.step_overhead
    pool = [experts, back, receive] if policy.overlap_moe else [receive + experts + back]
    own = [attention, send, end] if policy.overlap_attention else [attention + send + end]
    busy = c.moe_layers * np.array([*pool, *own])
    busy[len(pool)] += dense
    busy[len(pool) :] /= problem.layout.D
    return busy


def free_node(problem: Problem, backlog: FreeBacklog, alone: Floats, load: float, effort: Effort, walk: int) -> Node:
    """Stationary answer at one load.

    Parameters
    ----------
    problem : Problem
        The reduced system (`free_backlog.reduced`).
    backlog : FreeBacklog
        Its stability limit and the work of each prompt.
    alone : array
        TTFT of each prompt alone, seconds.
    load : float
        Between 0 and 1, relative to saturation.
    effort : Effort
        Its nearest walk says how many prompts there are where batches hold few; in proportion more where they hold
        many.
    walk : int
        Which of many walks.
    """
    limit, work, prompts = backlog
    longer = min(max(1.0 + load * (prompts / _FEW_PROMPTS - 1.0), 1.0), effort.longest)  # as many batches, not prompts
    _, count = min(effort.walks, key=lambda one: abs(one[0] - load))
    count = effort.step * round(longer * count / effort.step)
    path = path_of(problem, limit, load, count, walk)
    done = run_rows(problem, path.arrival, path.rows)
    kept = slice(int(longer * effort.skip), count - effort.drop, effort.stride)
    stay = done.outcome.end - done.outcome.start
    scale = max(float(stay.mean()) * limit, 1.0)  # prompts that arrive during a stay: whom a prompt meets
    ttft, mean = corrected(problem, path, limit, work, done.outcome.end, scale, kept, effort.lattice)
    walked = _Walked(
        path.rows[kept],
        ttft,
        float(stay[kept].mean()),
        float(done.outcome.kernel[kept].mean()),
        np.array([done.busy_s[name] for name in resources(problem)]) / count,
        done.batch_tokens / done.batches,
    )
    return _node(load, problem, walked, alone, mean)


def _node(load: float, problem: Problem, walked: _Walked, alone: Floats, mean: float) -> Node:
    """Collect a node; the TTFT beyond the shortest is scaled to the mean that is known better."""
    ttft, rows = walked.ttft, walked.rows
    floor = min(float(ttft.min()), float(alone.min()))
    beyond = ttft - floor
    if load > 0.0 and beyond.sum() > 0.0:
        ttft = floor + beyond * max(mean - floor, 0.0) / float(beyond.mean())
    return node_of(
        load,
        ttft,
        rows,
        len(problem.prompts.prompt),
        service=walked.service,
        kernel=walked.kernel,
        busy=walked.busy,
        batch_tokens=walked.batch_tokens,
    )
