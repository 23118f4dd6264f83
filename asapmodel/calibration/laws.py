"""Which parameters a table can say something about, between which bounds, and what the law predicts for its rows.

A letter is fitted if rows of a quantity that it acts on are there; all others come from the base profile. Bounds are
physics: shares of a peak are at most 1, latencies between a nanosecond and a tenth of a second. Dense products are cut
into tiles where the law is wanted in detail and the device's multiprocessors are known; grouped ones only where their
tiles are given (letters t_x, t_y, N_w), since a table states rows that differ between groups in the mean alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
import sympy
from numpy.typing import NDArray

from asapmodel.calibration.measurements import Measurements
from asapmodel.models.evaluation import prepare
from asapmodel.models.kernels import attention_kernels, message_expression, moe_kernels
from asapmodel.models.parameters import Profile
from asapmodel.models.symbols import SYMBOLS
from asapmodel.models.tiles import tile_expression, tiles
from asapmodel.solvers.robust_fit import Parameter

__all__ = ["Law", "law_of", "link_law", "name_of"]

Array = NDArray[np.float64]

_SHARE = (0.5, 0.005, 1.0)
_TIME = (5e-5, 1e-9, 0.1)
_START: Mapping[str, tuple[float, float, float]] = {
    **dict.fromkeys(("eta_g", "eta_c", "eta_i", "eta_x", "eta_m", "eta_b"), _SHARE),
    "eta_v": (0.05, 1e-4, 1.0),
    **dict.fromkeys(("tau_a", "tau_f", "tau_k", "tau_b"), _TIME),
    **dict.fromkeys(("c_t", "c_m"), (1e-7, 1e-12, 1e-4)),
    "tau_q": (5e-8, 1e-12, 1e-5),
    "k_0": (200.0, 1.0, 4096.0),
    "r_x": (32.0, 0.1, 256.0),
    "q": (1.5, 1.0, 40.0),
    "k_z": (100.0, 1.0, 2000.0),
    "B_t": (9e10, 1e10, 4e11),
}
"""Start, lower and upper bound of what can be fitted."""

_ACTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "attention": {
        "eta_g": ("module", "projections"),
        "eta_c": ("module", "sparse_core", "dense_core", "grouped_core"),
        "eta_i": ("module", "indexer"),
        "tau_a": ("module",),
        "tau_f": ("module",),
        "tau_k": ("sparse_core", "dense_core", "grouped_core", "indexer", "projections"),
    },
    "moe": {
        **dict.fromkeys(("eta_x", "eta_m", "r_x", "tau_k"), ("module", "grouped_gemm")),
        "tau_f": ("module",),
        "q": ("grouped_gemm",),
    },
}
"""Letters by model, and the quantities they act on."""


@dataclass(frozen=True, slots=True)
class Law:
    """Predictions of rows from parameters, and the parameters."""

    predict: Callable[[Array, NDArray[np.int64]], Array]
    parameters: tuple[Parameter, ...]


def name_of(letter: str) -> str:
    """The profile's field that a letter stands for, or what it means where the profile has none."""
    entry = SYMBOLS[letter]
    return entry.field or f"{letter} ({entry.meaning})"


def law_of(data: Measurements, model: str, base: Profile, detail: bool = False) -> Law:
    """The law of attention or experts for the rows of a table.

    Parameters
    ----------
    data : Measurements
        The rows.
    model : str
        ``"attention"`` or ``"moe"``.
    base : Profile
        Gives what is not fitted.
    detail : bool
        Whether terms that the planner's law leaves out are fitted too, and dense products are cut into tiles.
    """
    letters = _letters(data, model, detail)
    laws = dict(attention_kernels(detail) if model == "attention" else moe_kernels(detail))
    if "k_z" in letters:
        data, laws["grouped_gemm"] = data if "N_w" in data.values else _cut(data), tile_expression()
    known = _base_letters(base) | {"k_0": 0.0, "h_0": SYMBOLS["h_0"].default, "c_m": 0.0, "tau_q": 0.0}
    starts = {x: _START[x] for x in letters}
    if "tau_f" in starts:  # below the fastest row a floor has no effect, and the search would not find it
        fastest = float(data.seconds[data.quantity == "module"].min())
        starts["tau_f"] = (float(np.clip(fastest, 1e-8, 0.09)), *_TIME[1:])
    return Law(_prediction(data, laws, letters, known), tuple(Parameter(x, *starts[x]) for x in letters))


def _letters(data: Measurements, model: str, detail: bool) -> list[str]:
    """Letters that the rows can say something about."""
    there = {str(one) for one in np.unique(data.quantity)}
    letters = [letter for letter, acts in _ACTS[model].items() if there.intersection(acts)]
    dense = model == "attention" and not np.any(data.values["k"] > 0)
    if dense:
        letters = [one for one in letters if one != "eta_i"]
    if model == "attention" and {"module", "indexer"} <= there and not dense:
        letters.append("eta_v")  # top-k is in the module only: the kernel tells the scores apart from it
    if model == "attention" and "module" in there and np.unique(data.values["T"]).size > 1:
        letters.append("c_t")  # projections per token shrink with T, other work does not: that tells them apart
    if detail and "module" in there:
        letters += ["c_m"] if model == "moe" else ["tau_q"] if dense else ["k_0"]
    if detail and "grouped_gemm" in there and ("N_w" in data.values or _dense_products(data)):
        letters = [one for one in letters if one != "r_x" or "module" in there] + ["k_z", "B_t"]
    return letters


def _dense_products(data: Measurements) -> bool:
    """Whether the products of a table are all dense, on devices whose multiprocessors are known."""
    products = data.take(data.quantity == "grouped_gemm").values
    return bool(np.all((products["G"] == 1) & (products["P_n"] > 0)))


def _cut(data: Measurements) -> Measurements:
    """The rows with the tiles of their products; NaN for other quantities."""
    product = data.quantity == "grouped_gemm"
    found = tiles(*(data.values[x][product] for x in ("N_x", "N_y", "P_n")))
    values = {letter: np.full(len(data), np.nan) for letter in ("t_x", "t_y", "N_w")}
    for letter, value in zip(values, found, strict=True):
        values[letter][product] = value
    return replace(data, values=data.values | values)


def link_law(data: Measurements) -> Law:
    """Latency and share of the link of one operation among one number of nodes."""
    letters = ["tau_b", "eta_b"]
    laws = dict.fromkeys(("dispatch", "combine"), message_expression())
    return Law(_prediction(data, laws, letters, {}), tuple(Parameter(x, *_START[x]) for x in letters))


def _base_letters(base: Profile) -> dict[str, float]:
    names = {field.name for field in fields(base)}
    return {x: float(getattr(base, e.field)) for x, e in SYMBOLS.items() if e.owner == "Profile" and e.field in names}


def _prediction(
    data: Measurements, laws: Mapping[str, sympy.Expr], letters: list[str], known: Mapping[str, float]
) -> Callable[[Array, NDArray[np.int64]], Array]:
    @lru_cache(maxsize=32)  # a fit asks for the same rows again and again
    def prepared(rows: bytes) -> list[tuple[NDArray[np.int64], Callable[[Sequence[float]], Array]]]:
        index = np.frombuffer(rows, dtype=np.int64)
        parts = []
        for quantity in np.unique(data.quantity[index]):
            inside = np.flatnonzero(data.quantity[index] == quantity)
            law = laws[str(quantity)]
            needed = {str(x.name) for x in law.free_symbols} - set(letters)
            shared = {x: v for x, v in known.items() if x in needed}
            values = {x: v[index][inside] for x, v in data.values.items() if x in needed}
            parts.append((inside, prepare(law, letters, **(shared | values))))
        return parts

    def predict(parameters: Array, rows: NDArray[np.int64]) -> Array:
        out = np.empty(rows.size)
        given = parameters.tolist()
        for inside, law in prepared(rows.astype(np.int64).tobytes()):
            out[inside] = law(given)
        return out

    return predict
