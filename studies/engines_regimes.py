"""What bounds a system, in a word: for sorting the errors of the engines, no part of any engine."""

from typing import Any

import numpy as np

from asapmodel.engines.analysis import Problem
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.systems.arrays import make_requests, policy_numbers
from asapmodel.systems.batching import take_min_tokens

__all__ = ["bound_of"]

_ROUNDS = 8  # shuffles of the prompts for the mean batch of a backlog


def _mean_batch(problem: Problem) -> tuple[float, float]:
    """Tokens and work of the mean batch of a group under a backlog (a fixed shuffle of the prompts)."""
    tokens = problem.prompts.prompt - problem.prompts.cached
    work = problem.prompts.prompt.astype(np.float64) ** 2 - problem.prompts.cached.astype(np.float64) ** 2
    policy = problem.policy
    if problem.layout.kind == "sync" and policy.chunk_tokens:
        return float(policy.chunk_tokens), policy.chunk_tokens * float(work.mean() / tokens.mean())
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(len(tokens)) for _ in range(_ROUNDS)])
    requests = make_requests(np.zeros(len(order)), problem.prompts.prompt[order], problem.prompts.cached[order])
    numbers = policy_numbers(problem.layout, policy)
    if problem.layout.kind == "sync":  # whole prompts while they fit: the same rule without the other two limits
        numbers = numbers._replace(min_batch_tokens=policy.max_batch_tokens, exclusive_tokens=2**40)
    head = batches = 0
    while head < len(order):
        head, _, _ = take_min_tokens(numbers, requests, head, len(order))
        batches += 1
    return float(tokens[order].sum() / batches), float(work[order].sum() / batches)


def bound_of(problem: Problem) -> str:
    """What the busiest side spends most of its time on at saturation: attention, moe, transfers or latency.

    For the mean batch of a backlog (synchronous: of a group). Latency is all that does not grow with the tokens. The
    sides of an asynchronous system are a group, of which there are D, and the pool of expert devices.
    """
    layout, costs = problem.layout, problem.costs
    n, w = _mean_batch(problem)
    a = costs.attention
    parts = {"attention": a.per_token * n + a.per_token2 * w, "latency": a.fixed}
    batch = n * layout.D if layout.kind == "sync" else n
    experts = costs.moe(batch) + exposed_host_dispatch(layout, problem.policy, costs)
    moe = {"moe": costs.moe.per_token * batch if experts > costs.moe.floor else 0.0}
    moe["latency"] = experts - moe["moe"]
    group, pool = [costs.dispatch_send, costs.combine_recv], [costs.dispatch_recv, costs.combine_send]

    def moved(transfers: list[Any]) -> dict[str, float]:
        slope = sum(one.per_token for one in transfers) * n
        return {"transfers": slope, "latency": sum(one.fixed for one in transfers)}

    def merged(*tables: dict[str, float]) -> dict[str, float]:
        names = {name for table in tables for name in table}
        return {name: sum(table.get(name, 0.0) for table in tables) for name in names}

    if layout.kind == "sync":
        side = merged(parts, moved(group), moved(pool), moe)
    else:
        own = merged(parts, moved(group))
        shared = merged(moe, {} if problem.policy.overlap_moe else moved(pool))
        side = own if sum(own.values()) / layout.D >= sum(shared.values()) else shared
    return max(sorted(side), key=lambda name: side[name])
