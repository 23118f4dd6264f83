"""Numbers from laws without loading SymPy: the code made of a law's expressions is kept, as numba keeps its own.

A law is a function without arguments (or a `functools.partial` of one with plain arguments) that builds one expression
or a mapping of them. What `sympy.lambdify` makes of them is a few lines of Python for NumPy; those lines are written to
``__pycache__`` beside the modules, under a digest of all modules of this folder, so that any change of a formula makes
new ones. Loading SymPy and compiling some thirty expressions takes a second, which is more than most answers; reading
the kept lines takes a millisecond. Where the folder cannot be written, the second is paid in every process.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial, reduce
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.evaluation import Parameters, bind, check_given, code_of

if TYPE_CHECKING:
    import sympy

__all__ = ["value", "values"]

_FOLDER = Path(__file__).parent
_ONE = ""  # name of the only expression of a law that is no mapping

_Text = tuple[tuple[str, ...], str]  # letters, code
_Numeric = tuple[tuple[str, ...], Callable[..., Any]]


def value(law: Callable[[], sympy.Expr], *parameters: Parameters, **variables: ArrayLike) -> NDArray[np.float64]:
    """Value of a law of one expression; parameters, result and errors as in `asapmodel.models.evaluation.evaluate`.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> from asapmodel.models.moe import floor_expression
    >>> f"{float(value(floor_expression, *paper_deployment())) * 1e6:.1f} us"
    '557.1 us'
    """
    return _numbers(law, parameters, variables)[_ONE]


def values(
    law: Callable[[], Mapping[str, sympy.Expr]], *parameters: Parameters, **variables: ArrayLike
) -> dict[str, NDArray[np.float64]]:
    """Values of a law of several expressions, by name; otherwise as `value`.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> from asapmodel.models.memory import moe_buffers
    >>> {name: int(x) for name, x in values(moe_buffers, *paper_deployment(), S=32768).items()}
    {'token metadata': 256, 'tokens': 15032385536, 'arrival flags': 2}
    """
    return _numbers(law, parameters, variables)


def _numbers(
    law: Callable[[], Any], parameters: tuple[Parameters, ...], variables: Mapping[str, ArrayLike]
) -> dict[str, NDArray[np.float64]]:
    given = bind(*parameters, **variables)
    numbers = {}
    for name, (letters, function) in _numeric(law).items():
        check_given(letters, given)
        numbers[name] = np.asarray(function(*(given[letter] for letter in letters)), dtype=np.float64)
    return numbers


def _numeric(law: Callable[[], Any]) -> dict[str, _Numeric]:
    name = _name(law)
    if name not in _ready:
        kept = _kept()
        if name not in kept:
            kept[name] = _made(law())
            _keep(kept)
        _ready[name] = {one: (tuple(letters), _function(text)) for one, (letters, text) in kept[name].items()}
    return _ready[name]


_ready: dict[str, dict[str, _Numeric]] = {}


def _name(law: Any) -> str:
    """Name of a law that is the same in every process."""
    if isinstance(law, partial):
        return f"{_name(law.func)}({', '.join(_name(argument) for argument in law.args)})"
    return f"{law.__module__}.{law.__qualname__}" if callable(law) else repr(law)


def _made(expressions: Any) -> dict[str, _Text]:
    named = expressions if isinstance(expressions, Mapping) else {_ONE: expressions}
    return {name: code_of(expression) for name, expression in named.items()}


def _function(text: str) -> Callable[..., Any]:
    # The namespace of lambdify for NumPy: its functions by their plain names.
    names: dict[str, Any] = {**vars(np), "reduce": reduce}
    exec(text, names)  # our own lines, as in a .pyc file
    function: Callable[..., Any] = names["_lambdifygenerated"]
    return function


@cache
def _kept() -> dict[str, dict[str, _Text]]:
    with suppress(OSError, ValueError):
        kept: dict[str, dict[str, _Text]] = json.loads(_file().read_text(encoding="utf-8"))
        return kept
    return {}


@cache
def _file() -> Path:
    digest = hashlib.sha256()
    for path in sorted(_FOLDER.glob("*.py")):
        digest.update(path.read_bytes())
    return _FOLDER / "__pycache__" / f"formulas-{digest.hexdigest()[:16]}.json"


def _keep(kept: Mapping[str, dict[str, _Text]]) -> None:
    with suppress(OSError):
        _file().parent.mkdir(exist_ok=True)
        for old in _file().parent.glob("formulas-*.json"):
            old.unlink()
        with NamedTemporaryFile("w", dir=_file().parent, delete=False, encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(file.name, _file())
