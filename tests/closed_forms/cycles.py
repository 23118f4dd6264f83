"""Cycle times measured on the graph engine: long chains of two batches on one group."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.graph import run
from asapmodel.policy import Layout, Policy
from asapmodel.systems.arrays import make_requests

ONE_GROUP = Layout("asap", 1, 1, 1)
LETTERS = ("A", "t1", "t2", "M", "t4", "t5")


def pair_policy(pool: bool = True, group: bool = False) -> Policy:
    """Two prompts are released together, each a batch of its own."""
    return Policy(
        min_batch_tokens=10**6,
        max_batch_tokens=1,
        exclusive_tokens=10**9,
        batch_window=1.0,
        overlap_moe=pool,
        overlap_attention=group,
    )


def constant_costs(phases: NDArray[np.float64]) -> LayerCosts:
    """Costs that do not depend on the batch."""
    A, t1, t2, M, t4, t5 = (float(x) for x in phases)
    return LayerCosts(
        Quadratic(A, 0.0, 0.0), Affine(t1, 0.0), Affine(t2, 0.0), Plateau(M, 0.0), Affine(t4, 0.0), Affine(t5, 0.0)
    )


def measured_cycle(costs: LayerCosts, policy: Policy, prompts: tuple[int, ...], near: int = 240) -> float:
    """Time per layer of a set of prompts that start together, between `near` and three times as many layers."""
    ends = []
    for layers in (near, 3 * near):
        requests = make_requests(np.zeros(len(prompts)), np.array(prompts))
        ends.append(run(ONE_GROUP, policy, replace(costs, layers=layers), requests).outcome.end.max())
    return float(ends[1] - ends[0]) / (2 * near)


def random_phases(rng: np.random.Generator) -> NDArray[np.float64]:
    """Six positive phases of widely different sizes."""
    phases: NDArray[np.float64] = rng.exponential(1.0, 6) * rng.choice([0.1, 1.0, 3.0], 6)
    return phases


def named(phases: NDArray[np.float64], suffix: str = "") -> dict[str, float]:
    return {f"{name}{suffix}": float(x) for name, x in zip(LETTERS, phases, strict=True)}


def measured_throughput(
    costs: LayerCosts, layout: Layout, policy: Policy, prompts: NDArray[np.int64], layers: int
) -> float:
    """Batches of one prompt per layer time of a backlog: completions in the middle half of the run."""
    requests = make_requests(np.zeros(len(prompts)), prompts)
    ends = np.sort(run(layout, policy, replace(costs, layers=layers), requests).outcome.end)
    low, high = len(ends) // 4, 3 * len(ends) // 4
    return float((high - low) / (ends[high] - ends[low])) * layers


def backlog_policy(pool: bool = True, group: bool = False, pairing: str = "rolling") -> Policy:
    """Batches of one prompt each, released as soon as there is a slot."""
    assert pairing in ("locked", "rolling")
    locked = replace(pair_policy(pool, group), min_batch_tokens=1)
    return locked if pairing == "locked" else replace(locked, pairing="rolling")
