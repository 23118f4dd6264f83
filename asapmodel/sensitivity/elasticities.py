"""Elasticities: by how many per cent an answer changes when one number of the system does by one per cent.

`d ln(answer) / d ln(number)` over a factor of 1.1 both ways, of fixed walks. All numbers are moved at once, up or down
as a two-level design says (`asapmodel.solvers.two_level`): every system that is walked through tells of every number,
which divides the variance of noise by the number of systems and not by two. Schedulers are not differentiable (batches
that hold one prompt more jump), so the step is one that matters to a planner. Where the curve of TTFT over the rate is
enough the elasticity is its slope, without a difference: of the rate, of the objective and of `request_latency`. The
error is that of repeating all on other walks; every second walk has the folded design, which cancels interactions of
pairs of numbers.

**Sums.** Time has no natural unit: if all times are multiplied by x, TTFT at a rate divided by x is multiplied by x. So
the elasticities of TTFT with respect to all times, less that with respect to the rate, add up to 1; those of the SLO
throughput with respect to all times and to the objective add up to -1 (Euler's theorem).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Problem
from asapmodel.engines.side_by_side import side_by_side
from asapmodel.sensitivity.knobs import Knob
from asapmodel.sensitivity.local import Change, Curve, Walked
from asapmodel.solvers.two_level import effects, plackett_burman

__all__ = ["STEP", "Elasticity", "Point", "elasticities", "objective_elasticity", "rate_elasticity", "walk_all"]

Floats = NDArray[np.float64]

STEP = 1.1
"""Factor up and down."""

_LATENCY = "costs.request_latency"
_SLOPE = 1.02  # factor of the rate over which the curve's slope is taken


@dataclass(frozen=True, slots=True)
class Point:
    """Where an answer is asked for: the objective, and a rate below the stability limit.

    Attributes
    ----------
    objective_s : float
        Of the statistic, seconds.
    throughput_rps : float
        Rate that just meets it.
    rate_rps : float
        Rate at which the TTFT is looked at.
    """

    objective_s: float
    throughput_rps: float
    rate_rps: float

    def loads(self, curve: Curve) -> tuple[float, float]:
        """Loads of the two."""
        return self.throughput_rps / curve.limit, self.rate_rps / curve.limit


@dataclass(frozen=True, slots=True)
class Elasticity:
    """Elasticities of the SLO throughput, of TTFT at the rate and of the stability limit, with respect to one number.

    The errors are standard errors over walks, NaN with one walk. TTFT is infinite where the number makes the rate
    unstable within a step.
    """

    name: str
    value: float
    throughput: float
    ttft: float
    limit: float
    throughput_error: float = math.nan
    ttft_error: float = math.nan
    limit_error: float = math.nan


def elasticities(
    problem: Problem, curve: Curve, point: Point, knobs: Sequence[Knob], walks: Sequence[int] = (0,)
) -> list[Elasticity]:
    """Elasticities with respect to each of several numbers.

    Parameters
    ----------
    problem : Problem
        The system.
    curve : Curve
        Of its full analysis.
    point : Point
        Where.
    knobs : sequence of Knob
        Numbers of the problem.
    walks : sequence of int
        Which fixed walks; with several the mean is given, and its standard error.

    Raises
    ------
    QueueError
        If a changed system is beyond the queueing engine.
    """
    turned = [knob for knob in knobs if knob.name != _LATENCY]
    levels = plackett_burman(len(turned))
    folded = [(walk, levels if n % 2 == 0 else -levels) for n, walk in enumerate(walks)]
    wanted = [(_moved(problem, turned, row), walk) for walk, signs in folded for row in signs.tolist()]
    walked = walk_all(wanted, curve, point.loads(curve))
    logs = np.log([[one.limit, *one.ttft] for one in walked]).reshape(len(walks), len(levels), 3)
    slopes = [effects(signs, own) / math.log(STEP) for (_, signs), own in zip(folded, logs, strict=True)]
    found = {}
    for k, knob in enumerate(turned):
        rows = [_of_slopes(curve, point, slope[k]) for slope in slopes]
        mean, error = np.mean(rows, axis=0), np.full(3, math.nan)
        if len(walks) > 1 and np.all(np.isfinite(rows)):
            error = np.std(rows, axis=0, ddof=1) / math.sqrt(len(walks))
        found[knob.name] = Elasticity(knob.name, knob.value, *mean.tolist(), *error.tolist())
    return [_latency(knob, curve, point) if knob.name == _LATENCY else found[knob.name] for knob in knobs]


def _moved(problem: Problem, knobs: Sequence[Knob], levels: Sequence[int]) -> Problem:
    """All numbers up or down by the step."""
    for knob, level in zip(knobs, levels, strict=True):
        problem = knob.scaled(problem, STEP**level)
    return problem


def walk_all(
    wanted: Sequence[tuple[Problem, int]], curve: Curve, loads: tuple[float, ...], threads: int | None = None
) -> list[Walked]:
    """Walk through several problems, each with its walk, on the machine's cores; the answers do not depend on them."""
    return side_by_side(lambda one: Walked.of(one[0], curve, loads, one[1]), wanted, threads)


def _of_slopes(curve: Curve, point: Point, slopes: Floats) -> tuple[float, float, float]:
    """Of SLO throughput, TTFT and limit, from those of the limit and of TTFT at the loads of the two points."""
    span = 2.0 * math.log(STEP)
    ratios = [np.exp(slopes * math.log(STEP) * level).tolist() for level in (-1, 1)]
    throughput = [Change(curve, limit, first).throughput(point.objective_s) for limit, first, _ in ratios]
    ttft = [Change(curve, limit, second).ttft_at(point.rate_rps) for limit, _, second in ratios]
    return (
        math.log(throughput[1] / throughput[0]) / span,
        math.log(ttft[1] / ttft[0]) / span,
        float(slopes[0]),
    )


def rate_elasticity(curve: Curve, rate: float) -> float:
    """Elasticity of TTFT with respect to the rate: the slope of the curve."""
    load = rate / curve.limit
    low, high = load / _SLOPE, min(load * _SLOPE, 0.5 * (1.0 + load))
    return math.log(curve.at(high) / curve.at(low)) / math.log(high / low)


def objective_elasticity(curve: Curve, point: Point) -> float:
    """Elasticity of the SLO throughput with respect to the objective."""
    low, high = (curve.load_at(point.objective_s * factor) for factor in (1 / _SLOPE, _SLOPE))
    return math.log(high / low) / (2.0 * math.log(_SLOPE))


def _latency(knob: Knob, curve: Curve, point: Point) -> Elasticity:
    """It is a part of every TTFT and nothing else: a smaller objective, and a share of the time."""
    throughput = -objective_elasticity(curve, point) * knob.value / point.objective_s
    share = knob.value / curve.at(point.rate_rps / curve.limit)
    return Elasticity(knob.name, knob.value, throughput, share, 0.0, 0.0, 0.0, 0.0)
