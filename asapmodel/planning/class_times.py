"""TTFT of each class of prompts in a pool that several share.

A batch does not ask a prompt where it comes from: TTFT depends on the class through the length alone. The queueing
engine gives mean and 95th percentile of TTFT in twelve bins of length; between the bins' mean lengths they are taken to
be straight lines. A prompt's TTFT is a constant plus an exponential time with that mean and percentile. Both are scaled
so that over all prompts they give what the engine says of all prompts, which makes a class alone exact. The error of
mixed pools against the graph engine is in `docs/background/planning.md`.
"""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.analysis import Point
from asapmodel.planning.segments import Mix
from asapmodel.scenario_tables import SloTable
from asapmodel.summary import law_statistic

__all__ = ["class_statistics"]

Floats = NDArray[np.float64]

_P95 = math.log(20.0)  # 95th percentile of an exponential time, in means
_HALVINGS = 40


def class_statistics(point: Point, mix: Mix, objectives: Mapping[str, SloTable]) -> dict[str, float]:
    """The statistic of TTFT that each class's objective speaks of, seconds.

    Parameters
    ----------
    point : Point
        The engine's answer for the mix.
    mix : Mix
        Its prompts and their classes.
    objectives : mapping
        Of every class of the mix.
    """
    if len(mix.origin) == 1:
        (name,) = mix.origin
        return {name: law_statistic(point.ttft, objectives[name])}
    mean = _at(mix.tokens, point.by_length.tokens, point.by_length.mean_s)
    found = {}
    for place, name in enumerate(mix.origin):
        own = mix.member == place
        share = objectives[name].quantile
        if share is None:
            found[name] = float(mean[own].mean() * point.ttft.mean / mean.mean())
        else:
            spread = _at(mix.tokens, point.by_length.tokens, point.by_length.p95_s) - mean
            scale = np.clip(spread / (_P95 - 1.0), 1e-9, mean)
            whole = point.ttft.quantile(share) / _quantile(mean, scale, share)
            found[name] = whole * _quantile(mean[own], scale[own], share)
    return found


def _at(tokens: Floats, bins: Floats, values: Floats) -> Floats:
    """Straight lines between the bins, the last ones continued; bins of equal length are one."""
    knots, first = np.unique(bins, return_index=True)
    heights = values[first]
    if len(knots) == 1:
        return np.full(len(tokens), float(heights[0]))
    place = np.clip(np.searchsorted(knots, tokens) - 1, 0, len(knots) - 2)
    slope = np.diff(heights) / np.diff(knots)
    line = heights[place] + slope[place] * (tokens - knots[place])
    return np.maximum(line, 0.5 * float(heights.min()))


def _quantile(mean: Floats, scale: Floats, share: float) -> float:
    """Quantile of equally likely times `mean - scale + Exp(scale)`."""
    start = mean - scale
    low, high = float(start.min()), float((start - scale * math.log1p(-share)).max())
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = np.exp(-np.maximum(middle - start, 0.0) / scale).mean()
        low, high = (middle, high) if above > 1.0 - share else (low, middle)
    return 0.5 * (low + high)
