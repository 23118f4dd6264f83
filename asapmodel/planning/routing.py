"""What a router in front of `m` instances leaves of the variability of arrivals.

A pool's flow has gaps of squared coefficient of variation `c^2`. What one instance sees of it:

- ``random``: `1 + (c^2 - 1) / m`. A request goes to any instance with equal probability, so a gap is a sum of
  geometrically many. Exact in two moments; Poisson stays Poisson exactly.
- ``round_robin``: `c^2 / m`. Every `m`-th request, a sum of `m` gaps. Exact for gamma gaps, which stay gamma.
- ``least_work``: counted as round robin. Of single servers in order of arrival no routing has a smaller mean wait than
  least work (Foss 1980, Wolff 1987), so that would be a bound. Instances serve in batches, for which it is none:
  simulated, least work is far better where instances are nearly full, which is where a plan needs it, and up to a tenth
  worse at moderate load.

The flow of a pool is the sum of flows of classes. For long times their variances add,
`c^2 = sum_i r_i c_i^2 / sum_i r_i`; of Poisson flows the sum is Poisson exactly, else its gaps are taken to be
independent (an approximation). A class that is cut by length or divided among pools becomes more like Poisson: `c_i^2`
above 1 is kept, which is a bound, and below 1 it counts as 1, which is one too.
"""

import math
from collections.abc import Sequence

from asapmodel.planning.segments import Segment

__all__ = ["flow_cv", "instance_cv"]


def flow_cv(segments: Sequence[Segment], weights: Sequence[float]) -> float:
    """Coefficient of variation of the gaps of a pool's arrivals, segments in proportion to `weights`."""
    square = sum(w * max(one.origin.cv, 1.0) ** 2 for one, w in zip(segments, weights, strict=True))
    return math.sqrt(square / sum(weights))


def instance_cv(routing: str, cv: float, instances: int) -> float:
    """Coefficient of variation of the gaps at one of several instances.

    Parameters
    ----------
    routing : str
        ``"round_robin"``, ``"least_work"`` or ``"random"``.
    cv : float
        That of the pool's arrivals.
    instances : int
        Among which they are divided.

    Examples
    --------
    >>> instance_cv("round_robin", 1.0, 4), instance_cv("random", 1.0, 4), instance_cv("random", 3.0, 8)
    (0.5, 1.0, 1.4142135623730951)
    """
    if instances < 1:
        raise ValueError(f"instances is {instances}; a router needs one at least")
    if routing == "random":
        return math.sqrt(1.0 + (cv**2 - 1.0) / instances)
    return cv / math.sqrt(instances)
