"""One random system at saturation: what a run reaches, and the bounds of its throughput."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.batches import Batches, form_batches, form_iterations
from asapmodel.circuits.bounds import Bounds, Regime, regime_of, throughput_bounds
from asapmodel.circuits.lockstep_bounds import independent_period, iteration_times
from asapmodel.engines.analysis import Problem
from asapmodel.engines.graph import Run, run
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.studies.engines_cases import Case
from asapmodel.systems.arrays import Requests, make_requests

__all__ = ["Row", "batches_of", "measure"]

Floats = NDArray[np.float64]

_PER_SLOT = 80  # batches to follow for each slot of an asynchronous system
_ITERATIONS = 60
_MOST_PROMPTS = 60_000
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """One case: rates in batches/s, and what the regime is.

    `low_holds` and `high_holds` say whether the run obeys the bounds, without any tolerance but rounding's; `blocked`
    is the share of time that a stream of the MoE devices waits for a group's combine region (asynchronous);
    `independent` is the rate that independent batches would have (synchronous, else NaN).
    """

    index: int
    system: str
    pairing: str
    regime: Regime
    truth: float
    lower: float
    upper: float
    low_holds: bool
    high_holds: bool
    blocked: float
    independent: float
    batches: int


def measure(case: Case) -> Row:
    """Follow a backlog of the case by the graph engine, and bound it."""
    problem = case.problem
    return _synchronous(case, problem) if problem.layout.kind == "sync" else _asynchronous(case, problem)


def _backlog(problem: Problem, count: int) -> Requests:
    """So many prompts at time 0, every row of the law equally often."""
    rows = np.resize(even_deck(len(problem.prompts.prompt), 3), count)
    return make_requests(np.zeros(count), problem.prompts.prompt[rows], problem.prompts.cached[rows])


def batches_of(requests: Requests, done: Run) -> Batches:
    """Batches of an asynchronous run, read off it: prompts of one batch share start, end and time alone."""
    marks = np.stack([done.outcome.start, done.outcome.end, done.outcome.kernel])
    first = np.flatnonzero(np.concatenate([[True], np.any(np.diff(marks) != 0, axis=0)]))
    prompt, cached = requests.prompt.astype(np.float64), requests.cached.astype(np.float64)
    n, w = np.add.reduceat(prompt - cached, first), np.add.reduceat(prompt**2 - cached**2, first)
    return Batches(n, w, np.zeros(len(n), dtype=np.bool_), len(prompt))


def _asynchronous(case: Case, problem: Problem) -> Row:
    """Batches launched at time 0, before all prompts had arrived, are left out of rate and upper bound."""
    layout, policy, costs = problem.layout, problem.policy, problem.costs
    deck = _backlog(problem, 3 * len(problem.prompts.prompt))
    prompts = len(deck.prompt) / len(form_batches(layout, policy, deck).n)
    requests = _backlog(problem, int(prompts * _PER_SLOT * layout.D * policy.slots))
    done = run(layout, policy, costs, requests)
    start, end = done.outcome.start, done.makespan_s
    head = int(np.searchsorted(start, 0.0, side="right"))
    later = Requests(requests.arrival[head:], requests.prompt[head:], requests.cached[head:])
    rest = form_batches(layout, policy, later)
    bounds, regime = _bounds(problem, rest)
    whole = throughput_bounds(layout, policy, costs, batches_of(requests, done))
    longest = done.batches / whole.lower + whole.filling_s + policy.batch_window
    count = len(rest.n)
    rate = count / (end - float(start[head]))
    return Row(
        index=case.index,
        system=case.system,
        pairing=policy.pairing if policy.dual_batch else "single",
        regime=regime,
        truth=rate,
        lower=bounds.lower,
        upper=bounds.upper_batches,
        low_holds=end <= longest * (1 + _ROUNDING),
        high_holds=rate <= bounds.upper_batches * (1 + _ROUNDING),
        blocked=max(done.busy_s.get(f"{name}_blocked", 0.0) for name in ("moe", "moe_send")) / end,
        independent=float("nan"),
        batches=count,
    )


def _bounds(problem: Problem, batches: Batches) -> tuple[Bounds, Regime]:
    bounds = throughput_bounds(problem.layout, problem.policy, problem.costs, batches)
    return bounds, regime_of(bounds)


def _synchronous(case: Case, problem: Problem) -> Row:
    layout, policy, costs = problem.layout, problem.policy, problem.costs
    tokens = float((problem.prompts.prompt - problem.prompts.cached).mean())
    budget = policy.chunk_tokens or policy.max_batch_tokens
    requests = _backlog(problem, min(int(_ITERATIONS * layout.D * budget / tokens), _MOST_PROMPTS))
    batches = form_iterations(layout, policy, costs, requests)
    total = run(layout, policy, costs, requests).makespan_s - policy.batch_window
    if abs(float(iteration_times(costs, batches).sum()) - total) > _ROUNDING * total:
        raise RuntimeError(f"case {case.index}: the sum of the iterations is not the time of the run")
    bounds, regime = _bounds(problem, batches)
    rate = batches.n.size / total
    return Row(
        index=case.index,
        system=case.system,
        pairing="chunks" if policy.chunk_tokens else "whole prompts",
        regime=regime,
        truth=rate,
        lower=bounds.lower,
        upper=bounds.upper_batches,
        low_holds=rate >= bounds.lower * (1 - _ROUNDING),
        high_holds=rate <= bounds.upper_batches * (1 + _ROUNDING),
        blocked=0.0,
        independent=layout.D / independent_period(layout, costs, batches),
        batches=int(batches.n.size),
    )
