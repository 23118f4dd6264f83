"""Logs of requests: arrival, length and measured TTFT of every request of a run, and which had the system to itself.

One CSV file a run, plain or gzipped, with the columns that `evaluate --requests` writes: `arrival_s`, `prompt_tokens`,
`cached_tokens` (0 where it is missing) and `ttft_s` (empty where a request failed: it is replayed and not judged).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.errors import InputError
from asapmodel.systems.arrays import Requests, make_requests

__all__ = ["RequestLog", "lone_requests", "read_log", "split_argument"]

Array = NDArray[np.float64]
_NEEDED = ("arrival_s", "prompt_tokens", "ttft_s")


@dataclass(frozen=True, slots=True, eq=False)
class RequestLog:
    """A run: its requests in order of arrival, their TTFT (seconds, NaN: failed), and what differs in the scenario."""

    name: str
    requests: Requests
    ttft: Array
    changes: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ttft)


def split_argument(argument: str | os.PathLike[str]) -> tuple[str, dict[str, str]]:
    """A file, and the scenario keys given for it behind a colon.

    Examples
    --------
    >>> split_argument("small.csv:chunk_tokens=16384,max_seqs=8")
    ('small.csv', {'chunk_tokens': '16384', 'max_seqs': '8'})
    >>> split_argument("C:/logs/plain.csv")
    ('C:/logs/plain.csv', {})
    """
    text = os.fspath(argument)
    path, colon, keys = text.rpartition(":")
    if not colon or "=" not in keys:
        return text, {}
    changes = {}
    for part in keys.split(","):
        key, equals, value = part.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise InputError(text, "", f"'{part}' is no setting", "give FILE.csv:key=value,key=value")
        changes[key.strip()] = value.strip()
    return path, changes


def read_log(path: str, changes: Mapping[str, str] | None = None) -> RequestLog:
    """Read the log of one run.

    Raises
    ------
    InputError
        Names file, column or row, and the remedy.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, comment="#", skipinitialspace=True)
    except FileNotFoundError:
        raise InputError(path, "", "no such file", "check the path") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, OSError, ValueError) as error:
        raise InputError(path, "", f"is no CSV table: {error}", "give columns under a header line") from None
    for name in _NEEDED:
        if name not in table:
            remedy = f"give the columns {', '.join(_NEEDED)}, as evaluate --requests writes them"
            raise InputError(path, name, "is missing", remedy)
    if table.empty:
        raise InputError(path, "", "has no rows", "give the requests of a run")
    columns = {name: pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64) for name in _NEEDED}
    cached = np.zeros(len(table))
    if "cached_tokens" in table:
        cached = pd.to_numeric(table["cached_tokens"], errors="coerce").to_numpy(np.float64)
    return _checked(path, columns, cached, table["ttft_s"].isna().to_numpy(), changes or {})


def _checked(
    path: str, columns: Mapping[str, Array], cached: Array, failed: NDArray[np.bool_], changes: Mapping[str, str]
) -> RequestLog:
    arrival, prompt, ttft = (columns[name] for name in _NEEDED)
    wrong = {
        "arrival_s": ~(np.isfinite(arrival) & (arrival >= 0)),
        "prompt_tokens": ~(np.isfinite(prompt) & (prompt >= 1)),
        "cached_tokens": ~(np.isfinite(cached) & (cached >= 0) & (cached < prompt)),
        "ttft_s": ~((ttft > 0) | failed),
    }
    for name, bad in wrong.items():
        if bad.any():
            row = int(np.argmax(bad)) + 1
            remedy = "give seconds above 0" if name.endswith("_s") else "give tokens of the prompt, fewer cached ones"
            raise InputError(path, f"row {row}, {name}", "is no such number", remedy)
    order = np.argsort(arrival, kind="stable")
    requests = make_requests(arrival[order], prompt[order].astype(np.int64), cached[order].astype(np.int64))
    return RequestLog(Path(path).name, requests, ttft[order], dict(changes))


def lone_requests(log: RequestLog) -> NDArray[np.int64]:
    """Numbers of the requests that were alone in the system from their arrival to their first token.

    A failed request counts as being there until the next one arrives.
    """
    arrival, end = log.requests.arrival, log.requests.arrival + np.nan_to_num(log.ttft, nan=0.0)
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    after = np.concatenate([arrival[1:], [np.inf]])
    alone: NDArray[np.int64] = np.flatnonzero((before <= arrival) & (end <= after) & np.isfinite(log.ttft))
    return alone
