"""From guesses to a verified fleet: the program and the queueing engine take turns.

The program is solved. Whatever its solution uses and has not been looked at closely enough is, and the program of the
pools wanted so far is solved again until nothing is left to look at: a verified fleet. When that is as good as the
bound of the program of all candidates, it is the answer; else that program is solved again. All this with quick looks
first, then with close ones. Verified means with the full effort of the engine where a pool works at more than 90 % of
what it can carry, with the quick one elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from asapmodel.engines.effort import EffortName
from asapmodel.planning.program import Fleet, FleetProblem, solve, undominated, with_fewer_pools
from asapmodel.planning.search import Search
from asapmodel.solvers.integer_program import Infeasible, NotSolved, Solved

__all__ = ["Settled", "settle"]

_ROUNDS = 60
_SAME = 1e-7  # relative difference of objectives that is none
_FAR_FEWER = 0.75  # of the instances there are
_QUICK_LOW = 0.975  # of a need by the quick effort: it may be as low by the full one, and for more instances
_NEARLY = 0.9  # of what a pool can carry: below, the quick effort's error cannot turn met into missed


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A verified fleet, and how many programs were solved until it was."""

    fleet: Fleet
    rounds: int


def settle(
    search: Search,
    change: Mapping[str, object] | None = None,
    traffic: float = 1.0,
    gap: float | None = None,
) -> Settled:
    """Solve, verify what the solution uses, and solve again until nothing is left to verify.

    Parameters
    ----------
    search : Search
        What is known; what is found out is added to it.
    change : mapping, optional
        Fields of the program to replace.
    traffic : float
        Factor of all rates, to which all needs are proportional.
    gap : float, optional
        In place of the search's.

    Raises
    ------
    Infeasible
        If there is no fleet.
    NotSolved
        If none was found in time, or the turns do not come to an end.
    """
    program = _Program(search, dict(change or {}), traffic, search.gap if gap is None else gap)
    for program.closest in ("quick", "full"):
        fleet = program.settled()
    return Settled(fleet, program.solved)


@dataclass(eq=False)
class _Program:
    """A search's program with some of it changed; `solved` counts how often it was."""

    search: Search
    change: dict[str, object]
    traffic: float
    gap: float
    solved: int = 0
    closest: EffortName = "quick"
    wanted: set[int] = field(default_factory=set)

    def settled(self) -> Fleet:
        """The best fleet that needs no closer look, with a bound of all fleets."""
        fleet = self.solve(None)
        bound, best = fleet.solved.bound, None
        for _ in range(_ROUNDS):
            self.wanted |= {p for p, _ in fleet.used()}
            self.search.look_at_all_hours(self.wanted)
            best = self.verified(fleet)
            if best is not None and best.solved.value <= bound * (1.0 + max(self.gap, _SAME)):
                break
            fleet = self.solve(None)
            bound = fleet.solved.bound
            if best is not None and fleet.solved.value >= best.solved.value * (1.0 - _SAME):
                break
        else:
            raise NotSolved(f"not all pools were verified after {self.solved} programs")
        return replace(best, solved=Solved(best.solved.value, min(bound, best.solved.value)))

    def problem(self, wanted: set[int] | None) -> FleetProblem:
        """As far as it is known, of all pools or only those wanted."""
        problem = self.search.problem()
        kept = undominated(problem) if wanted is None else wanted
        left_out = [p for p in range(len(problem.pools)) if p not in kept]
        need = self.traffic * problem.need
        if wanted is None and self.closest == "full":
            for place, entry in self.search.entries.items():
                need[place] *= _QUICK_LOW if entry.level == "quick" else 1.0
        need[left_out] = np.inf
        return replace(problem, need=need, **self.change)  # type: ignore[arg-type]

    def solve(self, wanted: set[int] | None) -> Fleet:
        """The best fleet by what is known."""
        self.solved += 1
        problem = self.problem(wanted)
        fleet = with_fewer_pools(problem, solve(problem, self.gap, self.search.time_limit))
        if self.search.progress is not None:
            self.search.progress(f"program {self.solved}: {fleet.solved.value:g} {self.search.demand.fleet.minimise}")
        return fleet

    def verified(self, fleet: Fleet) -> Fleet | None:
        """The best fleet of the pools wanted after all it uses has been looked at, beginning with one; None if none is.

        Few pools make a small program, which can be solved as often as it takes.
        """
        while stale := _stale(self.search, self.problem(self.wanted), fleet, self.closest):
            for p, h, instances, effort in stale:
                self.search.look(p, h, instances, effort)
            try:
                fleet = self.solve(self.wanted)
            except Infeasible:
                return None
        return fleet


def _stale(
    search: Search, problem: FleetProblem, fleet: Fleet, closest: EffortName
) -> list[tuple[int, int, int, EffortName]]:
    """What a solution uses and has not been looked at closely enough: pool, hour, instances, effort.

    The more instances a router has, the more regular are the arrivals at each. So a need that was found for more
    instances than there are now has to be found again; one that was found for fewer is a bound, and found again, once,
    only if they were far fewer.
    """
    found: list[tuple[int, int, int, EffortName]] = []
    for p, h in fleet.used():
        entry = search.entries[p, h]
        carrying = int(fleet.instances[p]) - problem.reserve
        nearly = closest == "full" and fleet.share[p, h] * problem.need[p, h] > _NEARLY * carrying
        effort: EffortName = "full" if nearly or entry.level == "full" else "quick"
        place = (p, h, carrying, effort)
        fewer = entry.instances < _FAR_FEWER * carrying and place not in search.looks
        if entry.level != effort or entry.instances > carrying or fewer:
            found.append(place)
    return found
