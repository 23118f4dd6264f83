"""What is said of the uncertainty of an answer: frozen records of plain numbers."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Constant", "Drawn", "Exact", "Gain", "Interval", "Narrowing", "Uncertainty", "interval_of"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An answer with the constants at their estimates (`value`), and the ends and median of its law.

    `high` of a TTFT is infinite where too many of the systems are not stable.
    """

    value: float
    low: float
    median: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low


def interval_of(value: float, values: NDArray[np.float64], level: float) -> Interval:
    """The middle `level` of the values that are numbers; infinite ones count as larger than all."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return Interval(value, math.nan, math.nan, math.nan)
    with np.errstate(invalid="ignore"):
        ends = np.quantile(known, [0.5 - level / 2, 0.5, 0.5 + level / 2])
    low, median, high = (math.inf if math.isnan(end) else float(end) for end in ends)  # inf - inf in between
    return Interval(value, low, median, high)


@dataclass(frozen=True, slots=True)
class Constant:
    """An uncertain constant, and its share of the variance of the SLO throughput's logarithm.

    Attributes
    ----------
    key : str
        As in a scenario.
    law : str
        ``"normal"``, ``"reciprocal"`` (1/x normal), ``"uniform"`` or ``"triangular"``; of a cost, of the factor on it.
    value, low, high : float
        The estimate, and the middle `level` of what was drawn; SI units, of a cost factors.
    relative_std : float
        Standard deviation over the value.
    origin : str
        Whose word it is.
    alone, total : float
        Share that it brings alone, and with all it interacts with; NaN if shares could not be told.
    """

    key: str
    law: str
    value: float
    low: float
    high: float
    relative_std: float
    origin: str
    alone: float
    total: float


@dataclass(frozen=True, slots=True)
class Exact:
    """A constant whose error nobody states: its `kind` (measured, fitted, assumed, override), and what it moves.

    `elasticity` is the change of the SLO throughput in per cent by one per cent of the constant; NaN where unknown.
    """

    key: str
    kind: str
    elasticity: float


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What one measurement would be worth.

    Attributes
    ----------
    name, words : str
        Of the measurement.
    constants : tuple of str
        Which it tells.
    alone, total : float
        Shares of the group, as of a `Constant`.
    throughput_low, throughput_high : float
        The interval of the SLO throughput if the measurement confirms the middle of what is known, requests/s.
    width : float
        Expected width of the interval, of whatever comes out, over that of today.
    """

    name: str
    words: str
    constants: tuple[str, ...]
    alone: float
    total: float
    throughput_low: float
    throughput_high: float
    width: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """How an answer was drawn.

    Attributes
    ----------
    level : float
        Of the intervals.
    samples, seed : int
        Draws, and how.
    constants : tuple of str
        The uncertain ones that act, by key. Without any there is nothing to draw: all draws are the estimates.
    outside : int
        Draws that were left out since no constants can be so.
    """

    level: float
    samples: int
    seed: int
    constants: tuple[str, ...]
    outside: int

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """How sure the answers of a scenario are.

    Attributes
    ----------
    level : float
        Of all intervals.
    samples, seed, noise : int, int, float
        Systems drawn, how, and the relative error of a measurement that is supposed.
    throughput, limit : Interval
        SLO throughput and stability limit, requests/s.
    rate_rps, ttft_mean, ttft_p99 : float, Interval, Interval or None
        TTFT in seconds at the rate, if there is one.
    linear : (float, float) or None
        The interval of the SLO throughput to first order, by elasticities; None where there are none.
    constants : tuple of Constant
        The uncertain ones, the largest share first.
    measurements : tuple of Narrowing
        The one that narrows most first.
    explained : float
        Share of the drawn systems' variance that the surface behind shares and narrowings explains.
    outside : int
        Draws that were left out since no constants can be so (a share above 1, a time below 0).
    missed, unstable, failed : int
        Drawn systems that miss the objective at every rate (throughput 0), have no stationary TTFT at the rate (TTFT
        infinite), and that the model has no answer for (left out).
    engine_error : (float, float)
        Median and 95th percentile of the queueing engine's own relative error of the SLO throughput; not in the
        intervals.
    exact : tuple of Exact
        Constants without a stated error, the most influential first: the intervals take them as exact.
    """

    scenario: str
    system: str
    slo_ttft_s: float
    statistic: str
    level: float
    samples: int
    seed: int
    noise: float
    throughput: Interval
    limit: Interval
    rate_rps: float | None
    ttft_mean: Interval | None
    ttft_p99: Interval | None
    linear: tuple[float, float] | None
    constants: tuple[Constant, ...]
    measurements: tuple[Narrowing, ...]
    explained: float
    outside: int
    missed: int
    unstable: int
    failed: int
    engine_error: tuple[float, float]
    exact: tuple[Exact, ...]

    @property
    def best(self) -> Narrowing | None:
        """The measurement that narrows the interval most; None if none narrows it."""
        return self.measurements[0] if self.measurements and self.measurements[0].width < 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Gain:
    """SLO throughput of one scenario over that of another, drawn with the same constants.

    `better` is the share of the drawn pairs in which it is larger, `apart` the interval if the two were drawn
    independently: what shared constants take away.
    """

    scenario: str
    over: str
    level: float
    ratio: Interval
    better: float
    apart: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return asdict(self)
