"""What a report is about: scenarios grouped by the traffic and objective they share, with everything computed.

Nothing here knows about charts; `asapmodel.html.tables` turns this into rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from asapmodel.errors import NoAnswer
from asapmodel.html.laws import law_system
from asapmodel.html.runs import run_system
from asapmodel.html.system import System
from asapmodel.result import Capacity
from asapmodel.scenario import Scenario
from asapmodel.scenario_tables import SloTable
from asapmodel.scenario_workload import WorkloadTable
from asapmodel.uncertainties.answer import Gain, Uncertainty
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.evaluate import Prepared, prepare
from asapmodel.verbs.uncertainty import uncertain_gains

__all__ = ["Group", "choose_rates", "collect", "same_traffic", "unique_labels"]

Progress = Callable[[str], None] | None

_DETAIL = 0.7  # of the smallest SLO throughput: loaded enough that systems differ, and every one of them holds it
_GRID = 9  # points between low load and a little more than the largest SLO throughput
_NEAR = (1.0, 0.9)  # of each SLO throughput: where its curve bends


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Systems under the same `workload` and `slo`, up to the last of `rates`, one of which is `detail_rate`.

    The graph engine is run at every one of `rates`; the queueing engine has a row of rates of its own per system.
    `sure` and `gains` are of the systems that have an SLO throughput, if their uncertainty was asked for.
    """

    workload: WorkloadTable
    slo: SloTable
    engine: str
    systems: tuple[System, ...]
    rates: tuple[float, ...]
    detail_rate: float
    sure: tuple[Uncertainty, ...] = ()
    gains: tuple[Gain, ...] = ()

    @property
    def law(self) -> str:
        """What the numbers are of: ``"stationary"`` or a run."""
        return self.systems[0].detail.law

    @property
    def answered(self) -> list[tuple[System, Capacity]]:
        """The systems that have an SLO throughput, with it."""
        return [(system, system.capacity) for system in self.systems if system.capacity is not None]


def same_traffic(scenarios: Sequence[Scenario]) -> list[list[int]]:
    """Positions of scenarios with equal workload and objective, in order of first appearance."""
    groups: list[list[int]] = []
    for k, one in enumerate(scenarios):
        for group in groups:
            first = scenarios[group[0]]
            if (first.workload, first.slo) == (one.workload, one.slo):
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def unique_labels(names: Iterable[str]) -> list[str]:
    """Names with ``(2)``, ``(3)`` ... after repeated ones.

    Examples
    --------
    >>> unique_labels(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    labels: list[str] = []
    for name in names:
        label, count = name, 1
        while label in labels:
            count += 1
            label = f"{name} ({count})"
        labels.append(label)
    return labels


def _looks(scenarios: Sequence[Scenario]) -> list[int]:
    """The same number for the same system, whatever its traffic, so that it has one colour in the whole report."""
    seen: list[tuple[object, int]] = []
    looks = [0] * len(scenarios)
    for group in same_traffic(scenarios):
        here: list[object] = []
        for k in group:
            one = scenarios[k]
            key = (one.model, one.cluster, one.system, one.policy_table, one.costs)
            place = (key, here.count(key))  # equal systems side by side still need to be told apart
            here.append(key)
            if place not in seen:
                seen.append(place)
            looks[k] = seen.index(place)
    return looks


def choose_rates(throughputs: Sequence[float], duration: float | None) -> tuple[tuple[float, ...], float]:
    """Return about a dozen rates for all systems of a group, and the one for the detailed figures, requests/s.

    Even from low load to 5 % above the largest SLO throughput, denser where each system's curve bends. No rate is so
    low that fewer than about 20 requests arrive in `duration` seconds.
    """
    top, detail = 1.05 * max(throughputs), _rounded(_DETAIL * min(throughputs), 2)
    low = min(max(top / 16, 20 / duration if duration else 0.0), detail)
    wanted = [detail, *(near * one for one in throughputs for near in _NEAR), low, top]
    chosen: list[float] = []
    for rate in [*wanted, *np.linspace(low, top, _GRID)]:
        rounded = _rounded(float(rate), 3)
        if all(abs(rounded - other) > 0.025 * top for other in chosen):
            chosen.append(rounded)
    return tuple(sorted(chosen)), detail


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def collect(
    scenarios: Sequence[Scenario],
    engine: str,
    progress: Progress = None,
    graph_points: bool = False,
    uncertainty: bool = False,
) -> tuple[Group, ...]:
    """Compute everything a report shows.

    Parameters
    ----------
    scenarios : sequence of Scenario
        At least one, in the order to show them.
    engine : str
        See `asapmodel.verbs.evaluate.evaluate`.
    progress : callable, optional
        Called with a line of text as work proceeds.
    graph_points, uncertainty : bool
        See `asapmodel.verbs.report.report`.

    Raises
    ------
    InputError
        If a layout does not fit its devices or a trace cannot be read; before any long computation.
    NoAnswer
        If no system of a group has an SLO throughput.
    """
    prepared = [prepare(one) for one in scenarios]
    looks, labels = _looks(scenarios), unique_labels(one.name for one in scenarios)
    groups = []
    for members in same_traffic(scenarios):
        found = [_capacity(prepared[k], engine, progress) for k in members]
        bounds = [one.slo_throughput_rps for one, _ in found if one is not None]
        if not bounds:
            raise NoAnswer(found[0][1])
        if engine == "queueing":  # the common rate has to be below the stability limit of those without an answer, too
            bounds += [prepared[k].limit_rps for k, one in zip(members, found, strict=True) if not one[0]]
        first = scenarios[members[0]]
        rates, detail = choose_rates(bounds, first.workload.duration)
        systems = []
        for k, one in zip(members, found, strict=True):
            ready, names = prepared[k], (labels[k], looks[k])
            if engine == "queueing":
                system = law_system(ready, one, names, rates[-1], detail, graph_points, progress)
            else:
                system = run_system(ready.scenario, ready.costing, one, names, rates, detail, progress)
            systems.append(system)
        group = Group(first.workload, first.slo, engine, tuple(systems), rates, detail)
        groups.append(_with_uncertainty(group, progress) if uncertainty else group)
    return tuple(groups)


def _with_uncertainty(group: Group, progress: Progress) -> Group:
    sure, gains = uncertain_gains([system.scenario for system, _ in group.answered], progress=progress)
    return replace(group, sure=tuple(sure), gains=tuple(gains))


def _capacity(ready: Prepared, engine: str, progress: Progress) -> tuple[Capacity | None, str]:
    """The SLO throughput, or why there is none: one system without does not take the others' report away."""
    scenario = ready.scenario
    if progress is not None:
        progress(f"SLO throughput of {scenario.name}")
    try:
        return capacity(scenario, engine, progress=progress, prepared=ready), ""
    except NoAnswer as error:
        return None, str(error).removeprefix(f"{scenario.source}: ")
