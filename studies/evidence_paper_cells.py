"""What the paper leaves open, weighed by the rows that are fitted, and predictions averaged over it.

With K combinations of open decisions (`CELLS`), equally likely beforehand, and constants theta of the stated prior, the
probability of combination k given the fitted rows is proportional to the integral of its posterior density::

    w_k ~ integral exp(-J_k(theta)) dtheta ~ sqrt(det C_k) exp(-J_k(theta_k))

with J_k the objective, theta_k its minimum and C_k the covariance there: Laplace's approximation. A prediction is the
mean of its logarithm over the combinations, each with its own theta_k. Its variance has three parts: between the
combinations; within them, ``g' C g`` with g the derivatives at the chosen one by the logarithms of the constants; and
between runs of five minutes with other requests, since each of the paper's numbers is of one such run.

References
----------
.. [1] Hoeting, J. A., Madigan, D., Raftery, A. E. and Volinsky, C. T., "Bayesian model averaging: a tutorial",
   Statistical Science 14 (1999) 382-417.
"""

import csv
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.studies.evidence_paper_assumptions import AXES, CELLS, CHOSEN
from asapmodel.studies.evidence_paper_fit import Stored, covariance, fit_of, jacobian, logs_of, stored_fits
from asapmodel.studies.evidence_paper_rows import TARGETS, model_value
from asapmodel.studies.evidence_paper_systems import CONSTANTS, Assumption, Systems

__all__ = [
    "average",
    "interval",
    "marginals",
    "predict_all",
    "predicted",
    "single_run",
    "weights",
    "weights_of",
]

Array = NDArray[np.float64]

_STEP = 0.05  # of a logarithm, for differences
_RUNS = 16  # for the scatter of one run
_NORMAL_95 = 1.6448536269514722
_FILE = "data/evidence_paper_cells.csv"


def weights_of(fits: Mapping[str, Stored]) -> dict[str, float]:
    """Probabilities of fits given the fitted rows, equal beforehand.

    Examples
    --------
    >>> one, other = Stored({}, 1.0, (1.0,), 0.0), Stored({}, 1.0 + np.log(3), (1.0,), 0.0)
    >>> [round(x, 3) for x in weights_of({"a": one, "b": other}).values()]
    [0.75, 0.25]
    """
    logs = np.array([one.volume - one.objective for one in fits.values()])
    raw = np.exp(logs - logs.max())
    return {name: float(x) for name, x in zip(fits, raw / raw.sum(), strict=True)}


@cache
def weights() -> dict[str, float]:
    """Probabilities of the cells by name."""
    fits = stored_fits()
    return weights_of({one.fitted_as: fits[one.fitted_as] for one in CELLS.values()})


def marginals() -> dict[str, dict[str, float]]:
    """Probability of every way of every decision."""
    found = {}
    for place, (axis, ways) in enumerate(AXES.items()):
        found[axis] = {
            str(way): sum(weights()[one.fitted_as] for key, one in CELLS.items() if key[place] == way) for way in ways
        }
    return found


def _predict(assumption: Assumption) -> list[float]:
    return _all_of(Systems(fit_of(assumption).values, assumption))


def _all_of(systems: Systems) -> list[float]:
    """Every target, throughputs by the queueing engine."""
    found = []
    for row in TARGETS:
        value = model_value(row, systems, "queueing")
        assert isinstance(value, float)
        found.append(value)
    return found


def predict_all() -> Path:
    """Predict every target in every cell with its own constants, and write the file that averages are made of."""
    path = Path(str(files("asapmodel.studies").joinpath(_FILE)))
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(_predict, CELLS.values()))
    with path.open("w", newline="", encoding="utf-8") as stream:
        stream.write(
            "# Targets predicted in every cell; written by python -m asapmodel.studies.evidence_paper --predict\n"
        )
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(["cell", *TARGETS])
        lines.writerows([one.name, *(f"{x:.5g}" for x in row)] for one, row in zip(CELLS.values(), found, strict=True))
    return path


@cache
def predicted() -> dict[str, dict[str, float]]:
    """Stored predictions: by cell, the value of every target."""
    with files("asapmodel.studies").joinpath(_FILE).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    return {row["cell"]: {target: float(row[target]) for target in TARGETS} for row in rows}


def _logs(row: str) -> tuple[Array, Array]:
    """Logarithms of a prediction in all cells, and the cells' weights."""
    share = weights()
    return np.log([predicted()[name][row] for name in share]), np.array(list(share.values()))


def average(row: str) -> float:
    """A target, averaged over the cells: the exponential of the mean logarithm."""
    logs, share = _logs(row)
    return float(np.exp(share @ logs))


def interval(row: str) -> tuple[float, float]:
    """The 5 and 95 % points of a target in one run of the paper's length: log-normal, of the three variances."""
    logs, share = _logs(row)
    middle, gradient = float(share @ logs), _gradients()[row]
    within = float(gradient @ _covariance() @ gradient)
    spread = np.sqrt(share @ (logs - middle) ** 2 + within + _scatter()[row] ** 2)
    low, high = (float(np.exp(middle + sign * _NORMAL_95 * spread)) for sign in (-1, 1))
    return low, high


@cache
def _gradients() -> dict[str, Array]:
    """Derivatives of the logarithms of all predictions by those of the constants, at the chosen cell."""
    values = fit_of(CHOSEN).values
    logs = logs_of(values)

    def every(shifted: Array) -> Array:
        moved = {name: float(np.exp(x)) for name, x in zip(values, shifted, strict=True)}
        return np.log(_all_of(Systems(moved, CHOSEN)))

    steps = _STEP * np.eye(len(CONSTANTS))
    columns = [(every(logs + step) - every(logs - step)) / (2 * _STEP) for step in steps]
    return dict(zip(TARGETS, np.stack(columns, axis=1), strict=True))


@cache
def _covariance() -> Array:
    return covariance(jacobian(fit_of(CHOSEN).values, CHOSEN))


class _Run(Systems):
    """One run for every number."""

    seed = 0

    def seeds(self, each: int = 1) -> range:
        return range(self.seed, self.seed + 1)


def single_run(assumption: Assumption, seed: int) -> Systems:
    """The systems of an assumption with every number of one run of five minutes, as the paper's are."""
    one = _Run(fit_of(assumption).values, assumption)
    one.seed = seed
    return one


@cache
def _scatter() -> dict[str, float]:
    """Standard deviation of the logarithm of all predictions between single runs of the chosen cell."""
    runs = [single_run(CHOSEN, 1000 + k) for k in range(_RUNS)]
    found = [np.log([model_value(row, one) for row in TARGETS]) for one in runs]
    return dict(zip(TARGETS, np.std(found, axis=0, ddof=1).tolist(), strict=True))
