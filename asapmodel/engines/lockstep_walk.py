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
from asapmodel.engines.walk_controls import make_controls, matched, moved, regress
from asapmodel.engines.walk_nodes import CLASSES, SHARES, Node
from asapmodel.engines.walk_reference import wait_law
from asapmodel.engines.walk_sequences import gamma_shape, prompt_rows, unit_gaps
from asapmodel.systems.lockstep import coefficients, run_lockstep

__all__ = ["lone_prompts", "node_at"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_SKIP, _DROP = 200, 50  # at the start, where the walk is empty, and at the end, where nobody follows
_APART = 40000  # terms of the Weyl sequences between the walks of different loads


def _run(problem: Problem, arrival: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Run the system's own rules; return (start, end, own batches alone) by prompt, and the tally."""
    policy, cached = problem.policy, problem.prompts.cached[rows]
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
    problem: Problem, work: Floats, alone: Floats, saturation: float, load: float, walk: tuple[int, int]
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
    walk : (int, int)
        Its length in prompts, and every how many of them one is kept.
    """
    count, stride = walk
    start = 1000 + _APART * round(40 * load)
    gap = unit_gaps(problem.gap_cv, count, start) / load
    rows = prompt_rows(len(work), count, start)
    arrival = np.cumsum(gap) / saturation
    out, tally = _run(problem, arrival, rows)
    kept = slice(_SKIP, count - _DROP, stride)
    mine = rows[kept]
    ttft = (out[:, 1] - arrival)[kept]
    service = float((out[:, 1] - out[:, 0])[kept].mean())
    law = wait_law(work, load, gamma_shape(problem.gap_cv))
    # Four iterations, in the unit of the mean work: the scale on which a prompt meets others.
    scale = 4.0 * float(tally[0]) / count * saturation
    controls = make_controls(gap, work, rows, _own(problem), law, gamma_shape(problem.gap_cv), scale, kept)
    slopes = regress(controls, ttft, 1.0 / saturation)
    ttft += moved(controls, slopes[: len(controls.knots)], matched(controls, law))
    mean = float(controls.means @ slopes)
    kernel = float(out[kept, 2].mean())
    return _node(load, problem, service, kernel, ttft, mine, tally / count, alone, mean)


def _own(problem: Problem) -> Floats:
    """Columns of the prompt's own: a constant, tokens, attention work."""
    prompt, cached = problem.prompts.prompt.astype(np.float64), problem.prompts.cached.astype(np.float64)
    return np.stack([np.ones(len(prompt)), prompt - cached, prompt**2 - cached**2], axis=1)


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
    mean = float(ttft.mean())
    group = rows * CLASSES // len(problem.prompts.prompt)
    by_class = ttft[np.argsort(group * (ttft.max() + 1.0) + ttft)]
    sizes = np.bincount(group, minlength=CLASSES)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Node(
        load=load,
        quantiles=np.interp(SHARES, (np.arange(len(ttft)) + 0.5) / len(ttft), np.sort(ttft)),
        mean=mean,
        std=float(ttft.std()),
        service=min(service, mean),
        kernel=kernel,
        busy=_busy(tally, problem.layout.D),
        batch_tokens=float(tally[6] / tally[5]),
        class_mean=np.add.reduceat(by_class, first) / sizes,
        class_p95=by_class[first + (0.95 * sizes).astype(np.int64)],
    )


def _busy(tally: Floats, groups: int) -> Floats:
    """Busy seconds per request in the order of `walk_nodes.UTILISATION`."""
    engine, own, pace, transfers, experts = tally[:5]
    return np.array([own / groups, pace - own / groups, transfers, experts, engine])
