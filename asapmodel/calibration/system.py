"""Cost coefficients of a whole system from logs of requests: lone requests give the kernels, the rest the contention.

The scenario's policy is replayed with the logged arrivals and lengths by the graph engine, so there is no noise of
sampling; coefficients `theta > 0` are chosen by least squares on logarithms. There are two kinds of residuals:

- of a request that had the system to itself: ``log(predicted alone / measured)``;
- of a window of consecutive requests: ``log(mean TTFT predicted / mean TTFT measured)``. A single request of a busy
  system says little: two runs of one deployment differ as much from each other as from a model, because a prompt that
  just misses a step waits for the next. The mean over a window is what such swaps leave unchanged.

Groups in lockstep are sensitive: a prompt that comes a few milliseconds later can miss an iteration, and all that
follows changes. There the prediction is the mean over replays whose arrivals are shifted by up to 10 ms (seed fixed),
which makes the objective smooth enough for wide finite differences, and the search begins at three points.

Either kind is divided by its own robust scale, found by refitting, and has a soft L1 loss. Runs of one system differ as
a whole (`RUN_SPREAD`: about 5 % between repeats of two deployments), so the W windows of one run, of scale c, say
together no more than one mean of variance ``RUN_SPREAD^2 + c^2 / W``: their squares are weighted by
``c^2 / (W RUN_SPREAD^2 + c^2)``.

Requests depend on their neighbours, so intervals come from a jackknife over B blocks of time: with estimates
``theta_b`` without the residuals of block b, ``cov = (B - 1) / B sum (theta_b - mean) (theta_b - mean)^T``. The
residuals of each block under the fit without it are the cross-validation. Intervals do not hold what a run has as a
whole; logs of several runs tell that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.replay import Replay, coefficient, with_coefficients
from asapmodel.calibration.request_log import RequestLog
from asapmodel.costs import LayerCosts

__all__ = ["DEFAULT_KEYS", "SystemFit", "fit_system"]

Array = NDArray[np.float64]
Extra = Callable[[LayerCosts], Array]

DEFAULT_KEYS = ("attention.per_token", "attention.per_token2", "step_overhead", "request_latency")
"""What is fitted where nothing is said: these four are what logs of requests can tell apart."""

WINDOW = 25  # requests of a window
RUN_SPREAD = 0.05  # standard deviation of the mean TTFT between runs of one system
BLOCKS = 8  # of the jackknife
_START = {"per_token": 1e-7, "per_token2": 1e-12, "fixed": 1e-4, "floor": 1e-4}  # of a coefficient that is 0
_REACH = 1e3  # factor by which a coefficient may leave its start
_SCALES = (0.03, 0.1)  # first guesses: of lone requests, of windows
_STEP = {"asap": 0.02, "sync": 0.1}  # of finite differences, in the logarithm: wider than the jumps of a schedule


@dataclass(frozen=True, slots=True, eq=False)
class SystemFit:
    """Fitted coefficients, and how sure they are.

    Attributes
    ----------
    keys : tuple of str
        Of the P coefficients, as in `[costs]`.
    values : float64 array, shape (P,)
        SI units.
    covariance : float64 array, shape (P, P)
        Of the values, by the jackknife.
    intervals : float64 array, shape (P, 2)
        95 %, from the covariance of the logarithms.
    costs : LayerCosts
        All coefficients.
    lone, windows : float64 array
        Relative errors of the lone requests and of the windows' means.
    held_out : float64 array
        Those of both under the fit without their block.
    singular_values, directions : float64 array
        Of the Jacobian of the scaled residuals by the logarithms.
    at_bound : tuple of str
        Coefficients that the logs would push out of their range.
    """

    keys: tuple[str, ...]
    values: Array
    covariance: Array
    intervals: Array
    costs: LayerCosts
    lone: Array
    windows: Array
    held_out: Array
    singular_values: Array
    directions: Array
    at_bound: tuple[str, ...]

    def unidentified(self, spread: float = 0.5) -> tuple[dict[str, float], ...]:
        """Combinations of coefficients that the logs leave open by more than a factor ``exp(spread)``; exponents."""
        found = []
        for value, direction in zip(self.singular_values, self.directions, strict=True):
            if value * spread < 1.0:
                scaled = direction / direction[np.argmax(np.abs(direction))]
                found.append({key: float(x) for key, x in zip(self.keys, scaled, strict=True) if abs(x) >= 0.1})
        return tuple(found)


def fit_system(
    replays: Sequence[Replay],
    costs: LayerCosts,
    keys: Sequence[str] = DEFAULT_KEYS,
    extra: Extra | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> SystemFit:
    """Fit cost coefficients to logs.

    Parameters
    ----------
    replays : sequence of Replay
        The logs.
    costs : LayerCosts
        Where the search starts, and all that is not fitted.
    keys : sequence of str
        Coefficients to fit.
    extra : callable, optional
        Further residuals in standard deviations, say of means known without a log.
    bounds : mapping, optional
        Physical range of a coefficient; default a factor 1000 about its start.

    Raises
    ------
    ValueError
        No lone request in any log, a key that is none, or fewer residuals than coefficients.
    """
    if not any(len(one.lone) for one in replays):
        raise ValueError(
            "no request had the system to itself, so nothing tells kernels from queueing; add the log of a lower rate"
        )
    problem = _Problem(replays, costs, tuple(keys), extra, dict(bounds or {}))
    if problem.size < len(keys):
        raise ValueError(f"{problem.size} residuals cannot determine {len(keys)} coefficients; give longer logs")
    return problem.solve()


class _Problem:
    """The least squares problem of one set of logs."""

    def __init__(
        self,
        replays: Sequence[Replay],
        costs: LayerCosts,
        keys: tuple[str, ...],
        extra: Extra | None,
        bounds: dict[str, tuple[float, float]],
    ) -> None:
        self.replays, self.costs, self.keys, self.extra = replays, costs, keys, extra
        self.start = np.array([coefficient(costs, key) or _START.get(key.partition(".")[2], 1e-2) for key in keys])
        ranges = [bounds.get(key, (x / _REACH, x * _REACH)) for key, x in zip(keys, self.start, strict=True)]
        self.lower, self.upper = np.log(np.array(ranges)).T
        self.scales = np.array(_SCALES)
        self.step = max(_STEP[one.layout.kind] for one in replays)
        self.windows = [_windows(one.log) for one in replays]
        kinds, times = [], []
        for one, windows in zip(replays, self.windows, strict=True):
            kinds += [0] * len(one.lone) + [1] * len(windows)
            last = one.log.requests.arrival[-1] or 1.0
            times += [one.log.requests.arrival[k] / last for k in one.lone]
            times += [one.log.requests.arrival[w].mean() / last for w in windows]
        self.kind = np.array(kinds)
        self.run_windows = np.concatenate(
            [np.full(len(x.lone) + len(w), float(len(w))) for x, w in zip(replays, self.windows, strict=True)]
        )
        self.block = np.minimum((np.array(times) * BLOCKS).astype(np.int64), BLOCKS - 1)
        self.size = len(self.kind)

    def at(self, theta: Array) -> LayerCosts:
        return with_coefficients(self.costs, dict(zip(self.keys, np.exp(theta).tolist(), strict=True)))

    def logs(self, theta: Array) -> Array:
        """Logarithms of predicted over measured, lone requests and windows of log after log."""
        costs = self.at(theta)
        parts = []
        for one, windows in zip(self.replays, self.windows, strict=True):
            if len(one.lone):
                parts.append(np.log(one.alone(costs) / one.log.ttft[one.lone]))
            ttft = one.ttft(costs)
            parts.append(np.log([ttft[w].mean() / one.log.ttft[w].mean() for w in windows]))
        return np.concatenate(parts)

    def weights(self) -> tuple[Array, Array]:
        """Of every residual: one over its scale, and the root of its share where a run as a whole is uncertain."""
        scale = self.scales[self.kind]
        share = scale**2 / (self.run_windows * RUN_SPREAD**2 + scale**2)
        return 1.0 / scale, np.where(self.kind == 1, np.sqrt(share), 1.0)

    def fit(self, theta: Array, keep: NDArray[np.bool_], evaluations: int = 60) -> tuple[Array, float]:
        """Estimate and cost from a starting point, of the residuals to keep."""
        from scipy.optimize import least_squares

        weight, share = self.weights()
        weight, share = weight[keep], share[keep]

        def residuals(x: Array) -> Array:
            own = share * _soft(self.logs(x)[keep] * weight)
            return own if self.extra is None else np.concatenate([own, self.extra(self.at(x))])

        def jacobian(x: Array) -> Array:  # SciPy's own steps are relative to the logarithm, much too wide
            steps = self.step * np.eye(len(x))
            return np.column_stack([(residuals(x + e) - residuals(x - e)) / (2 * self.step) for e in steps])

        inside = np.clip(theta, self.lower + 1e-6, self.upper - 1e-6)
        found = least_squares(
            residuals, inside, jacobian, (self.lower, self.upper), max_nfev=evaluations, xtol=1e-6, ftol=1e-7
        )
        return found.x, float(found.cost)

    def first(self) -> Array:
        """The estimate with the first guesses of the scales."""
        everything, start = np.ones(self.size, dtype=np.bool_), np.log(self.start)
        shifts = (0.0, -0.7, 0.7) if self.step > _STEP["asap"] else (0.0,)
        return min((self.fit(start + shift, everything) for shift in shifts), key=lambda found: found[1])[0]

    def solve(self) -> SystemFit:
        everything = np.ones(self.size, dtype=np.bool_)
        theta = self.first()
        for _ in range(2):
            logs = self.logs(theta)
            for kind in (0, 1):
                if np.any(self.kind == kind):
                    self.scales[kind] = max(1.4826 * float(np.median(np.abs(logs[self.kind == kind]))), 1e-3)
            theta = self.fit(theta, everything)[0]
        logs = self.logs(theta)
        held_out, estimates = np.zeros(self.size), []
        for block in range(BLOCKS):
            out = self.block == block
            estimates.append(self.fit(theta, ~out, 20)[0])
            held_out[out] = np.expm1(self.logs(estimates[-1])[out])
        return self._result(theta, logs, np.array(estimates), held_out)

    def _result(self, theta: Array, logs: Array, estimates: Array, held_out: Array) -> SystemFit:
        spread = estimates - estimates.mean(axis=0)
        covariance = (BLOCKS - 1) / BLOCKS * spread.T @ spread
        values = np.exp(theta)
        from scipy.stats import t

        reach = float(t.ppf(0.975, BLOCKS - 1)) * np.sqrt(np.diag(covariance))
        intervals = np.exp(np.clip(theta[:, None] + reach[:, None] * [-1, 1], *_columns(self.lower, self.upper)))
        _, singular, rows = np.linalg.svd(self._jacobian(theta), full_matrices=False)
        edge = (theta - self.lower < 0.01) | (self.upper - theta < 0.01)
        return SystemFit(
            keys=self.keys,
            values=values,
            covariance=covariance * np.outer(values, values),
            intervals=intervals,
            costs=self.at(theta),
            lone=np.expm1(logs[self.kind == 0]),
            windows=np.expm1(logs[self.kind == 1]),
            held_out=held_out,
            singular_values=singular,
            directions=rows,
            at_bound=tuple(key for key, there in zip(self.keys, edge, strict=True) if there),
        )

    def _jacobian(self, theta: Array) -> Array:
        weight = np.prod(self.weights(), axis=0)
        columns = []
        for e in np.eye(len(theta)) * self.step:
            columns.append((self.logs(theta + e) - self.logs(theta - e)) * weight / (2 * self.step))
        return np.column_stack(columns)


def _columns(lower: Array, upper: Array) -> tuple[Array, Array]:
    return lower[:, None], upper[:, None]


def _windows(log: RequestLog) -> list[NDArray[np.int64]]:
    """Consecutive requests that succeeded, `WINDOW` at a time; a shorter rest belongs to the last window."""
    good = np.flatnonzero(np.isfinite(log.ttft))
    count = max(len(good) // WINDOW, 1)
    return list(np.array_split(good, count))


def _soft(z: Array) -> Array:
    """Residuals whose squares are a soft L1 loss: square when small, linear from two standard deviations on."""
    reach = 2.0
    out: Array = np.sign(z) * reach * np.sqrt(2.0 * (np.sqrt(1.0 + (z / reach) ** 2) - 1.0))
    return out
