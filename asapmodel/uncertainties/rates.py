"""Intervals of TTFT at many rates: the same drawn systems at each of them.

The systems are those of `asapmodel.uncertainties.drawing`, and so are the answers: a rate in a list has the interval
that it has alone. Each drawn system is analysed once, and walks twice a rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.result import Result
from asapmodel.uncertainties.answer import Drawn, Interval, interval_of
from asapmodel.uncertainties.drawing import check_stationary, together
from asapmodel.uncertainties.linear import acting
from asapmodel.uncertainties.sampling import Look, draw_scores, sample, sample_rates, values_of
from asapmodel.uncertainties.sources import Sources, sources_of
from asapmodel.verbs.prepared import Prepared

__all__ = ["AtRate", "RateIntervals", "rate_intervals"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AtRate:
    """How sure TTFT at one rate is.

    Attributes
    ----------
    rate_rps : float
        Requests per second.
    ttft_mean, ttft_p99 : Interval
        Seconds; NaN where the constants at their estimates give no stationary law, or one at the very edge.
    met : float
        Share of the drawn systems that meet the objective at this rate; NaN likewise.
    unstable, failed : int
        Drawn systems without a stationary law at the rate (TTFT infinite), and without an answer in this model (left
        out).
    """

    rate_rps: float
    ttft_mean: Interval
    ttft_p99: Interval
    met: float
    unstable: int
    failed: int


@dataclass(frozen=True, slots=True)
class RateIntervals(Drawn):
    """How sure the answers at several rates are.

    Attributes
    ----------
    rates : tuple of AtRate
        In the order asked.
    """

    rates: tuple[AtRate, ...]


def rate_intervals(ready: Prepared, results: Sequence[Result], samples: int, seed: int, level: float) -> RateIntervals:
    """State how sure the answers of the queueing engine at some rates are.

    Parameters
    ----------
    ready : Prepared
        The system.
    results : sequence of Result
        Its answers with the constants at their estimates, one a rate.
    samples, seed, level
        See `asapmodel.verbs.uncertainty.uncertainty`.

    Raises
    ------
    InputError
        If the scenario asks for runs of finite length, or hardly any draw is possible.
    """
    check_stationary(ready.scenario)
    own = acting(ready.scenario, sources_of(ready.scenario, ready.costing.costs))
    sources, _ = together([own])
    scores, outside = draw_scores(sources, samples, seed)
    estimates = np.array([[one.ttft.mean_s, one.ttft.p99_s, one.slo.value_s] for one in results])
    answers = _answers(ready, sources, values_of(sources, scores), [one.rate_rps for one in results], estimates)
    objective = ready.scenario.slo.ttft
    rates = tuple(
        _at_rate(one, estimate, answers[:, k], objective, level)
        for k, (one, estimate) in enumerate(zip(results, estimates.tolist(), strict=True))
    )
    return RateIntervals(level, samples, seed, tuple(one.key for one in sources.constants), outside, rates)


def _answers(ready: Prepared, sources: Sources, values: Array, rates: Sequence[float], estimates: Array) -> Array:
    """Answers of drawn systems, times what makes those of the estimates right; shape (systems, rates, 3)."""
    if not sources.constants:
        return np.broadcast_to(estimates, (len(values), *estimates.shape))
    scenario, problem = ready.scenario, ready.problem
    middle = np.array([[one.law.value for one in sources.constants]])
    # The shorter walks' stability limit is a little off: the same load, not the same rate.
    limit = float(sample(scenario, problem, sources, middle, None).limit[0])
    known = np.flatnonzero(np.isfinite(estimates[:, 0]))
    looks = [Look.around(rates[k] * limit / ready.limit_rps, limit) for k in known.tolist()]
    base = sample_rates(scenario, problem, sources, middle, looks)
    base[~np.isfinite(base)] = math.nan
    out = np.full((len(values), *estimates.shape), math.nan)
    out[:, known] = estimates[known] * sample_rates(scenario, problem, sources, values, looks) / base
    return out


def _at_rate(result: Result, estimate: Sequence[float], answers: Array, objective: float, level: float) -> AtRate:
    mean, p99, statistic = answers.T
    known = statistic[~np.isnan(statistic)]
    return AtRate(
        rate_rps=result.rate_rps,
        ttft_mean=interval_of(estimate[0], mean, level),
        ttft_p99=interval_of(estimate[1], p99, level),
        met=float(np.mean(known <= objective)) if len(known) else math.nan,
        unstable=int(np.sum(np.isinf(mean))),
        failed=int(np.sum(np.isnan(mean))) if len(known) else 0,
    )
