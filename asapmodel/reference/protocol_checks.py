"""Checks of the protocol, short: random interleavings, all interleavings of small systems, and broken primitives."""

from collections.abc import Iterable

import numpy as np

from asapmodel.reference.broken import BROKEN
from asapmodel.reference.controlled import Controlled, by_rank
from asapmodel.reference.exploration import Exploration
from asapmodel.reference.processes import run_processes
from asapmodel.reference.random_systems import draw
from asapmodel.reference.small_system import SmallSystem, collect, small_system
from asapmodel.reference.steps import Send
from asapmodel.reference.watched_memory import WatchedMemory

__all__ = ["every_interleaving", "mistakes", "processes", "random_interleavings"]

TENSOR_TOLERANCE = 1e-10


def random_interleavings(seeds: Iterable[int]) -> tuple[bool, str]:
    """Small systems in random orders: results equal bit for bit and to the truth, memory used as it should be."""
    runs = 0
    first: dict[int, bytes] = {}
    wrong: list[str] = []
    for seed in seeds:
        kind = seed % 4
        small = small_system(
            2, 1 + kind % 2, 2, layers=2, batches=2, tokens=4, top=2, overlap_moe=kind > 1, overlap_attention=kind > 1
        )
        rows, problems = _run(small, np.random.default_rng(seed))
        runs += 1
        wrong += problems
        if first.setdefault(kind, rows) != rows:
            wrong.append(f"interleaving {seed} gives other bits")
    return not wrong, wrong[0] if wrong else f"{runs} interleavings: final rows equal bit for bit and to the truth"


def _run(small: SmallSystem, random: np.random.Generator) -> tuple[bytes, list[str]]:
    memory = WatchedMemory(small.shape)
    for channel, task in small.messages:
        memory.carry_out(Send(channel, task))
    answers: list[tuple[int, int, np.ndarray]] = []
    workers = {name: small.start(name) for name in small.names}
    workers["scheduler",] = collect(small.answers, answers)
    Controlled(workers, memory, by_rank(random), any_condition=True).run()
    ordered = sorted(answers, key=lambda one: one[:2])
    return b"".join(rows.tobytes() for _, _, rows in ordered), small.wrong_rows(answers) + memory.left_over()


def every_interleaving() -> tuple[bool, str]:
    """All interleavings of two groups with two batches each and two MoE devices."""
    found = []
    for overlap in (False, True):
        small = small_system(2, 1, 2, tokens=1, overlap_moe=overlap)
        found.append(Exploration(small, any_condition=True).run())
    passed = all(one.exhausted and one.violation is None for one in found)
    wrong = next((one.violation for one in found if one.violation), None)
    states = sum(one.states for one in found)
    return passed, wrong or f"D = 2, E = 2, one stream and three: {states:,} states, no violation, no deadlock"


def mistakes() -> tuple[bool, str]:
    """Every broken variant is caught."""
    missed = []
    for name, primitives in BROKEN.items():
        D, T = (2, 1) if name == "hasty dispatch" else (1, 2)
        small = small_system(D, T, 2, tokens=T, overlap_moe=True, primitives=primitives)
        if Exploration(small, any_condition=True).run(max_seconds=60.0).violation is None:
            missed.append(name)
    return not missed, f"not noticed: {', '.join(missed)}" if missed else f"{len(BROKEN)} of {len(BROKEN)} caught"


def processes(seeds: Iterable[int], requests: int) -> tuple[bool, str]:
    """Both systems as operating-system processes."""
    worst = 0.0
    count = 0
    for seed in seeds:
        for drawn in (draw("asap", seed, requests), draw("sync", seed, requests)):
            outputs = run_processes(drawn.model, drawn.layout, drawn.policy, drawn.prompts).journal.outputs()
            layout = drawn.layout
            count += layout.D * layout.T + (layout.E if layout.kind == "asap" else 0)
            errors = [float(np.abs(outputs[one.index] - drawn.model.truth(one)).max()) for one in drawn.prompts]
            worst = max(worst, *errors)
    return worst <= TENSOR_TOLERANCE, f"{count} processes in turn: tensors within {worst:.1g}"
