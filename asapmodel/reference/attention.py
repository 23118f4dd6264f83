"""Attention of one layer for a batch made of pieces of prompts, for any range of heads.

A piece is a run of consecutive positions of one prompt; what stands before it in the prompt is in a cache. Members of a
tensor-parallel group call `attention` with their own heads and add up the partial results. The indexer and the latents
are the same for all heads, so every member computes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.layers import rms_norm, rotate
from asapmodel.reference.weights import AttentionWeights, Config

__all__ = ["LayerCache", "attend_mask", "attention", "empty_cache", "index_scores"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LayerCache:
    """What one layer keeps of the first `q` positions of one prompt."""

    latent: Floats
    """Compressed keys and values `(q, latent)`."""
    keys: Floats
    """Keys of the indexer `(q, index_size)`, already rotated."""

    def __len__(self) -> int:
        """Positions kept, `q`."""
        return len(self.latent)


def empty_cache(config: Config) -> LayerCache:
    """The cache before the first position.

    Examples
    --------
    >>> len(empty_cache(Config()))
    0
    """
    return LayerCache(np.zeros((0, config.latent)), np.zeros((0, config.index_size)))


def attention(
    layer: AttentionWeights,
    config: Config,
    x: Floats,
    pieces: Sequence[range],
    caches: Sequence[LayerCache],
    heads: range,
) -> tuple[Floats, tuple[LayerCache, ...]]:
    """Attention of some heads for a batch of pieces.

    Parameters
    ----------
    x
        Normed hidden states of all pieces, one after another, `(n, H)`.
    pieces
        Rows of each piece; together `0` to `n` without gaps.
    caches
        The cache each piece stands behind; row `i` of a piece has position `len(cache) + i` in its prompt.
    heads
        The heads to compute.

    Returns
    -------
    partial
        Sum of the output projections of these heads, `(n, H)`; the sum over disjoint ranges is the whole.
    extended
        The caches with the positions of the pieces added, the same for any `heads`. The given ones are not changed.

    Raises
    ------
    ValueError
        If the pieces do not cover the rows, there is not one cache a piece, or the range of heads is empty or too long.
    """
    _check(config, len(x), pieces, caches, heads)
    partial = np.zeros_like(x)
    extended = []
    for rows, cache in zip(pieces, caches, strict=True):
        own = x[rows.start : rows.stop]
        longer = _extend(layer, own, cache)
        mask = attend_mask(index_scores(layer, own, longer.keys), config.index_top)
        for head in heads:
            partial[rows.start : rows.stop] += _head(layer, own, longer.latent, mask, head)
        extended.append(longer)
    return partial, tuple(extended)


def _check(config: Config, rows: int, pieces: Sequence[range], caches: Sequence[LayerCache], heads: range) -> None:
    if len(pieces) != len(caches):
        raise ValueError(f"there are {len(pieces)} pieces and {len(caches)} caches: give one cache a piece")
    end = 0
    for piece in pieces:
        if piece.start != end or piece.stop <= end or piece.step != 1:
            raise ValueError(f"piece is {piece}: give pieces of one row or more, the next from row {end}")
        end = piece.stop
    if end != rows:
        raise ValueError(f"the pieces end at row {end} of {rows}: cover all rows")
    if heads.step != 1 or not 0 <= heads.start < heads.stop <= config.heads:
        raise ValueError(f"heads is {heads}: choose a range of one or more of {config.heads} heads")


def _extend(layer: AttentionWeights, x: Floats, cache: LayerCache) -> LayerCache:
    """The cache with the rows of `x` added behind it."""
    latent = rms_norm(x @ layer.compress, layer.latent_gain)
    keys = rotate(x @ layer.index_key, len(cache) + np.arange(len(x)))
    return LayerCache(np.concatenate([cache.latent, latent]), np.concatenate([cache.keys, keys]))


def index_scores(layer: AttentionWeights, x: Floats, keys: Floats) -> Floats:
    """Scores of the indexer, `I[t, s] = sum_j w[t, j] relu(q[t, j] . k[s])`.

    Parameters
    ----------
    x
        Normed hidden states of the last `m` positions, `(m, H)`.
    keys
        Rotated keys of all positions so far, these included, `(q + m, index_size)`.

    Returns
    -------
    NDArray
        `(m, q + m)`; minus infinity where `s` comes after `t`.
    """
    positions = len(keys) - len(x) + np.arange(len(x))
    weight = x @ layer.index_weight
    scores = np.zeros((len(x), len(keys)))
    for head, matrix in enumerate(layer.index_query):
        match = rotate(x @ matrix, positions) @ keys.T
        scores += weight[:, head, None] * np.maximum(match, 0.0)
    return np.where(np.arange(len(keys)) <= positions[:, None], scores, -np.inf)


def attend_mask(scores: Floats, index_top: int) -> Bools:
    """The positions each row attends: its `index_top` highest scores, all allowed ones when they are fewer.

    Ties go to the earliest position; minus infinity is never attended. Ties are no rarity: a score is exactly zero
    where no head of the indexer matches.

    Examples
    --------
    >>> attend_mask(np.array([[0.0, -np.inf, -np.inf], [3.0, 3.0, 4.0]]), 2).astype(int).tolist()
    [[1, 0, 0], [1, 0, 1]]
    """
    best = np.argsort(-scores, axis=1, kind="stable")[:, :index_top]
    mask = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(mask, best, True, axis=1)
    return mask & (scores > -np.inf)


def _head(layer: AttentionWeights, x: Floats, latent: Floats, mask: Bools, head: int) -> Floats:
    """One head's part of the output `(m, H)`: softmax over the attended positions."""
    query = rotate(x @ layer.query[head], len(latent) - len(x) + np.arange(len(x)))
    key = rotate(latent @ layer.key[head], np.arange(len(latent)))
    logits = np.where(mask, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    output: Floats = share @ (latent @ layer.value[head]) @ layer.output[head]
    return output
