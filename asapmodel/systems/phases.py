"""The six phases and the dense layer as compiled functions of the coefficient row (`asapmodel.systems.arrays`)."""

from asapmodel.solvers.compiled import arrays_only
from asapmodel.systems.arrays import ATTENTION, DENSE, HOST, MOE, CostArray

__all__ = ["affine_time", "attention_time", "dense_layer_time", "moe_time"]


@arrays_only
def affine_time(cost: CostArray, at: int, n: float) -> float:
    """`fixed + per_token n` of the coefficients at index `at`, seconds."""
    return cost[at] + cost[at + 1] * n


@arrays_only
def _quadratic(cost: CostArray, at: int, n: float, w: float) -> float:
    return cost[at] + cost[at + 1] * n + cost[at + 2] * w


@arrays_only
def attention_time(cost: CostArray, n: float, w: float) -> float:
    """Phase 0, `a0 + a1 n + a2 w`, seconds."""
    return _quadratic(cost, ATTENTION, n, w)


@arrays_only
def dense_layer_time(cost: CostArray, n: float, w: float) -> float:
    """Attention and the dense FFN, seconds."""
    return _quadratic(cost, DENSE, n, w)


@arrays_only
def moe_time(cost: CostArray, n: float) -> float:
    """Phase 3, `max(floor, per_token n) + host`, seconds."""
    return max(cost[MOE], cost[MOE + 1] * n) + cost[HOST]
