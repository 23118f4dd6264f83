"""One formula with everything a reader needs to trust it: domain, regimes, exactness, derivation, LaTeX, numbers.

The number comes from the very expression that is printed (`sympy.lambdify`, compiled once per process).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from asapmodel.closed_forms.notation import Quantity, quantity

__all__ = ["ClosedForm", "Kind", "largest", "largest_of"]

Kind = Literal["exact", "upper bound", "lower bound", "approximation"]
Values = NDArray[np.float64]


@cache
def _compiled(expression: sympy.Basic) -> tuple[tuple[str, ...], Callable[..., Any]]:
    arguments = sorted(expression.free_symbols, key=lambda symbol: str(symbol.name))
    names = tuple(str(symbol.name) for symbol in arguments)
    return names, sympy.lambdify(arguments, expression, ["numpy", "scipy"])


@cache
def _quantities(*expressions: sympy.Basic, hardware: bool) -> tuple[Quantity, ...]:
    found = set().union(*(one.free_symbols for one in expressions))
    return tuple(quantity(name, hardware) for name in sorted(str(symbol.name) for symbol in found))


def largest_of(*terms: sympy.Expr) -> sympy.Expr:
    """Maximum of terms as they stand: SymPy's own search for terms that can never count takes seconds here.

    Examples
    --------
    >>> a, b = sympy.symbols("a b", positive=True)
    >>> largest_of(a, a + b)
    Max(a, a + b)
    """
    return sympy.Max(*terms, evaluate=False)


def largest(branches: Mapping[str, sympy.Expr]) -> Mapping[str, sympy.Basic]:
    """Conditions under which each branch of a maximum is the largest, by name.

    Examples
    --------
    >>> a, b = sympy.symbols("a b")
    >>> dict(largest({"first": a, "second": b}))
    {'first': a >= b, 'second': b >= a}
    """
    conditions = {}
    for name, branch in branches.items():
        others = (other for rest, other in branches.items() if rest != name)
        parts = [sympy.Ge(branch, other, evaluate=False) for other in others]
        conditions[name] = sympy.And(*parts, evaluate=False) if len(parts) > 1 else parts[0]
    return MappingProxyType(conditions)


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A formula, where it holds, and how far it can be trusted.

    Parameters
    ----------
    name : str
        Key in the catalogue.
    meaning : str
        What it is, in words.
    left : str
        LaTeX of the left-hand side.
    unit : str
        Unit of the value.
    expression : sympy.Expr
        In the letters of `asapmodel.closed_forms.notation`, or (`hardware`) of `asapmodel.models.symbols`.
    kind : str
        Exact, a bound, or an approximation, for the rules of the documentation's semantics.
    assumption : str
        What is taken for granted.
    error : str
        Known distance from the graph engine; empty where exact.
    section : str
        Heading of `docs/background/closed-forms.md` with the derivation.
    domain : sympy.Basic
        Condition on the letters outside of which the formula says nothing.
    conditions : mapping of str to sympy.Basic
        Regimes by name; at least one holds wherever the domain does.
    """

    name: str
    meaning: str
    left: str
    unit: str
    expression: sympy.Expr
    kind: Kind
    assumption: str
    section: str
    error: str = ""
    domain: sympy.Basic = sympy.true
    conditions: Mapping[str, sympy.Basic] = field(default_factory=lambda: MappingProxyType({}))
    hardware: bool = False

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Meaning, unit and sign of every letter that occurs in the expression or its domain, sorted by letter."""
        return _quantities(self.expression, self.domain, hardware=self.hardware)

    def latex(self) -> str:
        """The formula as LaTeX, ``left = expression``."""
        return f"{self.left} = {sympy.latex(self.expression)}"

    def numeric(self, **values: ArrayLike) -> Values:
        """Value of the formula.

        Parameters
        ----------
        **values : float or array
            One for each letter, in the units of `quantities`; arrays broadcast. Others are ignored, so that one set
            of values serves many formulas.

        Returns
        -------
        float64 array
            In `unit`; zero-dimensional if all values are scalars.

        Raises
        ------
        ValueError
            A letter has no value, a value is of the wrong sign or not finite, or the values are outside the domain.

        Examples
        --------
        >>> x, y = sympy.symbols("n q")
        >>> form = ClosedForm("work", "attention work", "w", "token^2", x * y, "exact", "", "")
        >>> float(form.numeric(n=3, q=5))
        15.0
        """
        bound = self._bound(values)
        if self.domain is not sympy.true and not np.all(_value(self.domain, bound)):
            raise ValueError(f"{self.name} holds for {self.domain} only, got {_shown(self.domain, bound)}")
        return np.asarray(_value(self.expression, bound), dtype=np.float64)

    def holds(self, **values: ArrayLike) -> bool:
        """Whether all of the values are in the domain; ValueError as in `numeric` where one is missing or illegal."""
        return self.domain is sympy.true or bool(np.all(_value(self.domain, self._bound(values))))

    def regime(self, **values: float) -> str:
        """Name of the first of `conditions` that the values meet.

        Raises
        ------
        ValueError
            As in `numeric`, or no condition is met.
        """
        needed = _quantities(*self.conditions.values(), hardware=self.hardware)
        bound = {one.letter: _checked(one, values) for one in needed}
        for name, condition in self.conditions.items():
            if bool(_value(condition, bound)):
                return name
        raise ValueError(f"no regime of {self.name} fits {values}; its regimes are {', '.join(self.conditions)}")

    def _bound(self, values: Mapping[str, ArrayLike]) -> dict[str, Values]:
        """Values of the letters that occur, checked, of one shape."""
        needed = self.quantities
        arrays = np.broadcast_arrays(*(_checked(one, values) for one in needed))
        return {one.letter: array for one, array in zip(needed, arrays, strict=True)}


def _checked(one: Quantity, values: Mapping[str, ArrayLike]) -> Values:
    if one.letter not in values:
        raise ValueError(f"no value for {one.letter} ({one.meaning}): give it in {one.unit}")
    array = np.asarray(values[one.letter], dtype=np.float64)
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not one.zero and np.any(array == 0)):
        sign = "at least 0" if one.zero else "positive"
        raise ValueError(f"{one.letter} ({one.meaning}) must be finite and {sign}, got {values[one.letter]!r}")
    return array


def _value(expression: sympy.Basic, bound: Mapping[str, Values]) -> Any:
    names, function = _compiled(expression)
    return function(*(bound[name] for name in names))


def _shown(condition: sympy.Basic, bound: Mapping[str, Values]) -> str:
    return ", ".join(f"{name} = {bound[name]}" for name in sorted(str(x.name) for x in condition.free_symbols))
