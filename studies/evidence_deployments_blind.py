"""Predictions of the deployments for budgets that were not measured here, beside those of an earlier form of the model.

The earlier form is kept so that measurements can judge both: pairs of tokens shared evenly by a group's devices, and
asynchronous steps formed when they start, with the constants that were fitted to that.
"""

from dataclasses import replace
from typing import Any

from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts, Quadratic
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments_ahead import AT_START
from asapmodel.studies.evidence_deployments_data import ASYNC, RATES, SCENARIOS, SYNC, replays, statistics
from asapmodel.studies.pages import markdown_table

__all__ = ["NOT_MEASURED", "earlier", "other_budgets"]

NOT_MEASURED = (4096, 8192, 32768, 131072)
"""Budgets to predict, tokens."""

_NAMES = {ASYNC: "asynchronous", SYNC: "synchronous"}
_ATTENTION = Quadratic(1e-4, 0.982e-6, 1.197e-11)
_OVERHEAD = {ASYNC: 15.5e-3, SYNC: 17.7e-3}
_LATENCY = 19.4e-3
_RULES: dict[str, dict[str, Any]] = {ASYNC: AT_START, SYNC: {"context_parallel": False}}


def earlier(system: str) -> tuple[LayerCosts, dict[str, Any]]:
    """Costs and policy of the earlier form."""
    costs = layer_costs(Scenario.load(SCENARIOS[system])).costs
    found = replace(costs, attention=_ATTENTION, step_overhead=_OVERHEAD[system], request_latency=_LATENCY)
    return found, _RULES[system]


def other_budgets() -> str:
    """Mean and 99th percentile of TTFT, seconds, by budget and rate, as shipped and by the earlier form."""
    rows = []
    for system, name in _NAMES.items():
        costs, rule = earlier(system)
        for budget in NOT_MEASURED:
            now = [statistics(replays(system, budget, rate)) for rate in RATES]
            before = [statistics(replays(system, budget, rate, costs, **rule)) for rate in RATES]
            for form, found in (("", now), ("earlier", before)):
                times = [f"{one.mean_s:.2f} / {one.p99_s:.2f}" for one in found]
                rows.append([name, str(budget), form, *times])
    heads = ["system", "budget", "", *(f"{rate}/s" for rate in RATES)]
    return markdown_table(heads, rows, right=[1, *range(3, 8)])
