"""Analytic performance model and capacity planner for synchronous and asynchronous MoE prefill.

::

    import asapmodel as am

    scenario = am.Scenario.load("paper-asap")
    am.evaluate(scenario, rate=4.0).ttft.mean_s
    am.capacity(scenario).slo_throughput_rps

Names are loaded on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asapmodel._checkout import register as _register

_register()

if TYPE_CHECKING:
    from asapmodel.costs import LayerCosts
    from asapmodel.errors import AsapError, InputError, NoAnswer
    from asapmodel.policy import Layout, Policy
    from asapmodel.result import Capacity, Records, Result
    from asapmodel.scenario import Scenario
    from asapmodel.verbs.blame import blame
    from asapmodel.verbs.calibrate import calibrate
    from asapmodel.verbs.calibrate_system import calibrate_system
    from asapmodel.verbs.capacity import capacity
    from asapmodel.verbs.compare import compare
    from asapmodel.verbs.evaluate import evaluate
    from asapmodel.verbs.explain import explain
    from asapmodel.verbs.explore import explore
    from asapmodel.verbs.grid import grid
    from asapmodel.verbs.plan import plan
    from asapmodel.verbs.report import report
    from asapmodel.verbs.sweep import sweep
    from asapmodel.verbs.timeline import timeline
    from asapmodel.verbs.tune import tune
    from asapmodel.verbs.uncertainty import uncertain_gains, uncertainty
    from asapmodel.verbs.validate import validate

__version__ = "0.1.0"

_HOME = {
    "AsapError": "errors",
    "Capacity": "result",
    "InputError": "errors",
    "LayerCosts": "costs",
    "Layout": "policy",
    "NoAnswer": "errors",
    "Policy": "policy",
    "Records": "result",
    "Result": "result",
    "Scenario": "scenario",
    "blame": "verbs.blame",
    "calibrate": "verbs.calibrate",
    "calibrate_system": "verbs.calibrate_system",
    "capacity": "verbs.capacity",
    "compare": "verbs.compare",
    "evaluate": "verbs.evaluate",
    "explain": "verbs.explain",
    "explore": "verbs.explore",
    "grid": "verbs.grid",
    "plan": "verbs.plan",
    "report": "verbs.report",
    "sweep": "verbs.sweep",
    "timeline": "verbs.timeline",
    "tune": "verbs.tune",
    "uncertain_gains": "verbs.uncertainty",
    "uncertainty": "verbs.uncertainty",
    "validate": "verbs.validate",
}

__all__ = [
    "AsapError",
    "Capacity",
    "InputError",
    "LayerCosts",
    "Layout",
    "NoAnswer",
    "Policy",
    "Records",
    "Result",
    "Scenario",
    "blame",
    "calibrate",
    "calibrate_system",
    "capacity",
    "compare",
    "evaluate",
    "explain",
    "explore",
    "grid",
    "plan",
    "report",
    "sweep",
    "timeline",
    "tune",
    "uncertain_gains",
    "uncertainty",
    "validate",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'asapmodel' has no attribute {name!r}")
    value = getattr(import_module(f"asapmodel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
