"""One load of the synchronous system: a fixed walk, corrected by what is known exactly.

The walk runs the rules of the system on a fixed sequence of some thousand prompts (`walk_sequences`). Its raw means
are off by several per cent and, near saturation, by half: so few prompts see few long busy periods. Most of that is
known, because quantities that drive the TTFT have exactly known laws (`walk_controls`):

* the wait in a reference queue (`walk_reference`): where the walk's sample of it has rank r, the exact r-quantile
  takes its place, and the TTFT moves along by the slope of their relation (monotone coupling);
* discounted work before and after an arrival, several time constants: first and second moments;
* the prompt's own length.

The mean is that of a regression on these at their exact means. Exact where the system *is* the reference queue (one
group, one prompt at a time), up to the lattice of `wait_law`; elsewhere an approximation with the error of a sample
(`lockstep_analysis`).
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.graph import lockstep_run
from asapmodel.engines.walk_nodes import Node, node_of
from asapmodel.engines.walk_path import corrected, path_of
from asapmodel.policy_rules import is_vllm_like
from asapmodel.systems.arrays import Requests
from asapmodel.systems.lockstep import coefficients, run_lockstep

__all__ = ["UTILISATION", "lone_prompts", "node_at", "node_loads"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def node_loads(lone_arrivals: float, effort: Effort = FULL) -> tuple[tuple[float, tuple[int, int]], ...]:
    """Loads of the nodes above 0, and their walks.

    `lone_arrivals` is the number of prompts that arrive at saturation during the time of a lone one: where it is large,
    batches form, and times rise, already at loads around its reciprocal.
    """
    first = min(max(0.35 / lone_arrivals, 0.015), 0.1)
    second = min(max(1.2 / lone_arrivals, 2.0 * first), 0.22)
    light = effort.lockstep_light
    lightest = ((first, light), (second, light)) if light[0] else ()
    return (*lightest, *((load, (count, stride)) for load, count, stride in effort.lockstep_walks))


UTILISATION = ("attention", "barrier", "transfers", "moe", "engine")
"""Names of what is busy, in the order of `Node.busy`."""


def _run(problem: Problem, arrival: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Run the system's own rules; return (start, end, own batches alone) by prompt, and the tally."""
    policy, cached = problem.policy, problem.prompts.cached[rows]
    if is_vllm_like(policy):
        requests = Requests(arrival, problem.prompts.prompt[rows], cached)
        outcome, tally = lockstep_run(problem.layout, policy, problem.costs, requests)
        return np.stack(outcome, axis=1), tally
    out = np.zeros((len(rows), 3))
    tally = run_lockstep(
        coefficients(problem.costs),
        problem.layout.D,
        policy.chunk_tokens or policy.max_batch_tokens,
        policy.chunk_tokens > 0,
        policy.balance == "work",
        policy.batch_window,
        arrival,
        problem.prompts.prompt[rows],
        cached,
        out,
    )
    return out, tally


def lone_prompts(problem: Problem) -> tuple[Node, Floats]:
    """The limit of load 0, every prompt alone, and its TTFT by prompt; `batch_window` included. Exact."""
    count = len(problem.prompts.prompt)
    rows = np.arange(count)
    apart = 2.0 * float(_run(problem, np.zeros(count), rows)[0][:, 1].max()) + 2.0 * problem.policy.batch_window + 1.0
    arrival = np.arange(count, dtype=np.float64) * apart
    out, tally = _run(problem, arrival, rows)
    ttft = out[:, 1] - arrival
    service = float((out[:, 1] - out[:, 0]).mean())
    kernel = float(out[:, 2].mean())
    return _node(0.0, problem, service, kernel, ttft, rows, tally / count, ttft, float(ttft.mean())), ttft


def node_at(
    problem: Problem,
    work: Floats,
    alone: Floats,
    saturation: float,
    load: float,
    length: tuple[int, int],
    effort: Effort,
    walk: int,
) -> Node:
    """Stationary answer at one load.

    Parameters
    ----------
    problem : Problem
        The system.
    work : array
        Work of each prompt in the reference queue, mean 1 (`lockstep_backlog`).
    alone : array
        TTFT of each prompt alone, seconds.
    saturation : float
        Stability limit, requests/s.
    load : float
        Between 0 and 1.
    length : (int, int)
        Of the walk in prompts, and every how many of them one is kept.
    effort : Effort
        Says how many prompts are left out at either end.
    walk : int
        Which of many.
    """
    count, stride = length
    path = path_of(problem, saturation, load, count, walk)
    out, tally = _run(problem, path.arrival, path.rows)
    kept = slice(effort.skip, count - effort.drop, stride)
    # Four iterations, in the unit of the mean work: the scale on which a prompt meets others.
    scale = 4.0 * float(tally[0]) / count * saturation
    ttft, mean = corrected(problem, path, saturation, work, out[:, 1], scale, kept, effort.lattice)
    service = float((out[:, 1] - out[:, 0])[kept].mean())
    kernel = float(out[kept, 2].mean())
    return _node(load, problem, service, kernel, ttft, path.rows[kept], tally / count, alone, mean)


def _node(
    load: float,
    problem: Problem,
    service: float,
    kernel: float,
    ttft: Floats,
    rows: Ints,
    tally: Floats,
    alone: Floats,
    mean: float,
) -> Node:
    """Collect a node; the part of the TTFT beyond that of a lone prompt is scaled to the mean that is known better."""
    floor = alone[rows]
    beyond = np.maximum(ttft - floor, 0.0)
    if beyond.sum() > 0:
        beyond *= max(mean - float(floor.mean()), 0.0) / float(beyond.mean())
    ttft = floor + beyond
    return node_of(
        load,
        ttft,
        rows,
        len(problem.prompts.prompt),
        service=service,
        kernel=kernel,
        busy=_busy(tally, problem.layout.D),
        batch_tokens=float(tally[6] / tally[5]),
    )


def _busy(tally: Floats, groups: int) -> Floats:
    """Busy seconds per request in the order of `UTILISATION`."""
    engine, own, pace, transfers, experts = tally[:5]
    return np.array([own / groups, pace - own / groups, transfers, experts, engine])
