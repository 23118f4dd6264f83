"""Calibrate the two measured deployments: run as ``python -m asapmodel.studies.evidence_deployments_fit``, 3 minutes.

Prints the constants that the scenarios `afd-async` and `afd-sync` ship. Fitted are, to the cells of 4 and 6 requests/s:

- asynchronous: attention per token and per squared token, step overhead, request latency. Residuals: requests that were
  alone, means of 25 requests in a row (both from the logs of budget 65536), mean and 99th percentile of budget 16384,
  and `back_to_back`, read off the logs, for the request latency, each weighed by its own spread;
- synchronous: the step overhead alone. The request latency is the one found above, attention that of the asynchronous
  system's lone requests, per pair of the hardest slice (`evidence_deployments_steps`).

What the logs cannot tell apart is physics: experts and transfers of the cost models for 8 and for 32 dies with balanced
experts, dense layers at their INT8 products, and the expert dies' host between two work items, 0.48 ms as measured by
the authors (0.241 to receive, 0.237 to send).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.replay import replay_of
from asapmodel.calibration.request_log import lone_requests
from asapmodel.calibration.system import DEFAULT_KEYS, SystemFit, fit_system
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.scenario import Scenario
from asapmodel.studies.evidence_deployments_data import (
    ASYNC,
    CALIBRATED_RATES,
    SCENARIOS,
    SYNC,
    cells,
    log_of,
    replays,
    statistics,
)

__all__ = ["EXPERTS_OWN", "EXPERTS_SHARED", "back_to_back", "fit_asynchronous", "fit_synchronous", "main"]

Residuals = Callable[[LayerCosts], NDArray[np.float64]]

_SPREAD = (0.05, 0.08)  # of the mean and the 99th percentile between repeats of a run
_READING = 0.25  # of `back_to_back`, in powers of two: two runs and a repeat give 28, 19 and 24 ms
_LAUNCH = 1e-4  # attention_overhead of the profile
_DENSE = 0.165e-6  # 3 x 2 x 7168 x 18432 operations a token on 8 dies at 0.8 x 752 TOPS

EXPERTS_OWN = LayerCosts(
    attention=Quadratic(_LAUNCH, 1e-6, 1e-11),
    dispatch_send=Affine(5.2e-5, 0.0435e-6),
    dispatch_recv=Affine(1e-5, 0.0435e-6),
    moe=Plateau(1.08e-3, 0.212e-6),
    combine_send=Affine(5.2e-5, 0.0813e-6),
    combine_recv=Affine(1e-5, 0.0213e-6),
    host_dispatch=0.48e-3,
    layers=10,
    dense_layers=3,
    dense=Affine(0.0, _DENSE),
    step_overhead=0.02,
    request_latency=0.01,
)
"""Asynchronous: what is fixed, and where the search starts."""

EXPERTS_SHARED = replace(
    EXPERTS_OWN,
    dispatch_send=Affine(5.2e-5, 0.0784e-6),
    dispatch_recv=Affine(1e-5, 0.0),
    moe=Plateau(0.295e-3, 0.0478e-6),
    combine_send=Affine(5.2e-5, 0.1463e-6),
    combine_recv=Affine(1e-5, 0.0),
    host_dispatch=0.0,
    step_overhead=0.02,
)
"""Synchronous: the same, with blocking collectives, and experts on all 32 dies."""


def back_to_back() -> float:
    """How much shorter a step behind another is than the TTFT of a lone request of its length, seconds.

    That is what of TTFT does not occupy a group. Whose step a request waited for is not logged: the most frequent
    difference (10 ms classes) is taken over all requests that were answered in the meantime.
    """
    shorter: list[float] = []
    for rate in CALIBRATED_RATES:
        log = log_of(ASYNC, rate)
        alone, tokens, end = lone_requests(log), log.requests.prompt.astype(np.float64), log.requests.arrival + log.ttft
        law = np.polynomial.Polynomial.fit(tokens[alone], log.ttft[alone], 2)
        for k in np.flatnonzero(log.ttft > law(tokens) + 0.06):
            others = end[max(0, k - 30) : k + 5]
            met = others[(others > log.requests.arrival[k] + 0.05) & (others < end[k] - 0.01)]
            shorter += (law(tokens[k]) - (end[k] - met)).tolist()
    count, edges = np.histogram(shorter, bins=np.arange(-0.05, 0.105, 0.01))
    return float(edges[np.argmax(count)] + 0.005)


def fit_asynchronous() -> SystemFit:
    """Attention, step overhead and request latency of the asynchronous system."""
    rest, latency = _small_budget(ASYNC), back_to_back()

    def residuals(costs: LayerCosts) -> NDArray[np.float64]:
        return np.append(rest(costs), np.log2(costs.request_latency / latency) / _READING)

    return _fit(ASYNC, EXPERTS_OWN, DEFAULT_KEYS, residuals)


def fit_synchronous(shared: LayerCosts) -> SystemFit:
    """The step overhead of the synchronous system, with given attention and latency."""
    start = replace(EXPERTS_SHARED, attention=shared.attention, request_latency=shared.request_latency)
    return _fit(SYNC, start, ("step_overhead",), _small_budget(SYNC))


def _fit(system: str, start: LayerCosts, keys: tuple[str, ...], extra: Residuals) -> SystemFit:
    scenario = Scenario.load(SCENARIOS[system])
    logs = [replay_of(log_of(system, rate), scenario.layout, scenario.policy) for rate in CALIBRATED_RATES]
    return fit_system(logs, start, keys, extra)


def _small_budget(system: str) -> Residuals:
    """Residuals of the cells of budget 16384, of which no logs were published."""
    known = {one.rate: one for one in cells() if one.system == system and one.budget == 16384}

    def residuals(costs: LayerCosts) -> NDArray[np.float64]:
        out = []
        for rate in CALIBRATED_RATES:
            found, measured = statistics(replays(system, 16384, rate, costs)), known[rate]
            out.append(np.log(found.mean_s / measured.mean_s) / _SPREAD[0])
            out.append(np.log(found.p99_s / measured.p99_s) / _SPREAD[1])
        return np.array(out)

    return residuals


def main() -> None:
    """Fit both and print."""
    from asapmodel.studies.evidence_deployments_steps import lone_attention

    own = fit_asynchronous()
    shared = replace(own.costs, attention=lone_attention())
    print(f"attention of lone requests, per pair of the hardest slice: {shared.attention}")
    for name, found in (("afd-async", own), ("afd-sync", fit_synchronous(shared))):
        print(f"{name}: median errors, alone {np.median(np.abs(found.lone)):.1%}, windows", end=" ")
        print(f"{np.median(np.abs(found.windows)):.1%}, left out {np.median(np.abs(found.held_out)):.1%}")
        for key, value, (low, high) in zip(found.keys, found.values, found.intervals, strict=True):
            print(f"  {key} = {value:.4g}, 95 % {low:.4g} to {high:.4g}")
        print(f"  open: {found.unidentified() or 'nothing'}; at the end of a range: {found.at_bound or 'nothing'}")


if __name__ == "__main__":
    main()
