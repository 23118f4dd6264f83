"""Comparisons of decode: who serves how many sequences in time, which split is best, where the systems cross."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from asapmodel.circuits.batches import form_iterations
from asapmodel.costing import length_grid
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.policy import Layout
from asapmodel.scenario import Scenario
from asapmodel.studies.decode_costs import Decode, decode_of
from asapmodel.studies.decode_layers import Layer, asynchronous_layer, lockstep_layer, single_layer
from asapmodel.systems.arrays import make_requests
from asapmodel.verbs.evaluate import prepare

__all__ = ["MOST", "Case", "best_split", "crossover", "draw_case", "prefill_variation", "within"]

Floats = NDArray[np.float64]
Law = Callable[[Decode, float, Floats], Layer]

MOST = 1e6
"""Sequences up to which a crossover is looked for."""

_FEWEST = 12  # MoE devices that hold the experts: with fewer they do not fit


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One comparison on 32 devices: layouts, contexts in tokens, and sequences that fit into both systems' memory."""

    name: str
    lockstep: Decode
    free: Decode
    contexts: Floats
    fits: float

    @property
    def sequences(self) -> int:
        """The most that fit, in equal batches of either system."""
        share = max(2 * self.free.layout.D, self.lockstep.layout.D)
        return max(int(self.fits) // share, 1) * share


def draw_case(width: int, factor: float) -> Case:
    """Groups of `width` devices: 32 in lockstep, or 16 with 16 MoE devices; contexts as the paper's prompts, scaled."""
    lockstep = decode_of(Scenario.load("paper-default").replace(T=width, D=32 // width))
    free = decode_of(Scenario.load("paper-asap").replace(T=width, D=16 // width))
    contexts = factor * length_grid(Scenario.load("paper-asap"))
    mean = float(contexts.mean())
    fits = min(lockstep.most_sequences(mean), free.most_sequences(mean))
    return Case(f"T = {width}, contexts of {mean / 1024:.0f}k tokens", lockstep, free, contexts, fits)


def within(costs: Decode, law: Law, contexts: Floats, objective: float) -> float:
    """Most sequences that fit the memory with a token in at most `objective` seconds; 0 if none do.

    The time of a token grows with the sequences.
    """
    layers = costs.architecture.layers

    def late(logarithm: float) -> float:
        return layers * law(costs, float(np.exp(logarithm)), contexts).cycle_s - objective

    most = costs.most_sequences(float(contexts.mean()))
    if most < 1 or late(0.0) > 0:
        return 0.0
    if late(np.log(most)) <= 0:
        return most
    return float(np.exp(brentq(late, 0.0, np.log(most), xtol=1e-4)))


@cache
def best_split(case: Case, objective: float) -> tuple[float, int, int]:
    """Most sequences that the asynchronous system serves in time on the same devices, with which D and batches a group.

    T is kept; batches are two, or one (no dual batching).
    """
    width, devices = case.free.layout.T, case.free.layout.devices
    found = []
    for groups in range(1, (devices - _FEWEST) // width + 1):
        layout = Layout("asap", groups, width, devices - groups * width)
        costs = replace(case.free, layout=layout)
        for batches, law in ((1, single_layer), (2, asynchronous_layer)):
            found.append((within(costs, law, case.contexts, objective), groups, batches))
    return max(found)


def crossover(case: Case) -> float:
    """Fewest sequences from which on the asynchronous system is faster, memory ignored; infinite if it never is."""
    grid = np.geomspace(32, MOST, 100)
    faster = [
        asynchronous_layer(case.free, float(total), case.contexts).cycle_s
        <= lockstep_layer(case.lockstep, float(total), case.contexts).cycle_s
        for total in grid
    ]
    if not faster[-1]:
        return float("inf")
    slower = np.flatnonzero(~np.array(faster))
    return float(grid[slower[-1] + 1]) if slower.size else float(grid[0])


def prefill_variation() -> float:
    """Coefficient of variation of a group's attention in an iteration of `paper-default` under a backlog."""
    ready = prepare(Scenario.load("paper-default"))
    prompts = ready.problem.prompts
    order = even_deck(len(prompts.prompt), 2)
    waiting = make_requests(np.zeros(len(order)), prompts.prompt[order], prompts.cached[order])
    costs = ready.costing.costs
    formed = form_iterations(ready.scenario.layout, ready.scenario.policy, costs, waiting)
    times = costs.attention(formed.n, formed.w)[formed.n > 0]
    return float(times.std() / times.mean())
