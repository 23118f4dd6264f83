"""What every study of evidence hands to the summary page `docs/evidence.md`.

Each of the modules `evidence_kernels`, `evidence_nodes`, `evidence_deployments` and `evidence_paper` offers
``summary() -> list[Row]``, a row a family, system or table, and may offer ``points() -> list[Point]``, every predicted
value beside its measured one, for the overview figure. Rows hold predictions only, never what was calibrated on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Point", "Row", "row_of"]


class Point(NamedTuple):
    """A predicted value beside the measured one; `unit` tells seconds (``"s"``) from rates (``"requests/s"``, ...)."""

    family: str
    measured: float
    predicted: float
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the summary.

    Attributes
    ----------
    source : str
        Where the measurements come from, say ``"public kernel tables"``, ``"measured deployment"``, ``"paper"``.
    family : str
        What is predicted, say ``"grouped GEMM"``, ``"mean TTFT, asynchronous"``.
    calibrated_on, predicted : str
        Rows that constants were fitted to, and rows that were predicted, in words.
    count : int
        Number of predicted rows.
    median_error, p95_error : float
        Median and 95th percentile of the absolute relative error.
    bias : float
        Median of the relative error with its sign; positive where the model is high.
    target_median, target_p95 : float or None
        Targets; None where there is none.
    met : bool or None
        Whether all targets are met; None where there is none.
    note : str
        Why a target is missed, or a caveat; one short sentence, may be empty.
    """

    source: str
    family: str
    calibrated_on: str
    predicted: str
    count: int
    median_error: float
    p95_error: float
    bias: float
    target_median: float | None = None
    target_p95: float | None = None
    met: bool | None = None
    note: str = ""


def row_of(
    source: str,
    family: str,
    rows: tuple[str, str],
    errors: Iterable[float],
    targets: tuple[float | None, float | None] = (None, None),
    note: str = "",
) -> Row:
    """The line of a set of relative errors, ``predicted / measured - 1``.

    Parameters
    ----------
    source, family, note : str
        See `Row`.
    rows : tuple of str
        What was calibrated on and what was predicted, in words.
    errors : iterable of float
        Relative errors of the predictions.
    targets : tuple of float or None
        For the median and the 95th percentile of the absolute error.

    Raises
    ------
    ValueError
        If there is no error to summarise.

    Examples
    --------
    >>> row = row_of("paper", "SLO throughput", ("one", "five"), [0.1, -0.02, 0.04], (0.1, None))
    >>> round(row.median_error, 3), round(row.bias, 3), row.met
    (0.04, 0.04, True)
    """
    values = np.array(list(errors), dtype=np.float64)
    if not len(values):
        raise ValueError(f"{source}, {family}: no errors to summarise; give at least one predicted row")
    sizes = np.abs(values)
    median, p95 = float(np.median(sizes)), float(np.quantile(sizes, 0.95))
    judged = [value <= target for value, target in zip((median, p95), targets, strict=True) if target is not None]
    met = all(judged) if judged else None
    return Row(source, family, *rows, len(values), median, p95, float(np.median(values)), *targets, met, note)
