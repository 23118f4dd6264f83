"""Which steps compute each request, where every group has a first-in first-out queue.

A group takes tokens from the head of its queue and leaves none behind, so the tokens of its requests, laid end to end
in the order of arrival, are the tokens of its steps, laid end to end in the order in which they run. With `R_k` tokens
up to and with request `k`, and `C_j` up to and with step `j`, request `k` is computed in the steps for which

    C_(j-1) < R_k    and    C_j > R_(k-1)

These are neighbours, and nothing of the rules of batching has to be known.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["groups_along", "steps_of", "sum_between"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def groups_along(group: Ints, first: Ints, follow: Ints) -> Ints:
    """Group of each request, from the first one of every step and who is behind whom.

    Parameters
    ----------
    group, first : array of int, shape (steps,)
        Of the steps, in any order: its group, and the first request that it computes.
    follow : array of int, shape (requests,)
        The next request of the same queue; -1 behind one that was the last when the queue became empty. The next to
        come then begins a step.

    Examples
    --------
    >>> groups_along(np.array([0, 1, 0]), np.array([0, 1, 2]), np.array([-1, -1, 3, -1])).tolist()
    [0, 1, 0, 0]
    """
    out = np.full(len(follow), -1, dtype=np.int64)
    out[first] = group
    found, after = out.tolist(), follow.tolist()
    for k, behind in enumerate(after):  # who follows came later
        if behind >= 0:
            found[behind] = found[k]
    return np.array(found, dtype=np.int64)


def steps_of(tokens: Floats, asked: Ints) -> tuple[Ints, Ints]:
    """Steps `first:last` of each request of a queue.

    Parameters
    ----------
    tokens : array, shape (steps,)
        What the steps compute, in their order; 0 allowed.
    asked : array of int, shape (requests,)
        Tokens to compute, in the order of the queue, at least 1 each; as many as those of the steps in all.

    Examples
    --------
    Steps of 4, 4 and 2 tokens; prompts of 3, 6 and 1:

    >>> first, last = steps_of(np.array([4.0, 4.0, 2.0]), np.array([3, 6, 1]))
    >>> first.tolist(), last.tolist()
    ([0, 0, 2], [1, 3, 3])
    """
    done, wanted = np.cumsum(tokens), np.cumsum(asked)
    first = np.searchsorted(done, wanted - asked, side="right")
    return first.astype(np.int64), np.searchsorted(done, wanted, side="left").astype(np.int64) + 1


def sum_between(values: Floats, first: Ints, last: Ints) -> Floats:
    """Sums of `values[first:last]`, entry by entry.

    Differences of running sums: exact to about 1e-16 of the sum of all.

    Examples
    --------
    >>> sum_between(np.array([1.0, 2.0, 4.0]), np.array([0, 1]), np.array([3, 1])).tolist()
    [7.0, 0.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(sums[last] - sums[first])
