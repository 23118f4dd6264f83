"""The points of a space that can be evaluated at all, and how many others were left out for which reason.

For each base scenario and setting (model, cluster, workload, ...) the points are layouts x policies. Keys that do not
act on a kind of system are not varied there, so no system is a point twice. What is wrong with a layout or a policy
alone is found once, not for every combination; memory depends on both, through the largest batch only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from asapmodel.costing import is_modelled
from asapmodel.errors import InputError
from asapmodel.exploration.keys import DECIDING, acts, dropped, part
from asapmodel.exploration.limits import Limits, Problem
from asapmodel.policy import Kind, Policy
from asapmodel.scenario import Scenario

if TYPE_CHECKING:
    from asapmodel.exploration.space import Space

__all__ = ["Changes", "Designs", "Group", "LeftOut", "designs_of"]

_MOST = 10_000_000  # combinations

Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Points that share everything but the policy: `scenario.replace(**changes)` for each of `policies`.

    `first` is the number of the first of them; `values` are those of the varied keys outside `[policy]`.
    """

    first: int
    scenario: Scenario
    values: Changes
    policies: tuple[Changes, ...]


class LeftOut(NamedTuple):
    """A reason, how many points it left out, and the first of them in words."""

    reason: str
    points: int
    example: str


@dataclass(eq=False)
class _Tally:
    """Points left out so far, by reason."""

    points: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, count: int, example: str) -> None:
        if count:
            self.points[reason] = self.points.get(reason, 0) + count
            self.examples.setdefault(reason, example)


@dataclass(frozen=True, eq=False)
class Designs:
    """The feasible points of a space, numbered from 0."""

    groups: tuple[Group, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def count(self) -> int:
        """Feasible points."""
        return self.groups[-1].first + len(self.groups[-1].policies) if self.groups else 0

    @property
    def combinations(self) -> int:
        """Different combinations there are, feasible or not."""
        return self.count + sum(one.points for one in self.left_out)

    def pieces(self, size: int) -> Iterator[tuple[Group, ...]]:
        """Cut the points into consecutive pieces of `size` points; the last may have fewer."""
        piece: list[Group] = []
        room = size
        for group in self.groups:
            taken = 0
            while taken < len(group.policies):
                some = group.policies[taken : taken + room]
                piece.append(Group(group.first + taken, group.scenario, group.values, some))
                taken, room = taken + len(some), room - len(some)
                if room == 0:
                    yield tuple(piece)
                    piece, room = [], size
        if piece:
            yield tuple(piece)

    def point(self, number: int) -> Group:
        """The point of a number, as a group of one."""
        low, high = 0, len(self.groups) - 1
        while low < high:  # the last group that does not begin behind it
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.groups[middle].first <= number else (low, middle - 1)
        group = self.groups[low]
        return Group(number, group.scenario, group.values, (group.policies[number - group.first],))


def designs_of(space: Space) -> Designs:
    """List the feasible points of a space.

    Raises
    ------
    InputError
        If a value is not valid, whatever it is combined with, or the space is too large to list.
    """
    size = len(space.scenarios) * math.prod(len(values) for values in space.vary.values())
    if size > _MOST:
        remedy = f"give fewer values; {_MOST:,} combinations are the most"
        raise InputError(space.source, "vary", f"has {size:,} combinations", remedy)
    tally = _Tally()
    groups: list[Group] = []
    count = 0
    for base in space.scenarios:
        kinds: Sequence[Kind] = space.vary.get("system.kind", (base.system.kind,))
        for setting in _combinations(space, "setting"):
            limits = Limits(space.constraints, is_modelled(_anchor(space, base, setting)))
            for kind in kinds:
                for group in _of_kind(space, base, setting, kind, limits, tally):
                    groups.append(Group(count, *group))
                    count += len(group[-1])
    left_out = [LeftOut(reason, points, tally.examples[reason]) for reason, points in tally.points.items()]
    return Designs(tuple(groups), tuple(sorted(left_out, key=lambda one: -one.points)))


def _of_kind(
    space: Space, base: Scenario, setting: Changes, kind: Kind, limits: Limits, tally: _Tally
) -> Iterator[tuple[Scenario, Changes, tuple[Changes, ...]]]:
    """Points of one setting and kind: scenario, values and policies of each layout that has any."""
    fixed = _fixed(space, base, setting, kind)
    policies, layouts = _policies(space, base, kind), _layouts(space, kind)
    valid = []
    for changes in policies:
        try:
            valid.append((changes, limits.largest(base.replace(**fixed, **_SMALLEST[kind], **changes))))
        except InputError as error:
            tally.add(f"{error.key} contradicts another key of the policy", len(layouts), str(error))
    if not valid:
        return
    for layout in layouts:
        scenario, problem = _layout(base, {**fixed, **valid[0][0]}, layout, limits)
        if problem is not None:
            tally.add(problem[0], len(valid), problem[1])
        if scenario is None:
            continue
        kept = []
        for changes, largest in valid:
            problem = limits.memory(scenario, changes, largest)
            if problem is None:
                kept.append(changes)
            else:
                tally.add(problem[0], 1, problem[1])
        if kept:
            yield scenario, {**setting, "system.kind": kind, **layout}, tuple(kept)


_REASONS = {"system": "more devices than the cluster has", "system.precision": "no peak of the device at the precision"}
_SMALLEST: dict[Kind, dict[str, Any]] = {"asap": {"D": 1, "T": 1, "E": 1}, "sync": {"D": 1, "T": 1, "E": None}}


def _fixed(space: Space, base: Scenario, setting: Changes, kind: Kind) -> dict[str, Any]:
    """The changes that all points of a setting and kind share."""
    if kind == "asap" and base.system.E is None and "system.E" not in space.vary:
        raise InputError(space.source, "vary.E", "is missing", "kind = 'asap' needs it, e.g. E = [8, 16]")
    return {**setting, "kind": kind}


def _layout(base: Scenario, fixed: Changes, layout: Changes, limits: Limits) -> tuple[Scenario | None, Problem | None]:
    """The scenario of a layout, or what is wrong with it."""
    sync = fixed["kind"] == "sync"
    D, T = (layout.get(f"system.{name}", getattr(base.system, name)) for name in ("D", "T"))
    E = D * T if sync else layout.get("system.E", base.system.E)
    problem = limits.layout(fixed["kind"], D, T, E)
    if problem is not None:
        return None, problem
    own = {"system.E": None} if sync else {}
    try:
        scenario = base.replace(**fixed, **own, **layout)
    except InputError as error:
        return None, (_REASONS.get(error.key, error.key), str(error))
    problem = limits.degrees(scenario)
    return (scenario, None) if problem is None else (None, problem)


def _anchor(space: Space, base: Scenario, setting: Changes) -> Scenario:
    """The setting on the smallest layout: a mistake in it is one of the space, which no layout or policy can mend."""
    try:
        return base.replace(**setting, **_SMALLEST[base.system.kind])
    except InputError as error:
        raise InputError(space.source, f"vary.{error.key}", error.problem, error.remedy) from None


def _combinations(space: Space, which: str) -> list[dict[str, Any]]:
    chosen = {key: values for key, values in space.vary.items() if part(key) == which}
    return [dict(zip(chosen, values, strict=True)) for values in product(*chosen.values())]


def _layouts(space: Space, kind: Kind) -> list[dict[str, Any]]:
    """Combinations of the degrees that a kind of system has, each once."""
    found: dict[str, dict[str, Any]] = {}
    for changes in _combinations(space, "layout"):
        own = {key: value for key, value in changes.items() if acts(key, kind)}
        found.setdefault(repr(own), own)
    return list(found.values())


def _policies(space: Space, base: Scenario, kind: Kind) -> list[dict[str, Any]]:
    """Combinations of the keys of `[policy]` that act, each once, whole: no policy keeps what another one changes."""
    found: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for changes in _combinations(space, "policy"):
        policy = _deciding(base.policy, changes)
        own = {key: value for key, value in changes.items() if acts(key, kind, policy)}
        found.setdefault(repr(own), (own, dropped(kind, policy)))
    given = {key: getattr(base.policy, key.partition(".")[2]) for _, without in found.values() for key in without}
    kept = {key: value for key, value in given.items() if key in space.vary or value != _DEFAULTS[key]}
    return [{**kept, **own, **{key: None for key in without if key in kept}} for own, without in found.values()]


_DEFAULTS = {f"policy.{one.name}": one.default for one in fields(Policy)}


def _deciding(policy: Policy, changes: Changes) -> Policy:
    """A policy with the changes that decide which keys act."""
    names = {name: changes[f"policy.{name}"] for name in DECIDING if f"policy.{name}" in changes}
    return replace(policy, **names)
