"""What a fit is asked for and what it answers: positive parameters, their estimates and how sure they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Parameter"]

Array = NDArray[np.float64]

EXACT = 1e-9  # scale of residuals that counts as a perfect fit


@dataclass(frozen=True, slots=True)
class Parameter:
    """A positive parameter: where the search starts, and ``0 < lower <= upper``, its bounds."""

    name: str
    start: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a table says of the parameters.

    Attributes
    ----------
    names : tuple of str, length P
        Of the parameters.
    values : float64 array, shape (P,)
        The estimates.
    covariance : float64 array, shape (P, P)
        Of the logarithms of the estimates; zero rows where a parameter is at a bound, infinity on the diagonal where
        the points do not determine it.
    intervals : float64 array, shape (P, 2)
        95 % confidence intervals, inside the bounds.
    at_bound : tuple of str
        Parameters the data would push out of their bounds.
    predicted, residuals : float64 array, shape (N,)
        The law at the estimates, and ``log(predicted / measured)``.
    scale : float
        Robust standard deviation of the residuals in units of the noise given: far above 1 means that the law, not the
        noise, limits the fit.
    singular_values, directions : float64 array, shapes (F,), (F, P)
        Of the Jacobian of the scaled residuals by the logarithms of the F parameters that are not at a bound.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    intervals: Array
    at_bound: tuple[str, ...]
    predicted: Array
    residuals: Array
    scale: float
    singular_values: Array
    directions: Array

    def standard_errors(self) -> Array:
        """Standard errors of the values, ``value x standard error of its logarithm``; shape (P,)."""
        errors: Array = self.values * np.sqrt(np.diag(self.covariance))
        return errors

    def unidentified(self, spread: float = 0.5) -> tuple[dict[str, float], ...]:
        """Combinations of parameters that the points leave open.

        Parameters
        ----------
        spread : float
            Standard error of the logarithm of a combination from which on it counts as open; 0.5 is a factor of 1.6.

        Returns
        -------
        tuple of dict
            Exponents by parameter, the largest 1 in size, those below 0.1 left out: multiplying every parameter by
            ``x ** exponent`` hardly changes the predictions.
        """
        found = []
        for value, direction in zip(self.singular_values, self.directions, strict=True):
            if value <= tiny(self.singular_values) or max(self.scale, EXACT) / value > spread:
                scaled = direction / direction[np.argmax(np.abs(direction))]
                found.append({n: float(x) for n, x in zip(self.names, scaled, strict=True) if abs(x) >= 0.1})
        return tuple(found)


def tiny(singular_values: Array) -> float:
    return 1e-7 * float(singular_values.max(initial=0.0))
