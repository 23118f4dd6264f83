"""Random small systems: layouts, policies, costs and prompts that a tiny model can run."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout, Policy
from asapmodel.reference.devices import Model, make_model
from asapmodel.reference.scheduler import Prompt
from asapmodel.reference.weights import Config

__all__ = ["Drawn", "asynchronous", "synchronous"]


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One random system."""

    layout: Layout
    policy: Policy
    costs: LayerCosts
    prompts: tuple[Prompt, ...]
    model: Model


def _draw(seed: int, requests: int) -> Drawn:
    """Everything but the kind of the system; all switches both ways."""
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


def asynchronous(requests: int = 20) -> st.SearchStrategy[Drawn]:
    """Asynchronous systems, D T = E or not."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _draw(seed, requests))


def synchronous(requests: int = 20) -> st.SearchStrategy[Drawn]:
    """Synchronous systems, whole prompts or chunks."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _lockstep(seed, requests))


def _lockstep(seed: int, requests: int) -> Drawn:
    drawn = _draw(seed, requests)
    random = np.random.default_rng([seed, 1])
    layout = Layout("sync", drawn.layout.D, drawn.layout.T, drawn.layout.D * drawn.layout.T)
    chunk = int(random.choice([0, 0, 5, 9, 16]))
    policy = replace(drawn.policy, chunk_tokens=chunk, balance=random.choice(["tokens", "work"]))
    config = replace(drawn.model.config, experts=layout.E * int(random.integers(2, 4)))
    model = make_model(config, drawn.prompts, seed)
    return replace(drawn, layout=layout, policy=policy, model=model)
