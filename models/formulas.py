"""Numbers from laws without loading SymPy: the code made of a law's expressions is kept, as numba keeps its own.

A law is a function without arguments (or a `functools.partial` of one with plain arguments) that builds one expression
or a mapping of them. What `sympy.lambdify` makes of them is a few lines of Python for NumPy; those lines are written to
``__pycache__`` beside the modules, under a digest of all modules of this folder, so that any change of a formula makes
new ones. Loading SymPy and compiling some thirty expressions takes a second, which is more than most answers; reading
the kept lines takes a millisecond. Where the folder cannot be written, the second is paid in every process. Laws
that are defined elsewhere are not kept: the digest knows nothing of their changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial, reduce
from pathlib import Path
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
    if name is None:
        return _compiled(_made(law()))
    if name not in _ready:
        kept = _kept()
        if name not in kept:
            kept[name] = _made(law())
            _keep(kept)
        _ready[name] = _compiled(kept[name])
    return _ready[name]


_ready: dict[str, dict[str, _Numeric]] = {}


def _name(law: Any) -> str | None:
    """Name of a law that is the same in every process; None for one that no name tells from others."""
    if isinstance(law, partial):
        names = [_name(one) for one in (law.func, *law.args)]
        return None if law.keywords or None in names else f"{names[0]}({', '.join(map(str, names[1:]))})"
    if not callable(law):
        return repr(law)
    ours = law.__module__.startswith(_PACKAGE) and "<" not in law.__qualname__
    return f"{law.__module__}.{law.__qualname__}" if ours else None


_PACKAGE = __name__.rpartition(".")[0] + "."


def _made(expressions: Any) -> dict[str, _Text]:
    named = expressions if isinstance(expressions, Mapping) else {_ONE: expressions}
    return {name: code_of(expression) for name, expression in named.items()}


def _compiled(texts: Mapping[str, _Text]) -> dict[str, _Numeric]:
    return {name: (tuple(letters), _function(text)) for name, (letters, text) in texts.items()}


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
    file = _file()
    own = file.with_name(f"{file.name}.{os.getpid()}")  # others may be writing, too
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        own.write_text(json.dumps(kept), encoding="utf-8")
        own.replace(file)
        for old in file.parent.glob("formulas-*.json"):
            if old != file:
                old.unlink(missing_ok=True)
