"""The pools that could be: a type of instance and the segments it serves; and a first guess of what each needs.

A pool serves the same share of every one of its segments at an hour, so that its mix is known before the program is
solved. Every set of segments is a candidate with every type that takes its longest prompts: up to `_MOST_SETS` sets,
the small ones first, and the whole demand always. A class none of whose ranges is left out is a set like any other, so
pools by class, by length, by both and shared by all are among them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from asapmodel.planning.demand import Demand, InstanceType
from asapmodel.planning.instance import Instance, costs_of
from asapmodel.planning.segments import Segment, mix_of

__all__ = ["Guess", "Pool", "guess_of", "guessed_need", "pools_of"]

Floats = NDArray[np.float64]

_MOST_SETS = 256
_LOAD = 0.8  # of the stability limit: where the guess looks at waiting
_LEAST_BUDGET = 0.1  # of an objective: a guess is no verdict, so some waiting is always allowed


@dataclass(frozen=True, slots=True)
class Pool:
    """Instances of a type that serve some of the segments, by their places in the list."""

    kind: str
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Guess:
    """What is known of a segment alone on a type.

    `work` is seconds of an instance a prompt, `wait` the coefficient `v` of the mean wait `r v / (1 - r work)` at a
    rate `r`, `lone` the mean TTFT of a prompt that meets no other.
    """

    work: float
    wait: float
    lone: float


def pools_of(demand: Demand, segments: Sequence[Segment]) -> list[Pool]:
    """All candidates, in a fixed order."""
    return [
        Pool(name, chosen)
        for chosen in _sets(len(segments))
        for name, kind in demand.types.items()
        if max(segments[k].longest for k in chosen) <= kind.longest
    ]


def _sets(count: int) -> Iterator[tuple[int, ...]]:
    every = tuple(range(count))
    smaller = chain.from_iterable(combinations(every, size) for size in range(1, count))
    for _, chosen in zip(range(_MOST_SETS), smaller, strict=False):
        yield chosen
    yield every


def guess_of(kind: InstanceType, segment: Segment) -> Guess:
    """Analyse a segment alone, quickly; Poisson arrivals."""
    mix = mix_of([segment], np.ones(1))
    one = Instance(kind, costs_of(kind, mix), mix, 1.0, {segment.origin.name: segment.origin.slo}, "quick")
    lone = one.analysis.at(1e-3 * one.limit).ttft.mean
    wait = max(one.analysis.at(_LOAD * one.limit).ttft.mean - lone, 0.0)
    return Guess(1.0 / one.limit, wait * (1.0 - _LOAD) / (_LOAD * one.limit), lone)


def guessed_need(parts: Sequence[Segment], guesses: Sequence[Guess], rates: Floats) -> float:
    """Instances that a pool needs at these rates, requests/s, by the rule of one server.

    At rates `r_s` the mean wait of a single server (Pollaczek and Khinchine) is `sum r_s v_s / (1 - sum r_s b_s)` with
    work `b_s` and `v_s = E[S^2] / 2`. It stays within `w` if and only if `sum r_s (b_s + v_s / w) <= 1`, which is
    linear: exact for one server and mean objectives. `w` is what a class's objective leaves beside the time of a lone
    prompt; a quantile `q` is taken to be `-log(1 - q)` mean waits. A guess only: it decides what is looked at first.
    """
    work = sum(rate * one.work for rate, one in zip(rates, guesses, strict=True))
    wait = sum(rate * one.wait for rate, one in zip(rates, guesses, strict=True))
    worst = 0.0
    for origin in {part.origin.name: part.origin for part in parts}.values():
        own = [k for k, part in enumerate(parts) if part.origin is origin]
        share = origin.slo.quantile
        factor = 1.0 if share is None else max(-math.log1p(-share), 1e-3)
        if not np.any(rates[own] > 0):
            continue
        lone = float(np.average([guesses[k].lone for k in own], weights=rates[own]))
        budget = max(origin.slo.ttft - lone, _LEAST_BUDGET * origin.slo.ttft)
        worst = max(worst, wait * factor / budget)
    return float(work + worst)
