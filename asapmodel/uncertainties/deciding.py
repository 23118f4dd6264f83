"""Which measurement would make a decision surer: the one that narrows a ratio of drawn answers most.

A choice between systems hangs on the ratio of their answers, in which shared constants cancel. What moves the ratio is
found like what moves a throughput (`asapmodel.uncertainties.learning`): a quadratic through its logarithm, and on that
the expected width of the interval after each measurement.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.uncertainties.learning import measurements_of, surface_of
from asapmodel.uncertainties.sources import Sources

__all__ = ["NOISE", "Decider", "decider_of"]

NOISE = 0.03
"""Relative error of the measurement, as in `asapmodel.verbs.uncertainty`."""

_WORTH = 0.9  # expected width left, above which a measurement is not worth a word
_ENOUGH = 0.5  # share of the variance that the surface has to explain, else it tells more of walks than of constants


@dataclass(frozen=True, slots=True)
class Decider:
    """The measurement that would narrow an answer most.

    Attributes
    ----------
    name, words : str
        Of the measurement.
    constants : tuple of str
        Which it tells.
    low, high : float
        The interval that is left of the answer if the measurement comes out in the middle of what is known.
    width : float
        Expected width of the interval, of whatever comes out, over that of today.
    """

    name: str
    words: str
    constants: tuple[str, ...]
    low: float
    high: float
    width: float


def decider_of(
    sources: Sources, values: NDArray[np.float64], answers: NDArray[np.float64], level: float, seed: int
) -> Decider | None:
    """Find the measurement that would narrow an answer most; None where none does by a tenth, or it cannot be told.

    Parameters
    ----------
    sources : Sources
        The constants.
    values : float64 array, shape (n, constants)
        What was drawn for them.
    answers : float64 array, shape (n,)
        The answer in each draw; those that are not positive and finite are left out.
    level, seed
        Of the interval, and of the draws.
    """
    surface = surface_of(values, answers)
    if surface is None or surface.explained < _ENOUGH:
        return None
    first = measurements_of(sources, surface, level, NOISE, seed)[0]
    if first.width > _WORTH:
        return None
    return Decider(first.name, first.words, first.constants, first.throughput_low, first.throughput_high, first.width)
