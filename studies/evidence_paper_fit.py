"""The fit of the paper's constants: a stated objective, its optimiser, and what the rows can tell apart.

With model values `f_i`, stated values `y_i` and constants `theta_j`, the objective is half the sum of squares of::

    log(f_i / y_i) / s_i                  rows of `FITTED`, s_i their deviation
    violation of a claim / 0.1            `HINGES`, 0 where the claim holds
    log(theta_j / centre_j) / spread_j    what is known of the constants without the paper's results

that is, the posterior density of a log-normal model. SLO throughputs are the queueing engine's, which are smooth in the
constants; TTFTs are of 16 runs with shared random numbers. The trust-region least squares of SciPy start from several
points; the best end is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.studies.evidence_paper_assumptions import ASSUMPTIONS, CHOSEN
from asapmodel.studies.evidence_paper_rows import FITTED, HINGES, model_value, shortfall
from asapmodel.studies.evidence_paper_systems import CONSTANTS, Assumption, Systems
from asapmodel.studies.paper import Claim, claims
from asapmodel.tomlfile import parse_toml

__all__ = [
    "HINGE",
    "Stored",
    "covariance",
    "fit",
    "fit_all",
    "format_fits",
    "jacobian",
    "logs_of",
    "objective",
    "residuals",
    "starts",
    "stored_fits",
]

Array = NDArray[np.float64]

STEP = 0.02  # of a logarithm, for differences
REPLICATIONS = 4  # four times as many runs for a mean TTFT
HINGE = 0.1  # violation of a claim, as a logarithm, that counts as one deviation
_FILE = "data/evidence_paper_fit.toml"


@dataclass(frozen=True, slots=True)
class Stored:
    """A fit as kept in the file: constants, the objective there, and where the other starts ended."""

    values: dict[str, float]
    objective: float
    ends: tuple[float, ...]


@cache
def _claim(row: str) -> Claim:
    return {claim.id: claim for claim in claims()}[row]


def _values(logs: Array) -> dict[str, float]:
    return {one.name: float(np.exp(x)) for one, x in zip(CONSTANTS, logs, strict=True)}


def logs_of(values: Mapping[str, float]) -> Array:
    """Logarithms of the constants, in their order."""
    return np.log([values[one.name] for one in CONSTANTS])


def residuals(values: Mapping[str, float], assumption: Assumption, replications: int = REPLICATIONS) -> Array:
    """Residuals of the objective: rows, claims, constants."""
    systems = Systems(values, assumption, replications)
    found = []
    for row, deviation in FITTED.items():
        value = model_value(row, systems, "queueing")
        assert isinstance(value, float)
        found.append(np.log(value / float(_claim(row).value)) / deviation)
    found += [shortfall(_claim(row), model_value(row, systems, "queueing")) / HINGE for row in HINGES]
    found += [np.log(values[one.name] / one.centre) / one.spread for one in CONSTANTS]
    return np.array(found)


def objective(values: Mapping[str, float], assumption: Assumption, replications: int = REPLICATIONS) -> float:
    """Half the sum of squares of `residuals`."""
    return 0.5 * float(np.sum(residuals(values, assumption, replications) ** 2))


def starts(count: int, seed: int = 0) -> Array:
    """Starting points in logarithms: the centres, and draws from what is known of the constants."""
    rng = np.random.default_rng(seed)
    centre = np.log([one.centre for one in CONSTANTS])
    spread = np.array([one.spread for one in CONSTANTS])
    drawn = centre + spread * rng.standard_normal((count - 1, len(CONSTANTS)))
    low, high = (np.log([getattr(one, side) for one in CONSTANTS]) for side in ("low", "high"))
    margin = 0.02 * (high - low)
    inside: Array = np.clip(np.vstack([centre, drawn]), low + margin, high - margin)
    return inside


def fit(assumption: Assumption, points: Sequence[Array] | Array) -> Stored:
    """Minimise the objective from every point; the best end and all ends' objectives."""
    from scipy.optimize import least_squares

    def function(logs: Array) -> Array:
        return residuals(_values(logs), assumption)

    low, high = (np.log([getattr(one, side) for one in CONSTANTS]) for side in ("low", "high"))
    ends = []
    for point in points:
        found = least_squares(
            function,
            point,
            bounds=(low, high),
            diff_step=STEP / np.maximum(np.abs(point), 1e-3),
            max_nfev=20,
            xtol=1e-3,
            ftol=1e-3,
        )
        ends.append((float(found.cost), found.x))
    ends.sort(key=lambda one: one[0])
    return Stored(_values(ends[0][1]), ends[0][0], tuple(cost for cost, _ in ends))


def jacobian(values: Mapping[str, float], assumption: Assumption, replications: int = REPLICATIONS) -> Array:
    """Derivatives of the residuals of rows and claims by the logarithms of the constants; central differences."""
    logs = logs_of(values)
    rows = len(FITTED) + len(HINGES)
    columns = []
    for k in range(len(logs)):
        step = np.zeros_like(logs)
        step[k] = STEP
        up, down = (residuals(_values(logs + sign * step), assumption, replications) for sign in (1, -1))
        columns.append((up - down)[:rows] / (2 * STEP))
    return np.stack(columns, axis=1)


def covariance(slopes: Array) -> Array:
    """Covariance of the logarithms of the constants, ``(J^T J + diag(1 / spread^2))^-1``: the posterior, linearised.

    Parameters
    ----------
    slopes : float64 array
        `jacobian` at the minimum.

    Examples
    --------
    >>> spread = np.sqrt(np.diag(covariance(np.zeros((1, len(CONSTANTS))))))  # no rows: what was known before
    >>> [round(float(x), 3) for x in spread]
    [0.2, 1.0, 0.3, 0.15, 0.7]
    """
    known = np.diag([one.spread**-2.0 for one in CONSTANTS])
    return np.asarray(np.linalg.inv(slopes.T @ slopes + known), dtype=np.float64)


def stored_fits() -> dict[str, Stored]:
    """The shipped fits by the name of their assumption."""
    text = files("asapmodel.studies").joinpath(_FILE).read_text(encoding="utf-8")
    table = parse_toml(text, _FILE)["fit"]
    names = [one.name for one in CONSTANTS]
    return {
        name: Stored({key: float(one[key]) for key in names}, float(one["objective"]), tuple(one["ends"]))
        for name, one in table.items()
    }


def format_fits(fits: Mapping[str, Stored], heading: str) -> str:
    """The text of the file."""
    lines = [f"# {line}" for line in heading.splitlines()]
    for name, one in fits.items():
        lines += ["", f'[fit."{name}"]']
        lines += [f"{key} = {value:.6g}" for key, value in one.values.items()]
        lines += [f"objective = {one.objective:.4f}", f"ends = [{', '.join(f'{x:.4f}' for x in one.ends)}]"]
    return "\n".join(lines) + "\n"


def fit_all() -> Path:
    """Fit under every assumption and write the file: the chosen one from four points, the others from its end."""
    found = {CHOSEN.name: fit(CHOSEN, starts(4))}
    print(CHOSEN.name, found[CHOSEN.name], flush=True)
    end = [logs_of(found[CHOSEN.name].values)]
    for one in ASSUMPTIONS:
        if one.refitted and one.name not in found:
            found[one.name] = fit(one, end)
            print(one.name, found[one.name], flush=True)
    heading = (
        "Constants fitted to the ASAP paper under every assumption of evidence_paper_assumptions.py, written by\n"
        "python -m asapmodel.studies.evidence_paper --fit. Objective and optimiser: evidence_paper_fit.py, 16 runs\n"
        "for a TTFT, seeds 6 to 21, the queueing engine for SLO throughputs; starting points drawn with\n"
        f"seed 0. `ends`: the objective where each starting point ended. Date: {date.today().isoformat()}"
    )
    return write_fits(format_fits({one.name: found[one.name] for one in ASSUMPTIONS if one.refitted}, heading))


def write_fits(text: str) -> Path:
    """Write the file beside the other data of the studies."""
    path = Path(str(files("asapmodel.studies").joinpath(_FILE)))
    path.write_text(text, encoding="utf-8")
    return path
