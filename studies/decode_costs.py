"""What a layer costs when every sequence computes one token: the memory traffic that prefill's cost models leave out.

A batch of b sequences, one new token each, sequence i with a context of s_i tokens. Its prefill counterpart is a prompt
of s_i tokens of which all but one are cached, and `asapmodel.models.attention` gives the arithmetic of that. But one
token does little with what it reads, so reading is what takes time. A device of the group reads, per layer,

- its weights, ``W = (projections / T + indexer_projections) / 2`` bytes (INT8, two FLOP a weight), once for the batch;
- the indexer's keys of the whole context, ``Di`` bytes a token: every device selects for itself;
- the latents of the keys that are kept, ``min(s, k) (rk + dr) Dsize``: shared by all heads, so a split by heads does
  not divide them.

Each is a roofline, reading beside computing::

    attention = a0 + max(W / B, b p) + sum_i max((s_i Di + min(s_i, k) (rk + dr) Dsize) / B, c(s_i)),   B = B_m eta_m

with p the projections of a token and c(s) core, scores and top-k of one query. In the context this is linear twice,
with a bend at k. Experts are ``max(read(n), chi n slope)``: `models.moe` without tile padding, which is that of a
kernel for thousands of tokens. Transfers are those of `models.link`.
"""

from dataclasses import dataclass, replace

import numpy as np
import sympy
from numpy.typing import NDArray

from asapmodel.models import attention, link, memory, moe
from asapmodel.models.evaluation import evaluate
from asapmodel.models.flops import flops
from asapmodel.models.imbalance import imbalance
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import symbols
from asapmodel.policy import Layout
from asapmodel.scenario import Scenario

__all__ = ["Decode", "decode_of"]

Floats = NDArray[np.float64]
_SELECTING = ("core", "indexer_scores", "topk")


@dataclass(frozen=True, slots=True)
class Decode:
    """Costs of one layer of decode on one layout; see the module for the derivation.

    Examples
    --------
    >>> paper = decode_of(Scenario.load("paper-asap"))
    >>> [f"{1e6 * t:.2f} us" for t in paper.context_s(np.array([1024.0, 2048.0, 32768.0]))]
    ['0.97 us', '1.95 us', '4.87 us']
    >>> f"{1e3 * paper.attention_s(64, 64 * 4.87e-6):.2f} ms"
    '0.46 ms'
    """

    layout: Layout
    architecture: Architecture
    device: Device
    profile: Profile

    @property
    def split(self) -> Split:
        """Parallel degrees."""
        return Split(self.layout.D, self.layout.T, self.layout.E)

    @property
    def _parts(self) -> tuple[Architecture, Device, Profile, Split]:
        return self.architecture, self.device, self.profile, self.split

    def context_s(self, contexts: Floats) -> Floats:
        """Time that sequences add to attention by their contexts, seconds; contexts in tokens, the new one included."""
        s, k, rk, dr, Di, Dsize, b_w = symbols("s k rk dr Di Dsize b_w")
        kept = sympy.Piecewise((s, sympy.Eq(k, 0)), (sympy.Min(s, k), True))
        bytes_read = s * Di * b_w + kept * (rk + dr) * Dsize
        read = evaluate(bytes_read, *self._parts, s=contexts) / self._bandwidth
        times = [evaluate(attention.parts()[name], *self._parts, s=contexts, p=contexts - 1) for name in _SELECTING]
        found: Floats = np.maximum(read, np.sum(times, axis=0))
        return found

    def attention_s(self, sequences: float, contexts_s: float) -> float:
        """Attention of a batch, seconds; `contexts_s` is the sum of `context_s`."""
        parts, given = attention.parts(), self._parts
        token = sum(float(evaluate(parts[name], *given, s=2, p=1)) for name in ("projections", "indexer_projections"))
        return self.profile.attention_overhead + max(self.weights_s, sequences * token) + contexts_s

    @property
    def weights_s(self) -> float:
        """Time to read a layer's attention weights, seconds."""
        T, b_w = symbols("T b_w")
        count = flops()
        bytes_read = (count["projections"] / T + count["indexer_projections"]) / 2 * b_w
        return float(evaluate(bytes_read, *self._parts)) / self._bandwidth

    @property
    def _bandwidth(self) -> float:
        return self.device.memory_bandwidth * self.profile.memory

    def experts_s(self, tokens: float) -> float:
        """Experts of a batch of so many tokens, seconds."""
        layers = 1 if self.layout.kind == "sync" else self.architecture.layers
        tight = replace(self.profile, tile_padding=0.0)
        given = (self.architecture, self.device, tight, self.split)
        return float(evaluate(moe.time_expression(), *given, n=tokens, chi=imbalance(*given, layers)))

    def transfers_s(self, tokens: float) -> tuple[float, float, float, float]:
        """The four transfers of a batch, in the order of the phases, seconds."""
        law = (link.synchronous if self.layout.kind == "sync" else link.asynchronous)(*self._parts)
        names = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
        send, receive, back, end = (law[name].fixed + law[name].per_token * tokens for name in names)
        return send, receive, back, end

    def most_sequences(self, context: float) -> float:
        """Sequences of a mean context that fit the memory of all groups, weights and caches only."""
        weight = {name: float(evaluate(one, *self._parts)) for name, one in memory.weights().items()}
        experts = weight.pop("experts")
        used = sum(weight.values()) + (experts if self.layout.kind == "sync" else 0.0)
        each = float(evaluate(memory.cache_bytes(), *self._parts, S=context, N_s=1))
        return self.layout.D * max(self.device.memory_bytes - used, 0.0) / each


def decode_of(scenario: Scenario) -> Decode:
    """Decode on the layout, model and devices of a scenario."""
    return Decode(scenario.layout, scenario.architecture.value, scenario.device.value, scenario.profile.value)
