"""The least time a layer of two batches can take, whatever the order of service."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION, as_durations, stream_names
from asapmodel.circuits.names import latency_name

__all__ = ["layer_floor"]


def layer_floor(
    durations: Sequence[Sequence[float]] | NDArray[np.float64],
    overlap_attention: bool = False,
    overlap_moe: bool = True,
) -> dict[str, float]:
    """Circuits that every order has, in seconds a layer; their maximum bounds the cycle time from below.

    With three streams on both sides no other circuit can be critical, and it *is* the cycle time::

        max(S1, S2, A1 + A2, M1 + M2, s1 + r1 + s2 + r2, c1 + e1 + c2 + e2),    S = A + s + r + M + c + e

    (a sending or receiving stream is never busier than the region that it belongs to).

    Parameters
    ----------
    durations
        Seconds of the six phases, one row a batch.
    overlap_attention, overlap_moe
        Whether the group and the MoE devices have three streams or one.

    Raises
    ------
    ValueError
        See `as_durations`.

    Examples
    --------
    >>> floor = layer_floor([[3.0, 0.5, 0.5, 1.0, 0.5, 0.5], [2.0, 0.5, 0.5, 1.0, 0.5, 0.5]])
    >>> max(floor, key=floor.get), max(floor.values())
    ('attention stream of the group', 7.0)
    """
    rows = as_durations(durations)
    both = rows.sum(axis=0)
    floor = {latency_name(batch + 1): float(row.sum()) for batch, row in enumerate(rows)}
    names = stream_names(overlap_attention, overlap_moe)
    for name, time in zip(names, both.tolist(), strict=True):
        floor[name] = floor.get(name, 0.0) + time
    if len(rows) == 2:
        floor |= {DISPATCH_REGION: float(both[1] + both[2]), COMBINE_REGION: float(both[4] + both[5])}
    return floor
