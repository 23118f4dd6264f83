"""What the devices' arithmetic takes on this machine, and the cost laws fitted to it.

Attention of one layer is measured for batches of several prompts, over tokens `n` and work `w` apart from each other;
experts over `n`. Fitted are the laws of the model, `a0 + a1 n + a2 w` and `max(floor, m1 n)`, with no negative
coefficient, by relative least squares: an error of 10 % counts the same for a short and a long batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from asapmodel.costs import Plateau, Quadratic
from asapmodel.reference.buffers import Shape, share
from asapmodel.reference.devices import AttentionDevice, ExpertDevice, Model
from asapmodel.reference.primitives import Arrived
from asapmodel.reference.scheduler import Batch, Prompt

__all__ = ["Fit", "Point", "fit_attention", "fit_experts", "measure_attention", "measure_experts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST_S = 0.05  # for which a point is repeated


@dataclass(frozen=True, slots=True)
class Point:
    """Median seconds of one layer for a batch of `n` tokens and work `w`."""

    n: int
    w: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted law, with its seconds at the points."""

    law: Quadratic | Plateau
    points: tuple[Point, ...]
    fitted: Floats

    @property
    def residuals(self) -> Floats:
        """Fitted over measured, less 1."""
        found: Floats = self.fitted / np.array([point.seconds for point in self.points]) - 1.0
        return found

    @property
    def r2(self) -> float:
        """Share of the variance of the seconds that the law explains."""
        seconds = np.array([point.seconds for point in self.points])
        return float(1.0 - np.sum((seconds - self.fitted) ** 2) / np.sum((seconds - seconds.mean()) ** 2))


def _median_seconds(run: Callable[[int], object], layers: int) -> float:
    """Median over runs of one layer after another, so that weights are as cold as they are in a batch's way."""
    for layer in range(layers):
        run(layer)
    times: list[float] = []
    while sum(times) < _LEAST_S or len(times) < 2 * layers:
        start = perf_counter()
        run(len(times) % layers)
        times.append(perf_counter() - start)
    return float(np.median(times))


def measure_attention(model: Model, shape: Shape, batches: Sequence[Sequence[int]]) -> list[Point]:
    """Measure everything between two exchanges of an attention device: attention, router, shared expert.

    Parameters
    ----------
    model : Model
        All its layers have experts; token ids of the prompts do not matter.
    shape : Shape
        `T` divides the heads.
    batches : sequence of sequences
        Prompt lengths of each batch.
    """
    random = np.random.default_rng(1)
    found = []
    for lengths in batches:
        prompts = [Prompt(k, 0.0, length) for k, length in enumerate(lengths)]
        batch = Batch(0, 0, 0, tuple(prompt.whole for prompt in prompts))
        rows = random.standard_normal((batch.tokens, shape.H))
        unread = Model(model.config, model.weights, {prompt.index: () for prompt in prompts})
        own = share(batch.tokens, shape.T, 0)

        def run(
            layer: int, unread: Model = unread, batch: Batch = batch, rows: Floats = rows, own: range = own
        ) -> None:
            device = AttentionDevice(unread, shape, 0, 0)
            partial = device.attend(batch, layer, rows)
            device.route(layer, rows[own.start : own.stop] + partial[own.start : own.stop])

        found.append(Point(batch.tokens, batch.work, _median_seconds(run, model.config.layers)))
    return found


def measure_experts(model: Model, shape: Shape, tokens: Sequence[int]) -> list[Point]:
    """Measure one MoE device, with copies of tokens spread over all experts as a router without preference would.

    Parameters
    ----------
    model : Model
        All its layers have experts.
    shape : Shape
        Every device has `E_total / E` experts.
    tokens : sequence of int
        Of whole batches; the device computes `n K / E` copies.
    """
    random = np.random.default_rng(2)
    device = ExpertDevice(model, shape, 0)
    found = []
    for n in tokens:
        chosen = np.argsort(random.random((n, shape.E_total)), axis=1)[:, : shape.K]
        counts = np.bincount(chosen.ravel(), minlength=shape.E_total)[None, : shape.experts]
        rows = random.standard_normal((int(counts.sum()), shape.H))

        def run(layer: int, n: int = n, counts: Ints = counts, rows: Floats = rows) -> None:
            device.compute(Arrived(0, layer, n, counts, np.zeros(1, np.int64), rows))

        found.append(Point(n, n * n, _median_seconds(run, model.config.layers)))
    return found


def fit_attention(points: Sequence[Point]) -> Fit:
    """Fit `a0 + a1 n + a2 w`; coefficients are not negative."""
    seconds = np.array([point.seconds for point in points])
    columns = np.array([[1.0, point.n, point.w] for point in points])
    coefficients, _ = nnls(columns / seconds[:, None], np.ones(len(points)))
    return Fit(Quadratic(*coefficients.tolist()), tuple(points), columns @ coefficients)


def fit_experts(points: Sequence[Point]) -> Fit:
    """Fit `max(floor, m1 n)`."""
    seconds = np.array([point.seconds for point in points])
    n = np.array([float(point.n) for point in points])

    def law(logs: Floats) -> Floats:
        floor, slope = np.exp(logs)
        found: Floats = np.maximum(floor, slope * n)
        return found

    def error(logs: Floats) -> Floats:
        found: Floats = law(logs) / seconds - 1.0
        return found

    start = np.log([seconds.min(), seconds[-1] / n[-1]])
    best = least_squares(error, start)
    floor, slope = np.exp(best.x).tolist()
    return Fit(Plateau(floor, slope), tuple(points), law(best.x))
