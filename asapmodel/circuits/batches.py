"""The batches that a backlog forms, without following their times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests, policy_numbers
from asapmodel.systems.batching import piece_work, take_min_tokens

__all__ = ["Batches", "form_batches", "form_iterations"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Batches in the order in which they are formed.

    Attributes
    ----------
    n, w : array, shape (batches,)
        Tokens to compute, attention work in tokens^2. Synchronous: shape (iterations, D), 0 for a group without work.
    exclusive : array of bool, shape of `n`
        Alone in its group (asynchronous).
    prompts : int
        Prompts in all of them; in chunks, a prompt counts once.
    """

    n: Floats
    w: Floats
    exclusive: Bools
    prompts: int

    def __post_init__(self) -> None:
        """Check the shapes and that there is something to do."""
        if not (self.n.shape == self.w.shape == self.exclusive.shape):
            raise ValueError(f"n, w, exclusive have shapes {self.n.shape}, {self.w.shape}, {self.exclusive.shape}: one")
        if not self.n.size or np.any(self.n < 0) or not np.any(self.n > 0):
            raise ValueError(f"{self.n.size} batches hold {self.n.sum():g} tokens: at least one batch needs tokens")


def form_batches(layout: Layout, policy: Policy, requests: Requests) -> Batches:
    """Cut an asynchronous system's queue into batches, first come, first served; exact while more waits than they take.

    Under a backlog a batch never ends for want of prompts, so where the queue is cut does not depend on times. The last
    batch is what is left over.

    Parameters
    ----------
    layout, policy
        The system; `min_tokens` batching of `policy`.
    requests : Requests
        Waiting prompts in order; arrival times are not read.

    Examples
    --------
    >>> from asapmodel.systems.arrays import make_requests
    >>> waiting = make_requests(np.zeros(4), np.array([1500, 700, 20000, 300]))
    >>> found = form_batches(Layout("asap", 4, 4, 16), Policy(), waiting)
    >>> found.n.tolist(), found.exclusive.tolist()
    ([2200.0, 20000.0, 300.0], [False, True, False])
    """
    numbers = policy_numbers(layout, policy)
    count, head = len(requests.prompt), 0
    rows = []
    while head < count:
        exclusive = bool(requests.prompt[head] > policy.exclusive_tokens)
        head, n, w = take_min_tokens(numbers, requests, head, count)
        rows.append((float(n), w, exclusive))
    tokens, work, exclusives = zip(*rows, strict=True)
    return Batches(np.array(tokens), np.array(work), np.array(exclusives), count)


def form_iterations(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> Batches:
    """Batches of a synchronous system by iteration and group when all prompts wait from the beginning; exact.

    The queues are filled in order, each prompt into the one with the least in it (tokens, or attention work); groups
    that run out of work take no further part.

    Examples
    --------
    >>> from asapmodel.costs import Affine, Plateau, Quadratic
    >>> from asapmodel.systems.arrays import make_requests
    >>> some = Affine(1e-5, 1e-8)
    >>> costs = LayerCosts(Quadratic(1e-4, 1e-7, 1e-11), some, some, Plateau(3e-4, 1e-7), some, some)
    >>> waiting = make_requests(np.zeros(3), np.array([5000, 1000, 3000]))
    >>> form_iterations(Layout("sync", 2, 1, 2), Policy(chunk_tokens=3000), costs, waiting).n.tolist()
    [[3000.0, 3000.0], [2000.0, 1000.0]]
    """
    queues = _queues(layout, policy, costs, requests)
    chunked, budget = policy.chunk_tokens > 0, policy.chunk_tokens or policy.max_batch_tokens
    lanes = [_lane(requests, queue, budget, chunked) for queue in queues]
    table = np.zeros((2, max(map(len, lanes)), layout.D))
    for group, lane in enumerate(lanes):
        table[:, : len(lane), group] = np.array(lane).reshape(-1, 2).T
    return Batches(table[0], table[1], np.zeros(table.shape[1:], dtype=np.bool_), len(requests.prompt))


def _queues(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> list[list[int]]:
    """Indices of prompts by group: each prompt goes to the least load, ties to the lowest index."""
    a = costs.attention
    queues: list[list[int]] = [[] for _ in range(layout.D)]
    tokens, work = np.zeros(layout.D), np.zeros(layout.D)
    for k, (prompt, cached) in enumerate(zip(requests.prompt, requests.cached, strict=True)):
        load = a.per_token * tokens + a.per_token2 * work if policy.balance == "work" else tokens
        group = int(np.argmin(load))
        queues[group].append(k)
        tokens[group] += prompt - cached
        work[group] += piece_work(float(prompt - cached), float(cached))
    return queues


def _lane(requests: Requests, queue: list[int], budget: int, chunked: bool) -> list[tuple[float, float]]:
    """Tokens and work of a group's batches: chunks of `budget` tokens, or whole prompts while they fit."""
    lane, n, w = [], 0, 0.0
    for k in queue:
        done, prompt = int(requests.cached[k]), int(requests.prompt[k])
        if not chunked and n > 0 and n + prompt - done > budget:
            lane.append((float(n), w))
            n, w = 0, 0.0
        while done < prompt:
            piece = min(prompt - done, budget - n) if chunked else prompt - done
            n, w, done = n + piece, w + piece_work(float(piece), float(done)), done + piece
            if chunked and n == budget:
                lane.append((float(n), w))
                n, w = 0, 0.0
    return [*lane, (float(n), w)] if n else lane
