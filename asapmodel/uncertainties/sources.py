"""Which constants of a scenario are uncertain, by whose word, and how they go together.

In this order, the later word replacing the earlier: what the device's file says of its numbers, what the profile's file
says (ranges, standard errors, `[covariance]` of a calibration), the scenario's `[uncertainty]`. A number that the
scenario overrides is its own, so the catalogue's word on it does not hold. Everything else is exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog, units
from asapmodel.calibration.profile_file import base_tables
from asapmodel.catalog import FIELDS
from asapmodel.costing import is_modelled
from asapmodel.costs import LayerCosts
from asapmodel.errors import InputError
from asapmodel.models.parameters import Device, Profile
from asapmodel.scenario import Scenario
from asapmodel.solvers.marginals import Marginal, correlation_root
from asapmodel.tables import Fraction, NonNegative, Quantity, Seconds
from asapmodel.tomlfile import parse_toml, read_text
from asapmodel.uncertainties.table import Declared, cost_names

__all__ = ["Source", "Sources", "sources_of"]

Array = NDArray[np.float64]

_LEAST = 0.01  # of its value: the least that a number which has to be positive may be
_TIMES = (Seconds, NonNegative)
_PARSE = {"s": units.seconds, "B": units.bytes_, "B/s": units.bytes_per_second, "FLOP/s": units.flops_per_second}


@dataclass(frozen=True, slots=True)
class Source:
    """One uncertain constant.

    Attributes
    ----------
    key : str
        As in a scenario: ``"cluster.profile.gemm"``, ``"costs.moe"``.
    law : Marginal
        In SI units; of a cost, of the factor by which it is multiplied (around 1).
    value : float
        The constant, SI; of a cost with several coefficients 1.
    origin : str
        Whose word it is.
    """

    key: str
    law: Marginal
    value: float
    origin: str

    @property
    def is_factor(self) -> bool:
        """Whether the law is of a factor on a cost."""
        return self.key.startswith("costs.")

    @property
    def relative_std(self) -> float:
        """Standard deviation over the absolute value; infinite where that is 0."""
        return self.law.std / abs(self.law.value) if self.law.value else float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The uncertain constants and the correlation of their scores (see `asapmodel.solvers.marginals`)."""

    constants: tuple[Source, ...]
    correlation: Array

    def take(self, places: list[int]) -> "Sources":
        """Some of them."""
        return Sources(tuple(self.constants[k] for k in places), self.correlation[np.ix_(places, places)])


def sources_of(scenario: Scenario, costs: LayerCosts) -> Sources:
    """Uncertain constants of a scenario whose costs are known.

    Parameters
    ----------
    scenario : Scenario
        What is asked about.
    costs : LayerCosts
        Result of `layer_costs`, of the same scenario.

    Raises
    ------
    InputError
        If a range does not hold the value, or a covariance is none.
    """
    found: dict[str, Source] = {}
    pairs: dict[tuple[str, str], float] = {}
    if is_modelled(scenario):
        _read_catalogue(scenario, found, pairs)
    for one in scenario.uncertainty.declared:
        pairs = {keys: value for keys, value in pairs.items() if one.key not in keys}
        if one.exact:
            found.pop(one.key, None)
        else:
            found[one.key] = _own(one, scenario, costs)
    _read_covariance(scenario, costs, found, pairs)
    names = list(found)
    correlation = np.eye(len(names))
    for (first, second), value in pairs.items():
        if first in found and second in found:
            i, j = names.index(first), names.index(second)
            correlation[i, j] = correlation[j, i] = value
    try:
        correlation_root(correlation)
    except ValueError as error:
        raise InputError(scenario.source, "uncertainty.covariance", f"is none: {error}", "correct it") from None
    return Sources(tuple(found.values()), correlation)


def _read_catalogue(scenario: Scenario, found: dict[str, Source], pairs: dict[tuple[str, str], float]) -> None:
    """Words of the files of device and profile, on numbers that the scenario does not override."""
    own = scenario.cluster.given()
    cluster, profile = scenario.devices.value, scenario.cluster.profile
    if cluster.device in catalog.names("devices"):
        where = f"device {cluster.device}"
        path = catalog.entry_path("devices", cluster.device)
        kept = {k: v for k, v in parse_toml(read_text(path, where), where).items() if k not in own}
        found |= {s.key: s for s in _numbers(kept, FIELDS[Device], "cluster", where)}
    if cluster.profile == "inline":
        return
    tables = base_tables(cluster.profile)
    mine = set() if profile is None else set(profile.given())
    kept = {name: value for name, value in tables.items() if name not in mine}
    where = f"profile {cluster.profile.rpartition('/')[2]}"
    found |= {s.key: s for s in _numbers(kept, FIELDS[Profile], "cluster.profile", where)}
    block = tables.get("covariance", {})
    names = [f"cluster.profile.{name}" for name in block.get("fields", [])]
    inside = [k for k, name in enumerate(block.get("fields", [])) if name in kept]
    matrix = np.array(block.get("matrix", []), dtype=np.float64)
    _put(
        found, pairs, [names[k] for k in inside], matrix[np.ix_(inside, inside)] if inside else matrix, where, scenario
    )


def _numbers(tables: Mapping[str, Any], fields: Mapping[str, Quantity], path: str, origin: str) -> list[Source]:
    out = []
    for name, quantity in fields.items():
        number = tables.get(name)
        if not isinstance(number, Mapping):
            continue
        unit = number["unit"]
        value = _si(number["value"], unit, quantity)
        if "low" in number:
            ends = (_si(number[end], unit, quantity) for end in ("low", "high"))
            law = Marginal(number.get("law", "uniform"), value, *ends)
        elif number.get("standard_error", 0) > 0:
            law = _normal(value, _si(number["standard_error"], unit, quantity), quantity.type)
        else:
            continue
        out.append(Source(f"{path}.{name}", law, value, origin))
    return out


def _si(value: float, unit: str, quantity: Quantity) -> float:
    if quantity.unit == "1":
        return value / 100 if unit == "%" else float(value)
    return _PARSE[quantity.unit](f"{value!r} {unit}")


def _normal(value: float, std: float, kind: Any) -> Marginal:
    """Within what physics allows: times and ratios from 0 on; shares up to 1.

    Time is inverse to shares and speeds, and it is times that were measured: their reciprocals are normal. So errors of
    a calibration that cancel in the measured time cancel in every drawn system, however large they are.
    """
    if kind in _TIMES:
        return Marginal("normal", value, 0.0, np.inf, std)
    if kind is None:  # a factor on a cost
        return Marginal("normal", value, _LEAST, np.inf, std)
    return Marginal("reciprocal", value, _LEAST * value, 1.0 if kind is Fraction else np.inf, std)


def _own(one: Declared, scenario: Scenario, costs: LayerCosts) -> Source:
    """The scenario's own word."""
    value, kind = _value(one.key, scenario, costs)
    where, key = scenario.source, f"uncertainty.{one.key}"
    if value == 0 and (one.relative is not None or one.key.startswith("costs.")):
        raise InputError(where, key, "is of a constant that is 0", "leave it out, or give the constant a value")
    unit = value if one.key.startswith("costs.") else 1.0  # costs are drawn as factors
    try:
        if one.low is not None and one.high is not None:
            law = Marginal("triangular" if one.law == "triangular" else "uniform", value, one.low, one.high)
            law = replace(law, value=value / unit, low=one.low / unit, high=one.high / unit)
        else:
            std = one.relative * value if one.relative is not None else float(one.std or 0.0)
            law = _normal(value / unit, std / unit, kind)
    except ValueError as error:
        raise InputError(where, key, str(error).partition(";")[0], "give a range that holds the value") from None
    return Source(one.key, law, value, "[uncertainty]")


def _value(key: str, scenario: Scenario, costs: LayerCosts) -> tuple[float, Any]:
    """Value of a constant, SI, and the type that parses it."""
    table, _, name = key.partition(".")
    if table == "costs":
        parts = cost_names()[name]
        return (1.0 if len(parts) > 1 else _coefficient(costs, name)), None
    if name.startswith("profile."):
        field = name.removeprefix("profile.")
        return float(getattr(scenario.profile.value, field) or 0.0), FIELDS[Profile][field].type
    return float(getattr(scenario.device.value, name) or 0.0), FIELDS[Device][name].type


def _coefficient(costs: LayerCosts, name: str) -> float:
    law, _, field = name.partition(".")
    own = getattr(costs, law)
    return float(getattr(own, field) if field else own)


def _read_covariance(
    scenario: Scenario, costs: LayerCosts, found: dict[str, Source], pairs: dict[tuple[str, str], float]
) -> None:
    """The scenario's own covariance: deviations of its constants, and correlations."""
    given = scenario.uncertainty.covariance
    if given is None:
        return
    matrix = np.array(given.matrix)
    for key, variance in zip(given.keys, np.diag(matrix), strict=True):
        if variance > 0:
            found[key] = _own(Declared(key, std=float(np.sqrt(variance))), scenario, costs)
    _put(found, pairs, list(given.keys), matrix, "uncertainty", scenario)


def _put(
    found: dict[str, Source],
    pairs: dict[tuple[str, str], float],
    names: list[str],
    matrix: Array,
    where: str,
    scenario: Scenario,
) -> None:
    """Correlations of a covariance matrix, between those of its constants that are uncertain."""
    if not names:
        return
    spread = np.sqrt(np.clip(np.diag(matrix), 0.0, None))
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            if spread[i] > 0 and spread[j] > 0 and first in found and second in found:
                value = float(matrix[i, j] / (spread[i] * spread[j]))
                if abs(value) > 1 + 1e-6:
                    problem = f"makes {first} and {second} correlate by {value:.3g}"
                    raise InputError(scenario.source, f"{where}: covariance", problem, "give a covariance matrix")
                pairs[first, second] = float(np.clip(value, -1.0, 1.0))
