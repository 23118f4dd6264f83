"""The truth: a whole prompt through the whole model, position by position, without batches, pieces or devices.

The distributed workers use the functions of `asapmodel.reference.attention` and `asapmodel.reference.layers`; their
results are judged by `forward`. It is written a second time here as plain loops: every position gathers the positions
that it attends, every token calls its experts one by one. It shares only the elementary formulas (norm, rotation,
gated network) with them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention import LayerCache
from asapmodel.reference.layers import embed, rms_norm, rotate, sigmoid, swiglu
from asapmodel.reference.weights import AttentionWeights, Config, FeedForward, MoEWeights, Weights

__all__ = ["first_token", "forward", "prefix_caches"]

Floats = NDArray[np.float64]


def forward(weights: Weights, config: Config, tokens: Sequence[int]) -> Floats:
    """Hidden states of a prompt after the last layer and the final norm.

    Parameters
    ----------
    tokens
        Token ids of the prompt, `s` of them.

    Returns
    -------
    NDArray
        `(s, H)`.

    Raises
    ------
    ValueError
        If a token id is outside the vocabulary.

    Examples
    --------
    >>> from asapmodel.reference.weights import make_weights
    >>> forward(make_weights(Config(), seed=1), Config(), [5, 3, 5]).shape
    (3, 32)
    """
    return rms_norm(_run(weights, config, tokens)[0], weights.final_gain)


def prefix_caches(weights: Weights, config: Config, tokens: Sequence[int]) -> tuple[LayerCache, ...]:
    """The caches of all layers after a prefix, for prompts whose first tokens were computed before.

    An empty prefix gives empty caches.

    Raises
    ------
    ValueError
        If a token id is outside the vocabulary.
    """
    return _run(weights, config, tokens)[1]


def first_token(weights: Weights, hidden_last: Floats) -> int:
    """The token id with the highest logit (ties: lowest id).

    Parameters
    ----------
    hidden_last
        Last row of `forward`, `(H,)`.
    """
    return int(np.argmax(hidden_last @ weights.unembedding))


def _run(weights: Weights, config: Config, tokens: Sequence[int]) -> tuple[Floats, tuple[LayerCache, ...]]:
    x = embed(weights, tokens)
    caches = []
    for layer in weights.layers:
        change, cache = _attention(layer.attention, config, rms_norm(x, layer.attention.gain))
        x = x + change
        normed = rms_norm(x, layer.ffn_gain)
        if isinstance(layer.ffn, FeedForward):
            x = x + swiglu(layer.ffn.gate_up, layer.ffn.down, normed)
        else:
            x = x + np.array([_moe(layer.ffn, config, row) for row in normed]).reshape(x.shape)
        caches.append(cache)
    return x, tuple(caches)


def _attention(layer: AttentionWeights, config: Config, x: Floats) -> tuple[Floats, LayerCache]:
    """All heads over a whole prompt, position by position."""
    positions = np.arange(len(x))
    latent = rms_norm(x @ layer.compress, layer.latent_gain)
    index_keys = rotate(x @ layer.index_key, positions)
    index_queries = [rotate(x @ matrix, positions) for matrix in layer.index_query]
    index_weights = x @ layer.index_weight
    queries = [rotate(x @ matrix, positions) for matrix in layer.query]
    keys = [rotate(latent @ matrix, positions) for matrix in layer.key]
    values = [latent @ matrix for matrix in layer.value]

    output = np.zeros_like(x)
    for t in range(len(x)):
        scores = np.zeros(t + 1)
        for j, index_query in enumerate(index_queries):
            scores += index_weights[t, j] * np.maximum(index_keys[: t + 1] @ index_query[t], 0.0)
        attended = sorted(range(t + 1), key=lambda s: (-scores[s], s))[: config.index_top]
        for head in range(config.heads):
            logits = keys[head][attended] @ queries[head][t] / np.sqrt(config.head_size)
            share = np.exp(logits - logits.max())
            output[t] += (share / share.sum()) @ values[head][attended] @ layer.output[head]
    return output, LayerCache(latent, index_keys)


def _moe(moe: MoEWeights, config: Config, token: Floats) -> Floats:
    """Shared expert plus the weighted results of the K routed experts of one token `(H,)`."""
    scores = sigmoid(token @ moe.router)
    best = sorted(range(config.experts), key=lambda e: (-scores[e], e))[: config.top]
    result = swiglu(moe.shared.gate_up, moe.shared.down, token)
    for e in best:
        result = result + scores[e] / scores[best].sum() * swiglu(moe.experts[e].gate_up, moe.experts[e].down, token)
    return result
