"""Statements about means from finite samples: intervals over replications and over batches of one run."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["batch_means_interval", "mean_interval", "student_quantile"]


def student_quantile(p: float, degrees: int) -> float:
    """Quantile of Student's t, from the inverse of the regularised incomplete beta function.

    Examples
    --------
    >>> round(student_quantile(0.975, 9), 3)
    2.262
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, p))


def mean_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float]:
    """Interval for the mean of independent, equally distributed values (exact for normal ones).

    `mean -+ t s / sqrt(k)`; a single value gives `(-inf, inf)`: it says nothing of its own spread.
    """
    count = len(values)
    if count < 2:
        return (-math.inf, math.inf)
    half = student_quantile(0.5 + level / 2, count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    mean = float(np.mean(values))
    return (mean - half, mean + half)


def batch_means_interval(values: NDArray[np.float64], batches: int = 10, level: float = 0.95) -> tuple[float, float]:
    """Interval for the long-run mean from one correlated run, by batch means (an approximation).

    The run is cut into `batches` consecutive pieces whose means count as independent; with pieces shorter than the
    correlation (near saturation) the interval is too narrow.
    Source: Schmeiser, "Batch size effects in the analysis of simulation output", Oper. Res. 30 (1982).
    """
    size = len(values) // batches
    if size < 2:
        return (-math.inf, math.inf)
    means = values[: size * batches].reshape(batches, size).mean(axis=1)
    return mean_interval(means, level)
