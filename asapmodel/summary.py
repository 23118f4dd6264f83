"""From per-request times, or from a law of TTFT, to the numbers of a `Result`."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import ByLength, Point, TtftLaw
from asapmodel.engines.graph import Run
from asapmodel.policy import Layout
from asapmodel.result import Parts, Records, Slo, Ttft
from asapmodel.scenario_tables import SloTable
from asapmodel.solvers.sample import batch_means_interval
from asapmodel.systems.arrays import Requests

__all__ = [
    "bottleneck",
    "by_length",
    "empirical_law",
    "law_parts",
    "law_slo",
    "law_statistic",
    "law_ttft",
    "make_records",
    "parts",
    "slo",
    "statistic",
    "ttft",
    "utilisation",
]

_SMALLEST_CLASS = 512  # tokens; classes double from there, as in figure 15 of the ASAP paper

Floats = NDArray[np.float64]


def make_records(run: Run, requests: Requests, request_latency: float) -> Records:
    """Per-request records; `ttft = end - arrival + request_latency`."""
    return Records(
        arrival_s=requests.arrival,
        prompt_tokens=requests.prompt,
        cached_tokens=requests.cached,
        start_s=run.outcome.start,
        end_s=run.outcome.end,
        ttft_s=run.outcome.end - requests.arrival + request_latency,
        kernel_s=run.outcome.kernel,
    )


def ttft(values: Floats) -> Ttft:
    """Mean, deviation and quantiles (linear interpolation), with a batch-means interval for the mean."""
    p50, p90, p95, p99 = np.quantile(values, [0.5, 0.9, 0.95, 0.99])
    low, high = batch_means_interval(values)
    return Ttft(
        mean_s=float(values.mean()),
        std_s=float(values.std()),
        p50_s=float(p50),
        p90_s=float(p90),
        p95_s=float(p95),
        p99_s=float(p99),
        mean_interval_s=(max(low, 0.0), high) if np.isfinite(high) else None,
    )


def statistic(values: Floats, objective: SloTable) -> float:
    """The statistic the objective speaks of, seconds."""
    share = objective.quantile
    return float(values.mean()) if share is None else float(np.quantile(values, share))


def slo(values: Floats, objective: SloTable) -> Slo:
    """Hold the requests against the objective; the denominator of attainment is all requests."""
    value = statistic(values, objective)
    return Slo(
        ttft_s=objective.ttft,
        statistic=objective.statistic,
        value_s=value,
        met=value <= objective.ttft,
        attainment=float(np.mean(values <= objective.ttft)),
    )


def parts(records: Records) -> Parts:
    """Mean of arrival to start, own batches alone, and the rest (barriers, contention); latency outside is left out."""
    queueing = records.start_s - records.arrival_s
    inside = records.end_s - records.start_s - records.kernel_s
    return Parts(float(queueing.mean()), float(records.kernel_s.mean()), float(max(inside.mean(), 0.0)))


def utilisation(run: Run, elapsed: float) -> dict[str, float]:
    """Busy share of each resource over `elapsed` seconds (groups: mean over groups)."""
    return {name: busy / elapsed for name, busy in run.busy_s.items()}


def bottleneck(layout: Layout, busy: Mapping[str, float]) -> str:
    """The resource that paces the system, by busy seconds or shares.

    Free execution: the resource with the largest busy share. Lockstep: the largest part of an iteration, attention
    counted at the pace of the slowest group; ``attention barrier`` where waiting outweighs the groups' own work.
    """
    if layout.kind == "asap":
        own = (name for name in busy if not name.endswith("_blocked"))
        return max(own, key=lambda name: busy[name])
    pace = {"attention": busy["attention"] + busy["barrier"], "transfers": busy["transfers"], "moe": busy["moe"]}
    name = max(pace, key=lambda key: pace[key])
    return "attention barrier" if name == "attention" and busy["barrier"] > busy["attention"] else name


def empirical_law(values: Floats) -> TtftLaw:
    """The law of observed times, whose quantiles are those of `numpy.quantile`; one value is a step."""
    times = np.sort(values)
    if len(times) == 1:
        times = np.repeat(times, 2)
    return TtftLaw(times, np.linspace(0.0, 1.0, len(times)), float(values.mean()), float(values.std()))


def by_length(records: Records) -> ByLength:
    """TTFT by tokens to compute, in classes up to 512, 1024, 2048 ... tokens; empty ones are left out."""
    tokens = records.prompt_tokens - records.cached_tokens
    place = np.ceil(np.log2(np.maximum(tokens, _SMALLEST_CLASS) / _SMALLEST_CLASS)).astype(np.int64)
    members = [np.flatnonzero(place == k) for k in np.unique(place)]
    return ByLength(
        np.array([tokens[one].mean() for one in members]),
        np.array([len(one) / len(tokens) for one in members]),
        np.array([records.ttft_s[one].mean() for one in members]),
        np.array([np.quantile(records.ttft_s[one], 0.95) for one in members]),
    )


def law_ttft(law: TtftLaw) -> Ttft:
    """Mean, deviation and quantiles of a law."""
    p50, p90, p95, p99 = np.interp((0.5, 0.9, 0.95, 0.99), law.cdf, law.time).tolist()
    return Ttft(law.mean, law.std, p50, p90, p95, p99)


def law_statistic(law: TtftLaw, objective: SloTable) -> float:
    """The statistic the objective speaks of, seconds."""
    share = objective.quantile
    return law.mean if share is None else law.quantile(share)


def law_slo(law: TtftLaw, objective: SloTable) -> Slo:
    """Hold a law against the objective; a law of NaN misses it."""
    value = law_statistic(law, objective)
    share = law.within(objective.ttft) if np.isfinite(value) else value  # NaN: there is no law
    return Slo(objective.ttft, objective.statistic, value, value <= objective.ttft, share)


def law_parts(point: Point) -> Parts:
    """Parts of the mean at an operating point."""
    return Parts(point.queueing_s, point.kernel_s, point.waiting_s)
