"""The arrays that the compiled schedulers share: requests in, per-request times out, policy and costs as numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.policy import Layout, Policy

__all__ = [
    "CostArray",
    "Outcome",
    "PolicyNumbers",
    "Requests",
    "cost_array",
    "make_requests",
    "new_outcome",
    "policy_numbers",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CostArray = Floats
"""Coefficients in a row: a0 a1 a2, then (fixed, per token) of phases 1, 2, MoE (floor, per token), 4, 5;
then three of a dense layer, step overhead and host dispatch. Indices are named in this module."""

ATTENTION, SEND, RECV, MOE, COMBINE_SEND, COMBINE_RECV, DENSE, STEP, HOST = 0, 3, 5, 7, 9, 11, 13, 16, 17


class Requests(NamedTuple):
    """One entry per request in arrival order: seconds, tokens."""

    arrival: Floats
    prompt: Ints
    cached: Ints


class Outcome(NamedTuple):
    """Per request: when its first batch was formed, when its last token was computed, own batches alone; seconds."""

    start: Floats
    end: Floats
    kernel: Floats


class PolicyNumbers(NamedTuple):
    """`Policy` as numbers a compiled function can read."""

    groups: int
    slots: int
    min_batch_tokens: int
    max_batch_tokens: int
    exclusive_tokens: int
    batch_window: float
    locked: bool


def make_requests(arrival: Floats, prompt: Ints, cached: Ints | None = None) -> Requests:
    """Check and convert; arrival sorted and non-negative, `0 <= cached < prompt`."""
    times = np.ascontiguousarray(arrival, dtype=np.float64)
    tokens = np.ascontiguousarray(prompt, dtype=np.int64)
    known = np.zeros_like(tokens) if cached is None else np.ascontiguousarray(cached, dtype=np.int64)
    if not (times.shape == tokens.shape == known.shape and times.ndim == 1):
        raise ValueError("arrival, prompt and cached must be one-dimensional and of one length")
    if times.size and (times[0] < 0 or np.any(np.diff(times) < 0) or not np.all(np.isfinite(times))):
        raise ValueError("arrival times must be finite, non-negative and in order")
    if np.any(tokens < 1) or np.any(known < 0) or np.any(known >= tokens):
        raise ValueError("every request needs prompt >= 1 and 0 <= cached < prompt")
    return Requests(times, tokens, known)


def new_outcome(count: int) -> Outcome:
    """Return arrays to be filled."""
    return Outcome(np.zeros(count), np.zeros(count), np.zeros(count))


def policy_numbers(layout: Layout, policy: Policy) -> PolicyNumbers:
    """Translate the policy for one layout."""
    return PolicyNumbers(
        groups=layout.D,
        slots=policy.slots,
        min_batch_tokens=policy.min_batch_tokens,
        max_batch_tokens=policy.max_batch_tokens,
        exclusive_tokens=policy.exclusive_tokens,
        batch_window=float(policy.batch_window),
        locked=policy.pairing == "locked",
    )


def cost_array(costs: LayerCosts, host: float) -> CostArray:
    """Lay the coefficients out in a row; `host` is the exposed host dispatch per MoE layer."""
    a, m = costs.attention, costs.moe
    row = [a.fixed, a.per_token, a.per_token2]
    for transfer in (costs.dispatch_send, costs.dispatch_recv):
        row += [transfer.fixed, transfer.per_token]
    row += [m.floor, m.per_token]
    for affine in (costs.combine_send, costs.combine_recv):
        row += [affine.fixed, affine.per_token]
    d = costs.dense_layer
    return np.array([*row, d.fixed, d.per_token, d.per_token2, costs.step_overhead, host])
