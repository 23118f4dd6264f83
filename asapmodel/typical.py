"""Batches as a scheduler forms them when requests queue: the sizes at which cost laws are reduced."""

import numpy as np
from numpy.typing import NDArray

from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import batching_of
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import PolicyNumbers, Requests, make_requests, policy_numbers
from asapmodel.systems.batching import take_min_tokens

__all__ = ["backlog_batches"]

_ROUNDS = 20  # shuffles of the length grid: the mean batch moves by under 1 % with more


def backlog_batches(layout: Layout, policy: Policy, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Token counts on which the experts work at a time, under a backlog of prompts without cached prefixes.

    Parameters
    ----------
    layout, policy
        `asap`: a group's batch by the length-aware rule, or, with queues per group, whole prompts or chunks, half of it
        where steps are cut in two. `sync`: all `D` groups' batches of one iteration together, whole prompts within
        `max_batch_tokens`, or `chunk_tokens` each.
    lengths : float array
        Equally likely prompt lengths, in any order.

    Returns
    -------
    float array
        Tokens per batch; deterministic (a fixed shuffle of `lengths`).
    """
    parts = 2.0 if layout.kind == "asap" and policy.micro == "split" else 1.0
    together = layout.D if layout.kind == "sync" else 1  # groups that the experts serve at a time
    if policy.chunk_tokens:
        return np.array([together * policy.chunk_tokens / parts])
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(lengths) for _ in range(_ROUNDS)])
    prompts = np.maximum(np.rint(order), 1).astype(np.int64)
    if batching_of(layout.kind, policy) == "min_tokens":
        return _length_aware(layout, policy, prompts) / parts
    sizes: list[float] = []
    taken = 0
    for tokens in prompts:
        if sizes and taken + tokens <= policy.max_batch_tokens:
            taken += int(tokens)
            sizes[-1] = float(taken)
        else:
            taken = int(tokens)
            sizes.append(float(taken))
    whole = len(sizes) // together * together
    iterations: NDArray[np.float64] = np.array(sizes[:whole]).reshape(-1, together).sum(axis=1)
    return iterations / parts


def _length_aware(layout: Layout, policy: Policy, prompts: NDArray[np.int64]) -> NDArray[np.float64]:
    requests = make_requests(np.zeros(len(prompts)), prompts)
    sizes = np.zeros(len(prompts))
    count = _cut(policy_numbers(layout, policy), requests, sizes)
    return sizes[: max(count - 1, 1)]  # the last may be cut short by the end


@arrays_only
def _cut(policy: PolicyNumbers, requests: Requests, sizes: NDArray[np.float64]) -> int:
    """Tokens of successive batches of a backlog; return their number."""
    head = 0
    count = 0
    while head < requests.prompt.shape[0]:
        head, n, _ = take_min_tokens(policy, requests, head, requests.prompt.shape[0])
        sizes[count] = n
        count += 1
    return count
