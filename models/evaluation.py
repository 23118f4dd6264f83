"""Numbers from expressions: bind letters to parameter objects and run what `sympy.lambdify` makes of the expression.

Nothing is computed twice in two notations: a cost is a SymPy expression, and its number comes from exactly
that expression. Compilation happens once per expression and process (about 10 ms), evaluation takes some
50 us and is vectorised over any variable. Values are checked against the symbol table: finite, positive, 0
only where it is legal.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import SYMBOLS

if TYPE_CHECKING:
    import sympy

__all__ = ["Parameters", "bind", "check_given", "code_of", "evaluate", "paper_deployment", "prepare"]

Parameters = Architecture | Device | Profile | Split


def _checked(letter: str, value: ArrayLike) -> NDArray[np.float64]:
    entry = SYMBOLS[letter]
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not entry.zero and np.any(array == 0)):
        bound = "at least 0" if entry.zero else "positive"
        raise ValueError(f"{entry.meaning} ({entry.field or letter}) must be finite and {bound}, got {value!r}")
    return array


def _attributes(parameters: Parameters) -> dict[str, NDArray[np.float64]]:
    owner = type(parameters).__name__
    given = {e: getattr(parameters, e.field) for e in SYMBOLS.values() if e.owner == owner}
    return {e.letter: _checked(e.letter, value) for e, value in given.items() if value or not e.optional}


_cached_attributes = cache(_attributes)  # parameter objects are frozen, and one is evaluated many times


def bind(*parameters: Parameters, **variables: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """Values by letter: constants of the table, fields of the parameter objects, and the variables given.

    Parameters
    ----------
    *parameters : Architecture, Device, Profile or Split
        In any order.
    **variables : float or array
        Values of letters, e.g. ``s=1024``.

    Returns
    -------
    dict of str to float64 array
        Zero-dimensional arrays for scalars.

    Raises
    ------
    ValueError
        A value is not finite, is negative, or is 0 where the table forbids it.
    KeyError
        A variable is not in the table.

    Examples
    --------
    >>> values = bind(Split(D=4, T=4, E=16), s=1024)
    >>> float(values["E"]), float(values["s"]), float(values["Dsize"])
    (16.0, 1024.0, 2.0)
    """
    bound = dict(_constants())
    for item in parameters:
        bound.update(_cached_attributes(item))
    bound.update({letter: _checked(letter, value) for letter, value in variables.items()})
    return bound


@cache
def _constants() -> dict[str, NDArray[np.float64]]:
    values = {e.letter: np.float64(e.default) for e in SYMBOLS.values() if e.owner == "constant"}
    return {letter: np.asarray(value) for letter, value in values.items()}


def check_given(names: Sequence[str], values: Collection[str]) -> None:
    """Refuse letters without a value.

    Raises
    ------
    ValueError
        Names the letters and what they mean.

    Examples
    --------
    >>> check_given(["n"], {"s": 1})
    Traceback (most recent call last):
        ...
    ValueError: no value for n (tokens of a batch)
    """
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(f"no value for {', '.join(f'{x} ({SYMBOLS[x].meaning})' for x in missing)}")


@cache
def _compiled(expression: sympy.Expr) -> tuple[tuple[str, ...], Callable[..., Any]]:
    import sympy  # here: who only needs numbers finds the code of most laws kept, see `asapmodel.models.formulas`

    arguments = sorted(expression.free_symbols, key=lambda symbol: str(symbol.name))
    names = tuple(str(symbol.name) for symbol in arguments)
    return names, sympy.lambdify(arguments, expression, "numpy", cse=True)


def code_of(expression: sympy.Expr) -> tuple[tuple[str, ...], str]:
    """Letters of an expression, in order, and the function of them that `evaluate` runs, as text.

    Examples
    --------
    >>> from asapmodel.models.symbols import symbols
    >>> D, T = symbols("D T")
    >>> code_of(D * T)[0]
    ('D', 'T')
    """
    names, function = _compiled(expression)
    return names, inspect.getsource(function)


def evaluate(expression: sympy.Expr, *parameters: Parameters, **variables: ArrayLike) -> NDArray[np.float64]:
    """Value of an expression, by NumPy, for the given parameters and variables.

    Parameters
    ----------
    expression : sympy.Expr
        Built from the symbols of the table.
    *parameters : Architecture, Device, Profile or Split
        Give values to their letters.
    **variables : float or array
        Values of other letters; arrays broadcast.

    Returns
    -------
    float64 array
        Of the broadcast shape of the variables that occur; zero-dimensional if all are scalars.

    Raises
    ------
    ValueError
        A letter of the expression has no value, or a value is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.symbols import symbols
    >>> D, T, E = symbols("D T E")
    >>> float(evaluate(D * T + E, Split(D=4, T=4, E=16)))
    32.0
    """
    names, function = _compiled(expression)
    values = bind(*parameters, **variables)
    check_given(names, values)
    return np.asarray(function(*(values[name] for name in names)), dtype=np.float64)


def prepare(
    expression: sympy.Expr, letters: Sequence[str], **variables: ArrayLike
) -> Callable[[Sequence[float]], NDArray[np.float64]]:
    """An expression as a function of some letters, the others fixed: for fits, which evaluate one thousands of times.

    Parameters
    ----------
    expression : sympy.Expr
        Built from the symbols of the table.
    letters : sequence of str
        What stays free; those that do not occur in the expression are ignored. Their values are not checked.
    **variables : float or array
        Values of all other letters.

    Returns
    -------
    callable
        From values of `letters`, in order, to what `evaluate` gives.

    Raises
    ------
    ValueError
        A letter of the expression has no value, or a value is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.symbols import symbols
    >>> T, s = symbols("T s")
    >>> prepare(s / T, ["T"], s=[8, 16])([4.0]).tolist()
    [2.0, 4.0]
    """
    names, function = _compiled(expression)
    values: dict[str, Any] = dict(bind(**variables))
    check_given(names, {*values, *letters})
    free = [(letters.index(name), name) for name in names if name in letters]

    def call(given: Sequence[float]) -> NDArray[np.float64]:
        filled = values | {name: np.float64(given[place]) for place, name in free}
        return np.asarray(function(*(filled[name] for name in names)), dtype=np.float64)

    return call


def paper_deployment() -> tuple[Architecture, Device, Profile, Split]:
    """The defaults of the symbol table as parameter objects: DeepSeek-V3.2, D4 T4 E16 on 910C dies.

    The profile is a set of round assumed figures for examples and tests, not a calibration.

    Returns
    -------
    tuple of Architecture, Device, Profile, Split
        In the order in which the cost functions take them.

    Examples
    --------
    >>> architecture, device, profile, split = paper_deployment()
    >>> architecture.hidden, device.link_bandwidth, profile.host_dispatch, split.E
    (7168, 196000000000.0, 0.00022, 16)
    """
    fields: dict[str, dict[str, Any]] = {}
    for entry in SYMBOLS.values():
        fields.setdefault(entry.owner, {})[entry.field] = entry.default
    device = fields["Device"]
    device["int8_flops"] = device.pop("product_flops")
    for derived in ("weight_bytes", "value_bytes"):
        del device[derived]
    return (
        Architecture(**fields["Architecture"]),
        Device(**device),
        Profile(**fields["Profile"]),
        Split(**fields["Split"]),
    )
