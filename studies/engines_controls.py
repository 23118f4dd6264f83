"""Fewer requests for the same certainty: control variates for long runs of a queue-like system.

The mean of a run is corrected by what simpler queues with the *same* arrivals and services did, whose long-run means
are known: with `y` the measured quantity and `z` the controls, `mean(y) - b (mean(z) - E z)`, `b` by least squares over
batch means (Lavenberg and Welch, Management Science 27, 1981), reduced where `E z` is itself noisy. Controls: service,
tokens and gap of a request, its wait in the single-server queue of the same load, and with c servers c times slower.

A quantile: the time predicted from the controls (linear fit on the run) has a law that is known from a long run of the
simple queues; what the run adds is the law of measured less predicted time, near each predicted time. The quantile is
that of predicted times of the long run plus such residuals.

`E z` comes from the law itself where a formula exists, and from a run of millions of customers otherwise, whose noise
is reduced in the same way: the mean wait of the single server is known by Marshall's formula,
`E W = E U^2 / (-2 E U) - E I^2 / (2 E I)` with `U` service less gap and `I` the idle periods (exact; for Poisson
arrivals I is exponential and nothing is noisy, else it is known to about 0.1 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.compiled import njit
from asapmodel.solvers.sample import student_quantile

__all__ = ["Controls", "Estimate", "Surrogate", "batched", "estimate", "surrogate", "waits", "weights"]

Floats = NDArray[np.float64]

_BLOCKS, _BATCHES = 8, 25  # of the run behind E z; batches of a block
_MAPPED = 400_000  # customers of the long run used for a quantile
_GOLDEN = (5**0.5 - 1) / 2


@njit(cache=True, nogil=True)
def waits(gap: Floats, service: Floats, servers: int) -> tuple[Floats, Floats]:
    """Waits first come, first served of G/G/1 and of G/G/c with `servers` times slower servers; starts empty."""
    count = len(gap)
    single, many = np.zeros(count), np.zeros(count)
    free = np.zeros(servers)
    load = 0.0
    now = 0.0
    for k in range(count):
        now += gap[k]
        load = max(load - gap[k], 0.0)
        single[k] = load
        load += service[k]
        best = 0
        for server in range(1, servers):
            if free[server] < free[best]:
                best = server
        many[k] = max(free[best] - now, 0.0)
        free[best] = now + many[k] + servers * service[k]
    return single, many


@njit(cache=True, nogil=True)
def _idle_moments(gap: Floats, service: Floats) -> tuple[float, float]:
    """Sum of the idle periods of G/G/1, and of their squares."""
    load = first = second = 0.0
    for k in range(len(gap)):
        load -= gap[k]
        if load < 0.0:
            first -= load
            second += load * load
            load = 0.0
        load += service[k]
    return first, second


def batched(values: Floats, batches: int) -> Floats:
    """Means of consecutive batches, along the first axis; a rest is left out."""
    size = len(values) // batches
    shape = (batches, size, *values.shape[1:])
    means: Floats = values[: batches * size].reshape(shape).mean(axis=1)
    return means


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Long-run means of controls, and the covariance of their error."""

    expected: Floats
    covariance: Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the half-width of its 95 % interval."""

    value: float
    half_width: float


def _standard(z: Floats, controls: Controls) -> tuple[Floats, Floats, Floats, Floats]:
    """Standardised controls, their distance from the long-run means, the noise of these, and the inverse for slopes."""
    centred = z - z.mean(axis=0)
    deviation = centred.std(axis=0)
    scale = np.where(deviation > 1e-9 * np.abs(controls.expected), deviation, np.inf)
    spread = centred / scale
    noise = controls.covariance / np.outer(scale, scale)
    inverse = np.linalg.pinv(spread.T @ spread / len(z) + len(z) * noise, rcond=1e-8)
    return spread, (z.mean(axis=0) - controls.expected) / scale, noise, inverse


def weights(z: Floats, controls: Controls) -> Floats:
    """Weights of batches, of sum 1, under which the controls have their long-run means (less so if these are noisy).

    The controlled mean of anything is the weighted mean of its batches: `b` of the module's formula is linear in `y`.
    """
    spread, distance, _, inverse = _standard(z, controls)
    some: Floats = (1 - spread @ inverse @ distance) / len(z)
    return some


def estimate(y: Floats, z: Floats, controls: Controls) -> Estimate:
    """Controlled mean of batch means `y`, and its half-width.

    The variance: of the residuals over the batches, with the price of estimating the slopes, plus the noise of the
    controls' own means.
    """
    spread, distance, noise, inverse = _standard(z, controls)
    count, used = z.shape
    slope = inverse @ (spread.T @ (y - y.mean())) / count
    left = y - y.mean() - spread @ slope
    degrees = count - used - 1
    variance = float(left @ left) / degrees / count * (1 + used / max(degrees - 1, 1)) + float(slope @ noise @ slope)
    return Estimate(float(y.mean() - distance @ slope), student_quantile(0.975, degrees) * float(np.sqrt(variance)))


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A long run of the simple queues: columns service, tokens, gap, wait with one server, with many."""

    table: Floats
    known: Floats  # means of the first four columns

    @cached_property
    def means(self) -> Controls:
        """Controls for a mean: the columns."""
        batches = batched(self.table, _BLOCKS * _BATCHES)
        expected = self._weights(batches) @ batches
        expected[:4] = self.known
        centred = batches - batches.mean(axis=0)
        left = centred[:, 4] - centred[:, :4] @ np.linalg.lstsq(centred[:, :4], centred[:, 4], rcond=1e-10)[0]
        covariance = np.zeros((5, 5))
        covariance[4, 4] = left @ left / (len(batches) - 5) / len(batches)
        return Controls(expected, covariance)

    def _weights(self, batches: Floats) -> Floats:
        return weights(batches[:, :4], Controls(self.known, np.zeros((4, 4))))

    def quantile(self, share: float, fit: Floats, pieces: Sequence[tuple[Floats, Floats]]) -> Estimate:
        """Quantile of a quantity predicted by `1, columns @ fit`.

        Parameters
        ----------
        pieces : sequence of (columns, values)
            Independent runs. The half-width is over these, and over blocks of the long run.
        """
        size = len(self.table) // (_BLOCKS * _BATCHES)
        predicted = (fit[0] + self.table @ fit[1:])[: _BLOCKS * _BATCHES * size]
        rank = np.argsort(predicted)
        rank = rank[:: max(1, len(rank) // _MAPPED)]  # in order, so that thinning costs next to nothing
        predicted, batch = predicted[rank], rank // size
        batches = batched(self.table, _BLOCKS * _BATCHES)
        weight = self._weights(batches)[batch]
        residuals = [_residuals(fit[0] + columns @ fit[1:], values) for columns, values in pieces]
        seen, left = (np.concatenate(parts) for parts in zip(*residuals, strict=True))
        every = _residuals(seen, seen + left)
        value = _mapped_quantile(share, predicted, weight, *every)
        count = len(pieces)
        own = [_mapped_quantile(share, predicted[k::count], weight[k::count], *one) for k, one in enumerate(residuals)]
        blocks = []
        for k in range(_BLOCKS):
            inside = batch // _BATCHES == k
            some = self._weights(batches[k * _BATCHES : (k + 1) * _BATCHES])[batch[inside] % _BATCHES]
            blocks.append(_mapped_quantile(share, predicted[inside], some, *every))
        sets = [np.array(own), np.array(blocks)]
        half = [student_quantile(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)) for x in sets]
        return Estimate(value, float(np.hypot(*half)))


def _residuals(predicted: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Predictions in order, and values less predictions that go with them."""
    order = np.argsort(predicted)
    return predicted[order], (values - predicted)[order]


def _mapped_quantile(share: float, predicted: Floats, weight: Floats, seen: Floats, residual: Floats) -> float:
    """Quantile of `predicted` (ascending) plus the residual of a request seen with about the same prediction.

    Requests are taken evenly (golden-ratio sequence) from those with the same prediction and eight on either side.
    The half with the smallest predictions counts as below the quantile, which is meant to be a high one: where the
    prediction is poor the 99th percentile comes out low, by up to 2 % against runs of a million requests.
    """
    half = len(predicted) // 2
    below, some, own = float(weight[:half].sum()), predicted[half:], weight[half:]
    low = np.maximum(np.searchsorted(seen, some, "left") - 8, 0)
    high = np.minimum(np.searchsorted(seen, some, "right") + 8, len(seen))
    place = low + (np.arange(len(some)) * _GOLDEN % 1 * (high - low)).astype(np.int64)
    total = some + residual[place]
    rank = np.argsort(total)
    cdf = below + np.cumsum(own[rank])
    return float(total[rank[min(int(np.searchsorted(cdf, share * cdf[-1])), len(rank) - 1)]])


def surrogate(
    rate: float, gap_cv: float, law: Floats, tokens: Floats, servers: int, rng: np.random.Generator, customers: int
) -> Surrogate:
    """Run the simple queues.

    Parameters
    ----------
    rate : float
        Arrivals a second, Poisson (`gap_cv` 1) or with gamma gaps.
    law, tokens : float array
        Equally likely service times, seconds, with `rate mean(law) < 1`, and the tokens that go with them.
    servers : int
        Of the second queue.
    """
    shape = gap_cv**-2
    gap = (rng.exponential(size=customers) if gap_cv == 1 else rng.gamma(shape, 1 / shape, customers)) / rate
    picked = rng.integers(0, len(law), size=customers)
    service = law[picked]
    single, many = waits(gap, service, servers)
    wait = _mean_wait(rate, gap_cv, law, gap, service)
    table = np.stack([service, tokens[picked], gap, single, many], axis=1)[customers // 20 :]
    return Surrogate(table, np.array([law.mean(), tokens.mean(), 1 / rate, wait]))


def _mean_wait(rate: float, gap_cv: float, law: Floats, gap: Floats, service: Floats) -> float:
    """Mean wait of G/G/1 by Marshall's formula."""
    drift = float(law.mean()) - 1 / rate
    square = float(law.var()) + (gap_cv / rate) ** 2 + drift**2
    if gap_cv == 1:
        return square / (-2 * drift) - 1 / rate
    first, second = _idle_moments(gap, service)
    return square / (-2 * drift) - second / (2 * first)
