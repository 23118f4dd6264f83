"""Which uncertain input an uncertain output owes its variance to, and what learning some of the inputs would leave.

Inputs are standard normal scores ``z ~ N(0, R)``, the output is ``y = f(z)``; any law of an input is a part of f. What
is learned is ``o = z_g + noise`` of some of the scores. Then z has a normal law again (the conjugate of normal
observations)::

    z | o ~ N(K o, C),   K = R_g (R_gg + N)^-1,   C = R - K R_g',    N the diagonal of the noise's variances

so that ``E Var(y | o)`` is half the mean square of the difference of two outputs that share o and nothing else:
Jansen's estimator (Comput. Phys. Commun. 117 (1999) 35), here also for correlated inputs. With no noise it gives
Sobol' indices: `alone` of a group is ``1 - E Var(y | z_g) / Var y`` (first order, closed), `total` is
``E Var(y | z_-g) / Var y``. For independent inputs the `alone` of single ones add up to at most 1 and their `total` to
at least 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asapmodel.solvers.marginals import correlation_root, sobol_points

__all__ = ["Output", "Posterior", "Share", "posterior", "variance_left", "variance_shares"]

Array = NDArray[np.float64]
Output = Callable[[Array], Array]
"""Outputs of scores, shape (n, d) to (n,)."""

_SINGULAR = 1e-9  # smallest eigenvalue that is inverted, over the largest


@dataclass(frozen=True, slots=True)
class Share:
    """Of the output's variance: what a group of inputs brings `alone`, and in `total`, with all it interacts with."""

    alone: float
    total: float


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What is known of the scores after an observation: mean ``gain @ o`` and covariance ``root @ root'``.

    `spread` is a root of the covariance of the observation itself, before it is made.
    """

    gain: Array
    root: Array
    spread: Array


def posterior(correlation: Array, known: Sequence[int], noise: Array | None = None) -> Posterior:
    """Law of the scores after some have been observed.

    Parameters
    ----------
    correlation : float64 array, shape (d, d)
        R.
    known : sequence of int, length k
        Which scores are observed.
    noise : float64 array, shape (k,), optional
        Standard deviation of each observation's error, in scores; default none.

    Examples
    --------
    >>> import numpy as np
    >>> found = posterior(np.eye(2), [0], np.array([1.0]))
    >>> found.gain.tolist(), (found.root @ found.root.T).round(12).tolist()
    ([[0.5], [0.0]], [[0.5, 0.0], [0.0, 1.0]])
    """
    R, at = np.asarray(correlation, dtype=np.float64), list(known)
    variances = np.zeros(len(at)) if noise is None else np.asarray(noise, dtype=np.float64) ** 2
    seen = R[np.ix_(at, at)] + np.diag(variances)
    # Scores that all but determine one another: what is left of their difference is rounding, not an observation.
    gain = R[:, at] @ np.linalg.pinv(seen, rcond=_SINGULAR, hermitian=True)
    left = R - gain @ R[at, :]
    # The root of a covariance is that of its correlation times deviations; here only rounding makes it indefinite.
    return Posterior(gain, correlation_root(0.5 * (left + left.T)), correlation_root(seen))


def variance_left(
    output: Output,
    correlation: Array,
    known: Sequence[int],
    noise: Array | None = None,
    *,
    samples: int = 4096,
    seed: int = 0,
) -> float:
    """``E Var(y | o)``: the variance expected to be left when some scores have been observed.

    Parameters
    ----------
    output : callable
        f.
    correlation, known, noise
        See `posterior`.
    samples : int
        Pairs of outputs; the relative error is about ``1.4 / sqrt(samples)`` or less.
    seed : int
        Of the scrambled Sobol' points.
    """
    law, d = posterior(correlation, known, noise), len(correlation)
    scores = ndtri(sobol_points(samples, len(list(known)) + 2 * d, seed))
    means = scores[:, : -2 * d] @ law.spread.T @ law.gain.T
    first, second = (output(means + part @ law.root.T) for part in (scores[:, -2 * d : -d], scores[:, -d:]))
    return float(0.5 * np.mean((first - second) ** 2))


def variance_shares(
    output: Output, correlation: Array, groups: Sequence[Sequence[int]], *, samples: int = 4096, seed: int = 0
) -> list[Share]:
    """Shares of the output's variance by groups of inputs.

    Parameters
    ----------
    output, correlation
        See `variance_left`.
    groups : sequence of sequences of int
        Which scores belong together.

    Returns
    -------
    list of Share
        NaN where the output does not vary.
    """
    d = len(correlation)
    whole = variance_left(output, correlation, [], samples=samples, seed=seed)
    out = []
    for group in groups:
        others = [k for k in range(d) if k not in set(group)]
        with_it, without = (
            variance_left(output, correlation, known, samples=samples, seed=seed) for known in (group, others)
        )
        # The two estimates have errors of their own, so that a share of nothing could come out negative.
        out.append(Share(max(1.0 - with_it / whole, 0.0), without / whole) if whole > 0 else Share(np.nan, np.nan))
    return out
