"""From a `[workload]` table to its length law, and to request sequences that two rates share.

`Traffic` draws unit-rate arrivals and lengths once per seed: the i-th request of a rate `r` arrives at
`unit time / r` and has the same length at every rate (common random numbers).
"""

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asapmodel.errors import InputError
from asapmodel.models import arrivals
from asapmodel.models.distributions import Constant, Distribution, Empirical, TruncatedLognormal
from asapmodel.models.lengths import token_lengths
from asapmodel.models.trace import Trace, TraceError, read_trace
from asapmodel.scenario_workload import Constant as ConstantLength
from asapmodel.scenario_workload import Lognormal, TraceLengths, Values, WorkloadTable
from asapmodel.systems.arrays import Requests, make_requests

__all__ = ["Traffic", "length_law", "recorded_trace"]

_MOST_REQUESTS = 2e7  # a run of that size takes 3 GB and minutes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@cache
def _read(path: Path, low: int, high: int) -> Trace:
    return read_trace(path).kept(low, high)


def recorded_trace(workload: WorkloadTable) -> Trace | None:
    """The trace that a workload replays or draws lengths from, prompts outside its bounds left out.

    Raises
    ------
    InputError
        If the file cannot be used.
    """
    path = workload.trace
    if path is None and isinstance(workload.lengths, TraceLengths):
        path = workload.lengths.trace
    if path is None:
        return None
    try:
        return _read(path, workload.min_prompt_tokens, workload.max_prompt_tokens)
    except TraceError as error:
        raise InputError(error.where, error.key, error.problem, error.remedy) from None


def length_law(workload: WorkloadTable) -> Distribution:
    """The law of prompt lengths within the workload's bounds, tokens."""
    trace = recorded_trace(workload)
    if trace is not None:
        return trace.lengths()
    low, high = workload.min_prompt_tokens, workload.max_prompt_tokens
    match workload.lengths:
        case Lognormal(mu=mu, sigma=sigma):
            try:
                return TruncatedLognormal(mu, sigma, float(low), float(high))
            except ValueError as error:
                raise InputError("[workload]", "lengths", str(error), "widen the bounds on prompt tokens") from None
        case ConstantLength(constant=tokens):
            return Constant(float(tokens))
        case Values(values=values):
            return Empirical(np.array([n for n in values if low <= n <= high], dtype=np.float64))
    raise AssertionError(workload.lengths)


def _rate_of(trace: Trace) -> float:
    try:
        return trace.rate
    except TraceError as error:
        raise InputError(error.where, error.key, error.problem, error.remedy) from None


class Traffic:
    """Request sequences of one workload and seed, at any rate.

    Parameters
    ----------
    workload : WorkloadTable
        The scenario's table.
    seed : int, optional
        Replaces the workload's; a recorded trace has no randomness but the spreading of its ticks.
    """

    def __init__(self, workload: WorkloadTable, seed: int | None = None) -> None:
        self.workload = workload
        # Separate streams: the number of arrivals drawn must not move the lengths.
        streams = np.random.SeedSequence(workload.seed if seed is None else seed).spawn(3)
        self._gaps, self._lengths, self._ticks = (np.random.default_rng(stream) for stream in streams)
        self._unit = np.zeros(0)
        self._prompt = np.zeros(0, dtype=np.int64)
        self._cached = np.zeros(0, dtype=np.int64)
        self._natural_rate: float | None = None
        self._trace = recorded_trace(workload)
        if workload.trace is not None and workload.spread is not None and self._trace is not None:
            self._trace = self._trace.spread(workload.spread, self._ticks)
        if self.replayed and self._trace is not None:
            self._natural_rate = _rate_of(self._trace)

    @property
    def replayed(self) -> bool:
        """Whether arrivals are a trace's own."""
        return self.workload.trace is not None

    @property
    def natural_rate(self) -> float | None:
        """The rate a replayed trace was recorded at, requests/s; None for drawn arrivals."""
        return self._natural_rate

    def at(self, rate: float) -> Requests:
        """Requests at `rate` per second, until the workload's duration.

        Raises
        ------
        InputError
            If no request arrives in that time, or more than a run can hold.
        """
        if self.replayed:
            requests = self._replay(rate)
        else:
            duration = self.workload.duration or 300.0
            if rate * duration > _MOST_REQUESTS:
                problem = f"{rate * duration:.3g} requests at {rate:g} requests/s"
                raise InputError("[workload]", "duration", problem, f"lower it or the rate: {_MOST_REQUESTS:g} at most")
            self._draw(rate * duration)
            count = int(np.searchsorted(self._unit, rate * duration, side="right"))
            requests = make_requests(self._unit[:count] / rate, self._prompt[:count], self._cached[:count])
        if len(requests.arrival) == 0:
            remedy = "raise the rate or workload.duration, or take another seed"
            raise InputError("[workload]", "duration", f"no request arrives at {rate:g} requests/s", remedy)
        return requests

    def backlog(self, count: int) -> Requests:
        """Prompts that all wait at time 0: `count` drawn ones, or all of a replayed trace."""
        if self.replayed:
            assert self._trace is not None
            return make_requests(np.zeros(len(self._trace)), self._trace.prompt_tokens, self._trace.cached_tokens)
        while len(self._prompt) < count:
            self._draw(float(self._unit[-1]) + 1.0 if self._unit.size else float(count))
        return make_requests(np.zeros(count), self._prompt[:count], self._cached[:count])

    def _replay(self, rate: float) -> Requests:
        assert self._trace is not None
        trace = self._trace.rescaled(rate)
        times = trace.arrival_s - trace.arrival_s[0]
        count = len(times)
        if self.workload.duration is not None:
            count = int(np.searchsorted(times, self.workload.duration, side="right"))
        return make_requests(times[:count], trace.prompt_tokens[:count], trace.cached_tokens[:count])

    def _draw(self, until: float) -> None:
        """Extend the unit-rate sequence past `until`; what was drawn before stays."""
        law = arrivals.gamma(self.workload.cv).gaps if self.workload.cv is not None else arrivals.poisson().gaps
        last = self._unit[-1] if self._unit.size else 0.0
        while last <= until:
            block = int(max(until - last, 0.0) * 1.1) + 64
            # Summing from the last time on gives the same floats whatever the block sizes.
            times = np.cumsum(np.concatenate([[last], law.sample(self._gaps, block)]))[1:]
            self._unit = np.concatenate([self._unit, times])
            last = float(self._unit[-1])
            prompt, cached = self._draw_lengths(block)
            self._prompt = np.concatenate([self._prompt, prompt])
            self._cached = np.concatenate([self._cached, cached])

    def _draw_lengths(self, count: int) -> tuple[Ints, Ints]:
        if self._trace is not None:  # lengths with their cached prefixes, rows equally likely
            rows = np.minimum((self._lengths.random(count) * len(self._trace)).astype(np.int64), len(self._trace) - 1)
            return self._trace.prompt_tokens[rows], self._trace.cached_tokens[rows]
        return token_lengths(length_law(self.workload), self._lengths, count), np.zeros(count, dtype=np.int64)
