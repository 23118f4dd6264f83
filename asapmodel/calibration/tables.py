"""CSV tables of measurements: our own columns, or those of public tables; every mistake names file, column and remedy.

Our own columns (lines that begin with ``#`` are comments)::

    seconds          measured time; or latency_ms, latency_us
    quantity         what was measured, see `QUANTITIES`; default "module", and of a link a column that is needed
    noise            relative standard deviation of the measurement; default 0.03
    device           catalogue name; default the option
    architecture     catalogue name; default the option
    attention        length, prefix (0), batch (1), T (1)
    moe, module      tokens, E (1), imbalance (1: load of the busiest device over the mean)
    moe, grouped_gemm    groups (1), rows of each, width of the result, depth that is summed over
    link             tokens of the T (1) devices that send, bytes_per_copy, nodes (1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.measurements import NOISE, QUANTITIES, Measurements, facts, join
from asapmodel.calibration.public_tables import reader_of
from asapmodel.errors import InputError
from asapmodel.tables import nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LETTERS", "read_tables"]

LETTERS: Mapping[str, Mapping[str, tuple[str, float | None]]] = {
    "attention": {"length": ("s", None), "prefix": ("p", 0.0), "batch": ("N_b", 1.0), "T": ("T", 1.0)},
    "module": {"tokens": ("n", None), "E": ("E", 1.0), "imbalance": ("chi", 1.0)},
    "grouped_gemm": {
        **{"groups": ("G", 1.0), "rows": ("N_x", None)},
        **{"width": ("N_y", None), "depth": ("N_z", None)},
    },
    "link": {"tokens": ("n", None), "T": ("T", 1.0), "bytes_per_copy": ("b_x", None)},
}
"""Generic columns, their letters and defaults, by model, and for experts by quantity."""

_TIMES = {"seconds": 1.0, "latency_ms": 1e-3, "latency_us": 1e-6}
_SHARED = {"quantity", "noise", "device", "architecture", "nodes", *_TIMES}
_MAY_BE_ZERO = {"prefix"}


def read_tables(
    paths: Sequence[str | Path], model: str, device: str | None = None, architecture: str = "deepseek-v3.2"
) -> Measurements:
    """Read measurements of one model from several tables.

    Parameters
    ----------
    paths : sequence of path-like
        CSV files, in the columns above or a public table's.
    model : str
        ``"attention"``, ``"moe"`` or ``"link"``.
    device : str, optional
        Catalogue name for rows that do not say; needed if any does not.
    architecture : str
        Catalogue name for rows that do not say.

    Raises
    ------
    InputError
        With file, column or line, and remedy.
    """
    return join([_read(Path(path), str(path), model, device, architecture) for path in paths])


def _read(path: Path, where: str, model: str, device: str | None, architecture: str) -> Measurements:
    table = _csv(path, where)
    if "quantity" not in table:
        reader = reader_of(set(table.columns))
        if reader is not None and reader.model != model:
            raise InputError(where, "", f"measures {reader.model}, not {model}", f"give --model {reader.model}")
        if reader is not None:
            table = reader.read(table)
        elif model == "link":
            raise InputError(where, "quantity", "is missing", "add a column with dispatch or combine")
        else:
            table = table.assign(quantity="module")
    return _measurements(table, where, model, device, architecture)


def _csv(path: Path, where: str) -> pd.DataFrame:
    import pandas as pd

    try:
        table = pd.read_csv(path, comment="#", skipinitialspace=True)
    except FileNotFoundError:
        raise InputError(where, "", "no such file", "check the path") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, ValueError) as error:
        raise InputError(where, "", f"is no CSV table: {error}", "give columns under a header line") from None
    if table.empty:
        raise InputError(where, "", "has no rows", "give a table of measurements")
    return table


def _measurements(table: pd.DataFrame, where: str, model: str, device: str | None, architecture: str) -> Measurements:
    known = QUANTITIES[model]
    for row, quantity in table["quantity"].items():
        if quantity not in known:
            remedy = f"give one of {', '.join(known)}"
            raise InputError(where, f"row {_line(row)}, quantity", f"is {quantity!r}", remedy)
    times = [name for name in _TIMES if name in table]
    if len(times) != 1:
        problem = "is missing" if not times else f"is there as {' and '.join(times)}"
        raise InputError(where, "seconds", problem, "give one of seconds, latency_ms, latency_us")
    parts = []
    for quantity, rows in table.groupby("quantity", sort=False):
        columns = LETTERS[str(quantity) if model == "moe" else model]
        _refuse_unknown(rows, columns, where, model)
        parts.append(_rows(rows, columns, where, times[0], device, architecture))
    return join(parts)


def _refuse_unknown(rows: pd.DataFrame, columns: Mapping[str, object], where: str, model: str) -> None:
    elsewhere = set().union(*LETTERS.values()) if model == "moe" else set(columns)
    for name in rows.columns:
        if name not in elsewhere | _SHARED:
            remedy = f"the nearest known column is '{nearest(name, [*columns, *_SHARED])}'"
            raise InputError(where, str(name), "is no column of a table of measurements", remedy)


def _rows(
    rows: pd.DataFrame,
    columns: Mapping[str, tuple[str, float | None]],
    where: str,
    time: str,
    device: str | None,
    architecture: str,
) -> Measurements:
    values = _facts(rows, where, device, architecture)
    _refuse_other_attention(rows, values, where)
    for name, (letter, default) in columns.items():
        if name not in rows and default is None:
            remedy = f"add it: a table of {rows['quantity'].iloc[0]} needs {', '.join(columns)}"
            raise InputError(where, name, "is missing", remedy)
        values[letter] = _numbers(rows, name, where) if name in rows else np.full(len(rows), default)
    if "p" in values and np.any(values["p"] >= values["s"]):
        row = rows.index[values["p"] >= values["s"]][0]
        raise InputError(where, f"row {_line(row)}, prefix", "is not below length", "give cached tokens of the prompt")
    return Measurements(
        rows["quantity"].to_numpy(dtype=np.str_),
        values,
        _numbers(rows, time, where) * _TIMES[time],
        _numbers(rows, "noise", where) if "noise" in rows else np.full(len(rows), NOISE),
        (_numbers(rows, "nodes", where) if "nodes" in rows else np.ones(len(rows))).astype(np.int64),
        tuple(f"{Path(where).name}:{_line(row)}" for row in rows.index),
    )


def _refuse_other_attention(rows: pd.DataFrame, values: Mapping[str, NDArray[np.float64]], where: str) -> None:
    """Refuse kernels of latent attention of a model of grouped-query attention, and the other way round."""
    quantity, grouped = rows["quantity"].iloc[0], bool(np.any(values["h_kv"] > 0))
    if quantity == "grouped_core" and not np.all(values["h_kv"] > 0):
        remedy = "give --architecture, one with kv_heads, e.g. qwen3-235b-a22b"
        raise InputError(where, "architecture", "has latent attention, the table measures grouped_core", remedy)
    if grouped and quantity != "grouped_core" and "length" in rows:  # rows of attention
        remedy = "of grouped-query attention the core alone can be calibrated, quantity = grouped_core"
        raise InputError(where, "architecture", f"has grouped-query attention, the table measures {quantity}", remedy)


def _facts(rows: pd.DataFrame, where: str, device: str | None, architecture: str) -> dict[str, NDArray[np.float64]]:
    """Letters of the device and the model of every row."""
    if "device" not in rows and device is None:
        raise InputError(where, "device", "is missing", "give --device, or a column with catalogue names")
    devices = rows["device"] if "device" in rows else [device] * len(rows)
    models = rows["architecture"] if "architecture" in rows else [architecture] * len(rows)
    named = list(zip(map(str, devices), map(str, models), strict=True))
    known = {pair: facts(*pair, where) for pair in dict.fromkeys(named)}
    letters = next(iter(known.values()))
    return {letter: np.array([known[pair][letter] for pair in named]) for letter in letters}


def _numbers(rows: pd.DataFrame, name: str, where: str) -> NDArray[np.float64]:
    import pandas as pd

    values = pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = ~np.isfinite(values) | (values < 0) | ((values == 0) & (name not in _MAY_BE_ZERO))
    if bad.any():
        row = rows.index[bad][0]
        wanted = "a number of at least 0" if name in _MAY_BE_ZERO else "a number above 0"
        raise InputError(where, f"row {_line(row)}, {name}", f"is {rows[name][bad].iloc[0]}", f"give {wanted}")
    return values


def _line(row: object) -> int:
    """Number of a row of the table, from 1."""
    return int(row) + 1  # type: ignore[call-overload, no-any-return]
