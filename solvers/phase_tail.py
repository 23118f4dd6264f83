"""Laws with a matrix-exponential tail, evaluated without cancellation at any time."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.solvers.compiled import njit
from asapmodel.solvers.queue_errors import QueueError

__all__ = ["TailLaw"]

Floats = NDArray[np.float64]

_RUNGS = 80  # 2^80 mean holding times
_TERMS = 30  # 1 / 30! < 1e-32


@njit(cache=True, nogil=True)
def _ladder(jumps: Floats, theta: float, left: Floats, right: Floats) -> Floats:
    """`exp(K 2^j / theta)` for j = 0, 1, ... until nothing is left of the tail; `K = theta (jumps - I)`."""
    n = len(jumps)
    term = np.eye(n)
    step = np.eye(n)
    for k in range(1, _TERMS):
        term = term @ jumps / k
        step += term
    step *= math.exp(-1.0)
    rungs = np.empty((_RUNGS, n, n))
    count = 0
    while count < _RUNGS:
        rungs[count] = step
        count += 1
        if (left @ step) @ right < 1e-40:
            break
        step = step @ step
    return rungs[:count].copy()


@njit(cache=True, nogil=True)
def _coefficients(jumps: Floats, start: Floats, right: Floats) -> Floats:
    """`start jumps^k right / k!`: the tail over one more mean holding time is `exp(-x)` times their power series."""
    out = np.empty(_TERMS)
    v = start.copy()
    factorial = 1.0
    for k in range(_TERMS):
        out[k] = v @ right / factorial
        v = v @ jumps
        factorial *= k + 1
    return out


@njit(cache=True, nogil=True)
def _series(coefficients: Floats, x: float) -> float:
    total = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        total = total * x + coefficients[k]
    return math.exp(-x) * total


@njit(cache=True, nogil=True)
def _tails(rungs: Floats, jumps: Floats, theta: float, left: Floats, right: Floats, times: Floats) -> Floats:
    out = np.zeros(len(times))
    top = 2.0 ** len(rungs)
    for i in range(len(times)):
        x = times[i] * theta
        if x < 0.0:
            out[i] = 1.0
        elif x < top:
            v = left.copy()
            for j in range(len(rungs) - 1, -1, -1):
                if x >= 2.0**j:
                    x -= 2.0**j
                    v = v @ rungs[j]
            out[i] = _series(_coefficients(jumps, v, right), x)
    return out


@njit(cache=True, nogil=True)
def _crossing(rungs: Floats, jumps: Floats, left: Floats, right: Floats, target: float) -> float:
    """Time, in mean holding times, at which the tail falls to `target`; the tail starts above it."""
    x = 0.0
    v = left.copy()
    for j in range(len(rungs) - 1, -1, -1):
        w = v @ rungs[j]
        if w @ right > target:
            v = w
            x += 2.0**j
    coefficients = _coefficients(jumps, v, right)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _series(coefficients, middle) > target:
            low = middle
        else:
            high = middle
    return x + 0.5 * (low + high)


@dataclass(frozen=True, eq=False)
class TailLaw:
    """Law on [0, inf) with `P(X > t) = left exp(generator t) right`; the rest of the mass is an atom at 0.

    Exact: `exp(generator 2^j / theta)` by uniformisation and squaring, all sums of non-negative numbers, so that far
    tails keep their relative accuracy (about 1e-13 times the number of squarings). A phase-type law has `right` = 1.

    Parameters
    ----------
    left, right : float arrays, shape (n,)
        Non-negative, `left @ right <= 1`.
    generator : float array, shape (n, n)
        Non-negative off the diagonal, eigenvalues left of the imaginary axis; 1 / time.

    Raises
    ------
    QueueError
        If an entry is not finite or the shapes do not fit.

    Examples
    --------
    >>> law = TailLaw(np.array([0.5]), np.array([[-2.0]]), np.array([1.0]))  # half wait, 0.5 on average
    >>> law.atom, law.mean, round(float(law.tail(1.0)), 6), round(law.quantile(0.9), 6)
    (0.5, 0.25, 0.067668, 0.804719)
    """

    left: Floats
    generator: Floats
    right: Floats

    def __post_init__(self) -> None:
        n = len(self.left)
        if self.generator.shape != (n, n) or self.right.shape != (n,):
            raise QueueError(f"shapes {self.left.shape}, {self.generator.shape} and {self.right.shape} do not fit")
        if not all(np.isfinite(part).all() for part in (self.left, self.generator, self.right)):
            raise QueueError("an entry is not finite")

    @property
    def atom(self) -> float:
        """P(X = 0)."""
        return max(0.0, 1.0 - float(self.left @ self.right))

    @property
    def mean(self) -> float:
        """E X."""
        return float(self.moments(1)[0])

    def moments(self, count: int) -> Floats:
        """E X^k for k = 1 ... `count`: `k! left (-generator)^-k right`."""
        out = np.empty(count)
        v = self.right
        for k in range(1, count + 1):
            v = np.asarray(k * np.linalg.solve(-self.generator, v), dtype=np.float64)
            out[k - 1] = self.left @ v
        return out

    def tail(self, t: ArrayLike) -> Floats:
        """P(X > t), of the shape of `t`; 1 at negative times."""
        times = np.asarray(t, dtype=np.float64)
        flat = np.ascontiguousarray(times.ravel())
        return np.asarray(_tails(*self._steps, self.left, self.right, flat)).reshape(times.shape)

    def quantile(self, p: float) -> float:
        """Smallest t with `P(X <= t) >= p`; 0 where the atom suffices.

        Raises
        ------
        QueueError
            If `p` is not in [0, 1).
        """
        if not 0 <= p < 1:
            raise QueueError(f"a quantile needs 0 <= p < 1, not {p}")
        if float(self.left @ self.right) <= 1 - p:
            return 0.0
        rungs, jumps, theta = self._steps
        return float(_crossing(rungs, jumps, self.left, self.right, 1 - p)) / theta

    @cached_property
    def _steps(self) -> tuple[Floats, Floats, float]:
        theta = float(np.max(-np.diag(self.generator)))
        jumps = np.eye(len(self.left)) + self.generator / theta
        return _ladder(jumps, theta, self.left, self.right), jumps, theta
