"""One iteration of lockstep execution: coefficients, routing, batches, its time, and what it completes.

Since all layers of one kind cost the same, an iteration of `L` layers is evaluated in closed form::

    step_overhead + dense_layers max_g(A_g + dense(n_g))
                  + moe_layers (max_g A_g + transfers(max_g n_g) + MoE(sum_g n_g))

with `A_g` the attention of group `g` on its own batch, 0 for a group without work. The event graph with barriers gives
the same numbers (a test compares them).

A queue is a linked list over requests: `ends` has heads and tails by group, `follow` the next request. `done` counts a
request's computed tokens, the cached ones among them; `queued` has tokens and work by group.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.batching import piece_work

__all__ = ["coefficients", "count_prompts", "finish", "form", "join"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

A0, A1, A2, DENSE0, DENSE1, DENSE2, MOVE0, MOVE1, FLOOR, EXPERT, STEP, DENSE_LAYERS, MOE_LAYERS = range(13)


def coefficients(costs: LayerCosts) -> Floats:
    """Coefficients of an iteration: attention, dense layer, four transfers in one, experts, overhead, layers."""
    a, d, m = costs.attention, costs.dense_layer, costs.moe
    moves = (costs.dispatch_send, costs.dispatch_recv, costs.combine_send, costs.combine_recv)
    row = [a.fixed, a.per_token, a.per_token2, d.fixed, d.per_token, d.per_token2]
    row += [sum(one.fixed for one in moves), sum(one.per_token for one in moves), m.floor, m.per_token]
    return np.array([*row, costs.step_overhead, costs.dense_layers, costs.moe_layers])


@arrays_only
def _batch(head: int, follow: Ints, prompt: Ints, done: Ints, budget: int, chunked: bool) -> tuple[float, float]:
    """Tokens and attention work of the batch at the head of a queue."""
    n = 0
    w = 0.0
    k = head
    while k >= 0:
        left = prompt[k] - done[k]
        if chunked:
            if n >= budget:
                break
            left = min(left, budget - n)
        elif n > 0 and n + left > budget:
            break
        n += left
        w += piece_work(float(left), float(done[k]))
        k = follow[k]
    return float(n), w


@arrays_only
def join(
    k: int, c: Floats, by_work: bool, prompt: Ints, cached: Ints, ends: Ints, follow: Ints, queued: Floats
) -> float:
    """Append a request to the queue with the least in it; return its tokens. `ends` are heads and tails."""
    group = 0
    least = np.inf
    for one in range(queued.shape[1]):
        load = c[A1] * queued[0, one] + c[A2] * queued[1, one] if by_work else queued[0, one]
        if load < least:
            group = one
            least = load
    tokens = float(prompt[k] - cached[k])
    queued[0, group] += tokens
    queued[1, group] += piece_work(tokens, float(cached[k]))
    if ends[0, group] < 0:
        ends[0, group] = k
    else:
        follow[ends[1, group]] = k
    ends[1, group] = k
    return tokens


@arrays_only
def form(
    c: Floats,
    budget: int,
    chunked: bool,
    prompt: Ints,
    done: Ints,
    ends: Ints,
    follow: Ints,
    batch: Floats,
    tally: Floats,
) -> float:
    """Form the batches of an iteration (tokens, work by group in `batch`), add to the tally; return its time."""
    largest = total = slowest = slowest_dense = own = 0.0
    for group in range(ends.shape[1]):
        if ends[0, group] < 0:
            batch[:, group] = 0.0
            continue
        n, w = _batch(ends[0, group], follow, prompt, done, budget, chunked)
        batch[0, group], batch[1, group] = n, w
        attention = c[A0] + c[A1] * n + c[A2] * w
        own += attention
        total += n
        largest = max(largest, n)
        slowest = max(slowest, attention)
        slowest_dense = max(slowest_dense, c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w)
        tally[5] += 1.0
    moves = c[MOVE0] + c[MOVE1] * largest
    experts = max(c[FLOOR], c[EXPERT] * total)
    time: float = c[STEP] + c[DENSE_LAYERS] * slowest_dense + c[MOE_LAYERS] * (slowest + moves + experts)
    layers = c[DENSE_LAYERS] + c[MOE_LAYERS]
    tally[0] += time
    tally[1] += own * layers
    tally[2] += slowest * layers
    tally[3] += moves * c[MOE_LAYERS]
    tally[4] += experts * c[MOE_LAYERS]
    tally[6] += total
    return time


@arrays_only
def finish(
    c: Floats,
    now: float,
    time: float,
    prompt: Ints,
    cached: Ints,
    done: Ints,
    ends: Ints,
    follow: Ints,
    queued: Floats,
    batch: Floats,
    out: Floats,
) -> int:
    """Account for the batches; return the requests that are complete."""
    finished = 0
    for group in range(ends.shape[1]):
        if ends[0, group] < 0:
            continue
        n, w = batch[0, group], batch[1, group]
        attention = c[A0] + c[A1] * n + c[A2] * w
        layer = attention + c[MOVE0] + c[MOVE1] * n + max(c[FLOOR], c[EXPERT] * n)
        alone = c[STEP] + c[DENSE_LAYERS] * (c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w) + c[MOE_LAYERS] * layer
        queued[0, group] -= n
        queued[1, group] -= w
        left = int(n)
        while left > 0:
            k = ends[0, group]
            if done[k] == cached[k]:
                out[k, 0] = now
            piece = min(left, prompt[k] - done[k])
            left -= piece
            done[k] += piece
            out[k, 2] += alone
            if done[k] == prompt[k]:
                out[k, 1] = now + time
                finished += 1
                ends[0, group] = follow[k]
    return finished


@arrays_only
def count_prompts(head: int, follow: Ints, prompt: Ints, done: Ints, n: float) -> int:
    """Prompts that the `n` tokens at the head of a queue belong to."""
    count = 0
    while n > 0:
        n -= prompt[head] - done[head]
        head = follow[head]
        count += 1
    return count
