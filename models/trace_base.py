"""Recorded requests: arrival times, prompt lengths and cached prefixes, checked row by row.

A `Trace` is immutable and always valid; every way to change it (rate, window, length cut, spread ticks)
returns another one. Import from `asapmodel.models.trace`, which also reads and writes files.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asapmodel.models.distribution_base import FloatArray
from asapmodel.models.distributions import Empirical

__all__ = ["Trace", "TraceError", "check_rows"]

# Above this a float no longer tells neighbouring whole numbers apart.
_MOST_TOKENS = 2.0**53


class TraceError(ValueError):
    """A trace that cannot be used, said in one line.

    Parameters
    ----------
    where : str
        File name, or the `source` of the trace.
    key : str
        ``"row 7"`` (line of the file; the header is line 1), ``"header"``, or empty for the file as a whole.
    problem : str
        What is wrong.
    remedy : str
        What to do about it.

    Examples
    --------
    >>> str(TraceError("t.csv", "row 7", "prompt_tokens 0 is below 1", "drop the row"))
    't.csv: row 7: prompt_tokens 0 is below 1; drop the row'
    """

    def __init__(self, where: str, key: str, problem: str, remedy: str) -> None:
        self.where, self.key, self.problem, self.remedy = where, key, problem, remedy
        super().__init__(where, key, problem, remedy)

    def __str__(self) -> str:
        place = f"{self.where}: {self.key}" if self.key else self.where
        return f"{place}: {self.problem}; {self.remedy}".replace("\n", " ")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in order of arrival, at least one; arrays of one length, kept as read-only copies.

    Parameters
    ----------
    arrival_s : ndarray of float64
        Arrival times, seconds, ascending (ties allowed), at least 0.
    prompt_tokens : ndarray of int64
        Prompt lengths, at least 1.
    cached_tokens : ndarray of int64
        Prefix already in the cache, from 0 (also where unknown) to ``prompt_tokens - 1``.
    source : str
        Where the rows came from, for messages and reports.

    Raises
    ------
    TraceError
        If the rows break one of these rules; `key` counts rows from 2, as in a file with a header.

    Examples
    --------
    >>> trace = Trace(np.array([0.0, 0.5, 2.0]), np.array([31, 4096, 512]), np.array([0, 512, 0]), "example")
    >>> trace.rate, trace.rescaled(4.0).arrival_s.tolist(), trace.kept(1, 1000).prompt_tokens.tolist()
    (1.0, [0.0, 0.125, 0.5], [31, 512])
    """

    arrival_s: FloatArray
    prompt_tokens: NDArray[np.int64]
    cached_tokens: NDArray[np.int64]
    source: str

    def __post_init__(self) -> None:
        columns = [np.array(c, dtype=np.float64) for c in (self.arrival_s, self.prompt_tokens, self.cached_tokens)]
        check_rows(self.source, np.arange(columns[0].size) + 2, *columns)
        for name, column in zip(("arrival_s", "prompt_tokens", "cached_tokens"), columns, strict=True):
            kept = column if name == "arrival_s" else column.astype(np.int64)
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)

    def __len__(self) -> int:
        return self.arrival_s.size

    @property
    def rate(self) -> float:
        """Natural rate, requests per second: (n - 1) / (last - first arrival), one over the mean gap.

        Not n / span, which would count one gap too few: arrivals 0.5 s apart have rate 2.

        Raises
        ------
        TraceError
            If all requests arrive at one instant.
        """
        span = float(self.arrival_s[-1] - self.arrival_s[0])
        if span == 0:
            raise TraceError(self.source, "", "all requests arrive at one instant", "use a trace with a rate")
        return (len(self) - 1) / span

    def rescaled(self, rate: float) -> "Trace":
        """Another rate by scaling time alone, so lengths, order and burstiness stay.

        Raises
        ------
        ValueError
            If `rate` (requests per second) is not positive and finite.
        TraceError
            If the trace has no natural rate.
        """
        if not 0 < rate < math.inf:
            raise ValueError(f"rate must be positive and finite, not {rate}")
        return replace(self, arrival_s=self.arrival_s * (self.rate / rate))

    def window(self, start: float, duration: float) -> "Trace":
        """The requests that arrive in [start, start + duration), seconds, with `start` as the new time 0.

        Raises
        ------
        TraceError
            If none does.
        """
        first, last = np.searchsorted(self.arrival_s, [start, start + duration])
        rows = slice(int(first), int(last))
        chosen = self._rows(rows, f"no request arrives in [{start}, {start + duration}) s")
        return replace(chosen, arrival_s=chosen.arrival_s - start)

    def kept(self, min_tokens: int, max_tokens: float) -> "Trace":
        """The requests with `min_tokens` <= prompt <= `max_tokens`, at their times; so the rate falls.

        Raises
        ------
        TraceError
            If none is left.
        """
        inside = (self.prompt_tokens >= min_tokens) & (self.prompt_tokens <= max_tokens)
        return self._rows(inside, f"no prompt has between {min_tokens} and {max_tokens} tokens")

    def spread(self, tick_s: float, rng: np.random.Generator) -> "Trace":
        """Undo a coarse clock: put each arrival uniformly into the tick of `tick_s` seconds that it starts.

        The i-th request gets the i-th smallest of the spread times, so requests keep their order (a cached
        prefix depends on what came before it) and each stays in [t, t + tick_s]. Assumes Poisson arrivals
        within a tick.

        Raises
        ------
        ValueError
            If `tick_s` is negative or not finite.
        """
        if not 0 <= tick_s < math.inf:
            raise ValueError(f"tick_s must be at least 0 and finite, not {tick_s}")
        return replace(self, arrival_s=np.sort(self.arrival_s + tick_s * rng.random(len(self))))

    def lengths(self) -> Empirical:
        """Law of the prompt lengths, tokens."""
        return Empirical(self.prompt_tokens.astype(np.float64))

    def _rows(self, rows: slice | NDArray[np.bool_], if_none: str) -> "Trace":
        arrival = self.arrival_s[rows]
        if arrival.size == 0:
            raise TraceError(self.source, "", if_none, "choose wider limits")
        return Trace(arrival, self.prompt_tokens[rows], self.cached_tokens[rows], self.source)


def check_rows(
    source: str, lines: NDArray[np.int64], arrival: FloatArray, prompt: FloatArray, cached: FloatArray
) -> None:
    """Raise `TraceError` for the first broken rule of `Trace`; `lines` are the numbers to report rows by."""
    if not arrival.shape == prompt.shape == cached.shape or arrival.ndim != 1:
        raise TraceError(source, "", "columns differ in length", "give one value per request in each")
    if arrival.size == 0:
        raise TraceError(source, "", "holds no request", "give at least one row")
    for column, values, broken, rule, remedy in _rules(arrival, prompt, cached):
        if broken.any():
            row = int(np.argmax(broken))
            raise TraceError(source, f"row {lines[row]}", f"{column} {values[row]:.15g} {rule}", remedy)


def _rules(
    arrival: FloatArray, prompt: FloatArray, cached: FloatArray
) -> Iterator[tuple[str, FloatArray, NDArray[np.bool_], str, str]]:
    """Yield column, values, where the rule is broken, rule and remedy; each rule trusts those before it."""

    def whole(x: FloatArray, least: int) -> NDArray[np.bool_]:
        return np.asarray((x >= least) & (x <= _MOST_TOKENS) & (x == np.floor(x)))

    seconds = "give seconds since the start of the trace"
    yield "arrival_s", arrival, ~np.isfinite(arrival), "is not a finite number", seconds
    yield "arrival_s", arrival, arrival < 0, "is negative", seconds
    backwards = np.diff(arrival, prepend=0.0) < 0
    yield "arrival_s", arrival, backwards, "is earlier than the row before", "sort the rows by arrival_s"
    remedy = "drop the row, or give the prompt's length in tokens"
    yield "prompt_tokens", prompt, ~whole(prompt, 1), "is not a whole number of at least 1", remedy
    remedy = "leave the cell empty where it is unknown"
    yield "cached_tokens", cached, ~whole(cached, 0), "is not a whole number of at least 0", remedy
    remedy = "cap it at prompt_tokens - 1: at least one token is computed"
    yield "cached_tokens", cached, cached >= prompt, "is not below prompt_tokens", remedy
