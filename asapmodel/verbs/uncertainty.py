"""`uncertainty`: SLO throughput and TTFT with intervals, and which measurement would narrow them most."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asapmodel.errors import InputError
from asapmodel.scenario import Scenario
from asapmodel.uncertainties.answer import Gain, Uncertainty, interval_of
from asapmodel.uncertainties.drawing import Drawn, draw
from asapmodel.uncertainties.engine_error import THROUGHPUT
from asapmodel.uncertainties.learning import constants_of, measurements_of, surface_of
from asapmodel.uncertainties.linear import exact_constants, linear_std, throughput_elasticities
from asapmodel.verbs.compare import check_same_workload
from asapmodel.verbs.prepared import Prepared, prepare

__all__ = ["LEVEL", "NOISE", "SAMPLES", "check_draws", "uncertain_gains", "uncertainty"]

Array = NDArray[np.float64]
Progress = Callable[[str], None] | None

SAMPLES, LEVEL, NOISE = 128, 0.9, 0.03
"""Drawn systems, level of intervals, relative error of a measurement: defaults."""

_FEWEST, _MOST = 16, 65536


def uncertainty(
    scenario: Scenario,
    rate: float | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = LEVEL,
    noise: float = NOISE,
    prepared: Prepared | None = None,
) -> Uncertainty:
    """State how sure the answers of a scenario are.

    The constants that carry an error (catalogue, calibrated profile, the scenario's `[uncertainty]`) are drawn from
    their laws, and the queueing engine answers for each drawn system; all others count as exact and are listed.

    Parameters
    ----------
    scenario : Scenario
        What is asked about.
    rate : float, optional
        Where to look at TTFT, requests/s; default the scenario's rate, if it has one.
    samples : int
        Systems to draw.
    seed : int
        Of the draw (a scrambled Sobol' sequence).
    level : float
        Of the intervals, between 0 and 1.
    noise : float
        Relative error of a measurement whose worth is judged, 0 or more.
    prepared : Prepared, optional
        Result of `prepare(scenario)`, to share it.

    Returns
    -------
    Uncertainty
        Intervals, shares of variance by constant, measurements by worth, what is taken as exact.

    Raises
    ------
    NoAnswer
        If the objective is missed at every rate, or the rate is not below the stability limit, with the constants at
        their estimates.
    InputError
        If an argument is out of range, or the scenario asks for runs of finite length.

    Notes
    -----
    The intervals are of the constants alone. The engine's own error is `engine_error`; that of the model's structure is
    nowhere in it: `docs/evidence.md` judges it by measurements.
    """
    _check(samples, level, noise)
    (drawn,) = draw([prepared or prepare(scenario)], rate, samples, seed, None)
    return _answer(drawn, samples, seed, level, noise)


def uncertain_gains(
    scenarios: Sequence[Scenario],
    rate: float | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    level: float = LEVEL,
    noise: float = NOISE,
    progress: Progress = None,
) -> tuple[list[Uncertainty], list[Gain]]:
    """State how sure the gains of scenarios over the first of them are.

    All are drawn with the same constants where they share them (the same key by the same word), so that what is common
    cancels in the gain.

    Parameters
    ----------
    scenarios : sequence of Scenario
        At least one, with equal workload and objective.
    rate, samples, seed, level, noise
        See `uncertainty`.
    progress : callable, optional
        Called with a line of text as work proceeds.

    Returns
    -------
    list of Uncertainty, list of Gain
        One a scenario; one a scenario but the first.

    Raises
    ------
    NoAnswer, InputError
        As `uncertainty`; and if workloads or objectives differ.
    """
    _check(samples, level, noise)
    if not scenarios:
        raise InputError("compare", "", "no scenario given", "name at least one")
    check_same_workload(scenarios)
    drawn = draw([prepare(one) for one in scenarios], rate, samples, seed, progress)
    answers = [_answer(one, samples, seed, level, noise) for one in drawn]
    return answers, [_gain(one, drawn[0], level) for one in drawn[1:]]


def check_draws(samples: int, level: float) -> None:
    """Check how many systems are to be drawn, and the level of intervals.

    Raises
    ------
    InputError
        If one is out of range.
    """
    if not _FEWEST <= samples <= _MOST:
        raise InputError("--samples", "", f"is {samples}", f"give a whole number from {_FEWEST} to {_MOST}")
    if not 0 < level < 1:
        raise InputError("level", "", f"is {level:g}", "give a share between 0 and 1, e.g. 0.9")


def _check(samples: int, level: float, noise: float) -> None:
    check_draws(samples, level)
    if not 0 <= noise < math.inf:
        raise InputError("noise", "", f"is {noise:g}", "give a relative error of 0 or more, e.g. 0.03")


def _answer(drawn: Drawn, samples: int, seed: int, level: float, noise: float) -> Uncertainty:
    scenario, estimate, found, sources = drawn.ready.scenario, drawn.estimate, drawn.answers, drawn.sources
    surface = surface_of(drawn.values, found.throughput)
    known = throughput_elasticities(drawn.ready, estimate.throughput)
    std = math.nan if known is None else linear_std(scenario, sources, known)
    reach = math.exp(float(ndtri(0.5 + level / 2)) * std)
    has_rate = estimate.rate is not None
    return Uncertainty(
        scenario=scenario.name,
        system=scenario.layout.kind,
        slo_ttft_s=scenario.slo.ttft,
        statistic=scenario.slo.statistic,
        level=level,
        samples=samples,
        seed=seed,
        noise=noise,
        throughput=interval_of(estimate.throughput, found.throughput, level),
        limit=interval_of(estimate.limit, found.limit, level),
        rate_rps=estimate.rate,
        ttft_mean=interval_of(estimate.mean, found.mean, level) if has_rate else None,
        ttft_p99=interval_of(estimate.p99, found.p99, level) if has_rate else None,
        linear=None if known is None else (estimate.throughput / reach, estimate.throughput * reach),
        constants=tuple(constants_of(sources, drawn.values, surface, level, seed)),
        measurements=tuple(measurements_of(sources, surface, level, noise, seed)),
        explained=math.nan if surface is None else surface.explained,
        outside=drawn.outside,
        missed=int(np.sum(found.throughput == 0)),
        unstable=int(np.sum(np.isinf(found.mean))),
        failed=int(np.sum(np.isnan(found.limit))),
        engine_error=THROUGHPUT[scenario.layout.kind],
        exact=tuple(exact_constants(drawn.ready, drawn.named, known)),
    )


def _gain(drawn: Drawn, first: Drawn, level: float) -> Gain:
    above, below = drawn.answers.throughput, first.answers.throughput
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios, every = above / below, (above[:, None] / below[None, :]).ravel()
    apart = interval_of(math.nan, every, level)
    known = ratios[~np.isnan(ratios)]
    return Gain(
        scenario=drawn.ready.scenario.name,
        over=first.ready.scenario.name,
        level=level,
        ratio=interval_of(drawn.estimate.throughput / first.estimate.throughput, ratios, level),
        better=float(np.mean(known > 1)) if len(known) else math.nan,
        apart=(apart.low, apart.high),
    )
