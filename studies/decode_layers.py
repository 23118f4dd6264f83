"""Time of a layer of decode in the synchronous and the asynchronous system: closed forms, and runs of the graph engine.

N sequences are in the system, shared evenly: N / D a group in lockstep, N / (2 D) in each of an asynchronous group's
two batches. Every batch starts its next step where the last one ended.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.models.imbalance import expected_maximum
from asapmodel.policy import Policy
from asapmodel.studies.decode_costs import Decode
from asapmodel.systems.arrays import make_requests

__all__ = ["Layer", "asynchronous_layer", "followed", "lockstep_layer", "merged_layer", "single_layer"]

Floats = NDArray[np.float64]

_UNIT = 1e-12  # seconds of attention for each squared token of the stand-in prompts
_STEPS = 40  # steps of each batch to follow


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of decode, seconds: mean attention of a batch, its transfers, experts of a call, and the cycle.

    `limits` are the terms of the cycle by name; `cycle_s` is their sum in lockstep, else their maximum.
    """

    sequences: float
    attention_s: float
    transfers_s: float
    experts_s: float
    limits: dict[str, float]
    cycle_s: float

    @property
    def limit(self) -> str:
        """The largest term."""
        return max(self.limits, key=self.limits.__getitem__)


def _attention(costs: Decode, batch: float, contexts: Floats) -> tuple[float, float]:
    """Mean and standard deviation of a batch's attention, contexts independent draws of those given."""
    each = costs.context_s(contexts)
    return costs.attention_s(batch, batch * float(each.mean())), float(np.sqrt(batch) * each.std())


def lockstep_layer(costs: Decode, total: float, contexts: Floats) -> Layer:
    """``E max_g A_g + transfers(b) + experts(N)``, the maximum of D nearly normal batches."""
    groups = costs.layout.D
    batch = total / groups
    mean, deviation = _attention(costs, batch, contexts)
    barrier = deviation * expected_maximum(groups)
    transfers, experts = sum(costs.transfers_s(batch)), costs.experts_s(total)
    limits = {"attention": mean, "barrier": barrier, "transfers": transfers, "experts": experts}
    return Layer(batch, mean, transfers, experts, limits, sum(limits.values()))


def single_layer(costs: Decode, total: float, contexts: Floats) -> Layer:
    """One batch a group, not two: ``max(S, D M, D receive, D send)``, half as many calls, nothing to hide behind."""
    groups = costs.layout.D
    batch = total / groups
    attention, _ = _attention(costs, batch, contexts)
    transfers = costs.transfers_s(batch)
    experts = costs.experts_s(batch)
    limits = {
        "latency": attention + sum(transfers) + experts,
        "experts": groups * experts,
        "pool's transfers": groups * max(transfers[1], transfers[2]),
    }
    return Layer(batch, attention, sum(transfers), experts, limits, max(limits.values()))


def asynchronous_layer(costs: Decode, total: float, contexts: Floats) -> Layer:
    """The pair law for D groups that share a pool, ``max(2 G, S, 2 regions, 2 D M, 2 D receive, 2 D send)``.

    A lower bound of the time: two equal batches a group pass a layer each in that time if nothing gets into the way.
    """
    groups = costs.layout.D
    batch = total / (2 * groups)
    attention, _ = _attention(costs, batch, contexts)
    t1, t2, t4, t5 = costs.transfers_s(batch)
    experts = costs.experts_s(batch)
    limits = {
        "group": 2 * (attention + t1 + t5),
        "latency": attention + t1 + t2 + experts + t4 + t5,
        "regions": 2 * max(t1 + t2, t4 + t5),
        "experts": 2 * groups * experts,
        "pool's transfers": 2 * groups * max(t2, t4),
    }
    return Layer(batch, attention, t1 + t2 + t4 + t5, experts, limits, max(limits.values()))


def merged_layer(costs: Decode, total: float, contexts: Floats) -> Layer:
    """Devices apart, but the pool takes a batch of every group in one call: not the paper's system, and a bound.

    ``max(2 G, S, 2 M(D b), 2 receive(D b), 2 send(D b))``: two calls a layer, each of half of all sequences.
    """
    apart = asynchronous_layer(costs, total, contexts)
    together = total / 2
    experts = costs.experts_s(together)
    t1, _, _, t5 = costs.transfers_s(apart.sequences)
    _, t2, t4, _ = costs.transfers_s(together)
    limits = apart.limits | {
        "latency": apart.attention_s + t1 + t2 + experts + t4 + t5,
        "experts": 2 * experts,
        "pool's transfers": 2 * max(t2, t4),
    }
    transfers = t1 + t2 + t4 + t5
    return Layer(apart.sequences, apart.attention_s, transfers, experts, limits, max(limits.values()))


def followed(costs: Decode, total: float, contexts: Floats, batches: int = 2, seed: int = 1) -> float:
    """Seconds a layer by the graph engine, contexts of every batch and step drawn anew; so many batches a group.

    A batch stands for one prompt of as many tokens as it has sequences, with so much cached that attention takes what
    its contexts cost. All batches of a run are alike but for that.
    """
    layout = costs.layout
    slots = batches if layout.kind == "asap" else 1
    batch = round(total / (slots * layout.D))
    count = _STEPS * slots * layout.D
    each = costs.context_s(contexts)
    drawn = np.random.default_rng(seed).choice(each, size=(count, batch)).sum(axis=1)
    fixed = costs.attention_s(batch, 0.0)
    seen = np.rint(drawn / (_UNIT * batch)).astype(np.int64)  # s + p of the prompt that stands for the batch
    cached = np.maximum(seen - batch, 0) // 2
    requests = make_requests(np.zeros(count), cached + batch, cached)
    experts = costs.experts_s(batch if layout.kind == "asap" else batch * layout.D)
    send, receive, back, end = (Affine(time, 0.0) for time in costs.transfers_s(batch))
    layers = costs.architecture.layers
    law = LayerCosts(Quadratic(fixed, 0.0, _UNIT), send, receive, Plateau(experts, 0.0), back, end, layers=layers)
    policy = Policy(
        min_batch_tokens=batch,
        max_batch_tokens=batch,
        exclusive_tokens=int(requests.prompt.max()),
        batch_window=0.0,
        pairing="rolling",
        dual_batch=slots == 2,
    )
    done = np.sort(run(layout, policy, law, requests).outcome.end)
    first, last = int(0.1 * count), int(0.9 * count)
    return slots * layout.D * float(done[last] - done[first]) / (last - first) / layers
