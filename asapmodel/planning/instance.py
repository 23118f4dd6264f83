"""What one instance of a pool carries: the largest rate of its mix at which every class meets its objective."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.engines import queueing
from asapmodel.engines.analysis import Analysis, Problem
from asapmodel.engines.effort import EFFORTS, Effort, EffortName
from asapmodel.engines.unlocked import unlocked_property
from asapmodel.planning.class_times import class_statistics
from asapmodel.planning.demand import InstanceType
from asapmodel.planning.segments import Mix
from asapmodel.scenario import Scenario
from asapmodel.scenario_tables import SloTable
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.solvers.roots import NoCrossing, find_crossing

__all__ = ["Instance", "costs_of", "scenario_of"]

_LAST = 0.999  # of the stability limit, as `asapmodel.verbs.capacity_of_law` has it
_LONE = 1e-3  # of it: a prompt meets no other
_MOST = 600.0


def scenario_of(kind: InstanceType, mix: Mix) -> Scenario:
    """The scenario of a type, with the prompts of a mix.

    Raises
    ------
    InputError
        If the layout does not fit the devices.
    """
    lengths = {"values": mix.prompts.prompt.tolist()}
    bounds = {"min_prompt_tokens": 1, "max_prompt_tokens": kind.longest}
    return kind.scenario.replace(workload={"lengths": lengths, **bounds})


def costs_of(kind: InstanceType, mix: Mix) -> LayerCosts:
    """Layer costs of a type, reduced on the prompts of a mix.

    Raises
    ------
    InputError
        If the layout does not fit the devices.
    """
    return layer_costs(scenario_of(kind, mix)).costs


@dataclass(frozen=True, eq=False)
class Instance:
    """An instance under one mix and one variability of arrivals; `tolerance` is that of `capacity`."""

    kind: InstanceType
    costs: LayerCosts
    mix: Mix
    gap_cv: float
    objectives: Mapping[str, SloTable]
    effort: EffortName | Effort
    tolerance: float = 1e-3

    @unlocked_property
    def analysis(self) -> Analysis:
        """The queueing engine's."""
        scenario = self.kind.scenario
        problem = Problem(scenario.layout, scenario.policy, self.costs, self.mix.prompts, self.gap_cv)
        return queueing.analyse(
            problem, effort=self.effort if isinstance(self.effort, Effort) else EFFORTS[self.effort]
        )

    @property
    def limit(self) -> float:
        """Stability limit, requests/s."""
        return self.analysis.saturation_rps

    def statistics(self, rate: float) -> dict[str, float]:
        """By class the statistic its objective speaks of, seconds; infinite where queues would grow without end."""
        if rate > _LAST * self.limit:
            return dict.fromkeys(self.mix.origin, math.inf)
        try:
            return class_statistics(self.analysis.at(rate), self.mix, self.objectives)
        except QueueError:
            return dict.fromkeys(self.mix.origin, math.inf)

    def lone(self) -> dict[str, float]:
        """The same of prompts that meet no other."""
        return self.statistics(_LONE * self.limit)

    @unlocked_property
    def capacity(self) -> float:
        """Largest rate at which all objectives are met, requests/s, to the tolerance and rounded down.

        0 if lone prompts miss one: where a scheduler waits for company a busy system may answer sooner, but nights are
        not busy.
        """
        if any(value > self.objectives[name].ttft for name, value in self.lone().items()):
            return 0.0
        start = 0.6 * self.limit
        try:
            found = find_crossing(self._strain, math.exp(-1.0), start, self.limit, self.tolerance, limit=self.limit)
        except NoCrossing:
            return 0.0
        return float(found.low)

    def _strain(self, rate: float) -> float:
        """Increasing in the worst ratio of statistic and objective; 1/e where that is 1."""
        found = self.statistics(rate)
        worst = max(value / self.objectives[name].ttft for name, value in found.items())
        return math.exp(-min(1.0 / worst, _MOST)) if np.isfinite(worst) else 1.0
