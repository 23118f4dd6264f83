"""Other choices than the scenario's: switches of the policy, and one group or some devices more or less.

Each is an analysis of its own with the quick effort, compared with the scenario's own by the same effort.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asapmodel.engines.effort import QUICK
from asapmodel.engines.problem import problem_of
from asapmodel.engines.queueing import analyse
from asapmodel.engines.side_by_side import side_by_side
from asapmodel.errors import InputError
from asapmodel.policy import AT_ARRIVAL, Policy
from asapmodel.scenario import Scenario
from asapmodel.sensitivity.local import Curve, NoLocalAnswer
from asapmodel.solvers.queue_errors import QueueError
from asapmodel.summary import law_statistic

__all__ = ["Option", "options"]


@dataclass(frozen=True, slots=True)
class Option:
    """One other choice. Changes are relative: of the SLO throughput, and of the SLO throughput per device.

    Where it cannot be, or never meets the objective, `problem` says why and the changes are None.
    """

    words: str
    changes: dict[str, Any]
    devices: int
    throughput: float | None
    per_device: float | None
    problem: str = ""


def options(scenario: Scenario) -> list[Option]:
    """Judge the other choices, the best per device first, impossible ones last."""
    own = _throughput(scenario)
    if own is None:
        return []
    candidates = _switches(scenario) | _layouts(scenario)
    found = side_by_side(lambda item: _judge(scenario, own, *item), candidates.items())
    return sorted(found, key=lambda one: (one.per_device is None, -(one.per_device or 0.0)))


def _judge(scenario: Scenario, own: float, words: str, changes: Mapping[str, Any]) -> Option:
    try:
        other = scenario.replace(**changes)
        rate, problem = _throughput(other), "misses the objective at every rate"
    except InputError as error:
        return Option(words, dict(changes), 0, None, None, f"{error.problem}")
    devices = other.layout.devices
    if rate is None:
        return Option(words, dict(changes), devices, None, None, problem)
    per_device = rate / own * scenario.layout.devices / devices - 1
    return Option(words, dict(changes), devices, rate / own - 1, per_device)


def _throughput(scenario: Scenario) -> float | None:
    """SLO throughput by the quick effort, or None."""
    try:
        analysis = analyse(problem_of(scenario), effort=QUICK)
        curve = Curve(analysis, lambda law: law_statistic(law, scenario.slo))
        return curve.limit * curve.load_at(scenario.slo.ttft)
    except (NoLocalAnswer, QueueError):
        return None


def _switches(scenario: Scenario) -> dict[str, dict[str, Any]]:
    policy = scenario.policy
    if policy.queue_per_group:
        return _queue_switches(scenario.layout.kind == "sync", policy)
    if scenario.layout.kind == "sync":
        found: dict[str, dict[str, Any]] = {}
        if policy.balance == "tokens":
            found["groups balanced by work"] = {"balance": "work"}
        if policy.chunk_tokens:
            found["whole prompts in place of chunks"] = {"chunk_tokens": 0}
            found["chunks half as long"] = {"chunk_tokens": max(policy.chunk_tokens // 2, 1)}
        else:
            found[f"chunks of {policy.max_batch_tokens} tokens"] = {"chunk_tokens": policy.max_batch_tokens}
        return found
    found = {"without dual batch" if policy.dual_batch else "dual batch": {"dual_batch": not policy.dual_batch}}
    if policy.dual_batch:
        other = "rolling" if policy.pairing == "locked" else "locked"
        found[f"pairing {other}"] = {"pairing": other}
    return found | _stream_switches(policy)


def _queue_switches(sync: bool, policy: Policy) -> dict[str, dict[str, Any]]:
    """Switches of groups with queues of their own."""
    found: dict[str, dict[str, Any]] = {
        f"routing {rule.replace('_', ' ')}": {"routing": rule, "counts": "exact"}
        for rule in AT_ARRIVAL
        if rule != policy.routing
    }
    if policy.chunk_tokens:
        found["chunks half as long"] = {"chunk_tokens": max(policy.chunk_tokens // 2, 1)}
        found["chunks twice as long"] = {"chunk_tokens": 2 * policy.chunk_tokens}
        word = "when the step starts" if policy.schedule_ahead else "a step ahead"
        found[f"batches formed {word}"] = {"schedule_ahead": not policy.schedule_ahead, "hide_overhead": True}
    if policy.max_seqs:
        found["any number of prompts in a step"] = {"max_seqs": 0}
    if not sync:
        other = "none" if policy.micro == "split" else "split"
        found["steps in one piece" if other == "none" else "steps in two halves"] = {"micro_batches": other}
        found |= _stream_switches(policy)
    return found


def _stream_switches(policy: Policy) -> dict[str, dict[str, Any]]:
    """Switches of the devices of an asynchronous system."""
    found: dict[str, dict[str, Any]] = {}
    if not policy.overlap_attention:
        found["streams on attention devices"] = {"overlap_attention": True}
    word = "without " if policy.overlap_moe else ""
    found[f"{word}streams on MoE devices"] = {"overlap_moe": not policy.overlap_moe}
    word = "host dispatch in place of the super kernel" if policy.super_kernel else "super kernel"
    found[word] = {"super_kernel": not policy.super_kernel}
    return found


def _layouts(scenario: Scenario) -> dict[str, dict[str, Any]]:
    layout = scenario.layout
    D, T, E = layout.D, layout.T, layout.E
    if layout.kind == "sync":
        found = {"one group more": {"D": D + 1}}
        return found | ({"one group less": {"D": D - 1}} if D > 1 else {})
    found = {
        "one attention group more": {"D": D + 1},
        f"{T} MoE devices more": {"E": E + T},
    }
    if E > T:
        found[f"{T} MoE devices as one more attention group"] = {"D": D + 1, "E": E - T}
    if D > 1:
        found[f"an attention group as {T} more MoE devices"] = {"D": D - 1, "E": E + T}
    return found
