"""Why a point cannot be: constraints, the model's degrees, the devices' memory; each as a reason and an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from asapmodel.costing import check_degrees, check_memory, memory_budget
from asapmodel.errors import InputError
from asapmodel.policy import Kind
from asapmodel.scenario import Scenario

if TYPE_CHECKING:
    from asapmodel.exploration.space_tables import ConstraintsTable

__all__ = ["Limits", "Problem"]

_ROLES = {"attention": "an attention device", "moe": "an expert device", "device": "a device"}
_BUFFERS = ("expert ids", "expert results", "arrival flags", "token metadata", "tokens", "all-to-all buffers")

Problem = tuple[str, str]
"""Reason, the same for many points, and this point in words."""

Largest = tuple[int, int, int]


class Limits:
    """Limits of the points of one setting; without cost models (`modelled` false) degrees and memory have none.

    Memory is looked up once a layout and largest batch.
    """

    def __init__(self, constraints: ConstraintsTable, modelled: bool) -> None:
        self.constraints, self.modelled = constraints, modelled
        self._known: dict[tuple[Any, Largest], Problem | None] = {}

    def layout(self, kind: Kind, D: int, T: int, E: int) -> Problem | None:
        """What a layout breaks of the constraints, or None."""
        sizes = {
            "devices": D * T if kind == "sync" else D * T + E,
            "tensor_parallel": T,
            "attention_devices": D * T,
            "expert_devices": E,
        }
        for name, value in sizes.items():
            bounds = getattr(self.constraints, name)
            if bounds is not None and not bounds.hold(value):
                return f"constraint {name} {bounds.words}", f"{kind} D{D} T{T} E{E} has {value}"
        return None

    def degrees(self, scenario: Scenario) -> Problem | None:
        """Whether the model can be split so, or None."""
        if not self.modelled:
            return None
        try:
            check_degrees(scenario)
        except InputError as error:
            if error.key == "system.T":
                return "T does not divide the model's heads", str(error)
            return "more expert devices than experts", str(error)
        return None

    def largest(self, scenario: Scenario) -> Largest:
        """What memory depends on in a policy."""
        policy = scenario.policy
        return policy.max_batch_tokens, policy.chunk_tokens, policy.slots

    def memory(self, scenario: Scenario, changes: Mapping[str, Any], largest: Largest) -> Problem | None:
        """What does not fit the devices' memory, or None; `changes` to the scenario are the policy."""
        if not self.modelled:
            return None
        key = (scenario.system, largest)
        if key not in self._known:
            self._known[key] = self._memory(scenario.replace(**changes))
        return self._known[key]

    def _memory(self, scenario: Scenario) -> Problem | None:
        budget = memory_budget(scenario)
        role = min(budget.headroom, key=lambda name: budget.headroom[name])
        layout = scenario.layout
        place = f"{layout.kind} D{layout.D} T{layout.T} E{layout.E}"
        try:
            check_memory(scenario)
        except InputError as error:
            return f"memory of {_ROLES[role]}", str(error)
        reserve, most = self.constraints.memory_reserve, self.constraints.buffers
        if reserve is not None and budget.headroom[role] < reserve:
            example = f"{place} leaves {budget.headroom[role] / 1e9:.1f} GB on {_ROLES[role]}"
            return f"constraint memory_reserve {reserve / 1e9:g} GB", example
        if most is not None:
            buffers = max(sum(items.get(name, 0.0) for name in _BUFFERS) for items in budget.items.values())
            if buffers > most:
                return f"constraint buffers {most / 1e9:g} GB", f"{place} has {buffers / 1e9:.1f} GB"
        return None
