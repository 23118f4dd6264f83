"""What a faster part would be worth: improvements by a tenth, ranked by what they do to the SLO throughput.

An improvement changes cost coefficients; its worth follows from their elasticities. To first order in the logarithms,

    ln(answer' / answer) = sum_i e_i ln(c_i' / c_i)

over the coefficients `c_i`. Hardware and efficiencies go through the cost models, which say what each does to every
coefficient.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts
from asapmodel.scenario import Scenario
from asapmodel.scenario_resolve import DEFAULT_CLUSTER
from asapmodel.sensitivity.elasticities import Elasticity

__all__ = ["TENTH", "Improvement", "improvements"]

TENTH = 1.1
"""By how much: rates times 1.1, times divided by it."""

_TRANSFERS = ("dispatch_send", "dispatch_recv", "combine_send", "combine_recv")
_PARTS = {
    "faster attention": ("attention.",),
    "faster experts": ("moe.",),
    "faster transfers": tuple(f"{name}." for name in _TRANSFERS),
    "faster dense layers": ("dense.",),
    "less host dispatch": ("host_dispatch",),
    "less overhead of a step": ("step_overhead",),
    "less latency outside the pipeline": ("request_latency",),
}
_HARDWARE: dict[str, dict[str, float]] = {
    "more compute of every device": dict.fromkeys(("bf16_flops", "int8_flops", "fp8_flops", "vector_flops"), TENTH),
    "more memory bandwidth": {"memory_bandwidth": TENTH},
    "more link bandwidth": {"link_bandwidth": TENTH},
}
_PROFILE: dict[str, dict[str, float]] = {
    "less latency of transfers": dict.fromkeys(("send_latency", "recv_latency", "collective_latency"), 1 / TENTH),
    "faster attention kernels (core, indexer)": dict.fromkeys(("core", "indexer"), TENTH),
    "faster dense GEMM": {"gemm": TENTH},
    "faster grouped GEMM": {"grouped_gemm": TENTH},
    "less launch overhead in attention": {"attention_overhead": 1 / TENTH},
    "less spread of expert load": {"expert_load_cv": 1 / TENTH},
}
_POLICY = {
    "policy.min_batch_tokens": "min_batch_tokens",
    "policy.exclusive_tokens": "exclusive_tokens",
    "policy.max_batch_tokens": "max_batch_tokens",
    "policy.chunk_tokens": "chunk_tokens",
    "policy.batch_window": "batch_window",
}
_NOTHING = 5e-4  # relative changes below which an improvement is none


@dataclass(frozen=True, slots=True)
class Improvement:
    """One improvement by a tenth; `throughput` and `ttft` are relative changes, 0.03 for 3 % more.

    `kind`: part, hardware, efficiency or policy.
    """

    words: str
    kind: str
    throughput: float
    ttft: float


def improvements(scenario: Scenario, costs: LayerCosts, found: Sequence[Elasticity]) -> list[Improvement]:
    """Rank improvements by a tenth, the most valuable first.

    Parameters
    ----------
    scenario : Scenario
        The system, whose cost models say what hardware does.
    costs : LayerCosts
        Its costs.
    found : sequence of Elasticity
        With respect to its coefficients and policy.

    Returns
    -------
    list of Improvement
        Without those that change neither answer.
    """
    slopes = {one.name: one for one in found}
    rows = [_by_part(words, starts, slopes) for words, starts in _PARTS.items()]
    for kind, table in (("hardware", _HARDWARE), ("efficiency", _PROFILE)):
        rows += [_by_models(words, kind, factors, scenario, costs, slopes) for words, factors in table.items()]
    rows += [_by_policy(key, slopes[name]) for name, key in _POLICY.items() if name in slopes]
    kept = [row for row in rows if row is not None and max(abs(row.throughput), abs(row.ttft)) > _NOTHING]
    return sorted(kept, key=lambda row: (-row.throughput, row.ttft))


def _worth(words: str, kind: str, logs: Mapping[str, float], slopes: Mapping[str, Elasticity]) -> Improvement:
    known = [(slopes[name], log) for name, log in logs.items() if name in slopes]
    throughput = sum(one.throughput * log for one, log in known)
    ttft = sum(one.ttft * log for one, log in known)
    return Improvement(words, kind, math.expm1(throughput), math.expm1(ttft))


def _by_part(words: str, starts: tuple[str, ...], slopes: Mapping[str, Elasticity]) -> Improvement:
    names = [name for name in slopes if name.startswith(tuple(f"costs.{start}" for start in starts))]
    return _worth(words, "part", dict.fromkeys(names, -math.log(TENTH)), slopes)


def _by_policy(key: str, slope: Elasticity) -> Improvement:
    """A tenth up or down, whichever serves the throughput."""
    up = slope.throughput > 0 or (slope.throughput == 0 and slope.ttft < 0)
    words = f"{'higher' if up else 'lower'} {key}"
    return _worth(words, "policy", {slope.name: math.log(TENTH) * (1 if up else -1)}, {slope.name: slope})


def _by_models(
    words: str,
    kind: str,
    factors: Mapping[str, float],
    scenario: Scenario,
    costs: LayerCosts,
    slopes: Mapping[str, Elasticity],
) -> Improvement:
    """What the cost models make of a better device or a better use of it."""
    record, table = scenario.device.value, "cluster"
    if kind == "efficiency":
        record, table = scenario.profile.value, "cluster.profile"  # type: ignore[assignment]
    changes: dict[str, float | str] = {
        f"{table}.{name}": factor * getattr(record, name) for name, factor in factors.items() if getattr(record, name)
    }
    if not scenario.cluster.given():  # fields of a device need to be told which
        changes["cluster.use"] = DEFAULT_CLUSTER
    after = layer_costs(scenario.replace(**changes)).costs
    return _worth(words, kind, _log_ratios(costs, after), slopes)


def _log_ratios(before: LayerCosts, after: LayerCosts) -> dict[str, float]:
    """Logarithms of the ratios of all coefficients that are positive in both."""
    found = {}
    for field in fields(LayerCosts):
        one, two = getattr(before, field.name), getattr(after, field.name)
        if isinstance(one, int):
            continue
        names = [""] if isinstance(one, float) else [f".{name}" for name in one.__slots__]
        pairs = [(one, two)] if isinstance(one, float) else [(getattr(one, n[1:]), getattr(two, n[1:])) for n in names]
        for name, (old, new) in zip(names, pairs, strict=True):
            if old > 0 and new > 0:
                found[f"costs.{field.name}{name}"] = math.log(new / old)
    return found
