"""From measurements to a calibrated profile: fit, cross-validate, and say in words what the table leaves open."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.laws import Law, law_of, link_law, name_of
from asapmodel.calibration.measurements import Measurements
from asapmodel.errors import InputError
from asapmodel.models.parameters import Profile
from asapmodel.models.symbols import SYMBOLS
from asapmodel.solvers.cross_validation import cross_validate
from asapmodel.solvers.robust_fit import Fit, robust_fit

__all__ = ["Calibrated", "Group", "Value", "fit_tables", "words_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Value:
    """One fitted number in SI units, its 95 % interval and standard error; the profile's field, or what it means."""

    name: str
    value: float
    interval: tuple[float, float]
    standard_error: float


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that were fitted together: all of a table, or one operation of a link among one number of nodes."""

    name: str
    data: Measurements
    letters: tuple[str, ...]
    fit: Fit
    held_out: Array

    def values(self) -> tuple[Value, ...]:
        """The fitted numbers."""
        rows = zip(self.letters, self.fit.values, self.fit.intervals, self.fit.standard_errors(), strict=True)
        return tuple(Value(name_of(x), float(v), (float(i[0]), float(i[1])), float(e)) for x, v, i, e in rows)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """The groups that were fitted, the profile's fields that follow, their covariance, and what to know of them."""

    model: str
    groups: tuple[Group, ...]
    fields: dict[str, float]
    covariance: Array
    warnings: tuple[str, ...]


def fit_tables(
    data: Measurements, model: str, base: Profile, detail: bool = False, execution: str = "collective"
) -> Calibrated:
    """Fit a model to measurements.

    Parameters
    ----------
    data : Measurements
        The rows.
    model : str
        ``"attention"``, ``"moe"`` or ``"link"``.
    base : Profile
        Gives what is not fitted.
    detail : bool
        Whether terms that the planner's law leaves out are fitted too.
    execution : str
        Of a link: which fields follow, those of a ``"collective"`` or of a one-sided ``"send"``.

    Raises
    ------
    InputError
        If a table has fewer rows than there are parameters.
    """
    if model != "link":
        group = _group("all rows", data, law_of(data, model, base, detail))
        fields, covariance = _direct(group)
        return Calibrated(model, (group,), fields, covariance, tuple(words_of(group, detail)))
    groups = []
    for nodes in np.unique(data.nodes):
        for operation in ("dispatch", "combine"):
            rows = data.take((data.nodes == nodes) & (data.quantity == operation))
            if len(rows):
                groups.append(_group(f"{operation}, {nodes} node{'s' if nodes > 1 else ''}", rows, link_law(rows)))
    most = int(data.nodes.max())
    fields, covariance = _link_fields([g for g in groups if g.data.nodes[0] == most], base, execution)
    warnings = [line for group in groups for line in words_of(group, detail)]
    if np.unique(data.nodes).size > 1:
        warnings.append(f"the profile is that of {most} nodes, the most in the table; for another give its rows alone")
    return Calibrated(model, tuple(groups), fields, covariance, tuple(warnings))


def _group(name: str, data: Measurements, law: Law) -> Group:
    if len(data) < len(law.parameters):
        files, needed = ", ".join(data.tables()), ", ".join(name_of(one.name) for one in law.parameters)
        problem = f"has {len(data)} rows of {name} for {len(law.parameters)} parameters ({needed})"
        raise InputError(files, "", problem, f"measure at least {len(law.parameters)}, better twice as many")
    every = np.arange(len(data))
    fit = robust_fit(lambda p: law.predict(p, every), data.seconds, law.parameters, data.noise)
    held_out = cross_validate(law.predict, data.seconds, law.parameters, data.noise, folds=5)
    return Group(name, data, tuple(one.name for one in law.parameters), fit, held_out)


def _direct(group: Group) -> tuple[dict[str, float], Array]:
    """Fields that letters stand for, without those that the table says nothing about."""
    logs = group.fit.covariance
    kept = [k for k, x in enumerate(group.letters) if SYMBOLS[x].owner == "Profile" and np.isfinite(logs[k, k])]
    values = group.fit.values[kept]
    fields = {SYMBOLS[group.letters[k]].field: float(v) for k, v in zip(kept, values, strict=True)}
    return fields, logs[np.ix_(kept, kept)] * np.outer(values, values)


def _link_fields(groups: list[Group], base: Profile, execution: str) -> tuple[dict[str, float], Array]:
    """Latency and share that keep the time of a dispatch and a combine together, and bytes of copies.

    With latencies t_i and shares e_i of operations that send v_i bytes a copy, the sum is kept for every batch by the
    mean of the t_i and ``sum v_i / sum (v_i / e_i)``. The measured call includes receiving, which the planner adds to
    a collective: its latency is taken off.
    """
    sizes = np.array([float(np.median(g.data.values["b_x"])) for g in groups])
    received = base.recv_latency if execution == "collective" else 0.0

    def fields(values: Array) -> Array:
        tau, eta = values.reshape(-1, 2).T
        return np.array([max(float(tau.mean()) - received, 0.0), float(sizes.sum() / (sizes / eta).sum())])

    values = np.concatenate([g.fit.values for g in groups])
    logs = np.zeros((values.size, values.size))
    for k, group in enumerate(groups):
        block = np.where(np.isfinite(group.fit.covariance), group.fit.covariance, 0.0)
        logs[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = block
    step = 1e-5
    slopes = np.column_stack(
        [
            (fields(values * np.exp(step * e)) - fields(values * np.exp(-step * e))) / (2 * step)
            for e in np.eye(values.size)
        ]
    )
    names = ("collective_latency", "collective_link") if execution == "collective" else ("send_latency", "link")
    found = dict(zip(names, map(float, fields(values)), strict=True))
    found |= {f"{g.data.quantity[0]}_bytes_per_copy": float(v) for g, v in zip(groups, sizes, strict=True)}
    covariance = np.zeros((len(found), len(found)))
    covariance[:2, :2] = slopes @ logs @ slopes.T
    return found, covariance


def words_of(group: Group, detail: bool) -> list[str]:
    """What to know of a fit: open combinations, bounds, few points, a law that does not fit, terms left out."""
    fit, lines = group.fit, []
    if len(group.data) < 3 * len(group.letters):
        lines.append(f"{group.name}: {len(group.data)} rows for {len(group.letters)} parameters: intervals are wide")
    for combination in fit.unidentified():
        lines.append(f"{group.name}: {_open(combination)}")
    for letter in fit.at_bound:
        value = fit.values[fit.names.index(letter)]
        lines.append(
            f"{group.name}: {name_of(letter)} is at the end of its range, {value:.3g}: the law does not fit there"
        )
    if fit.scale > 3:
        noise = float(np.median(group.data.noise))
        lines.append(
            f"{group.name}: residuals are {fit.scale:.1f} times the noise ({noise:.0%}): "
            "the law, not the noise, limits the fit"
        )
    extra = [x for x in group.letters if SYMBOLS[x].owner != "Profile" and group.data.quantity[0] not in _LINK]
    if extra:
        lines.append(
            f"{group.name}: fitted but not in the profile, since the planner's law has no such term: "
            + ", ".join(name_of(x) for x in extra)
        )
    return lines


_LINK = ("dispatch", "combine")


def _open(combination: Mapping[str, float]) -> str:
    """An open combination in words."""
    if len(combination) == 1:
        (letter,) = combination
        return f"the table hardly determines {name_of(letter)}: measure rows where it matters"
    first, *rest = sorted(combination, key=lambda x: -abs(combination[x]))
    sign = combination[first]
    moves = [f"{name_of(x)} {'up' if combination[x] * sign > 0 else 'down'}" for x in rest]
    return f"the table cannot tell {name_of(first)} up from {' and '.join(moves)}: measure rows where only one matters"
