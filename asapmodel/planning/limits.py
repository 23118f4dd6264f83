"""Why a demand cannot be met, and what limits are worth: the program again, with one limit moved."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from asapmodel.errors import NoAnswer
from asapmodel.planning.answer import Worth
from asapmodel.planning.search import Search
from asapmodel.planning.settling import Settled, settle
from asapmodel.solvers.integer_program import Infeasible

__all__ = ["check_lengths", "objective_worths", "shortfall", "worths"]

_ROUGH = 0.1  # gap: what is enough need not be the least


def check_lengths(search: Search) -> None:
    """Refuse prompts that are longer than any type takes.

    Raises
    ------
    NoAnswer
        Names the class, its longest prompt, and the longest of the types.
    """
    longest = max(kind.longest for kind in search.demand.types.values())
    for part in search.segments:
        if part.longest > longest:
            kind = max(search.demand.types.values(), key=lambda one: one.longest)
            raise NoAnswer(
                f"{search.demand.source}: class.{part.origin.name}: its prompts have up to {part.longest:,} tokens, no "
                f"type takes more than {longest:,} ('{kind.name}'); raise its limit by set = {{ max_prompt_tokens = "
                f"{part.longest} }}, if memory allows, or lower that of the class"
            )


def shortfall(search: Search) -> NoAnswer:
    """Say why the program has no solution."""
    where = search.demand.source
    hopeless = _hopeless(search)
    if hopeless is not None:
        return NoAnswer(f"{where}: {hopeless}")
    needed = list(_alone(search))
    if needed:
        return NoAnswer(f"{where}: no fleet within the limits; enough would be {', or '.join(needed)}")
    free = _enough(search, {"available": {}, "max_supernodes": None})
    return NoAnswer(
        f"{where}: no fleet within the limits, whichever one of them is lifted; without any the best has "
        f"{_counts(search, free)}"
    )


def _hopeless(search: Search) -> str | None:
    """A class that no type serves in time, with the TTFT of its lone prompts."""
    problem = search.problem()
    for s, part in enumerate(search.segments):
        able = [p for p, pool in enumerate(search.pools) if s in pool.segments]
        if any(np.isfinite(problem.need[p]).all() for p in able):
            continue
        slo = part.origin.slo
        alone = {
            search.pools[p].kind: entry.instance.lone()[part.origin.name]
            for p in able
            for (q, _), entry in search.entries.items()
            if p == q and entry.instance is not None and len(search.pools[p].segments) == 1
        }
        times = ", ".join(f"{value:.3g} s on '{name}'" for name, value in alone.items())
        return (
            f"class.{part.origin.name}.slo: {slo.statistic} TTFT <= {slo.ttft:g} s can be met by no type for "
            f"'{part.name}': a lone prompt has {times}; raise ttft, or give a faster type"
        )
    return None


def _alone(search: Search) -> Iterator[str]:
    """For each limit what would be enough if the others hold."""
    fleet, limits = search.demand.fleet, search.problem().available
    nothing = dict.fromkeys(search.demand.types, 0.0)
    for name, there in limits.items():
        others = {one: limit for one, limit in limits.items() if one != name}
        try:
            found = _enough(search, {"available": others, "weights": nothing | {name: 1.0}})
        except Infeasible:
            continue
        yield f"{found.fleet.solved.value:.0f} of type '{name}' in place of {there}"
    if fleet.max_supernodes is not None:
        change: dict[str, object] = {"max_supernodes": None, "weights": nothing, "supernode_weight": 1.0}
        try:
            found = _enough(search, change)
        except Infeasible:
            return
        yield f"{found.fleet.solved.value:.0f} supernodes in place of {fleet.max_supernodes}"


def _enough(search: Search, change: dict[str, object]) -> Settled:
    """A good fleet, if not the best: with undivided segments if there is one, which is found soon."""
    try:
        return settle(search, {**change, "whole": True})
    except Infeasible:
        return settle(search, change, gap=_ROUGH)


def _counts(search: Search, settled: Settled) -> str:
    """Instances by type, in words."""
    counts = dict.fromkeys(search.demand.types, 0)
    for pool, count in zip(search.pools, settled.fleet.instances, strict=True):
        counts[pool.kind] += int(count)
    return " and ".join(f"{count} of type '{name}'" for name, count in counts.items() if count)


def worths(search: Search, settled: Settled, rules: bool) -> tuple[Worth, ...]:
    """What one more of every limit would save; with `rules` also what reserve and forecast cost.

    Found by solving again, as a derivative says nothing of whole instances; verified like the plan itself.
    """
    fleet, limits = search.demand.fleet, search.problem().available
    changes: dict[str, tuple[dict[str, object], float]] = {
        f"one more of type '{name}'": ({"available": {**limits, name: there + 1}}, 1.0)
        for name, there in limits.items()
    }
    if fleet.max_supernodes is not None:
        changes["one more supernode"] = ({"max_supernodes": fleet.max_supernodes + 1}, 1.0)
    if rules:
        if fleet.reserve:
            changes["one instance less in reserve, every pool"] = ({"reserve": fleet.reserve - 1}, 1.0)
        if fleet.forecast_error:
            changes["a forecast without error"] = ({}, 1.0 / (1.0 + fleet.forecast_error))
        changes["10 % more traffic"] = ({}, 1.1)
    return tuple(_worth(search, settled, what, *change) for what, change in changes.items())


def _worth(search: Search, settled: Settled, what: str, change: dict[str, object], traffic: float) -> Worth:
    try:
        found = settle(search, change, traffic=traffic)
    except Infeasible:
        return Worth(what, np.inf)
    return Worth(what, _rounded(found.fleet.solved.value - settled.fleet.solved.value))


def objective_worths(search: Search, settled: Settled, seconds: float = 1.0) -> tuple[Worth, ...]:
    """What a second more of every objective would save; each is planned anew."""
    found = []
    for name, one in search.demand.classes.items():
        slo = one.slo.model_copy(update={"ttft": one.slo.ttft + seconds})
        classes = {**search.demand.classes, name: replace(one, slo=slo)}
        other = Search(replace(search.demand, classes=classes), search.time_limit, search.gap, search.progress)
        value = settle(other).fleet.solved.value
        found.append(Worth(f"{seconds:g} s more for class '{name}'", _rounded(value - settled.fleet.solved.value)))
    return tuple(found)


def _rounded(change: float) -> float:
    """A difference of objectives without the solver's rounding error."""
    return float(f"{change:.9g}") if abs(change) > 1e-6 else 0.0
