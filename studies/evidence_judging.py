"""How a kernel law is judged: fitted to some rows of a table, compared with rows it has not seen."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.calibration.laws import Law, law_of, link_law, name_of
from asapmodel.calibration.measurements import Measurements, join
from asapmodel.calibration.tables import read_tables
from asapmodel.solvers.robust_fit import Fit, robust_fit

__all__ = ["Judged", "column_of", "judge", "measured"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One test: what was calibrated on, what was predicted, and the errors of the predictions."""

    family: str
    name: str
    calibrated: str
    predicted: str
    fit: Fit
    rows_fitted: int
    data: Measurements
    errors: Array

    @property
    def median(self) -> float:
        """Median absolute error."""
        return float(np.median(np.abs(self.errors)))

    @property
    def p95(self) -> float:
        """95th percentile of the absolute error."""
        return float(np.quantile(np.abs(self.errors), 0.95))

    @property
    def bias(self) -> float:
        """Median error, with its sign."""
        return float(np.median(self.errors))

    def met(self) -> bool:
        """Whether both targets are met: median at most 6 %, 95th percentile at most 20 %."""
        return self.median <= 0.06 and self.p95 <= 0.20

    def parameters(self) -> dict[str, float]:
        """Fitted values by name."""
        return {name_of(x): float(v) for x, v in zip(self.fit.names, self.fit.values, strict=True)}

    def worst(self, count: int = 2) -> list[tuple[str, float, float]]:
        """Rows with the largest errors: origin, measured seconds, error."""
        order = np.argsort(-np.abs(self.errors))[:count]
        return [(self.data.origin[k], float(self.data.seconds[k]), float(self.errors[k])) for k in order]


@cache
def measured(name: str, model: str, device: str | None = None, architecture: str = "deepseek-v3.2") -> Measurements:
    """A shipped table of measurements, read."""
    path = files("asapmodel.studies").joinpath(f"data/measured/{name}.csv")
    return read_tables([str(path)], model, device, architecture)


def column_of(data: Measurements, name: str, column: str) -> NDArray[Any]:
    """A column of the shipped table, as it stands there, for every row of `data`."""
    import pandas as pd

    path = files("asapmodel.studies").joinpath(f"data/measured/{name}.csv")
    rows = [int(origin.rpartition(":")[2]) - 1 for origin in data.origin]
    return np.asarray(pd.read_csv(str(path), comment="#")[column].to_numpy()[rows])


def judge(
    family: str,
    name: str,
    calibrated: tuple[str, Measurements],
    predicted: tuple[str, Measurements],
    model: str = "link",
) -> Judged:
    """Fit to the rows of `calibrated`, predict those of `predicted`; both are named in words.

    Raises
    ------
    ValueError
        If a row is in both, or the two need different laws.
    """
    fitted, seen = calibrated[1], predicted[1]
    both = _keys(fitted) & _keys(seen)
    if both:
        raise ValueError(f"{len(both)} rows are calibrated on and predicted, e.g. {min(both)[0]}; keep them apart")
    if not len(seen):
        raise ValueError(f"{name}: no rows to predict; hold some out")
    law = _law(join([fitted, seen]), fitted, model)
    first = np.arange(len(fitted))
    fit = robust_fit(lambda p: law.predict(p, first), fitted.seconds, law.parameters, fitted.noise, bootstrap=False)
    times = law.predict(fit.values, np.arange(len(fitted), len(fitted) + len(seen)))
    words = (calibrated[0], predicted[0])
    return Judged(family, name, *words, fit, len(fitted), seen, times / seen.seconds - 1)


def _keys(data: Measurements) -> set[tuple[str, float]]:
    """Rows by origin and time: a line can hold two products."""
    return set(zip(data.origin, data.seconds.tolist(), strict=True))


def _law(every: Measurements, fitted: Measurements, model: str) -> Law:
    """The law for all rows; parameters start where the fitted rows say."""
    if model == "link":
        return link_law(every)
    base = catalog.load_profile("cloudmatrix384-paper").value
    whole, part = (law_of(data, model, base, detail=True) for data in (every, fitted))
    if [one.name for one in whole.parameters] != [one.name for one in part.parameters]:
        raise ValueError("rows to predict and rows to fit need different laws; judge one kind of row at a time")
    return Law(whole.predict, part.parameters)
