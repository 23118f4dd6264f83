"""Stationary runs of the graph engine on a case: saturation throughput, and TTFT at a share of it.

Independent pieces, each started with as much work waiting as the single-server queue of the same load has at a time
picked from its long run, and with a warm-up of its own; means and the 99th percentile with the control variates of
`engines_controls`, and 95 % half-widths.
"""

import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.graph import Run, run
from asapmodel.models.lengths import token_lengths
from asapmodel.studies.engines_cases import Case
from asapmodel.studies.engines_controls import Estimate, Surrogate, batched, estimate, surrogate, waits, weights
from asapmodel.studies.engines_rows import Row
from asapmodel.systems.arrays import Requests, make_requests
from asapmodel.workload import length_law, recorded_trace

__all__ = ["Saturation", "measure", "measure_saturation", "requests_of"]

Floats = NDArray[np.float64]

_LOOKS = (4, 8, 16, 32)  # numbers of pieces at which half-widths are looked at
_OWN_COST = 1.5e-6  # seconds of this module a request
_BATCHES = 8  # of one piece
_FIRST = {"sync": 30_000, "asap": 3_000}  # requests of a piece, at least
_LARGEST = {"sync": 30_000, "asap": 30_000}  # at most up to utilisation 0.8, four times as many above
_TARGET = {True: (0.01, 0.02), False: (0.025, 0.04)}  # half-widths of mean and p99: up to utilisation 0.8; above
_CUSTOMERS = 400_000  # of the run behind the controls
_GRID = 16384  # quantiles of a length law


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """Throughput under a backlog, and seconds of it that a prompt costs, `per_prompt + per_token n + per_work w`."""

    rate: float
    error: float  # relative standard error
    cost: Floats  # (3,), not negative
    seconds_per_request: float  # of computing

    def service(self, requests: Requests) -> Floats:
        """Effective service time of each request."""
        return _features(requests) @ self.cost


def _features(requests: Requests) -> Floats:
    prompt, cached = requests.prompt.astype(np.float64), requests.cached.astype(np.float64)
    return np.stack([np.ones(len(prompt)), prompt - cached, prompt**2 - cached**2], axis=1)


def _law(case: Case) -> Requests:
    """The law of prompts on a fine grid (all rows of a trace), as if they were requests."""
    trace = recorded_trace(case.scenario.workload)
    if trace is not None:
        return make_requests(np.zeros(len(trace)), trace.prompt_tokens, trace.cached_tokens)
    grid = length_law(case.scenario.workload).quantile((np.arange(_GRID) + 0.5) / _GRID)
    return make_requests(np.zeros(_GRID), np.maximum(np.rint(grid), 1).astype(np.int64))


def requests_of(case: Case, rate: float, count: int, piece: int) -> Requests:
    """Requests of the case's traffic; as `Traffic` draws them, without its slow inversion of the gamma law."""
    rng = np.random.default_rng([case.seed, case.index, round(1e6 * rate), piece])
    shape = case.problem.gap_cv**-2
    gap = rng.exponential(size=count) if shape == 1 else rng.gamma(shape, 1 / shape, count)
    trace = recorded_trace(case.scenario.workload)
    if trace is not None:
        rows = rng.integers(0, len(trace), size=count)
        return make_requests(np.cumsum(gap) / rate, trace.prompt_tokens[rows], trace.cached_tokens[rows])
    return make_requests(np.cumsum(gap) / rate, token_lengths(length_law(case.scenario.workload), rng, count))


def _backlog(case: Case, count: int) -> Requests:
    drawn = requests_of(case, 1.0, count, 10_000)
    return drawn._replace(arrival=np.zeros(count))


def _execute(case: Case, requests: Requests) -> tuple[Run, float]:
    start = time.thread_time()
    done = run(case.scenario.layout, case.scenario.policy, case.problem.costs, requests)
    return done, time.thread_time() - start


def measure_saturation(case: Case, seconds: float, segments: int = 40) -> Saturation:
    """Saturation throughput from one backlog, between the 10th and 90th percentile of completions.

    The time of a segment of completions is regressed on what its prompts hold (tokens, work), whose means are known:
    without that the scatter of the lengths would need ten times the requests.
    """
    from scipy.optimize import nnls

    first = _FIRST[case.system] * 2
    pilot, spent = _execute(case, _backlog(case, first))
    per_request = spent / len(pilot.outcome.end)
    count = int(np.clip(seconds / per_request, first, 32 * _LARGEST[case.system]))
    requests = _backlog(case, count)
    done, spent = _execute(case, requests)
    order = np.argsort(done.outcome.end, kind="stable")
    marks = np.linspace(0.1 * count, 0.9 * count, segments + 1).astype(np.int64)
    every = done.outcome.end[order]
    marks = np.searchsorted(every, every[marks], "right") - 1  # many end together: a segment ends with all of them
    marks = np.unique(marks)
    ends, segments = every[marks], len(marks) - 1
    held = np.concatenate([[np.zeros(3)], np.cumsum(_features(requests)[order], axis=0)])[marks + 1]
    number = np.diff(held[:, 0])
    time_each, table = np.diff(ends) / number, np.diff(held, axis=0) / number[:, None]
    expected = _features(_law(case)).mean(axis=0)
    scale = expected.copy()
    centred = (table - expected) / scale
    design = np.column_stack([np.ones(segments), centred[:, 1:]])
    solution = np.linalg.lstsq(design, time_each, rcond=1e-6)[0]
    left = time_each - design @ solution
    inverse = np.linalg.pinv(design.T @ design, rcond=1e-9)
    error = float(np.sqrt(left @ left / (segments - 3) * inverse[0, 0]))
    each = float(solution[0])
    cost = nnls(table / scale, time_each)[0] / scale
    return Saturation(1 / each, error / each, cost * each / float(expected @ cost), spent / count)


@dataclass(slots=True, eq=False)
class _Pieces:
    """Independent pieces of a run at one rate, each after its own warm-up."""

    ttft: list[Floats]
    parts: list[Floats]  # batches of ttft, queueing, kernel, waiting
    columns: list[Floats]  # per request, as those of `Surrogate.table`
    runs: list[Run]

    @property
    def controls(self) -> Floats:
        """Batches of the columns."""
        return np.concatenate([batched(one, _BATCHES) for one in self.columns])


def _add_piece(
    case: Case, rate: float, level: Saturation, count: int, warm: int, backlog: float, pieces: _Pieces
) -> None:
    """Run `count` requests, of which the first `warm` do not count.

    The first prompts, of `backlog` seconds of work, arrive at once: a start from an empty system would take long to
    forget.
    """
    some = requests_of(case, rate, count, len(pieces.ttft))
    first = min(int(np.searchsorted(np.cumsum(level.service(some)), backlog)), count // 2)
    some = some._replace(arrival=np.maximum(some.arrival - some.arrival[first], 0.0))
    done, _ = _execute(case, some)
    out = done.outcome
    ttft = out.end - some.arrival + case.problem.costs.request_latency
    table = np.stack([ttft, out.start - some.arrival, out.kernel, out.end - out.start - out.kernel], axis=1)[warm:]
    gap, service = np.diff(some.arrival, prepend=0.0), level.service(some)
    columns = [service, _features(some)[:, 1], gap, *waits(gap, service, case.scenario.layout.D)]
    pieces.ttft.append(ttft[warm:])
    pieces.parts.append(batched(table, _BATCHES))
    pieces.columns.append(np.stack(columns, axis=1)[warm:])
    pieces.runs.append(done)


def _fit(pieces: _Pieces) -> Floats:
    """TTFT as a linear function of the columns, least squares over the fifth of the requests where it is largest."""
    columns, ttft = np.concatenate(pieces.columns), np.concatenate(pieces.ttft)
    step = max(1, len(ttft) // 200_000)
    design, y = np.column_stack([np.ones(len(ttft)), columns])[::step], ttft[::step]
    first = np.linalg.lstsq(design, y, rcond=1e-9)[0]
    predicted = design @ first
    large = predicted >= np.quantile(predicted, 0.8)
    fit: Floats = np.linalg.lstsq(design[large], y[large], rcond=1e-9)[0]
    return fit


def measure(case: Case, level: Saturation, share: float, seconds: float) -> Row:
    """Stationary run at a share of saturation: pieces until the half-widths are met or the time is spent."""
    started = time.thread_time()
    rate, law = share * level.rate, _law(case)
    rng = np.random.default_rng([case.seed, case.index, round(1000 * share)])
    service, tokens = level.service(law), _features(law)[:, 1]
    long = 1 if share <= 0.8 else 4  # correlations grow with 1 / (1 - share)^2
    customers = (1 if share <= 0.8 else 6) * _CUSTOMERS
    simple = surrogate(rate, case.problem.gap_cv, service, tokens, case.scenario.layout.D, rng, customers)
    most = int(seconds / (level.seconds_per_request + _OWN_COST))
    count = int(np.clip(most / 6, _FIRST[case.system], long * _LARGEST[case.system]))
    scv = (case.problem.gap_cv**2 + float(service.var() / service.mean() ** 2)) / 2
    warm = min(int(5 * scv / (1 - share) ** 2) + 100, count // 5)
    pieces = _Pieces([], [], [], [])
    mean_target, tail_target = _TARGET[share <= 0.8]
    while True:
        _add_piece(case, rate, level, count, warm, float(rng.choice(simple.table[:, 3])), pieces)
        done = len(pieces.ttft)
        if done not in _LOOKS:
            continue
        mean = estimate(np.concatenate(pieces.parts)[:, 0], pieces.controls, simple.means)
        spent = 2 * count * done > 1.3 * most or done == _LOOKS[-1]
        if mean.half_width > mean_target * mean.value and not spent:
            continue
        tail = simple.quantile(0.99, _fit(pieces), list(zip(pieces.columns, pieces.ttft, strict=True)))
        if spent or tail.half_width <= tail_target * tail.value:
            return _row(case, level, share, pieces, mean, tail, simple, time.thread_time() - started)


def _row(
    case: Case, level: Saturation, share: float, pieces: _Pieces, mean: Estimate, tail: Estimate, simple: Surrogate,
    spent: float,
) -> Row:  # fmt: skip
    sample, parts = np.concatenate(pieces.ttft), np.concatenate(pieces.parts)
    own = weights(pieces.controls, simple.means) @ parts[:, 1:]
    p50, p90 = np.quantile(sample, [0.5, 0.9])  # not corrected
    runs = pieces.runs
    span = sum(one.makespan_s for one in runs)
    values = [
        mean.value, mean.half_width / mean.value, tail.value, tail.half_width / tail.value, float(p50), float(p90),
        float(sample.std()), *own, *(sum(one.busy_s[name] for one in runs) / span for name in ("attention", "moe")),
        sum(one.batch_tokens for one in runs) / sum(one.batches for one in runs),
        float(np.mean([one.barrier_waste for one in runs])),
    ]  # fmt: skip
    first = [share * level.rate, level.rate, level.error]
    numbers = [float(f"{value:.6g}") for value in (*first, *values)]
    names = [field.name for field in fields(Row)][4:-2]
    named: dict[str, Any] = dict(zip(names, numbers, strict=True))
    return Row(case.index, case.hash, case.system, share, **named, requests=len(sample), cpu_s=float(f"{spent:.3g}"))
