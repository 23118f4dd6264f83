"""Sentences of a report, made from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asapmodel.html.data import Group
from asapmodel.html.runs import pooled_runs
from asapmodel.html.system import System
from asapmodel.html.tables import attainment, statistic_name
from asapmodel.result import Capacity
from asapmodel.scenario_workload import Constant, Lognormal, TraceLengths, Values, WorkloadTable

__all__ = [
    "answer",
    "holds_for",
    "interval_text",
    "listed",
    "method",
    "objective",
    "rate_text",
    "served_in_time",
    "traffic",
    "traffic_detail",
    "verdict",
]

_LIMITS = {
    "attention": "the attention devices",
    "attention barrier": "the barriers in each layer, where attention groups wait for the slowest one",
    "moe": "the experts",
    "transfers": "transfers between devices",
    "moe_send": "sending from the MoE devices",
}


def rate_text(value: float) -> str:
    """A rate with three digits."""
    return f"{value:#.3g}".rstrip(".")


def interval_text(ends: tuple[float, float]) -> str:
    """Both ends, with as many digits as it takes to tell them apart."""
    texts = [[f"{end:#.{digits}g}".rstrip(".") for end in ends] for digits in (3, 4, 5)]
    return " to ".join(next((text for text in texts if text[0] != text[1]), texts[-1]))


def listed(words: Sequence[str]) -> str:
    """Join words with commas and a final "and"."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def objective(group: Group) -> str:
    """The objective, ``mean TTFT within 5 s``."""
    return f"{statistic_name(group)} within {group.slo.ttft:g} s"


def traffic(workload: WorkloadTable) -> str:
    """The traffic in a few words, for a heading."""
    if workload.trace is not None:
        return f"Replayed trace {_stem(workload.trace)}"
    lengths = workload.lengths
    prompts = "prompts"
    match lengths:
        case Lognormal():
            prompts = "lognormal prompts"
        case Constant(constant=tokens):
            prompts = f"prompts of {tokens:,} tokens"
        case Values(values=values):
            prompts = f"prompts of {len(values)} given lengths"
        case TraceLengths(trace=path):
            prompts = f"prompts as in {_stem(path)}"
    arrivals = "Poisson" if workload.arrivals == "poisson" else f"Gamma (cv {workload.cv:g})"
    return f"{arrivals} arrivals, {prompts}"


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def traffic_detail(group: Group) -> str:
    """What the runs contain."""
    workload, one = group.workload, group.systems[0]
    if group.engine == "queueing":
        length = "a service that has run forever" if group.law == "stationary" else group.law.replace("run", "runs", 1)
        if workload.trace is not None:
            length = f"its lengths and the burstiness of its arrivals, not their order; {length}"
    else:
        length = f"runs of {workload.duration:g} s" if workload.duration else "each run is the whole trace"
    return (
        f"Prompts of {workload.min_prompt_tokens:,} to {workload.max_prompt_tokens:,} tokens, mean "
        f"{one.prompt_tokens_mean:,.0f}; {length}. Objective: {objective(group)}."
    )


def _ranked(group: Group) -> list[tuple[System, Capacity]]:
    return sorted(group.answered, key=lambda item: -item[1].slo_throughput_rps)


def verdict(group: Group) -> str:
    """Which system sustains most."""
    ranked = _ranked(group)
    most = "most: " if len(ranked) > 1 else ""
    return f"{ranked[0][0].label} sustains {most}{rate_text(ranked[0][1].slo_throughput_rps)} requests/s"


def answer(group: Group) -> str:
    """What follows the verdict in the paragraph at the head: how sure, by what factor, limited by what."""
    ranked = _ranked(group)
    top = ranked[0][1]
    text = f" with {objective(group)}, on {top.devices} devices"
    if top.interval_rps:
        text += f" (95 % interval {interval_text(top.interval_rps)})"
    text += "."
    if len(ranked) > 1:
        text += " " + _factors(ranked)
    text += f" It is limited by {_limit(top)}."
    text += _other_limits(ranked)
    text += "".join(f" {system.label} has no answer: {system.why}." for system in group.systems if not system.capacity)
    return text + " " + _at_common_rate(group)


def _factors(ranked: Sequence[tuple[System, Capacity]]) -> str:
    top = ranked[0][1]
    parts = []
    for system, one in ranked[1:]:
        factor = top.slo_throughput_rps / one.slo_throughput_rps
        parts.append(f"{rate_text(factor)} times {system.label} ({rate_text(one.slo_throughput_rps)})")
    text = f"That is {listed(parts)}."
    if len({one.devices for _, one in ranked}) > 1:
        per_device = max(ranked, key=lambda item: item[1].slo_throughput_rps / item[1].devices)
        value = per_device[1].slo_throughput_rps / per_device[1].devices
        text += f" Per device {per_device[0].label} serves most, {value:.3g} requests/s."
    second = ranked[1]
    if top.interval_rps and second[1].interval_rps and second[1].interval_rps[1] > top.interval_rps[0]:
        text += f" The intervals of the first two overlap: {second[0].label} may do as well."
    return text


def _other_limits(ranked: Sequence[tuple[System, Capacity]]) -> str:
    """Sentences on what limits the systems that something else limits than the first."""
    limits: dict[str, list[str]] = {}
    for system, one in ranked[1:]:
        if _limit(one) != _limit(ranked[0][1]):
            limits.setdefault(_limit(one), []).append(system.label)
    return "".join(f" {listed(labels)} {_are(labels)} limited by {limit}." for limit, labels in limits.items())


def _are(labels: Sequence[str]) -> str:
    return "is" if len(labels) == 1 else "are"


def _limit(capacity: Capacity) -> str:
    resource = _LIMITS.get(capacity.bottleneck, capacity.bottleneck.replace("_", " "))
    if capacity.limited_by != "stability":
        return resource
    return f"{resource}: the objective holds nearly up to the stability limit"


def _at_common_rate(group: Group) -> str:
    means = [f"{one.law.mean:.2g} s for {one.label}" for one in group.systems]
    text = f"At {group.detail_rate:g} requests/s mean TTFT is {listed(means)}"
    lost = [(one.detail.barrier_waste, one.label) for one in group.systems if one.detail.barrier_waste]
    if not lost:
        return text + "."
    return (
        text
        + f"; barriers cost {listed([f'{100 * share:.0f} % ({label})' for share, label in lost])} of attention time."
    )


def served_in_time(group: Group) -> str:
    """Attainment of every system at the common rate."""
    shares = [f"{_percent(attainment(one, group))} ({one.label})" for one in group.systems]
    return f"Served within {group.slo.ttft:g} s: {listed(shares)}."


def holds_for(labels: Sequence[str], groups: Sequence[Group]) -> str:
    """Which systems some labels are: ``all``, ``sync``, ``part 1``, ``sync of part 1``, or their names."""
    for k, part in enumerate([None, *groups]):
        systems = [one for group in groups if part in (None, group) for one in group.systems]
        place = f"part {k}" if part else "all"
        for kind, name in ((None, place), ("sync", "sync"), ("asap", "asap")):
            chosen = [one.label for one in systems if kind in (None, one.scenario.layout.kind)]
            if chosen and chosen == list(labels):
                return name if kind is None or part is None else f"{name} of {place}"
    return ", ".join(labels)


def _percent(share: float) -> str:
    """Percent with one digit; not all is never "100 %"."""
    return "all" if share == 1 else "over 99.9 %" if share >= 0.9995 else f"{100 * share:.1f} %"


def method(groups: Sequence[Group], engine: str, version: str) -> list[tuple[str, str]]:
    """Engine, version, and per group what its numbers are of, as name and value."""
    what = _ENGINES[engine]
    rows = [("asapmodel", version), ("engine", f"{engine}: {what}")]
    for k, group in enumerate(groups, 1):
        name = "laws" if engine == "queueing" else "runs"
        text = _law(group) if engine == "queueing" else _runs(group)
        rows.append((f"{name} of part {k}" if len(groups) > 1 else name, text))
    return rows


_ENGINES = {
    "queueing": "the law of TTFT by queueing theory, without random numbers; an approximation; docs/engines.md "
    "of the package lists its errors against the graph engine",
    "graph": "the timed event graph of concrete request sequences",
}


def _law(group: Group) -> str:
    text = "Stationary: a service that has run forever."
    if group.law != "stationary":
        text = f"{group.law.capitalize()} that starts empty; its TTFT is finite at every rate."
    if not any(system.measured for system in group.systems):
        return text
    pooled, duration = pooled_runs(group.systems[0].scenario), group.workload.duration
    length = f"{duration:g} s" if duration else "the whole trace"
    return text + f" Points with bars: graph engine, {pooled} run{'s' if pooled > 1 else ''} of {length} each."


def _runs(group: Group) -> str:
    """Seeds, replications, run length, and how single runs scatter."""
    count = max(one.replications for _, one in group.answered)
    seed, duration = group.workload.seed, group.workload.duration
    seeds = f"{seed}" if count == 1 else f"{seed} to {seed + count - 1}"
    spread = [f"{system.label} ±{one.run_std_rps:.2g}" for system, one in group.answered if one.run_std_rps]
    plural = "s" if count > 1 else ""
    text = f"SLO throughput over {count} replication{plural}, seed{plural} {seeds}; "
    pooled = pooled_runs(group.systems[0].scenario)
    text += f"TTFT charts pool {pooled} runs, other charts show" if pooled > 1 else "charts show"
    text += f" the run with seed {seed}; run length "
    text += f"{duration:g} s." if duration else "the whole trace."
    if spread:
        text += f" The SLO throughput of a single such run scatters (standard deviation, requests/s): {listed(spread)}."
    return text
