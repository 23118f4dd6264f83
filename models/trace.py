"""Traces on disk: CSV, plain or gzip-compressed, with a header that names the columns.

``arrival_s`` and ``prompt_tokens`` must be there, ``cached_tokens`` may be (an empty cell means unknown,
counted as 0), others are ignored, blank lines are skipped. Every fault is a `TraceError` that names file,
line and remedy.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from asapmodel.models.distribution_base import FloatArray
from asapmodel.models.trace_base import Trace, TraceError, check_rows

__all__ = ["Trace", "TraceError", "read_trace", "write_trace"]

_REQUIRED = ("arrival_s", "prompt_tokens")
_OPTIONAL = "cached_tokens"
_HEADER_REMEDY = "name the columns arrival_s, prompt_tokens and, where known, cached_tokens in the first line"
# Rows held as text at a time: large enough to be fast, small enough that a long trace does not fill memory.
_BLOCK = 65536


def read_trace(path: str | PathLike[str]) -> Trace:
    r"""Read a ``.csv`` or ``.csv.gz`` trace; a few seconds for a million rows.

    Parameters
    ----------
    path : path-like
        The file; its name becomes the `source` of the trace.

    Raises
    ------
    TraceError
        If the file is missing, unreadable, empty or not in this format, or a row breaks a rule of `Trace`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = file.write_text("arrival_s,prompt_tokens,output_tokens\n0.25,512,9\n\n1.5,31,7\n")
    >>> read_trace(file).prompt_tokens.tolist()
    [512, 31]
    """
    file = Path(path)
    name = file.name
    if not name.endswith((".csv", ".csv.gz")):
        raise TraceError(name, "", "is neither .csv nor .csv.gz", "convert the trace to one of these")
    try:
        opener = gzip.open if name.endswith(".gz") else open
        with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
            lines, columns = _parse(name, stream)
    except FileNotFoundError:
        raise TraceError(name, "", f"does not exist in {file.parent}", "check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(name, "", f"is not a whole gzip file ({error})", "compress it again") from error
    except UnicodeDecodeError as error:
        raise TraceError(name, "", "is not UTF-8 text", "save as UTF-8; end a gzip's name in .gz") from error
    except OSError as error:
        raise TraceError(name, "", f"cannot be read ({error.strerror})", "check path and permissions") from error
    check_rows(name, lines, *columns)
    arrival, prompt, cached = columns
    return Trace(arrival, prompt.astype(np.int64), cached.astype(np.int64), name)


def write_trace(path: str | PathLike[str], trace: Trace) -> None:
    """Write ``arrival_s,prompt_tokens,cached_tokens``; the same trace gives the same bytes.

    Parameters
    ----------
    path : path-like
        Compressed when its name ends in ``.gz``. An existing file is replaced.
    trace : Trace
        What to write. All its numbers are restored by `read_trace`; its `source` is not stored.
    """
    rows = zip(trace.arrival_s.tolist(), trace.prompt_tokens.tolist(), trace.cached_tokens.tolist(), strict=True)
    text = ",".join((*_REQUIRED, _OPTIONAL)) + "\n" + "".join(f"{a!r},{p},{c}\n" for a, p, c in rows)
    data = text.encode()
    # A fixed time stamp in the gzip header keeps the bytes reproducible.
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def _parse(name: str, stream: TextIO) -> tuple[NDArray[np.int64], list[FloatArray]]:
    """Line numbers and the three columns, as numbers but not yet checked."""
    rows = _filled_rows(name, stream)
    header_line = next(rows, None)
    if header_line is None:
        raise TraceError(name, "header", "the file is empty", _HEADER_REMEDY)
    header = [cell.strip() for cell in header_line[1]]
    _check_header(name, header)
    lines: list[int] = []
    blocks: list[list[FloatArray]] = []
    while block := list(islice(rows, _BLOCK)):
        for line, row in block:
            if len(row) != len(header):
                problem = f"has {len(row)} cells, the header {len(header)}"
                raise TraceError(name, f"row {line}", problem, "give one cell per column")
        lines += [line for line, _ in block]
        blocks.append([_numbers(name, header, column, block) for column in (*_REQUIRED, _OPTIONAL)])
    if not blocks:
        raise TraceError(name, "", "has a header but no rows", "give at least one request")
    return np.array(lines), [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def _filled_rows(name: str, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield rows that are not blank, each with its line number in the file."""
    reader = csv.reader(stream, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        remedy = "write plain cells separated by commas"
        raise TraceError(name, f"row {reader.line_num}", f"is not CSV ({error})", remedy) from error


def _check_header(name: str, header: Sequence[str]) -> None:
    for column in _REQUIRED:
        if column not in header:
            raise TraceError(name, "header", f"has no column {column}", _HEADER_REMEDY)
    for column in (*_REQUIRED, _OPTIONAL):
        if header.count(column) > 1:
            raise TraceError(name, "header", f"names {column} twice", "name each column once")


def _numbers(name: str, header: Sequence[str], column: str, block: Sequence[tuple[int, list[str]]]) -> FloatArray:
    """One column of a block as floats."""
    if column not in header:
        return np.zeros(len(block))
    place = header.index(column)
    cells = [row[place] for _, row in block]
    if column == _OPTIONAL:
        cells = [cell if cell.strip() else "0" for cell in cells]
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        wrong = next(i for i, cell in enumerate(cells) if not _is_number(cell))
        problem = f"{column} {cells[wrong][:40]!r} is not a number"
        raise TraceError(name, f"row {block[wrong][0]}", problem, "give a plain decimal number") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
