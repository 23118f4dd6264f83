"""The synchronous system under a backlog that never ends: its stability limit.

A queue in front of a system is stable exactly when a backlog shrinks, so the limit is the throughput of iterations that
find a backlog. They are run on a fixed deck that holds every prompt of the length law equally often, so mean tokens and
mean work are exact and only the packing is sampled; the limit's error is 0.1 to 0.5 %.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.effort import FULL, Effort
from asapmodel.engines.walk_sequences import deck
from asapmodel.policy_rules import is_vllm_like
from asapmodel.solvers.queue_errors import NoConvergence
from asapmodel.systems.arrays import Requests, new_outcome
from asapmodel.systems.lockstep import coefficients, run_backlog
from asapmodel.systems.lockstep_queues import run_backlogged_queues
from asapmodel.systems.queue_rules import queue_rules
from asapmodel.systems.queues import new_batches, new_queues

__all__ = ["Backlog", "under_backlog"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST = 24576  # prompts in the deck, at most, where an effort says fewer
_ITERATIONS = 200_000  # at most: chunks of a few tokens
_DEPTH = 3.0  # backlog in full batches and longest prompts of every group


class Backlog(NamedTuple):
    """Largest rate at which the system is stable, requests/s; each prompt's time in full iterations, mean 1."""

    saturation: float
    work: Floats


def under_backlog(problem: Problem, effort: Effort = FULL) -> Backlog:
    """Run iterations that find a backlog, and share their time out among the prompts."""
    layout, policy, costs = problem.layout, problem.policy, problem.costs
    prompt, cached = problem.prompts.prompt, problem.prompts.cached
    tokens = (prompt - cached).astype(np.float64)
    mean = float(tokens.mean())
    budget = policy.chunk_tokens or policy.max_batch_tokens
    target = _DEPTH * layout.D * (budget + float(tokens.max()))
    wanted = int(1.3 * target / mean + 12.0 * layout.D * budget / mean)
    fewest = effort.lockstep_deck
    least = int(1.1 * target / mean)  # short prompts, large budgets: fewer are no backlog at all
    most = max(fewest * 3 // 2, min(wanted, max(_MOST, least)))  # many groups empty a short deck before one is full
    order = deck(len(prompt), -(-min(max(wanted, fewest), most) // len(prompt)))
    done = cached[order]
    if policy.chunk_tokens:
        # Equal prompts keep the groups in step for ever if they start in step, which Poisson arrivals do not do.
        part = (0.6180339887498949 * np.arange(1, layout.D + 1)) % 1.0
        done[: layout.D] += (part * tokens[order[: layout.D]]).astype(np.int64)
    pieces = float(tokens[order].sum()) / budget if policy.chunk_tokens else 0.0
    table = np.zeros((min(int(pieces), _ITERATIONS) + len(order), 4))
    chunked, by_work = policy.chunk_tokens > 0, policy.balance == "work"
    cost = coefficients(costs)
    if is_vllm_like(policy):
        count = _run_queues(problem, cost, Requests(np.zeros(len(order)), prompt[order], done), table)
    else:
        count = run_backlog(cost, layout.D, budget, chunked, by_work, target, prompt[order], done, table)
    if count == 0:
        raise NoConvergence(f"{len(order)} prompts are no backlog for {layout.D} groups of {budget} tokens")
    squares = prompt.astype(np.float64) ** 2 - cached.astype(np.float64) ** 2
    features = np.stack([tokens, squares, np.ones(len(tokens))], axis=1)
    used = table[count // 6 : count]
    # Chunks: tokens of an iteration are constant, and where a prompt ends says nothing about its cost.
    columns = [1, 2] if policy.chunk_tokens else [1, 2, 3]
    return _shares(used[:, 0], used[:, columns], features[:, : len(columns)])


def _run_queues(problem: Problem, cost: Floats, requests: Requests, table: Floats) -> int:
    """Run iterations while every group has work; under a backlog the rule of routing does not matter."""
    a = problem.costs.attention
    policy = replace(problem.policy, routing="round_robin", counts="exact", balance="tokens")
    rules = queue_rules(problem.layout, policy, a.per_token, a.per_token2)
    outcome = new_outcome(len(requests.arrival))
    queues, batches = new_queues(problem.layout.D, requests), new_batches(2 * problem.layout.D)
    return int(run_backlogged_queues(cost, queues, rules, batches, requests, outcome, table))


def _shares(time: Floats, served: Floats, features: Floats) -> Backlog:
    """Least squares of the times on what was served, and the time of each prompt by it.

    Slopes that the iterations do not determine stay near those of the ratio of the means.
    """
    mean = served.mean(axis=0)
    scaled = served / mean
    ratio = float(time.mean())
    matrix = scaled.T @ scaled + 1e-3 * np.eye(len(mean))
    start = np.zeros(len(mean))
    start[0] = ratio
    slopes = start + np.linalg.solve(matrix, scaled.T @ (time - scaled @ start))
    slopes *= ratio / float(slopes.sum())  # exact for the prompts that were served
    each = features / mean @ slopes
    average = float(each.mean())
    each = np.maximum(each, 0.02 * average)
    return Backlog(1.0 / average, each / float(each.mean()))
