"""The cost of one MoE layer for one batch, as the engines read it.

A batch has `n` tokens to compute and attention work `w` in squared tokens: a whole prompt of length `s` with `p` cached
tokens adds `n = s - p` and `w = s**2 - p**2`, a piece of `c` tokens behind `q` others `n = c` and `w = c**2 + 2 c q`.
The six phases of a layer, in seconds::

    0 attention        a0 + a1 n + a2 w            attention group
    1 dispatch send    alpha_1 + beta_1 n          attention group
    2 dispatch recv    alpha_2 + beta_2 n          MoE devices
    3 MoE              max(floor, per_token n)     MoE devices, + host dispatch where the layer order is not known
    4 combine send     alpha_4 + beta_4 n          MoE devices
    5 combine recv     alpha_5 + beta_5 n          attention group

The coefficients come from the symbolic models (`asapmodel.costing`) or from a scenario's `[costs]` table.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["PHASES", "Affine", "LayerCosts", "Plateau", "Quadratic"]

Amount = TypeVar("Amount", float, NDArray[np.float64])
"""Tokens or attention work of one batch, or an array of them."""

PHASES = ("attention", "dispatch_send", "dispatch_recv", "moe", "combine_send", "combine_recv")
"""Names of the six phases, in order."""


@dataclass(frozen=True, slots=True)
class Quadratic:
    """Attention: `fixed + per_token n + per_token2 w`, in s, s/token, s/token^2."""

    fixed: float
    per_token: float
    per_token2: float

    def __call__(self, n: Amount, w: Amount) -> Amount:
        """Seconds for `n` tokens of work `w`."""
        return self.fixed + self.per_token * n + self.per_token2 * w


@dataclass(frozen=True, slots=True)
class Affine:
    """A transfer or a dense layer: `fixed + per_token n`, in s, s/token."""

    fixed: float
    per_token: float

    def __call__(self, n: Amount) -> Amount:
        """Seconds for `n` tokens."""
        return self.fixed + self.per_token * n


@dataclass(frozen=True, slots=True)
class Plateau:
    """Experts: `max(floor, per_token n)`, in s, s/token; imbalance is already in `per_token`."""

    floor: float
    per_token: float

    def __call__(self, n: Amount) -> Amount:
        """Seconds for `n` tokens."""
        if isinstance(n, np.ndarray):
            return np.maximum(self.floor, self.per_token * n)
        return max(self.floor, self.per_token * n)

    @property
    def inflection_tokens(self) -> float:
        """Tokens at which the plateau ends, `floor / per_token`."""
        return self.floor / self.per_token if self.per_token > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """Every coefficient the engines use; seconds per layer.

    `layers` counts all layers, of which the first `dense_layers` have attention plus `dense` and nothing else.
    `step_overhead` is paid once a batch (asynchronous) or iteration (synchronous), before its first layer;
    `request_latency` is added to every TTFT and occupies nothing.
    """

    attention: Quadratic
    dispatch_send: Affine
    dispatch_recv: Affine
    moe: Plateau
    combine_send: Affine
    combine_recv: Affine
    host_dispatch: float = 0.0
    layers: int = 61
    dense_layers: int = 0
    dense: Affine = Affine(0.0, 0.0)
    step_overhead: float = 0.0
    request_latency: float = 0.0

    @property
    def moe_layers(self) -> int:
        """Layers with experts, `layers - dense_layers`."""
        return self.layers - self.dense_layers

    @property
    def dense_layer(self) -> Quadratic:
        """Attention and feed-forward network of a dense layer as one law."""
        a = self.attention
        return Quadratic(a.fixed + self.dense.fixed, a.per_token + self.dense.per_token, a.per_token2)

    def phases(self, n: Amount, w: Amount, host: float = 0.0) -> tuple[Amount, ...]:
        """Durations of the six phases of one MoE layer for a batch of `n` tokens and work `w`, in seconds."""
        return (
            self.attention(n, w),
            self.dispatch_send(n),
            self.dispatch_recv(n),
            self.moe(n) + host,
            self.combine_send(n),
            self.combine_recv(n),
        )

    def alone(self, n: Amount, w: Amount, host: float = 0.0) -> Amount:
        """Time of a batch through all layers on idle resources, in seconds."""
        attention, send, receive, experts, back, end = self.phases(n, w, host)
        layer = attention + send + receive + experts + back + end
        return self.step_overhead + self.dense_layers * self.dense_layer(n, w) + self.moe_layers * layer
