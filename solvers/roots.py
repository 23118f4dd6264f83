"""Where an increasing function crosses a level, when each evaluation is expensive and the bracket is the answer."""

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Crossing", "NoCrossing", "find_crossing"]


class NoCrossing(ValueError):
    """The function is above the level everywhere that was looked, or below it; `points` are what was evaluated."""

    def __init__(self, message: str, points: tuple[tuple[float, float], ...]) -> None:
        self.points = points
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Bracket of a crossing: `f(low) <= level < f(high)`; `estimate` lies between; `points` are sorted by x."""

    low: float
    high: float
    estimate: float
    points: tuple[tuple[float, float], ...]


def find_crossing(
    function: Callable[[float], float],
    level: float,
    low: float,
    high: float,
    tolerance: float = 0.005,
    growth: float = 1.3,
    limit: float = math.inf,
) -> Crossing:
    """Bracket the crossing of `level` by a positive, increasing `function` of a positive argument.

    The first guesses are widened geometrically, then the bracket shrinks by the Illinois variant of false position on
    `log f`, which is nearly straight where queues build up, safeguarded by bisection.

    Parameters
    ----------
    function : callable
        Positive and increasing in its argument (up to noise: the bracket is of the values that were seen).
    level : float
        Level to cross, positive.
    low, high : float
        First guesses, `0 < low < high`.
    tolerance : float
        Stop when `high - low <= tolerance * high`.
    growth : float
        Factor by which a bracket is widened.
    limit : float
        Give up above this argument.

    Raises
    ------
    NoCrossing
        If `function` is above the level down to a thousandth of the first `low`, or not above it up to `limit`.

    Notes
    -----
    Dowell and Jarratt, "A modified regula falsi method for computing the root of an equation", BIT 11 (1971).

    Examples
    --------
    >>> c = find_crossing(lambda x: 1 / (10 - x) if x < 10 else float("inf"), 1.0, 4.0, 8.0)
    >>> c.low <= 9.0 <= c.high
    True
    """
    seen: dict[float, float] = {}

    def value(x: float) -> float:
        if x not in seen:
            seen[x] = function(x)
        return seen[x]

    def points() -> tuple[tuple[float, float], ...]:
        return tuple(sorted(seen.items()))

    floor = low / 1000
    while value(low) > level:
        if low <= floor:
            raise NoCrossing(f"{value(low):.4g} is above {level:.4g} even at {low:.4g}", points())
        high, low = low, low / max(2.0, growth)
    while value(high) <= level:
        if high >= limit:
            raise NoCrossing(f"{value(high):.4g} is not above {level:.4g} up to {high:.4g}", points())
        low, high = high, min(high * growth, limit)
    low, high = _shrink(value, level, low, high, tolerance)
    return Crossing(low, high, _interpolate(low, high, value(low), value(high), level), points())


def _interpolate(low: float, high: float, f_low: float, f_high: float, level: float) -> float:
    """Straight line in log f; the middle where f is infinite."""
    below, above = math.log(level) - math.log(f_low), math.log(f_high) - math.log(level)
    if not math.isfinite(above) or below + above <= 0:
        return 0.5 * (low + high)
    return low + (high - low) * below / (below + above)


def _shrink(
    value: Callable[[float], float], level: float, low: float, high: float, tolerance: float
) -> tuple[float, float]:
    f_low, f_high = value(low), value(high)
    width = high - low
    side = 0
    while high - low > tolerance * high:
        x = _interpolate(low, high, f_low, f_high, level)
        margin = 0.3 * tolerance * high  # a guess on the edge would leave the other side where it is
        x = min(max(x, low + margin), high - margin)
        if high - low > 0.5 * width and side != 0:
            x = 0.5 * (low + high)
        width = high - low
        f_x = value(x)
        if f_x <= level:
            low, f_low = x, f_x
            if side == -1 and math.isfinite(f_high):  # Illinois: halve the stale side's distance to the level
                f_high = math.sqrt(f_high * level)
            side = -1
        else:
            high, f_high = x, f_x
            if side == 1:
                f_low = math.sqrt(f_low * level)
            side = 1
    return low, high
