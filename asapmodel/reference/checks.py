"""Checks of the reference system, each with a verdict and a figure: what `asapmodel validate` runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter

import numpy as np

from asapmodel.engines.graph import run
from asapmodel.reference.asynchronous import VirtualRun, run_asynchronous
from asapmodel.reference.buffers import Shape, attention_sizes, moe_sizes
from asapmodel.reference.random_systems import Drawn, draw
from asapmodel.reference.super_kernel import SuperKernel
from asapmodel.reference.synchronous import run_synchronous
from asapmodel.systems.arrays import make_requests

__all__ = ["Check", "Outcome", "agreement", "buffers", "execute", "out_of_order", "same_requests"]

TIME_TOLERANCE, TENSOR_TOLERANCE = 1e-9, 1e-10
"""Seconds, and absolute difference of hidden states, which are of the order of 1."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdict of a check, what was found in words, and how long it took."""

    name: str
    passed: bool
    found: str
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A check to run: a name, and a function that gives the verdict and what was found."""

    name: str
    ask: Callable[[], tuple[bool, str]]

    def run(self) -> Outcome:
        """Run it and take the time."""
        start = perf_counter()
        passed, found = self.ask()
        return Outcome(self.name, passed, found, perf_counter() - start)


def execute(drawn: Drawn) -> VirtualRun:
    """Run a random system in virtual time."""
    runner = run_synchronous if drawn.layout.kind == "sync" else run_asynchronous
    return runner(drawn.model, drawn.layout, drawn.policy, drawn.costs, drawn.prompts)


def same_requests(drawn: Drawn, found: VirtualRun) -> tuple[float, float]:
    """Largest difference from the graph engine's starts and ends, seconds, and from the monolithic pass."""
    prompts = drawn.prompts
    columns = ([one.arrival for one in prompts], [one.tokens for one in prompts], [one.cached for one in prompts])
    outcome = run(drawn.layout, drawn.policy, drawn.costs, make_requests(*map(np.array, columns))).outcome
    times = np.array([found.journal.times()[one.index] for one in prompts])
    expected = np.stack([outcome.start, outcome.end], axis=1)
    outputs = found.journal.outputs()
    tensors = max(float(np.abs(outputs[one.index] - drawn.model.truth(one)).max()) for one in prompts)
    return float(np.abs(times - expected).max()), tensors


def buffers() -> tuple[bool, str]:
    """Table 2 of the paper."""
    shape = Shape(D=4, T=4, E=16, E_total=256, K=8, H=7168, S=32768, itemsize=2)
    attention, moe = attention_sizes(shape), moe_sizes(shape)
    found = (attention.index / 2**10, attention.payload / 2**30, moe.payload / 2**30)
    small = max(attention.flags, moe.index, moe.flags)
    return (
        found == (64.0, 0.875, 14.0) and small < 1024,
        f"{found[0]:g} KiB of expert ids, {found[1]:g} GiB of results, {found[2]:g} GiB of tokens, others under 1 KiB",
    )


def agreement(kind: str, seeds: Sequence[int], requests: int) -> tuple[bool, str]:
    """Random systems against the graph engine and the monolithic pass."""
    assert kind in ("sync", "asap")
    worst = np.zeros(2)
    for seed in seeds:
        drawn = draw("sync" if kind == "sync" else "asap", seed, requests)
        worst = np.maximum(worst, same_requests(drawn, execute(drawn)))
    return (
        bool(worst[0] <= TIME_TOLERANCE and worst[1] <= TENSOR_TOLERANCE),
        f"{len(seeds)} systems, {len(seeds) * requests} requests: times within {worst[0]:.1g} s, "
        f"tensors within {worst[1]:.1g}",
    )


def out_of_order(seeds: Sequence[int], requests: int) -> tuple[bool, str]:
    """Layers on the MoE side in an order that no host can know, and the super kernel dispatched once all the same."""
    back = batches = 0
    dispatched = set()
    for seed in seeds:
        found = execute(draw("asap", seed, requests))
        for expert in found.experts:
            layers = [layer for _, layer in expert.order]
            batches += len(layers)
            last = max(layers)
            back += sum(later < earlier < last for earlier, later in pairwise(layers))
            if isinstance(expert.kernel, SuperKernel):
                dispatched.add(expert.kernel.dispatches.count)
    return (
        back > 0 and dispatched == {1},
        f"{back} of {batches} layers come right after a later one of another batch; super kernel dispatched once",
    )
