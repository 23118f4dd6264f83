"""The arithmetic of the devices: what an attention device and a MoE device compute on the tensors that they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention import LayerCache, attention, empty_cache
from asapmodel.reference.attention_worker import Away
from asapmodel.reference.buffers import Shape, share
from asapmodel.reference.expert_pool import ExpertPool
from asapmodel.reference.layers import combine, embed, rms_norm, route, swiglu
from asapmodel.reference.primitives import Arrived
from asapmodel.reference.scheduler import Batch, Prompt
from asapmodel.reference.super_kernel import LayerKernels, SuperKernel
from asapmodel.reference.transformer import forward, prefix_caches
from asapmodel.reference.weights import Config, FeedForward, MoEWeights, Weights, make_weights

__all__ = ["AttentionDevice", "ExpertDevice", "Model", "make_model"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model, and the token ids of every prompt, by its index."""

    config: Config
    weights: Weights
    tokens: Mapping[int, Sequence[int]]

    def truth(self, prompt: Prompt) -> Floats:
        """Final hidden states of the tokens to compute, by the monolithic pass over the whole prompt."""
        return forward(self.weights, self.config, self.tokens[prompt.index])[prompt.cached :]


def make_model(config: Config, prompts: Sequence[Prompt], seed: int) -> Model:
    """Weights and token ids from a seed."""
    random = np.random.default_rng(seed)
    tokens = {one.index: random.integers(config.vocabulary, size=one.tokens).tolist() for one in prompts}
    return Model(config, make_weights(config, seed), tokens)


class AttentionDevice:
    """Device j of T in attention group i: a range of heads, and a share of the rows of every batch.

    Raises
    ------
    ValueError
        If T does not divide the heads.
    """

    def __init__(self, model: Model, shape: Shape, i: int, j: int) -> None:
        config = model.config
        if config.heads % shape.T:
            raise ValueError(f"{config.heads} heads do not divide over T = {shape.T} devices; choose a divisor")
        self.shape, self.i, self.j = shape, i, j
        self.layers, self.dense_layers = config.layers, config.dense_layers
        self._model = model
        each = config.heads // shape.T
        self._heads = range(j * each, (j + 1) * each)
        self._caches: dict[int, list[LayerCache]] = {}  # by prompt, by layer

    def embed(self, batch: Batch) -> Floats:
        """Own rows before the first layer; (m, H)."""
        ids = [x for piece in batch.pieces for x in self._model.tokens[piece.prompt.index][piece.first : piece.last]]
        rows = share(len(ids), self.shape.T, self.j)
        return embed(self._model.weights, ids[rows.start : rows.stop])

    def attend(self, batch: Batch, layer: int, rows: Floats) -> Floats:
        """What own heads add to all rows of a batch; (n, H) to (n, H)."""
        weights = self._model.weights.layers[layer].attention
        ends = np.cumsum([0, *(piece.tokens for piece in batch.pieces)]).tolist()
        pieces = [range(*pair) for pair in pairwise(ends)]
        kept = [self._kept(piece.prompt) for piece in batch.pieces]
        before = [caches[layer] for caches in kept]
        normed = rms_norm(rows, weights.gain)
        partial, after = attention(weights, self._model.config, normed, pieces, before, self._heads)
        for piece, caches, cache in zip(batch.pieces, kept, after, strict=True):
            caches[layer] = cache
            if piece.completes and layer == self.layers - 1:
                del self._caches[piece.prompt.index]
        return partial

    def dense(self, layer: int, own: Floats) -> Floats:
        """Own rows after the feed-forward network of a dense layer."""
        weights = self._model.weights.layers[layer]
        assert isinstance(weights.ffn, FeedForward)
        return own + swiglu(weights.ffn.gate_up, weights.ffn.down, rms_norm(own, weights.ffn_gain))

    def route(self, layer: int, own: Floats) -> Away:
        """Experts of own rows, and what the layer adds without them."""
        weights = self._model.weights.layers[layer]
        assert isinstance(weights.ffn, MoEWeights)
        normed = rms_norm(own, weights.ffn_gain)
        experts, gates = route(weights.ffn, self._model.config, normed)
        shared = weights.ffn.shared
        return Away(normed, experts, gates, own + swiglu(shared.gate_up, shared.down, normed))

    def combine(self, away: Away, outcome: Floats) -> Floats:
        """Own rows after a layer, with the experts' results (m, K, H)."""
        return away.rest + combine(outcome, away.weights)

    def finish(self, own: Floats) -> Floats:
        """Own rows after the final norm."""
        return rms_norm(own, self._model.weights.final_gain)

    def _kept(self, prompt: Prompt) -> list[LayerCache]:
        """The prompt's caches; at first those of its cached prefix."""
        if prompt.index not in self._caches:
            prefix = self._model.tokens[prompt.index][: prompt.cached]
            if len(prefix) == 0:
                self._caches[prompt.index] = [empty_cache(self._model.config)] * self.layers
            else:
                self._caches[prompt.index] = list(prefix_caches(self._model.weights, self._model.config, prefix))
        return self._caches[prompt.index]


class ExpertDevice:
    """MoE device e of E, with the super kernel or the per-layer kernels that it replaces."""

    def __init__(self, model: Model, shape: Shape, e: int, super_kernel: bool = True) -> None:
        self.shape, self.e = shape, e
        pool = ExpertPool.load(model.weights, model.config, e, shape.E)
        self.kernel: SuperKernel | LayerKernels = SuperKernel(pool) if super_kernel else LayerKernels(pool)
        self.order: list[tuple[int, int]] = []
        """Group and layer of every batch, in the order in which they were computed."""

    def compute(self, arrived: Arrived) -> Floats:
        """Results of the device's experts, in the order of `arrived.rows`."""
        self.order.append((arrived.group, arrived.layer))
        counts = arrived.counts.sum(axis=0)
        member_experts = np.tile(np.arange(counts.size), len(arrived.counts))
        by_expert = np.argsort(np.repeat(member_experts, arrived.counts.ravel()), kind="stable")
        grouped = arrived.rows[by_expert]
        if isinstance(self.kernel, SuperKernel):
            outcome = self.kernel(np.array(arrived.layer), counts, grouped)
        else:
            outcome = self.kernel(arrived.layer, counts, grouped)
        result = np.empty_like(outcome)
        result[by_expert] = outcome
        return result
