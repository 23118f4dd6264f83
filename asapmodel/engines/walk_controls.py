"""Control variates of the queueing engine: what is known exactly about a walk's arrivals, and how to use it.

With `Y` a quantity of the walk and `C` controls of known means, `Y` is regressed on `C` and the regression evaluated at
the known means (Glasserman, Monte Carlo Methods in Financial Engineering (2004), 4.1). The controls:

* hinges `(W - k)^+` of the wait `W` in the reference queue (`walk_reference.wait_law`);
* work discounted over several time constants, before and after an arrival, and its square;
* the prompt's own tokens and attention work.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.walk_reference import discounted_moments
from asapmodel.solvers.compiled import arrays_only
from asapmodel.solvers.distinct import distinct

__all__ = ["Controls", "make_controls", "matched", "moved", "regress"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_KNOTS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95)
_PAST, _FUTURE = (0.5, 2.0, 8.0), (0.5, 2.0)  # time constants, each four times the one before
_PRIOR = 1.0


class Controls(NamedTuple):
    """Values by prompt and control, exact means; the first `len(knots)` are hinges of `wait` at `knots`."""

    values: Floats
    means: Floats
    knots: Floats
    wait: Floats
    order: Ints  # of the waits


@arrays_only
def _waits(gap: Floats, mark: Floats, first: int, stride: int, wait: Floats) -> None:
    """Lindley's recursion `W' = max(W + X - A, 0)`; every `stride`-th wait is kept."""
    level = 0.0
    last = first + stride * (wait.shape[0] - 1)
    for i in range(1, last + 1):
        level = max(level + mark[i - 1] - gap[i], 0.0)
        if i >= first and (i - first) % stride == 0:
            wait[(i - first) // stride] = level


@arrays_only
def _discount(sums: Floats, gap: float, mark: float) -> None:
    """One step of `Y' = exp(-A / t) (Y + X)` for three time constants; `gap` is in units of the longest."""
    slow = np.exp(-gap)
    middle = slow * slow * slow * slow
    sums[0] = middle * middle * middle * middle * (sums[0] + mark)
    sums[1] = middle * (sums[1] + mark)
    sums[2] = slow * (sums[2] + mark)


@arrays_only
def _fill(
    gap: Floats,
    mark: Floats,
    rows: Ints,
    own: Floats,
    knots: Floats,
    wait: Floats,
    longest: float,
    first: int,
    stride: int,
    sums: Floats,
    values: Floats,
) -> None:
    """Rows of controls: hinges, discounted sums with squares, the prompt's own; `sums` are three zeros."""
    kept = wait.shape[0]
    last = first + stride * (kept - 1)
    size = knots.shape[0]
    for i in range(1, last + 1):
        _discount(sums, gap[i] / longest, mark[i - 1])
        if i >= first and (i - first) % stride == 0:
            row = (i - first) // stride
            for j in range(size):
                values[row, j] = max(wait[row] - knots[j], 0.0)
            for j in range(3):
                values[row, size + 2 * j] = sums[j]
                values[row, size + 2 * j + 1] = sums[j] * sums[j]
            for j in range(own.shape[1]):
                values[row, size + 10 + j] = own[rows[i], j]
    sums[:] = 0.0
    for i in range(gap.shape[0] - 2, first - 1, -1):
        _discount(sums, gap[i + 1] / longest, mark[i + 1])
        if i <= last and (i - first) % stride == 0:
            row = (i - first) // stride
            for j in range(2):
                values[row, size + 6 + 2 * j] = sums[j]
                values[row, size + 7 + 2 * j] = sums[j] * sums[j]


def make_controls(
    gap: Floats,
    work: Floats,
    rows: Ints,
    own: Floats,
    law: tuple[float, Floats],
    shape: float,
    scale: float,
    kept: slice,
) -> Controls:
    """Controls of the prompts `kept` of a walk.

    Parameters
    ----------
    gap : array
        Gaps of the walk, in units of the mean work.
    work : array
        Work by row of the length law, mean 1.
    rows : array of int
        Row of each prompt of the walk.
    own : array
        Columns of the prompt's own, by row of the length law.
    law
        Exact law of the reference wait, `(step, masses)`.
    shape : float
        Of the gamma gaps.
    scale : float
        Unit of the time constants of the discounted work.
    kept : slice
        Of the walk; its step keeps every so many.
    """
    count = len(range(*kept.indices(len(gap))))
    mark = work[rows]
    wait = np.zeros(count)
    _waits(gap, mark, kept.start, kept.step, wait)
    order = np.argsort(wait)
    knots = distinct(wait[order[(np.array(_KNOTS) * count).astype(np.int64)]])
    values = np.zeros((count, len(knots) + 10 + own.shape[1]))
    _fill(gap, mark, rows, own, knots, wait, _PAST[-1] * scale, kept.start, kept.step, np.zeros(3), values)
    rate = 1.0 / float(gap.mean())
    square = float(np.mean(work**2))
    around = [discounted_moments(shape, rate, time * scale, 1.0, square) for time in (*_PAST, *_FUTURE)]
    means = np.concatenate([_hinge_means(knots, law), np.ravel(around), own.mean(axis=0)])
    return Controls(values, means, knots, wait, order)


def _hinge_means(knots: Floats, law: tuple[float, Floats]) -> Floats:
    """`E (W - k)^+`, the integral of the tail beyond k; linear between lattice points, as the integral is there."""
    step, mass = law
    tail = 1.0 - np.cumsum(mass)
    beyond = step * (np.cumsum(tail[::-1])[::-1])
    means: Floats = np.interp(knots, np.arange(len(mass)) * step, beyond)
    return means


def matched(controls: Controls, law: tuple[float, Floats]) -> Floats:
    """The quantile of the exact law at the rank that each wait has in the walk."""
    step, mass = law
    count = len(controls.wait)
    cdf = np.cumsum(mass)
    ranks = (np.arange(count) + 0.5) / count
    # Mass at a lattice point is spread evenly over the cell around it; what is at 0 stays there.
    quantile = np.interp(ranks, cdf, (np.arange(len(mass)) + 0.5) * step)
    quantile[ranks <= cdf[0]] = 0.0
    found = np.empty(count)
    found[controls.order] = quantile
    return found


def moved(controls: Controls, steps: Floats, to: Floats) -> Floats:
    """How much the TTFT changes when the wait does, by its piecewise linear relation; never against it.

    `steps` are the coefficients of the hinges, `to` the new waits.
    """
    knots = controls.knots
    slopes = np.maximum(np.cumsum(steps), 0.0)
    height = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(knots))])

    def relation(value: Floats) -> Floats:
        piece = np.clip(np.searchsorted(knots, value, side="right") - 1, 0, len(knots) - 1)
        line: Floats = height[piece] + slopes[piece] * (value - knots[piece])
        return line

    return relation(to) - relation(controls.wait)


def regress(controls: Controls, target: Floats, slope: float) -> Floats:
    """Least squares by scaled normal equations.

    A trace of ridge keeps dependent columns apart. `slope` is what the hinges should add up to, the change of the
    target with a long wait: behind a backlog, both drain at the same pace. The few prompts with long waits say so only
    roughly; the expectation counts as much as `_PRIOR` times what they say.
    """
    values = controls.values
    scale = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values))
    scale[scale == 0] = 1.0
    matrix = values.T @ values
    right = values.T @ target
    size = len(controls.knots)
    weight = _PRIOR * len(values) * float(np.mean(np.maximum(controls.wait - controls.knots[-1], 0.0) ** 2))
    matrix[:size, :size] += weight
    right[:size] += weight * slope
    matrix /= np.outer(scale, scale)
    matrix[np.diag_indices_from(matrix)] += 1e-9 * len(values)
    coefficients: Floats = np.linalg.solve(matrix, right / scale) / scale
    return coefficients
