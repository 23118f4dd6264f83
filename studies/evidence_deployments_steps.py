"""What the logs of the synchronous deployment say of its steps: attention cut by tokens, from calibrated cells only.

vllm-ascend runs DeepSeek's sparse attention by context parallelism where sequence parallelism is on (`enable_dsa_cp`):
a batch's tokens are cut into `T` slices in a row, each device has all heads of its own slice, and every layer waits for
the hardest (`asapmodel.systems.slices`). The pair cost of a device then follows from the asynchronous system's lone
requests, of which the dense layers are cut whole and the MoE layers in two halves, one behind the other.
"""

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.costing import layer_costs
from asapmodel.costs import LayerCosts, Quadratic
from asapmodel.engines.graph import run
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments_data import ASYNC, SCENARIOS, SYNC, log_of
from asapmodel.studies.evidence_deployments_fit import EXPERTS_OWN
from asapmodel.studies.evidence_deployments_lone import lone_times
from asapmodel.studies.pages import markdown_table
from asapmodel.systems.arrays import make_requests
from asapmodel.systems.slices import hardest_slice

__all__ = [
    "Step",
    "lone_attention",
    "pace_of_halves",
    "read_steps",
    "shared_evenly",
    "step_errors",
    "step_table",
    "step_time",
]

Array = NDArray[np.float64]

_RUNS = ((4, 0), (6, 0), (4, 2), (4, 3))  # rates calibrated on, and usable repeats
_APART, _TOGETHER = 0.12, 0.0015  # seconds between the answers of two steps; of two groups
_NOISE = 0.02  # of a lone request, relative
_CLOSE = 0.08  # seconds within which a step is what it seems: no empty iteration or cut prompt in it
_BINS = (0, 10_000, 20_000, 30_000, 40_000, 50_000, 65_537)


class Step(NamedTuple):
    """A step read off: its time (seconds), and the prompts that every group finished in it."""

    time: float
    groups: tuple[tuple[int, ...], ...]


def pace_of_halves() -> float:
    """Work that paces a lone request of the asynchronous system, over its `s**2`.

    Dense layers are cut whole, `2 - 1/T`. MoE layers pass in two halves, `(2 - 1/T) / 4` each, and the second is behind
    the first, `2 (1/2) (1/2)`.

    Examples
    --------
    >>> round(pace_of_halves(), 5)  # 0.3 x 1.875 + 0.7 x 1.4375
    1.56875
    """
    T, costs = Scenario.load(SCENARIOS[ASYNC]).layout.T, EXPERTS_OWN
    whole = 2.0 - 1.0 / T
    return (costs.dense_layers * whole + costs.moe_layers * (whole / 2 + 0.5)) / costs.layers


def lone_attention() -> Quadratic:
    """Attention of a device whose slices are known, from the asynchronous system's lone requests alone.

    Kernels are what lone requests say: nothing of contention can bend them.
    """
    from scipy.optimize import least_squares

    tokens, times = lone_times(ASYNC)

    def law(x: Array) -> LayerCosts:
        attention = Quadratic(EXPERTS_OWN.attention.fixed, x[0] * 1e-6, x[1] * 1e-11)
        return replace(EXPERTS_OWN, attention=attention, step_overhead=0.0, request_latency=x[2] * 1e-2)

    def residuals(x: Array) -> Array:
        return np.asarray(np.log(_alone(tokens, law(x)) / times) / _NOISE)

    found = law(least_squares(residuals, [1.0, 1.0, 3.0], loss="soft_l1", diff_step=[1e-3] * 3).x).attention
    return replace(found, per_token2=found.per_token2 / pace_of_halves())


def _alone(tokens: Array, costs: LayerCosts) -> Array:
    """TTFT of prompts of so many tokens in the idle asynchronous system, seconds."""
    scenario, apart = Scenario.load(SCENARIOS[ASYNC]), np.arange(len(tokens), dtype=np.float64) * 100.0
    requests = make_requests(apart, tokens.astype(np.int64))
    out: Array = run(scenario.layout, scenario.policy, costs, requests).outcome.end - apart + costs.request_latency
    return out


def read_steps() -> list[Step]:
    """Steps of the synchronous runs calibrated on whose composition can be read off.

    Prompts of one step are answered within 0.1 s, those of one group within a millisecond. Left out are steps that a
    prompt joined late, and where a group seems to exceed its budget (two that were answered at once, or a cut prompt).
    """
    out = []
    for rate, repeat in _RUNS:
        log = log_of(SYNC, rate, repeat=repeat)
        end, sure = log.requests.arrival + log.ttft, False
        order = np.argsort(end)
        steps = np.split(order, np.flatnonzero(np.diff(end[order]) > _APART) + 1)
        for before, step in pairwise(steps):
            parts = np.split(step, np.flatnonzero(np.diff(end[step]) > _TOGETHER) + 1)
            groups = tuple(tuple(log.requests.prompt[np.sort(part)].tolist()) for part in parts)
            start, follows = float(end[before].max()), sure
            sure = len(groups) <= 4 and max(map(sum, groups)) <= 65536
            if sure and follows and log.requests.arrival[step].max() < start:
                out.append(Step(float(end[step].max()) - start, groups))
    return out


def step_time(costs: LayerCosts, step: Step, devices: int) -> float:
    """Time of a padded iteration that was formed ahead, seconds; attention cut among `devices`, 1: shared evenly."""
    largest, groups = max(map(sum, step.groups)), Scenario.load(SCENARIOS[SYNC]).layout.D
    work = max(_pace(prompts, largest, devices) for prompts in step.groups)
    phases = costs.phases(float(largest), work)
    layer = sum(phases) - phases[3] + costs.moe(float(groups * largest))  # experts see the padding of all groups
    return costs.dense_layers * costs.dense_layer(float(largest), work) + costs.moe_layers * layer


def _pace(prompts: tuple[int, ...], largest: int, devices: int) -> float:
    if devices == 1:
        return float(sum(s**2 for s in prompts))
    requests = make_requests(np.zeros(len(prompts)), np.array(prompts))
    follow = np.append(np.arange(1, len(prompts)), -1)
    return devices * float(hardest_slice(requests, follow, 0, 0, sum(prompts), -(-largest // devices)))


def shared_evenly() -> LayerCosts:
    """Costs of the synchronous system if attention were shared evenly, as steep as in the other's lone requests."""
    costs = layer_costs(Scenario.load(SCENARIOS[SYNC])).costs
    attention = replace(costs.attention, per_token2=costs.attention.per_token2 * pace_of_halves())
    return replace(costs, attention=attention)


def _laws() -> tuple[list[Step], dict[int, Array]]:
    """Steps, and what the law with attention cut (8) and shared evenly (1) says of each."""
    costs, steps = layer_costs(Scenario.load(SCENARIOS[SYNC])).costs, read_steps()
    found = {T: np.array([step_time(law, one, T) for one in steps]) for T, law in ((8, costs), (1, shared_evenly()))}
    close = np.min([np.abs(np.array([one.time for one in steps]) - times) for times in found.values()], axis=0) < _CLOSE
    kept = [one for one, near in zip(steps, close, strict=True) if near]
    return kept, {T: values[close] for T, values in found.items()}


def step_errors() -> dict[str, str]:
    """Mean distance of the step times from either law, each with its own offset, milliseconds."""
    steps, laws = _laws()
    time = np.array([one.time for one in steps])
    out = {"steps_read": str(len(steps))}
    for T, name in ((8, "cut"), (1, "even")):
        left = time - laws[T]
        out[f"step_error_{name}"] = f"{1e3 * np.mean(np.abs(left - np.median(left))):.0f}"
    return out


def step_table() -> str:
    """Step times by tokens of the largest group: measured, and by either law."""
    steps, laws = _laws()
    time, largest = np.array([one.time for one in steps]), np.array([max(map(sum, one.groups)) for one in steps])
    rows = []
    for low, high in pairwise(_BINS):
        here = (largest >= low) & (largest < high)
        if here.any():
            values = [np.median(x[here]) for x in (time, laws[8], laws[1])]
            rows.append([f"{low:,} to {high - high % 2:,}", str(here.sum()), *(f"{1e3 * x:.0f}" for x in values)])
    heads = ["tokens of the largest group", "steps", "measured (ms)", "cut by tokens", "shared evenly"]
    return markdown_table(heads, rows, right=range(1, 5))
