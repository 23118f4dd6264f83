"""How much the queueing engine does before its first answer: in full for an answer, quick for thousands of them.

Loads and walks trade time against error. Both efforts follow the same method, and the errors of both against the graph
engine are in `docs/engines.md`. A third, rough effort is for a first look at tens of thousands of systems only
(`asapmodel.engines.rough`): what it finds worth a second look is looked at again.
"""

from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["CLOSE", "EFFORTS", "FULL", "QUICK", "ROUGH", "STEADY", "Effort", "EffortName", "at_loads"]

EffortName = Literal["full", "quick"]


@dataclass(frozen=True, slots=True)
class Effort:
    """Lengths of walks.

    Attributes
    ----------
    layers : int
        Asynchronous: MoE layers that stand for all (`free_layers`).
    walks : tuple of (load, prompts)
        Asynchronous: loads relative to saturation, and prompts of the walk at each where batches hold few.
    longest : float
        Asynchronous: how many times that where batches hold many.
    batches, batches_per_slot, rounds : int
        Asynchronous: batches of the backlog to follow, at least so many a slot; rounds of the deck to begin with.
    step : int
        Asynchronous: unit of the lengths of walks, so that scenarios share their sequences.
    skip, drop : int
        Prompts left out at the start of a walk, where the system is empty, and at its end, where nobody follows.
    stride : int
        Asynchronous: every how many of the prompts between one is kept.
    lattice : int
        Points of the lattice on which the wait in the reference queue is solved; half as many at light load.
    lockstep_light : (int, int)
        Synchronous: prompts of the walks at the two lightest loads, and every how many of them one is kept; of 0
        prompts there are no such walks.
    lockstep_walks : tuple of (load, prompts, stride)
        Synchronous: the same at the other loads. Neighbours tell much the same, so not all are kept.
    lockstep_deck : int
        Synchronous: prompts of the backlog, at least; half as many more at most.
    limit_margin, time_margin : float
        By what factors a rate near the stability limit may be higher, and a TTFT at a share of it lower, with the full
        effort.
    """

    layers: int
    walks: tuple[tuple[float, int], ...]
    longest: float
    batches: int
    batches_per_slot: int
    rounds: int
    step: int
    skip: int
    drop: int
    stride: int
    lattice: int
    lockstep_light: tuple[int, int]
    lockstep_walks: tuple[tuple[float, int, int], ...]
    lockstep_deck: int
    limit_margin: float
    time_margin: float


FULL = Effort(
    layers=16,
    walks=((0.05, 2500), (0.15, 2500), (0.35, 3000), (0.6, 4000), (0.8, 5000), (0.9, 6000), (0.96, 7000)),
    longest=8.0,
    batches=1000,
    batches_per_slot=25,
    rounds=3,
    step=500,
    skip=200,
    drop=50,
    stride=2,
    lattice=2048,
    lockstep_light=(6000, 2),
    lockstep_walks=((0.35, 3500, 1), (0.6, 8000, 2), (0.8, 16000, 4), (0.9, 24000, 6), (0.96, 24000, 6)),
    lockstep_deck=16384,
    limit_margin=1.0,
    time_margin=1.0,
)

QUICK = Effort(
    layers=6,
    walks=((0.15, 600), (0.5, 800), (0.8, 1200), (0.93, 1400)),
    longest=8.0,
    batches=300,
    batches_per_slot=8,
    rounds=1,
    step=100,
    skip=200,
    drop=50,
    stride=2,
    lattice=2048,
    lockstep_light=(1000, 1),
    lockstep_walks=((0.5, 1500, 1), (0.8, 2500, 1), (0.93, 4000, 2)),
    lockstep_deck=4096,
    limit_margin=1.08,
    time_margin=1.15,
)

STEADY = replace(QUICK, batches=1000, batches_per_slot=25, rounds=3, lockstep_deck=16384)
"""Quick walks below a stability limit of the full effort: for a search, which roughness would lead astray."""

CLOSE = replace(
    FULL,
    walks=QUICK.walks,
    step=QUICK.step,
    lockstep_light=QUICK.lockstep_light,
    lockstep_walks=QUICK.lockstep_walks,
    limit_margin=1.01,
    time_margin=1.12,
)
"""The stability limit of the full effort, and walks as long as quick ones through as many layers as full ones."""

ROUGH = Effort(
    layers=3,
    walks=((0.15, 400), (0.5, 450), (0.9, 500)),
    longest=40.0,
    batches=100,
    batches_per_slot=8,
    rounds=1,
    step=100,
    skip=100,
    drop=25,
    stride=1,
    lattice=512,
    lockstep_light=(0, 1),
    lockstep_walks=((0.5, 800, 1), (0.9, 1000, 1)),
    lockstep_deck=2048,
    limit_margin=1.1,
    time_margin=1.3,
)
"""One or two walks of some hundred prompts through three layers, at loads that are chosen for the question."""

_LOCAL = Effort(
    layers=6,
    walks=(),
    longest=8.0,
    batches=1000,
    batches_per_slot=16,
    rounds=2,
    step=100,
    skip=200,
    drop=50,
    stride=2,
    lattice=2048,
    lockstep_light=(0, 1),
    lockstep_walks=(),
    lockstep_deck=8192,
    limit_margin=1.06,
    time_margin=1.12,
)
_LOCAL_WALK, _LOCAL_LOCKSTEP = 2000, (20000, 4)

EFFORTS: dict[EffortName, Effort] = {"full": FULL, "quick": QUICK}


def at_loads(loads: tuple[float, ...]) -> Effort:
    """An effort with walks at these loads and no others, to see what a small change does there.

    Parameters
    ----------
    loads : tuple of float
        Ascending, between 0 and 1.
    """
    return replace(
        _LOCAL,
        walks=tuple((load, _LOCAL_WALK) for load in loads),
        lockstep_walks=tuple((load, *_LOCAL_LOCKSTEP) for load in loads),
    )
