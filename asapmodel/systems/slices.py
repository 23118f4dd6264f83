"""Attention cut by tokens among the devices of a group (context parallelism): the work of the hardest slice.

The tokens of a batch lie one behind the other, prompt after prompt, and are cut into slices of equal width, one a
device. A token that attends to `q` others costs in proportion to `q`, so the devices have equal tokens and unequal
work, and the layer takes as long as the hardest slice. For one prompt of `s` tokens on `T` devices it is the last::

    T ((s / T)**2 + 2 (s / T) (s - s / T)) = s**2 (2 - 1 / T)

almost twice the even share `s**2`; for a chunk of `c` tokens behind `q` others `c**2 (2 - 1 / T) + 2 c q`, which is
less than twice `c**2 + 2 c q`. So short chunks lose less to the imbalance than whole prompts.
"""

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import Requests
from asapmodel.systems.batching import piece_work

__all__ = ["hardest_slice"]

Ints = NDArray[np.int64]


@arrays_only
def hardest_slice(requests: Requests, follow: Ints, first: int, before: int, tokens: int, width: int) -> float:
    """Largest attention work of `width` tokens in a row, from the start of a batch on, tokens^2.

    Parameters
    ----------
    requests : Requests
        All requests.
    follow : array
        By request, who is behind it in its queue.
    first, before : int
        First request of the batch, and its tokens that were there before; the others begin at their cached prefix.
    tokens : int
        Of the batch, at least 1.
    width : int
        Tokens of a slice, at least 1. Slices behind the end of the batch have nothing to attend to.
    """
    hardest = mine = 0.0
    room = width
    k = first
    there = before
    left = tokens
    while left > 0:
        piece = min(left, room, requests.prompt[k] - there)
        mine += piece_work(float(piece), float(there))
        there += piece
        left -= piece
        room -= piece
        if room == 0:
            hardest = max(hardest, mine)
            mine = 0.0
            room = width
        if there == requests.prompt[k] and left > 0:
            k = follow[k]
            there = requests.cached[k]
    return max(hardest, mine)
