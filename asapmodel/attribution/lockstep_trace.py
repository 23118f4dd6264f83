"""Replay of the synchronous engine: its iterations, one by one, and which requests each of them computes.

The graph engine keeps only ends. The rules of routing and batching (docs/background/semantics.md) are few, so they are
run once more here, in plain Python, and every iteration is kept.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import Requests

__all__ = ["IterationTimes", "LockstepTrace", "iteration_times", "trace_lockstep"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class IterationTimes(NamedTuple):
    """Seconds of iterations: of each group's own batch alone, and of what all of them go through together.

    Shapes (iterations, groups) for `layer` and what begins with `own` or `padding`, (iterations,) for the others. A
    group without work has zeros. Attention is that of all layers, with dense layers and the step overhead; `layer` and
    `slowest` are attention of one MoE layer, of each group and of what all wait for. `padding` is what the experts'
    time on an own batch grows by where idle groups are padded to it.
    """

    own_attention: Floats
    own_transfers: Floats
    own_experts: Floats
    padding: Floats
    layer: Floats
    attention: Floats
    transfers: Floats
    experts: Floats
    slowest: Floats
    duration: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LockstepTrace:
    """Iterations with `tokens` and `work` by group, and what each request had to do with them.

    `idle_until` is when an iteration could have started at the latest, had there been no window: the arrival that an
    idle engine waited for, else its start. Per request: `routed` is the iteration at whose start it joined the queue
    of `group`, `first:last` are the iterations that compute it.
    """

    start: Floats
    end: Floats
    idle_until: Floats
    tokens: Floats
    work: Floats
    times: IterationTimes
    group: Ints
    routed: Ints
    first: Ints
    last: Ints


def iteration_times(costs: LayerCosts, tokens: Floats, work: Floats) -> IterationTimes:
    """Evaluate iterations, given tokens and attention work by group, shape (iterations, groups).

    With `A_g` the attention of group `g` (0 without work) and `n_g` its tokens, an iteration takes the sum of::

        attention = step_overhead + dense_layers max_g (A_g + dense(n_g)) + moe_layers max_g A_g
        transfers = moe_layers (phases 1, 2, 4, 5 at max_g n_g)
        experts   = moe_layers MoE(sum_g n_g)

    `duration` is this sum in the graph engine's order of adding, so that times agree to the bit.
    """
    some, layers, dense_layers = tokens > 0, costs.moe_layers, costs.dense_layers
    transfers = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    move = Affine(sum(one.fixed for one in transfers), sum(one.per_token for one in transfers))
    attention = np.where(some, costs.attention(tokens, work), 0.0)
    dense = np.where(some, costs.dense_layer(tokens, work), 0.0)
    slowest, slowest_dense = attention.max(axis=1), dense.max(axis=1)
    moves, experts = move(tokens.max(axis=1)), costs.moe(tokens.sum(axis=1))
    overhead = costs.step_overhead
    return IterationTimes(
        own_attention=np.where(some, overhead + dense_layers * dense + layers * attention, 0.0),
        own_transfers=np.where(some, layers * move(tokens), 0.0),
        own_experts=np.where(some, layers * costs.moe(tokens), 0.0),
        padding=np.zeros_like(tokens),
        layer=attention,
        attention=overhead + dense_layers * slowest_dense + layers * slowest,
        transfers=layers * moves,
        experts=layers * experts,
        slowest=slowest,
        duration=overhead + dense_layers * slowest_dense + layers * (slowest + moves + experts),
    )


def trace_lockstep(layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> LockstepTrace:
    """Run a request sequence through the rules of lockstep execution, at least one request."""
    engine = _Engine(layout, policy, costs, requests)
    while engine.finished < len(requests.arrival):
        engine.iterate()
    start, end, idle_until = np.array(engine.spans).T
    tokens, work = (np.array(rows) for rows in zip(*engine.batches, strict=True))
    times = iteration_times(costs, tokens, work)
    return LockstepTrace(start, end, idle_until, tokens, work, times, *engine.by_request)


class _Engine:
    """Queues of the groups at the start of an iteration."""

    def __init__(self, layout: Layout, policy: Policy, costs: LayerCosts, requests: Requests) -> None:
        self.policy, self.costs, self.requests = policy, costs, requests
        self.now = -np.inf
        self.arrived = self.finished = 0
        self.queues: list[deque[int]] = [deque() for _ in range(layout.D)]
        self.tokens, self.work = np.zeros(layout.D), np.zeros(layout.D)  # still to be computed
        self.done = requests.cached.copy()
        self.spans: list[tuple[float, float, float]] = []
        self.batches: list[tuple[Floats, Floats]] = []
        self.by_request = np.full((4, len(requests.arrival)), -1)  # group, routed, first, last

    def iterate(self) -> None:
        """Route what has arrived, form the groups' batches, compute them."""
        arrivals = self.requests.arrival
        idle_until = self.now
        if self.arrived == self.finished and arrivals[self.arrived] > self.now:
            idle_until = float(arrivals[self.arrived])
            self.now = idle_until + self.policy.batch_window
        while self.arrived < len(arrivals) and arrivals[self.arrived] <= self.now:
            self._route(self.arrived)
            self.arrived += 1
        tokens, work = (np.array(column) for column in zip(*map(self._batch, self.queues), strict=True))
        self.tokens -= tokens
        self.work -= work
        times = iteration_times(self.costs, tokens[None], work[None])
        end = self.now + float(times.duration[0])
        self.spans.append((self.now, end, idle_until))
        self.batches.append((tokens, work))
        self.now = end

    def _route(self, k: int) -> None:
        """To the group with the least queued, ties to the lowest index."""
        load = self.tokens
        if self.policy.balance == "work":
            load = self.costs.attention.per_token * self.tokens + self.costs.attention.per_token2 * self.work
        group = int(np.argmin(load))
        tokens, cached = float(self.requests.prompt[k] - self.requests.cached[k]), float(self.requests.cached[k])
        self.tokens[group] += tokens
        self.work[group] += tokens * (tokens + 2.0 * cached)
        self.queues[group].append(k)
        self.by_request[:2, k] = group, len(self.spans)

    def _batch(self, queue: deque[int]) -> tuple[float, float]:
        """Take a batch from the head of a queue; return its tokens and attention work."""
        policy, iteration = self.policy, len(self.spans)
        budget = policy.chunk_tokens or policy.max_batch_tokens
        n = w = 0.0
        while queue and n < budget:
            k = queue[0]
            before = int(self.done[k])
            piece = int(self.requests.prompt[k]) - before
            if policy.chunk_tokens:
                piece = min(piece, budget - int(n))
            elif n > 0 and n + piece > budget:
                break
            n += piece
            w += float(piece) * (piece + 2.0 * before)
            self.done[k] += piece
            if self.by_request[2, k] < 0:
                self.by_request[2, k] = iteration
            if self.done[k] == self.requests.prompt[k]:
                self.by_request[3, k] = iteration + 1
                queue.popleft()
                self.finished += 1
        return n, w
