"""The parts of a transformer layer that treat every token on its own: norm, rotation, router, networks, combination.

All are pure functions of arrays in float64. Rows are tokens.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.weights import Config, MoEWeights, Weights

__all__ = ["combine", "embed", "rms_norm", "rotate", "route", "sigmoid", "swiglu"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPSILON = 1e-6  # under the root of the norm
BASE = 10_000.0  # of the rotation frequencies


def embed(weights: Weights, tokens: Sequence[int]) -> Floats:
    """Hidden states `(n, H)` of token ids at the entrance of the first layer.

    Raises
    ------
    ValueError
        If a token id is outside the vocabulary.
    """
    vocabulary = len(weights.embedding)
    for token in tokens:
        if not 0 <= token < vocabulary:
            raise ValueError(f"token id is {token}: choose 0 to {vocabulary - 1}")
    return weights.embedding[np.asarray(tokens, dtype=np.int64)]


def rms_norm(x: Floats, gain: Floats) -> Floats:
    """Rows over their root mean square, `x / sqrt(mean(x^2) + 1e-6) * gain`.

    Examples
    --------
    >>> np.round(rms_norm(np.array([[3.0, -4.0]]), np.array([1.0, 2.0])), 3).tolist()
    [[0.849, -2.263]]
    """
    size: Floats = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)
    return x / size * gain


def rotate(x: Floats, positions: Ints) -> Floats:
    """Rotary embedding: pair `i` of row `t` turns by `positions[t] * 10000^(-2 i / size)`.

    Pair `i` is columns `i` and `i + size / 2` of `x` `(n, size)`. The product of two rotated rows depends on the
    distance of their positions only.

    Examples
    --------
    >>> np.round(rotate(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1])), 3).tolist()
    [[1.0, 0.0], [0.54, 0.841]]
    """
    half = x.shape[-1] // 2
    angle = positions[:, None] * BASE ** (-np.arange(half) / half)
    cos, sin = np.cos(angle), np.sin(angle)
    left, right = x[:, :half], x[:, half:]
    return np.concatenate([left * cos - right * sin, left * sin + right * cos], axis=1)


def sigmoid(x: Floats) -> Floats:
    """`1 / (1 + exp(-x))`, written so that it cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def swiglu(gate_up: Floats, down: Floats, x: Floats) -> Floats:
    """A gated network on rows: `(silu(x gate) * (x up)) down` with `silu(z) = z sigmoid(z)`.

    Parameters
    ----------
    gate_up
        Gate and up matrices side by side, `(H, 2 F)`.
    down
        `(F, H)`.
    x
        Rows `(n, H)`.
    """
    gate, up = np.split(x @ gate_up, 2, axis=-1)
    return (gate * sigmoid(gate) * up) @ down


def route(moe: MoEWeights, config: Config, x: Floats) -> tuple[Ints, Floats]:
    """The K experts of every token and their weights.

    The scores are `sigmoid(x router)`; the K highest are taken (ties: lowest expert) and divided by their sum.

    Parameters
    ----------
    x
        Normed hidden states `(n, H)`.

    Returns
    -------
    experts
        Expert ids `(n, K)`, ascending in each row.
    weights
        Their weights `(n, K)`, in the same order; every row sums to 1.
    """
    scores = sigmoid(x @ moe.router)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : config.top]
    experts = np.sort(best, axis=1)
    chosen = np.take_along_axis(scores, experts, axis=1)
    return experts, chosen / chosen.sum(axis=1, keepdims=True)


def combine(results: Floats, weights: Floats) -> Floats:
    """Weighted sum of the K expert results of every token, added in the order of the columns.

    Parameters
    ----------
    results
        `(n, K, H)`.
    weights
        `(n, K)`.

    Returns
    -------
    NDArray
        `(n, H)`. The order is fixed, so the sum does not depend on which result arrived first.
    """
    total = np.zeros((len(results), results.shape[2]))
    for column in range(results.shape[1]):
        total += weights[:, column, None] * results[:, column]
    return total
