"""What is known of the candidates: guesses at first, then what the queueing engine says of those that matter.

Candidates are analysed at their heaviest hour, which also corrects the guesses of their other hours. Guesses are low on
purpose, so that the program asks for what might be good, and its bound is one. `asapmodel.planning.settling` asks for
closer looks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from asapmodel.costs import LayerCosts
from asapmodel.engines.effort import EffortName
from asapmodel.planning.candidates import Guess, Pool, guess_of, guessed_need, pools_of
from asapmodel.planning.demand import Demand
from asapmodel.planning.instance import Instance, costs_of
from asapmodel.planning.program import FleetProblem
from asapmodel.planning.routing import flow_cv, instance_cv
from asapmodel.planning.segments import Segment, busiest_hours, mix_of, segments_of

__all__ = ["Entry", "Search"]

Floats = NDArray[np.float64]
Level = Literal["guess", "quick", "full"]
Progress = Callable[[str], None] | None

# What makes guesses low: no need was found below 0.83 of its guess, nor, where the guess is `r` times that of the
# heaviest hour, below `0.97 - 0.5 (1 - r)` of what that hour tells, but for a few by 2 %.
_LOW, _NEAR, _FAR = 0.8, 0.97, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Instances a pool needs at an hour for all its arrivals; how that is known, and behind a router to how many."""

    need: float
    level: Level
    instances: int
    instance: Instance | None = None


@dataclass(frozen=True, eq=False)
class Search:
    """A demand with all that has been found out about its candidates so far.

    Arrays over hours are over the `busy` ones only, those that no other hour beats in every segment.
    """

    demand: Demand
    time_limit: float = 60.0
    gap: float = 1e-4
    progress: Progress = None
    entries: dict[tuple[int, int], Entry] = field(default_factory=dict)
    looks: dict[tuple[int, int, int, EffortName], Entry] = field(default_factory=dict)
    _costs: dict[int, LayerCosts] = field(default_factory=dict)

    @cached_property
    def segments(self) -> list[Segment]:
        """Classes cut by length."""
        return segments_of(self.demand)

    @cached_property
    def pools(self) -> list[Pool]:
        """Candidates."""
        return pools_of(self.demand, self.segments)

    @cached_property
    def stand_in(self) -> Mapping[int, int]:
        """For every hour of the day the busy hour that is planned for in its place."""
        return busiest_hours(self.segments)

    @cached_property
    def busy(self) -> list[int]:
        """Hours that are planned for."""
        return sorted(set(self.stand_in.values()))

    @cached_property
    def rates(self) -> Floats:
        """Requests/s of every segment at every busy hour, with the forecast's error."""
        rates = np.array([one.rates for one in self.segments])[:, self.busy]
        return rates * (1.0 + self.demand.fleet.forecast_error)

    @cached_property
    def guesses(self) -> dict[tuple[str, int], Guess]:
        """Of every segment alone on every type that takes it."""
        return {
            (pool.kind, pool.segments[0]): guess_of(self.demand.types[pool.kind], self.segments[pool.segments[0]])
            for pool in self.pools
            if len(pool.segments) == 1
        }

    def rates_of(self, p: int, h: int) -> Floats:
        """Requests/s of a pool's segments."""
        return self.rates[list(self.pools[p].segments), h]

    def look(self, p: int, h: int, instances: int, effort: EffortName) -> Entry:
        """Analyse a pool at a busy hour, its arrivals divided among so many instances, and keep what is found."""
        self.entries[p, h] = self.analysed(p, h, instances, effort)
        return self.entries[p, h]

    def analysed(self, p: int, h: int, instances: int, effort: EffortName) -> Entry:
        """What a look finds, without keeping it."""
        place = (p, h, instances, effort)
        if place not in self.looks:
            self.looks[place] = self._analyse(*place)
        return self.looks[place]

    def _analyse(self, p: int, h: int, instances: int, effort: EffortName) -> Entry:
        rates = self.rates_of(p, h)
        there = np.flatnonzero(rates > 0)
        parts = [self.segments[self.pools[p].segments[k]] for k in there]
        kind, mix = self.demand.types[self.pools[p].kind], mix_of(parts, rates[there])
        if p not in self._costs:
            self._costs[p] = costs_of(kind, mix)
        cv = instance_cv(self.demand.fleet.routing, flow_cv(parts, rates[there].tolist()), instances)
        objectives = {one.origin.name: one.origin.slo for one in parts}
        instance = Instance(kind, self._costs[p], mix, cv, objectives, effort)
        need = float(rates.sum()) / instance.capacity if instance.capacity > 0 else np.inf
        return Entry(need, effort, instances, instance)

    def screen(self) -> None:
        """Look at every candidate once, but at none whose guess is above what another type was found to need."""
        found: dict[tuple[int, ...], float] = {}
        for place, p in enumerate(sorted(range(len(self.pools)), key=self._promise)):
            pool, guessed = self.pools[p], self._guessed(p)
            heaviest = max(guessed, key=lambda h: guessed[h])
            weight = self.demand.types[pool.kind].weight(self.demand.fleet.minimise)
            known = found.get(pool.segments, np.inf)
            low = {h: _LOW * need for h, need in guessed.items()}
            if weight * low[heaviest] < known:
                entry = self.look(p, heaviest, max(1, int(guessed[heaviest])), "quick")
                found[pool.segments] = min(known, weight * entry.need)
                low = {h: entry.need * _corrected(need / guessed[heaviest]) for h, need in guessed.items()}
            for h, need in low.items():
                self.entries.setdefault((p, h), Entry(need, "guess", 0))
            if self.progress is not None:
                self.progress(f"pool {place + 1} of {len(self.pools)}")

    def look_at_all_hours(self, pools: set[int]) -> None:
        """Replace all guesses of some pools: once one is wanted at an hour it mostly is at others."""
        for p, h in [place for place, entry in self.entries.items() if place[0] in pools and entry.level == "guess"]:
            self.look(p, h, max(1, int(self.entries[p, h].need)), "quick")

    def _guessed(self, p: int) -> dict[int, float]:
        """Instances that a pool may need, by busy hour at which there is something to serve."""
        parts = [self.segments[k] for k in self.pools[p].segments]
        known = [self.guesses[self.pools[p].kind, k] for k in self.pools[p].segments]
        rates = {h: self.rates_of(p, h) for h in range(len(self.busy))}
        return {h: guessed_need(parts, known, one) for h, one in rates.items() if one.sum() > 0}

    def _promise(self, p: int) -> float:
        weight = self.demand.types[self.pools[p].kind].weight(self.demand.fleet.minimise)
        return weight * max(self._guessed(p).values())

    def problem(self) -> FleetProblem:
        """The program as far as it is known."""
        if not self.entries:
            self.screen()
        fleet, types = self.demand.fleet, self.demand.types
        need = np.zeros((len(self.pools), len(self.busy)))
        for place, entry in self.entries.items():
            need[place] = entry.need
        return FleetProblem(
            pools=self.pools,
            need=need,
            active=self.rates > 0,
            weights={name: one.weight(fleet.minimise) for name, one in types.items()},
            sizes={name: one.devices for name, one in types.items()},
            available={name: one.available for name, one in types.items() if one.available is not None},
            reserve=fleet.reserve,
            supernode=fleet.supernode,
            max_supernodes=fleet.max_supernodes,
        )


def _corrected(ratio: float) -> float:
    """A need over that of the heaviest hour, by the ratio of the guesses; lower on purpose the farther from 1."""
    return ratio * (_NEAR - _FAR * (1.0 - ratio))
