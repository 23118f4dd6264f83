"""`[uncertainty]` of a scenario: how sure its own constants are.

::

    [uncertainty]
    costs.attention.per_token = "10 %"                        # standard deviation, of the value
    costs.moe = "5 %"                                         # the law as a whole, by one factor
    costs.step_overhead = { low = "4 ms", high = "9 ms" }     # a range; law = "triangular": with its peak at the value
    cluster.profile.send_latency = { std = "3 us" }
    cluster.profile.expert_load_cv = "exact"                  # whatever the catalogue says

Only constants of costs, profile and device can be uncertain here. What is chosen (layout, policy, objective, traffic)
is varied by `sweep` or `explore`. `covariance` goes with deviations that were fitted together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from asapmodel import units
from asapmodel.catalog import FIELDS
from asapmodel.costs import LayerCosts
from asapmodel.models.parameters import Device, Profile
from asapmodel.tables import Overrides, Seconds, TableError, nearest

__all__ = ["Covariance", "Declared", "UncertaintyTable", "cost_names", "quantity_type"]

_EXAMPLE = 'give "10 %", { std = ... }, { low = ..., high = ... } or "exact"'
_KEYS = {frozenset({"std"}), frozenset({"low", "high"}), frozenset({"low", "high", "law"})}


@dataclass(frozen=True, slots=True)
class Declared:
    """What a scenario says of a constant: a deviation (`relative` to its value, or `std`), a range; nothing: exact.

    `key` is as in a scenario; numbers are in SI units.
    """

    key: str
    relative: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    law: str = "uniform"

    @property
    def exact(self) -> bool:
        """Whether the constant counts as known."""
        return self.relative is None and self.std is None and self.low is None


@dataclass(frozen=True, slots=True)
class Covariance:
    """Of constants that were fitted together, in SI units."""

    keys: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]


def cost_names() -> dict[str, tuple[str, ...]]:
    """Coefficients by the name they can be called: ``moe.floor`` itself, ``moe`` for the law as a whole.

    Examples
    --------
    >>> cost_names()["moe"], cost_names()["moe.floor"], cost_names()["step_overhead"]
    (('moe.floor', 'moe.per_token'), ('moe.floor',), ('step_overhead',))
    """
    out: dict[str, tuple[str, ...]] = {}
    for name, kind in get_type_hints(LayerCosts).items():
        if is_dataclass(kind):
            parts = tuple(f"{name}.{one.name}" for one in fields(kind))
            out |= {name: parts} | {part: (part,) for part in parts}
        elif kind is float:
            out[name] = (name,)
    return out


def quantity_type(key: str) -> Any:
    """The type that parses the value of a constant; None if there is no such constant."""
    table, _, name = key.partition(".")
    if table == "costs":
        return Seconds if name in cost_names() else None
    inner, _, last = name.partition(".")
    found = FIELDS[Profile].get(last) if inner == "profile" and last else FIELDS[Device].get(name)
    return None if found is None else found.type


def _known_keys() -> list[str]:
    profile = [f"cluster.profile.{name}" for name in FIELDS[Profile]]
    return [*(f"costs.{name}" for name in cost_names()), *(f"cluster.{name}" for name in FIELDS[Device]), *profile]


def _flat(table: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Constants and what is said of them; a table is such a saying, or holds further keys."""
    for name, value in table.items():
        key = f"{path}.{name}"
        if isinstance(value, Mapping) and frozenset(value) not in _KEYS and not {"std", "low", "high"} & value.keys():
            yield from _flat(value, key)
        else:
            yield key, value


def _number(key: str, kind: Any, value: Any) -> float:
    try:
        return float(TypeAdapter(kind).validate_python(value))
    except ValidationError as error:
        cause = error.errors(include_url=False)[0].get("ctx", {}).get("error")
        problem = cause.problem if isinstance(cause, units.UnitError) else f"is {value!r}"
        raise TableError(key, problem, "give what the constant itself could be") from None


def _percent(text: str) -> float | None:
    number, sign, rest = text.partition("%")
    if not sign or rest.strip():
        return None
    try:
        return float(number) / 100
    except ValueError:
        return None


def _declared(key: str, value: Any, path: str) -> Declared:
    """`path` is the key as the error is to name it, relative to its table."""
    if value == "exact":
        return Declared(key)
    said = value.get("std") if isinstance(value, Mapping) and frozenset(value) == {"std"} else value
    share = _percent(said) if isinstance(said, str) else None
    if share is not None:
        if not 0 < share <= 1:
            raise TableError(path, f"is {said!r}", "give a standard deviation above 0 and up to 100 %")
        return Declared(key, relative=share)
    if not isinstance(value, Mapping) or frozenset(value) not in _KEYS:
        raise TableError(path, f"is {value!r}"[:60], _EXAMPLE)
    kind = quantity_type(key)
    if "std" in value:
        std = _number(path, Seconds if key.startswith("costs.") else kind, value["std"])
        if std <= 0:
            raise TableError(path, f"has std {std:g}", 'give a positive number, or "exact"')
        return Declared(key, std=std)
    low, high = (_number(path, kind, value[end]) for end in ("low", "high"))
    law = value.get("law", "uniform")
    if law not in ("uniform", "triangular"):
        raise TableError(path, f"has law {law!r}", "give 'uniform' or 'triangular'")
    if not low < high:
        raise TableError(path, f"goes from {low:g} to {high:g}", "give the lower end first")
    return Declared(key, low=low, high=high, law=law)


def _entries(table: str) -> Any:
    def parse(value: Any) -> tuple[Declared, ...]:
        if not isinstance(value, Mapping):
            raise TableError("", f"is {value!r}"[:60], f'write the constant\'s key, {table}.... = "10 %"')
        found = []
        for key, said in _flat(value, table):
            path = key.removeprefix(f"{table}.")
            if quantity_type(key) is None:
                remedy = f"the nearest constant is '{nearest(key, _known_keys())}'"
                raise TableError(path, "is no constant that can be uncertain", remedy)
            one = _declared(key, said, path)
            if key.startswith("costs.") and len(cost_names()[path]) > 1 and one.relative is None and not one.exact:
                raise TableError(path, "is a law of several coefficients", 'give a share, "10 %"')
            found.append(one)
        return tuple(found)

    return parse


def _covariance(value: Any) -> Covariance:
    if not isinstance(value, Mapping) or value.keys() != {"keys", "matrix"}:
        raise TableError("", "is no covariance", "give keys = [...] and matrix = [[...], ...] in SI units")
    keys = tuple(value["keys"])
    for key in keys:
        if not isinstance(key, str) or quantity_type(key) is None:
            raise TableError("keys", f"has {key!r}", f"the nearest constant is '{nearest(str(key), _known_keys())}'")
    try:
        matrix = tuple(tuple(float(item) for item in row) for row in value["matrix"])
    except (TypeError, ValueError):
        raise TableError("matrix", "is no list of rows of numbers", "give a square matrix") from None
    if len(matrix) != len(keys) or any(len(row) != len(keys) for row in matrix):
        raise TableError("matrix", f"does not fit the {len(keys)} keys", "give a square matrix, a row a key")
    return Covariance(keys, matrix)


class UncertaintyTable(Overrides):
    """`[uncertainty]`: what a scenario says of its constants; where it says nothing the catalogue's word holds."""

    costs: Annotated[Any, BeforeValidator(_entries("costs"))] = ()
    cluster: Annotated[Any, BeforeValidator(_entries("cluster"))] = ()
    covariance: Annotated[Any, BeforeValidator(_covariance)] = None

    @property
    def declared(self) -> tuple[Declared, ...]:
        """All that is said, in the order of the file's tables."""
        return (*self.costs, *self.cluster)
