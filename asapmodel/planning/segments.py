"""Segments: classes of prompts cut into ranges of length, so that each range may go to pools of its own.

Cuts are those of the fleet (`split_at`) and the longest prompts of the types: above it a type takes none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Prompts
from asapmodel.engines.problem import POINTS, prompts_of
from asapmodel.planning.demand import Demand, PromptClass
from asapmodel.scenario_workload import Values, WorkloadTable
from asapmodel.workload import length_law

__all__ = ["Mix", "Segment", "busiest_hours", "mix_of", "segments_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_RAREST = 1e-6  # share of a class below which a range counts as empty
_FINE = 1e-9  # of a rate: what counts as the same


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Prompts of a class from `shortest` to `longest` tokens; `rates` by hour, requests/s."""

    origin: PromptClass
    shortest: int
    longest: int
    rates: Floats
    workload: WorkloadTable
    whole: bool

    @property
    def name(self) -> str:
        """The class, with the range where it is only a part."""
        if self.whole:
            return self.origin.name
        return f"{self.origin.name} {self.shortest:,}-{self.longest:,}"


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Equally likely prompts of several segments, ascending in tokens to compute, and the class of each."""

    prompts: Prompts
    origin: tuple[str, ...]
    member: Ints

    @property
    def tokens(self) -> Floats:
        """Tokens to compute."""
        return (self.prompts.prompt - self.prompts.cached).astype(np.float64)


def segments_of(demand: Demand) -> list[Segment]:
    """The classes cut at all lengths that matter, in order of class and length; empty ranges are left out."""
    cuts = {*demand.fleet.split_at, *(one.longest for one in demand.types.values())}
    return [part for one in demand.classes.values() for part in _parts(one, sorted(cuts))]


def _parts(one: PromptClass, cuts: list[int]) -> list[Segment]:
    low, high = one.workload.min_prompt_tokens, one.workload.max_prompt_tokens
    edges = [low - 1, *(cut for cut in cuts if low <= cut < high), high]
    law = length_law(one.workload)
    below = np.concatenate([[0.0], law.cdf(np.array(edges[1:-1], dtype=np.float64) + 0.5), [1.0]])
    kept = [k for k in range(len(edges) - 1) if below[k + 1] - below[k] > _RAREST]
    found = []
    for k in kept:
        start, end = edges[k] + 1, edges[k + 1]
        workload = _within(one.workload, start, end)
        share = float(below[k + 1] - below[k])
        found.append(Segment(one, start, end, share * one.rates, workload, len(kept) == 1))
    return found


def _within(workload: WorkloadTable, start: int, end: int) -> WorkloadTable:
    """The workload with other bounds."""
    change: dict[str, object] = {"min_prompt_tokens": start, "max_prompt_tokens": end}
    if isinstance(workload.lengths, Values):
        change["lengths"] = Values(values=tuple(n for n in workload.lengths.values if start <= n <= end))
    return workload.model_copy(update=change)


def mix_of(segments: list[Segment], weights: Floats, points: int = POINTS) -> Mix:
    """Equally likely prompts of segments that come in these proportions.

    Each gets its number of the `points` by largest remainder, one at least; so a share is off by 1/`points` at most.
    """
    exact = points * np.asarray(weights) / np.sum(weights)
    counts = np.maximum(np.floor(exact), 1.0).astype(np.int64)
    for k in np.argsort(counts - exact)[: max(points - int(counts.sum()), 0)]:
        counts[k] += 1
    origin = tuple(dict.fromkeys(one.origin.name for one in segments))
    rows = [prompts_of(one.workload, int(count)) for one, count in zip(segments, counts, strict=True)]
    prompt, cached = (np.concatenate(column) for column in zip(*rows, strict=True))
    member = np.repeat([origin.index(one.origin.name) for one in segments], counts)
    order = np.argsort(prompt - cached, kind="stable")
    return Mix(Prompts(prompt[order], cached[order]), origin, member[order])


def busiest_hours(segments: list[Segment]) -> Mapping[int, int]:
    """For every hour one that is at least as busy in every segment, and is beaten by none.

    A fleet that carries the latter carries the former: fewer arrivals wait less. Only those need be planned for.
    """
    rates = np.array([one.rates for one in segments])
    totals = rates.sum(axis=0)
    kept: list[int] = []
    found = {}
    for hour in sorted(range(rates.shape[1]), key=lambda h: (-totals[h], h)):
        above = [k for k in kept if np.all(rates[:, k] >= rates[:, hour] * (1.0 - _FINE))]
        if above:
            found[hour] = above[0]
        else:
            kept.append(hour)
            found[hour] = hour
    return dict(sorted(found.items()))
