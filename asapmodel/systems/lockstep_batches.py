"""Batches of groups in lockstep with queues of their own: as formed ahead or formed now, cut into slices, started."""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Outcome, Requests
from asapmodel.systems.lockstep_iteration import (
    A0,
    A1,
    A2,
    DENSE0,
    DENSE1,
    DENSE2,
    DENSE_LAYERS,
    EXPERT,
    FLOOR,
    MOE_LAYERS,
    MOVE0,
    MOVE1,
    STEP,
)
from asapmodel.systems.queue_rules import QueueRules
from asapmodel.systems.queues import Batches, Queues, begin, form
from asapmodel.systems.slices import hardest_slice

__all__ = ["cut_slices", "start_batches"]

Floats = NDArray[np.float64]


@arrays_only
def _alone(c: Floats, n: float, w: float, copies: int) -> float:
    """Time of an iteration in which only one group has work; `copies` groups compute its tokens."""
    layer = c[A0] + c[A1] * n + c[A2] * w + c[MOVE0] + c[MOVE1] * n + max(c[FLOOR], c[EXPERT] * n * copies)
    dense = c[DENSE0] + c[DENSE1] * n + c[DENSE2] * w
    return float(c[STEP] + c[DENSE_LAYERS] * dense + c[MOE_LAYERS] * layer)


@arrays_only
def _next_batch(q: Queues, rules: QueueRules, requests: Requests, batches: Batches, group: int) -> bool:
    """Give a group the batch of the iteration that starts now; return whether it was formed only now.

    Slot `group` has its present batch, slot `ahead` its next. A group that took part in the last iteration goes on with
    what was formed when that one started, be it nothing.
    """
    ahead = q.head.shape[0] + group
    late = not (rules.ahead and batches.prompts[group] > 0)
    if not late:
        batches.first[group], batches.before[group] = batches.first[ahead], batches.before[ahead]
        batches.prompts[group], batches.ending[group] = batches.prompts[ahead], batches.ending[ahead]
        batches.n[group], batches.w[group] = batches.n[ahead], batches.w[ahead]
        batches.paced[group] = batches.paced[ahead]
    else:
        form(q, rules, requests, batches, group, group)
    if rules.ahead and batches.prompts[group] > 0:
        form(q, rules, requests, batches, ahead, group)
    return late


@arrays_only
def cut_slices(q: Queues, rules: QueueRules, requests: Requests, batches: Batches, group: int, tokens: float) -> None:
    """Let the hardest slice pace a group's batch where `tokens` tokens, padding too, are cut into slices."""
    if rules.slices > 1:
        width = int(np.ceil(tokens / rules.slices))
        first, before, n = batches.first[group], batches.before[group], int(batches.n[group])
        batches.paced[group] = rules.slices * hardest_slice(requests, q.follow, first, before, n, width)


@arrays_only
def start_batches(
    c: Floats, q: Queues, rules: QueueRules, requests: Requests, outcome: Outcome, batches: Batches, now: float
) -> tuple[bool, float]:
    """Start the batches of all groups; return whether their overhead is hidden, and the tokens of the largest."""
    groups = q.head.shape[0]
    hidden, largest = rules.hidden, 0.0
    for group in range(groups):
        late = _next_batch(q, rules, requests, batches, group)
        if batches.prompts[group] == 0:
            continue
        hidden = hidden and not late
        n = batches.n[group]
        cut_slices(q, rules, requests, batches, group, n)
        alone = _alone(c, n, batches.paced[group], groups if rules.padded else 1)
        begin(q, requests, outcome, batches, group, now, alone - (c[STEP] if rules.hidden and not late else 0.0))
        largest = max(largest, n)
    return hidden, largest
