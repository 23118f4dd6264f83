"""Random small systems that a tiny model can run: layouts, policies, costs and prompts, all switches both ways."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.devices import Model, make_model
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.weights import Config

__all__ = ["Drawn", "draw"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drawn:
    """One random system."""

    layout: Layout
    policy: Policy
    costs: LayerCosts
    prompts: tuple[Prompt, ...]
    model: Model


def draw(kind: Literal["sync", "asap"], seed: int, requests: int) -> Drawn:
    """Draw a system; the same one for the same seed.

    Parameters
    ----------
    kind : {"sync", "asap"}
        Synchronous, with whole prompts or chunks; or asynchronous, `D T = E` or not.
    seed : int
        Not negative.
    requests : int
        Prompts, in about one case of five all at once.
    """
    return _lockstep(seed, requests) if kind == "sync" else _free(seed, requests)


def _free(seed: int, requests: int) -> Drawn:
    random = np.random.default_rng(seed)

    def around(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    def affine() -> Affine:
        return Affine(around(1e-5, 1e-3), around(1e-6, 1e-4))

    dense = int(random.integers(0, 3))
    layers = dense + int(random.integers(1, 5))
    attention = Quadratic(around(1e-4, 1e-2), around(1e-5, 1e-3), around(1e-7, 1e-5))
    experts = Plateau(around(1e-4, 1e-2), around(1e-5, 1e-3))
    costs = LayerCosts(
        attention,
        affine(),
        affine(),
        experts,
        affine(),
        affine(),
        host_dispatch=around(1e-4, 1e-3),
        layers=layers,
        dense_layers=dense,
        dense=affine(),
        step_overhead=float(random.choice([0.0, 1e-3])),
    )
    policy = Policy(
        min_batch_tokens=int(random.integers(1, 24)),
        max_batch_tokens=int(random.integers(8, 40)),
        exclusive_tokens=int(random.integers(6, 40)),
        batch_window=float(random.choice([0.0, 0.01, 0.05])),
        pairing=random.choice(["locked", "rolling"]),
        dual_batch=bool(random.random() < 0.7),
        overlap_moe=bool(random.random() < 0.6),
        overlap_attention=bool(random.random() < 0.4),
        super_kernel=bool(random.random() < 0.5),
    )
    D, T, E = int(random.integers(1, 5)), int(random.choice([1, 2, 4])), int(random.choice([1, 2, 4, 8]))
    lengths = random.integers(1, 32, requests)
    cached = np.where(random.random(requests) < 0.3, random.integers(0, 32, requests) % lengths, 0)
    arrival = np.cumsum(random.exponential(around(1e-3, 0.1), requests)) * (random.random() < 0.8)
    prompts = tuple(Prompt(k, float(arrival[k]), int(lengths[k]), int(cached[k])) for k in range(requests))
    model = make_model(Config(layers=layers, dense_layers=dense), prompts, seed)
    return Drawn(Layout("asap", D, T, E), policy, costs, prompts, model)


def _lockstep(seed: int, requests: int) -> Drawn:
    drawn = _free(seed, requests)
    random = np.random.default_rng([seed, 1])
    layout = Layout("sync", drawn.layout.D, drawn.layout.T, drawn.layout.D * drawn.layout.T)
    chunk = int(random.choice([0, 0, 5, 9, 16]))
    policy = replace(drawn.policy, chunk_tokens=chunk, balance=random.choice(["tokens", "work"]))
    config = replace(drawn.model.config, experts=layout.E * int(random.integers(2, 4)))
    model = make_model(config, drawn.prompts, seed)
    return replace(drawn, layout=layout, policy=policy, model=model)
