"""Whether a tuned policy gains in systems whose constants are a little different: both policies in the same draws."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.scenario import Scenario
from asapmodel.uncertainties.answer import Drawn, Interval, interval_of
from asapmodel.uncertainties.checking import CHECKS
from asapmodel.uncertainties.deciding import Decider, decider_of
from asapmodel.uncertainties.drawing import answers_of, estimate_of, shared_draws
from asapmodel.verbs.prepared import prepare

__all__ = ["DrawnGain", "drawn_gain"]

Array = NDArray[np.float64]

_STILL = 1e-9  # relative difference that is none


@dataclass(frozen=True, slots=True)
class DrawnGain(Drawn):
    """How sure the gain of a tuned policy is.

    Attributes
    ----------
    failed : int
        Draws that have no answer with one of the policies.
    before, after, gain : Interval
        The objective with both policies, and the relative gain, draw by draw.
    better : float
        Share of draws in which the tuned policy is the better one.
    measure : Decider or None
        What would narrow most how many times better it is (`1 + gain`; of TTFT `1 / (1 - gain)`).
    """

    failed: int
    before: Interval
    after: Interval
    gain: Interval
    better: float
    measure: Decider | None


def drawn_gain(
    before: Scenario,
    after: Scenario,
    rate: float | None,
    *,
    samples: int,
    seed: int,
    level: float,
    progress: Callable[[str], None] | None = None,
) -> DrawnGain:
    """Draw two policies of a system with the same constants.

    With throughputs `X` the gain is `X_after / X_before - 1`, with TTFTs `y` at a rate `1 - y_after / y_before`.
    Throughputs of synchronous systems are asked in full in every draw, as that is soon done.

    Parameters
    ----------
    before, after : Scenario
        Equal but for the policy.
    rate : float, optional
        Compare the TTFT statistic there, requests/s; default the SLO throughput.
    samples, seed, level
        See `asapmodel.verbs.uncertainty.uncertainty`.
    progress : callable, optional
        Told what is being drawn.

    Raises
    ------
    NoAnswer, InputError
        See `asapmodel.uncertainties.drawing.draw`.
    """
    ready = [prepare(one) for one in (before, after)]
    estimates = [estimate_of(one, rate) for one in ready]
    shared = shared_draws([(one.scenario, one.costing.costs) for one in ready], samples, seed)
    columns = []
    for k, (one, estimate) in enumerate(zip(ready, estimates, strict=True)):
        if progress is not None:
            progress(f"{samples} systems with the {('given', 'tuned')[k]} policy")
        checks = samples if rate is None and one.scenario.layout.kind == "sync" else CHECKS
        found = answers_of(one, estimate, shared.own[k], shared.values_of(k), checks)
        own, drawn = (estimate.throughput, found.throughput) if rate is None else (estimate.statistic, found.statistic)
        columns.append(np.array([own, *drawn]))
    first, second = columns
    with np.errstate(divide="ignore", invalid="ignore"):
        times = second / first if rate is None else first / second
        gains = second / first - 1 if rate is None else 1 - second / first
    known = times[1:][~np.isnan(times[1:])]
    return DrawnGain(
        level=level,
        samples=samples,
        seed=seed,
        constants=tuple(one.key for one in shared.sources.constants),
        outside=shared.outside,
        failed=int(np.isnan(times[1:]).sum()),
        before=_interval(first, level),
        after=_interval(second, level),
        gain=_interval(gains, level),
        better=float(np.mean(known > 1 + _STILL)) if len(known) else float("nan"),
        measure=decider_of(shared.sources, shared.values, times[1:], level, seed),
    )


def _interval(column: Array, level: float) -> Interval:
    return interval_of(float(column[0]), column[1:], level)
