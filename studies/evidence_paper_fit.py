"""The fit of the paper's constants: a stated objective, its optimiser, and what the rows can tell apart.

With model values `f_i`, stated values `y_i` and constants `theta_j`, the objective is half the sum of squares of::

    S^-1/2 log(f / y)                     rows of `FITTED`; S: what the model may be off, and the scatter of one run
    violation of a claim / s              `HINGES`, 0 where the claim holds; s: 0.1, and the scatter of one run
    log(theta_j / centre_j) / spread_j    what is known of the constants without the paper's results

that is, the posterior density of a log-normal model. Each of the paper's numbers is of one run of five minutes: the
mean TTFT of 300 prompts scatters by 14 % in Default, and with it that of the same prompts in ASAP (`SCATTER`). SLO
throughputs are the queueing engine's, which are smooth in the constants; TTFTs are of 16 runs with shared random
numbers. The trust-region least squares of SciPy start from several points; the best end is kept.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.studies.evidence_paper_assumptions import ASSUMPTIONS, CELLS, CHOSEN
from asapmodel.studies.evidence_paper_rows import FITTED, HINGES, SAME_REQUESTS, SCATTER, model_value, shortfall
from asapmodel.studies.evidence_paper_systems import CONSTANTS, Assumption, Systems
from asapmodel.studies.paper import Claim, claims
from asapmodel.tomlfile import parse_toml

__all__ = [
    "HINGE",
    "Stored",
    "covariance",
    "deviation_of",
    "fit",
    "fit_all",
    "fit_of",
    "format_fits",
    "jacobian",
    "logs_of",
    "noise",
    "objective",
    "residuals",
    "starts",
    "stored_fits",
]

Array = NDArray[np.float64]

STEP = 0.02  # of a logarithm, for differences on the way to the minimum
_WIDE = 0.05  # of a logarithm, for central differences there: TTFTs of runs are not smooth
REPLICATIONS = 4  # four times as many runs for a mean TTFT
HINGE = 0.1  # violation of a claim, as a logarithm, that counts as one deviation, but for the scatter of a run
_FILE = "data/evidence_paper_fit.toml"


@dataclass(frozen=True, slots=True)
class Stored:
    """A fit as kept in the file: constants, the objective there, where the starts ended, the posterior's volume.

    `volume` is half the logarithm of the determinant of `covariance`: with it ``exp(volume - objective)`` is Laplace's
    approximation of the integral of the posterior density, up to a factor that all fits share.
    """

    values: dict[str, float]
    objective: float
    ends: tuple[float, ...]
    volume: float


@cache
def _claim(row: str) -> Claim:
    return {claim.id: claim for claim in claims()}[row]


def fit_of(assumption: Assumption) -> Stored:
    """The stored fit whose constants an assumption has."""
    return stored_fits()[assumption.fitted_as or CHOSEN.fitted_as]


def _values(logs: Array) -> dict[str, float]:
    return {one.name: float(np.exp(x)) for one, x in zip(CONSTANTS, logs, strict=True)}


def logs_of(values: Mapping[str, float]) -> Array:
    """Logarithms of the constants, in their order."""
    return np.log([values[one.name] for one in CONSTANTS])


def residuals(values: Mapping[str, float], assumption: Assumption, replications: int = REPLICATIONS) -> Array:
    """Residuals of the objective: rows, claims, constants."""
    systems = Systems(values, assumption, replications)
    stated = np.array([float(_claim(row).value) for row in FITTED])
    off = np.log(np.array([model_value(row, systems, "queueing") for row in FITTED]) / stated)
    rows = np.linalg.solve(np.linalg.cholesky(noise()), off)
    claims_ = [shortfall(_claim(row), model_value(row, systems, "queueing")) / deviation_of(row) for row in HINGES]
    known = [np.log(values[one.name] / one.centre) / one.spread for one in CONSTANTS]
    return np.concatenate([rows, claims_, known])


def noise() -> Array:
    """Covariance of the logarithms of the fitted rows: the model's own errors, independent, and the scatter of a run.

    Examples
    --------
    >>> np.sqrt(np.diag(noise())).round(3).tolist()
    [0.02, 0.143, 0.072, 0.042]
    """
    scatter = np.array([SCATTER.get(row, 0.0) for row in FITTED])
    alike = np.eye(len(FITTED))
    one, other = (list(FITTED).index(row) for row in ("ttft-1-default", "ttft-1-asap"))
    alike[one, other] = alike[other, one] = SAME_REQUESTS
    found: Array = np.diag(np.array(list(FITTED.values())) ** 2) + alike * np.outer(scatter, scatter)
    return found


def deviation_of(row: str) -> float:
    """Violation of a claim, as a logarithm, that counts as one deviation."""
    return float(np.hypot(HINGE, SCATTER.get(row, 0.0)))


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
    values = _values(ends[0][1])
    volume = 0.5 * float(np.linalg.slogdet(covariance(jacobian(values, assumption)))[1])
    return Stored(values, ends[0][0], tuple(one[0] for one in ends), volume)


def jacobian(values: Mapping[str, float], assumption: Assumption, replications: int = REPLICATIONS) -> Array:
    """Derivatives of the residuals of rows and claims by the logarithms of the constants; central differences."""
    logs = logs_of(values)
    rows = len(FITTED) + len(HINGES)
    columns = []
    for k in range(len(logs)):
        step = np.zeros_like(logs)
        step[k] = _WIDE
        up, down = (residuals(_values(logs + sign * step), assumption, replications) for sign in (1, -1))
        columns.append((up - down)[:rows] / (2 * _WIDE))
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


@cache
def stored_fits() -> dict[str, Stored]:
    """The shipped fits by the name of their assumption."""
    text = files("asapmodel.studies").joinpath(_FILE).read_text(encoding="utf-8")
    table = parse_toml(text, _FILE)["fit"]
    names = [one.name for one in CONSTANTS]
    return {
        name: Stored(
            {key: float(one[key]) for key in names}, float(one["objective"]), tuple(one["ends"]), float(one["volume"])
        )
        for name, one in table.items()
    }


def format_fits(fits: Mapping[str, Stored], heading: str) -> str:
    """The text of the file."""
    lines = [f"# {line}" for line in heading.splitlines()]
    for name, one in fits.items():
        lines += ["", f'[fit."{name}"]']
        lines += [f"{key} = {value:.6g}" for key, value in one.values.items()]
        lines += [f"objective = {one.objective:.4f}", f"ends = [{', '.join(f'{x:.4f}' for x in one.ends)}]"]
        lines.append(f"volume = {one.volume:.4f}")
    return "\n".join(lines) + "\n"


def fit_all() -> Path:
    """Fit every cell and every assumption that is fitted anew, and write the file.

    The chosen cell is fitted from four points, every other one from its end and from the centre of what is known.
    """
    chosen = fit(CHOSEN, starts(4))
    print(CHOSEN.fitted_as, chosen, flush=True)
    every = {one.fitted_as: one for one in (*CELLS.values(), *ASSUMPTIONS) if one.fitted_as}
    points = np.stack([logs_of(chosen.values), starts(1)[0]])
    with ProcessPoolExecutor() as pool:
        waiting = {name: pool.submit(fit, one, points) for name, one in every.items() if name != CHOSEN.fitted_as}
        found = {name: chosen if name == CHOSEN.fitted_as else waiting[name].result() for name in every}
    heading = (
        "Constants fitted to the ASAP paper under every assumption of evidence_paper_assumptions.py, written by\n"
        "python -m asapmodel.studies.evidence_paper --fit. Objective and optimiser: evidence_paper_fit.py, 16 runs\n"
        "for a TTFT, seeds 6 to 21, the queueing engine for SLO throughputs; starting points drawn with\n"
        f"seed 0. `ends`: the objective where each starting point ended. Date: {date.today().isoformat()}"
    )
    return write_fits(format_fits(found, heading))


def write_fits(text: str) -> Path:
    """Write the file beside the other data of the studies."""
    path = Path(str(files("asapmodel.studies").joinpath(_FILE)))
    path.write_text(text, encoding="utf-8")
    return path
