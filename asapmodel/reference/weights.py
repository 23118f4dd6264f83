"""Sizes and random weights of a tiny MoE transformer with the structure of DeepSeek-V3.2.

Every layer has low-rank attention (keys and values made from one latent per token) over the positions that an indexer
picks. The first layers end in a dense feed-forward network, the others in routed experts and one shared expert. Only
the sizes are toys. The weights are random and scaled so that activations stay of order one.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

__all__ = ["AttentionWeights", "Config", "FeedForward", "LayerWeights", "MoEWeights", "Weights", "make_weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of the model.

    Parameters
    ----------
    hidden
        Hidden size H.
    heads, head_size
        Attention heads and the size of each; `head_size` is even, because rotation works on pairs.
    latent
        Size of the compressed key-value latent of a token.
    index_heads, index_size, index_top
        Heads of the indexer, their (even) size, and the number of positions a token attends at most.
    experts, top
        Routed experts E_total of a layer and experts K per token.
    layers, dense_layers
        Layers L, of which the first `dense_layers` have a dense network in place of experts.
    expert_size, shared_size, dense_size
        Inner sizes of a routed expert, the shared expert and the dense network.
    vocabulary
        Number of token ids.

    Raises
    ------
    ValueError
        If a size is out of range.

    Examples
    --------
    >>> Config(experts=16, top=4).top
    4
    >>> Config(experts=2, top=3)
    Traceback (most recent call last):
    ...
    ValueError: top is 3 but there are 2 experts: choose top <= experts
    """

    hidden: int = 32
    heads: int = 4
    head_size: int = 8
    latent: int = 16
    index_heads: int = 2
    index_size: int = 8
    index_top: int = 8
    experts: int = 8
    top: int = 2
    layers: int = 4
    dense_layers: int = 1
    expert_size: int = 16
    shared_size: int = 16
    dense_size: int = 48
    vocabulary: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "dense_layers" else 1
            if value < least:
                raise ValueError(f"{field.name} is {value}: choose {least} or more")
        for name in ("head_size", "index_size"):
            if getattr(self, name) % 2:
                raise ValueError(f"{name} is {getattr(self, name)}: choose an even size, rotation works on pairs")
        if self.top > self.experts:
            raise ValueError(f"top is {self.top} but there are {self.experts} experts: choose top <= experts")
        if self.dense_layers > self.layers:
            raise ValueError(
                f"dense_layers is {self.dense_layers} but there are {self.layers} layers: choose dense_layers <= layers"
            )


@dataclass(frozen=True, slots=True, eq=False)
class AttentionWeights:
    """Attention of one layer; the first axis of `query`, `key`, `value`, `output` is the head."""

    gain: Floats
    """Norm before attention, `(H,)`."""
    compress: Floats
    """Token to latent, `(H, latent)`."""
    latent_gain: Floats
    """Norm of the latent, `(latent,)`."""
    query: Floats
    """`(heads, H, head_size)`."""
    key: Floats
    """`(heads, latent, head_size)`."""
    value: Floats
    """`(heads, latent, head_size)`."""
    output: Floats
    """`(heads, head_size, H)`."""
    index_query: Floats
    """`(index_heads, H, index_size)`."""
    index_key: Floats
    """`(H, index_size)`, one key for all heads of the indexer."""
    index_weight: Floats
    """Weight of each head of the indexer, `(H, index_heads)`."""


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """A gated network of inner size F: an expert, the shared expert or a dense layer's network."""

    gate_up: Floats
    """Gate in the first F columns, up in the last F: `(H, 2 F)`."""
    down: Floats
    """`(F, H)`."""


@dataclass(frozen=True, slots=True, eq=False)
class MoEWeights:
    """Router `(H, E_total)`, shared expert and routed experts of one layer."""

    router: Floats
    shared: FeedForward
    experts: tuple[FeedForward, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One layer; `ffn` tells a dense layer from a layer with experts, `ffn_gain` `(H,)` is the norm before it."""

    attention: AttentionWeights
    ffn_gain: Floats
    ffn: FeedForward | MoEWeights


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The whole model: `embedding` `(vocabulary, H)`, layers, `final_gain` `(H,)`, `unembedding` `(H, vocabulary)`."""

    embedding: Floats
    layers: tuple[LayerWeights, ...]
    final_gain: Floats
    unembedding: Floats

    def expert(self, layer: int, expert: int) -> FeedForward:
        """Weights of one routed expert.

        Raises
        ------
        ValueError
            If the layer is dense or does not exist, or has no such expert.
        """
        if not 0 <= layer < len(self.layers):
            raise ValueError(f"layer is {layer}: choose 0 to {len(self.layers) - 1}")
        ffn = self.layers[layer].ffn
        if isinstance(ffn, FeedForward):
            raise ValueError(f"layer {layer} is dense and has no experts: choose a later layer")
        if not 0 <= expert < len(ffn.experts):
            raise ValueError(f"expert is {expert}: choose 0 to {len(ffn.experts) - 1}")
        return ffn.experts[expert]


def _matrix(rng: np.random.Generator, *shape: int) -> Floats:
    """Normal values over the square root of the inputs, so that unit inputs give unit outputs."""
    values: Floats = rng.standard_normal(shape) / np.sqrt(shape[-2])
    return values


def _gain(rng: np.random.Generator, size: int) -> Floats:
    """Gains near one, all different, so that a forgotten gain shows."""
    return rng.uniform(0.8, 1.2, size)


def _feed_forward(rng: np.random.Generator, hidden: int, inner: int) -> FeedForward:
    return FeedForward(_matrix(rng, hidden, 2 * inner), _matrix(rng, inner, hidden))


def _attention(rng: np.random.Generator, config: Config) -> AttentionWeights:
    hidden, heads, size, latent = config.hidden, config.heads, config.head_size, config.latent
    return AttentionWeights(
        gain=_gain(rng, hidden),
        compress=_matrix(rng, hidden, latent),
        latent_gain=_gain(rng, latent),
        query=_matrix(rng, heads, hidden, size),
        key=_matrix(rng, heads, latent, size),
        value=_matrix(rng, heads, latent, size),
        # the outputs of all heads add up, so each is scaled as a part of the sum
        output=_matrix(rng, heads, size, hidden) / np.sqrt(heads),
        index_query=_matrix(rng, config.index_heads, hidden, config.index_size),
        index_key=_matrix(rng, hidden, config.index_size),
        index_weight=_matrix(rng, hidden, config.index_heads),
    )


def _moe(rng: np.random.Generator, config: Config) -> MoEWeights:
    experts = (_feed_forward(rng, config.hidden, config.expert_size) for _ in range(config.experts))
    return MoEWeights(
        router=_matrix(rng, config.hidden, config.experts),
        shared=_feed_forward(rng, config.hidden, config.shared_size),
        experts=tuple(experts),
    )


def _layer(rng: np.random.Generator, config: Config, dense: bool) -> LayerWeights:
    attention, gain = _attention(rng, config), _gain(rng, config.hidden)
    return LayerWeights(
        attention, gain, _feed_forward(rng, config.hidden, config.dense_size) if dense else _moe(rng, config)
    )


def make_weights(config: Config, seed: int) -> Weights:
    """Draw the weights of a model; the same `config` and `seed` give the same weights.

    Examples
    --------
    >>> make_weights(Config(), seed=1).expert(layer=2, expert=7).down.shape
    (16, 32)
    """
    rng = np.random.default_rng(seed)
    return Weights(
        embedding=rng.standard_normal((config.vocabulary, config.hidden)),
        layers=tuple(_layer(rng, config, dense=index < config.dense_layers) for index in range(config.layers)),
        final_gain=_gain(rng, config.hidden),
        unembedding=_matrix(rng, config.hidden, config.vocabulary),
    )
