"""Why the asynchronous system gains or loses: one difference between the two systems at a time.

From the best synchronous to the best asynchronous system through imagined ones, each a scenario with some costs
changed; a factor is the ratio of neighbouring SLO throughputs, and their product is the whole. The order is fixed:
another one would divide the product otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from asapmodel.costs import LayerCosts
from asapmodel.models.imbalance import imbalance
from asapmodel.models.parameters import Split
from asapmodel.scenario import Scenario
from asapmodel.studies.dp_imbalance_runs import perfectly_balanced
from asapmodel.studies.when_asynchronous_search import POLICIES, Pair, policy_changes
from asapmodel.verbs.capacity import capacity
from asapmodel.verbs.prepared import prepare

__all__ = ["STEPS", "Ladder", "busiest", "ladder"]

STEPS = (
    "one instance",
    "attention barrier",
    "experts averaged over layers",
    "transfers hidden",
    "devices split",
    "own transfers",
    "experts and partner waited for",
    "larger batches",
)
"""What is changed from each system to the next; see `ladder`."""

_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_OWN = ("dispatch_send", "combine_recv")  # those on the attention devices
_NOTHING = {"fixed": 0.0, "per_token": 0.0}
_PLAIN = POLICIES[2]  # rolling, batches of 2048


@dataclass(frozen=True, slots=True)
class Ladder:
    """SLO throughputs of the systems from the best synchronous (first) to the best asynchronous one (last)."""

    rates: tuple[float, ...]

    @property
    def factors(self) -> tuple[float, ...]:
        """By `STEPS`; above 1 where the change is for the asynchronous system."""
        return tuple(after / before for before, after in pairwise(self.rates))

    @property
    def gain(self) -> float:
        """Of the last over the first system, minus 1."""
        return self.rates[-1] / self.rates[0] - 1


def busiest(scenario: Scenario, averaged: bool) -> float:
    """Load of the busiest expert device over the mean, in one layer or over all layers."""
    split = Split(scenario.layout.D, scenario.layout.T, scenario.layout.E)
    layers = prepare(scenario).costing.costs.moe_layers if averaged else 1
    return imbalance(scenario.architecture.value, scenario.device.value, scenario.profile.value, split, layers)


def ladder(pair: Pair) -> Ladder:
    """Systems between the best ones of a pair, in full effort.

    The steps: several instances become one; all groups have the same tokens and attention work at any time; a layer
    takes the busiest expert device's load averaged over all layers; no transfer takes time; only the asynchronous
    system's attention devices do attention, nobody waits for experts, batches of 2048 tokens; their own transfers
    take time again; experts and their transfers too; batches and policy are the best.
    """
    top, one, last = pair.best_sync, pair.single_sync.scenario, pair.best_asap
    ready = prepare(one)
    balanced = perfectly_balanced(one, ready)
    moe = ready.costing.costs.moe
    averaged = {"floor": moe.floor, "per_token": moe.per_token * busiest(one, True) / busiest(one, False)}
    even = balanced.replace(**{"costs.moe": averaged})
    hidden = even.replace(**{f"costs.{name}": _NOTHING for name in _TRANSFERS})
    split = last.scenario.replace(**policy_changes(*_PLAIN))
    costs = prepare(split).costing.costs
    scenarios = (one, balanced, even, hidden, _attention_only(split, costs, ()), _attention_only(split, costs, _OWN))
    found = [top.instances * _slo(top.scenario), *map(_slo, scenarios)]
    found += [last.instances * _slo(one) for one in (split, last.scenario)]
    return Ladder(tuple(found))


def _slo(scenario: Scenario) -> float:
    return capacity(scenario, prepared=prepare(scenario)).slo_throughput_rps


def _attention_only(scenario: Scenario, costs: LayerCosts, kept: tuple[str, ...]) -> Scenario:
    """An asynchronous system in which only attention and some transfers take time."""
    changes: dict[str, Any] = {f"costs.{name}": _line(costs, name) for name in _TRANSFERS if name in kept}
    changes |= {f"costs.{name}": _NOTHING for name in _TRANSFERS if name not in kept}
    return scenario.replace(**changes, **{"costs.moe": {"floor": 0.0, "per_token": 0.0}})


def _line(costs: LayerCosts, name: str) -> Mapping[str, float]:
    law = getattr(costs, name)
    return {"fixed": law.fixed, "per_token": law.per_token}
