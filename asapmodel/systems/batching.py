"""What a group takes from the head of its queue: one compiled rule a batching policy, free of routing and execution.

The queue is seen as `order[head:tail]`, indices of requests first come, first served.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import PolicyNumbers, Requests

__all__ = ["piece_work", "take_min_tokens"]

Ints = NDArray[np.int64]


@arrays_only
def piece_work(tokens: float, before: float) -> float:
    """Attention work of `tokens` tokens behind `before` others of the same prompt: `c**2 + 2 c q`, tokens^2.

    With `before` the cached prefix this is the work of a whole prompt, `s**2 - p**2`.

    Examples
    --------
    >>> piece_work(3.0, 2.0) == 5.0**2 - 2.0**2
    True
    """
    return tokens * tokens + 2.0 * tokens * before


@arrays_only
def take_min_tokens(policy: PolicyNumbers, requests: Requests, head: int, tail: int) -> tuple[int, int, float]:
    """Length-aware batching of the paper's section 3.3.1.

    Prompts are added while the batch has fewer than `min_batch_tokens` and the next keeps it within
    `max_batch_tokens`, the first always; a prompt longer than `exclusive_tokens` is a batch of its own.

    Returns
    -------
    (last, n, w)
        The batch is `requests[head:last]`, with `n` tokens and work `w`.
    """
    n = 0
    w = 0.0
    k = head
    while k < tail:
        exclusive = requests.prompt[k] > policy.exclusive_tokens
        tokens = requests.prompt[k] - requests.cached[k]
        if k > head and (exclusive or n >= policy.min_batch_tokens or n + tokens > policy.max_batch_tokens):
            break
        n += tokens
        w += piece_work(float(tokens), float(requests.cached[k]))
        k += 1
        if exclusive:
            break
    return k, n, w
