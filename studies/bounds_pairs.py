"""How often the steady state of two batches in a group depends on their start, and what a stream's order costs."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.batches import form_batches
from asapmodel.circuits.floor import layer_floor
from asapmodel.circuits.follow import follow
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.engines.walk_sequences import even_deck
from asapmodel.studies.engines_cases import Case
from asapmodel.systems.arrays import make_requests

__all__ = ["STREAMS", "PairRow", "drawn_pairs", "follow_pairs", "pairs_of_cases"]

Floats = NDArray[np.float64]

STREAMS = ((False, True), (False, False), (True, False), (True, True))
"""Whether attention and MoE devices have three streams; the paper's system first."""

_OFFSETS = 8


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two batches: seconds a layer by offset, the first 0; the order-free floor; layers of the longest period."""

    layer_s: tuple[float, ...]
    floor_s: float
    turns: int

    @property
    def spread(self) -> float:
        """Slowest over fastest steady state, less 1."""
        return max(self.layer_s) / min(self.layer_s) - 1

    @property
    def excess(self) -> float:
        """What two batches that start together take beyond the floor, relative."""
        return self.layer_s[0] / self.floor_s - 1


def drawn_pairs(count: int, seed: int) -> Iterator[Floats]:
    """Phases that are exponential, each with a scale of its own; every second pair is of batches alike."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        phases = rng.exponential(size=(2, 6)) * rng.choice([0.1, 1.0, 3.0], size=6)
        if k % 2:
            phases[1] = phases[0] * rng.uniform(0.8, 1.25)
        yield phases


def pairs_of_cases(cases: list[Case], each: int) -> Iterator[Floats]:
    """Phases of consecutive batches that random systems form from their own prompts."""
    for case in cases:
        problem = case.problem
        rows = even_deck(len(problem.prompts.prompt), 1)
        waiting = make_requests(np.zeros(len(rows)), problem.prompts.prompt[rows], problem.prompts.cached[rows])
        batches = form_batches(problem.layout, problem.policy, waiting)
        host = exposed_host_dispatch(problem.layout, problem.policy, problem.costs)
        phases = np.stack(problem.costs.phases(batches.n, batches.w, host), axis=1)
        both = [k for k in range(len(phases) - 1) if not batches.exclusive[k] and not batches.exclusive[k + 1]]
        for k in both[:: max(len(both) // each, 1)][:each]:
            yield phases[k : k + 2]


def follow_pairs(pairs: Iterator[Floats], overlap_attention: bool, overlap_moe: bool) -> list[PairRow]:
    """Steady states of pairs for evenly spaced offsets over the first batch's layer."""
    rows = []
    for phases in pairs:
        offsets = np.arange(_OFFSETS) * phases[0].sum() / _OFFSETS
        found = [follow(phases, overlap_attention, overlap_moe, float(offset)) for offset in offsets]
        layer_s = tuple(one.period_s / one.turns for one in found)
        floor = layer_floor(phases, overlap_attention, overlap_moe)
        rows.append(PairRow(layer_s, max(floor.values()), max(one.turns for one in found)))
    return rows
