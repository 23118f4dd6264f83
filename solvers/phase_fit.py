"""Phase-type laws with three given moments, in closed form."""

import math

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.phase_type import PhaseType, erlang, mixture
from asapmodel.solvers.queue_errors import MomentError, check_moments

__all__ = ["fit_three_moments"]

Floats = NDArray[np.float64]


def fit_three_moments(m1: float, m2: float, m3: float, limit: int = 32) -> PhaseType:
    """Phase-type law with the first three raw moments given, exactly.

    First the acyclic law of order 2: with `r_k = m_k / k!`, `a = (r3 - r1 r2) / (r2 - r1^2)` and `b = a r1 - r2`, the
    means `x >= y` of the two phases are the roots of `z^2 - a z + b`, and the first is passed through with probability
    `(r1 - y) / x`; it exists for scv >= 1/2 and a third moment in a bounded range (scv > 1: `m3 m1 > 3/2 m2^2`).
    Otherwise a mixture of two Erlang laws of the same number n of phases, the least n (2n <= `limit`) for which
    `u_k = m_k / (n (n + 1) ... (n + k - 1))` has `u2 > u1^2` and `u1 u3 > u2^2`: any moments with
    `m1 m3 > m2^2 > m1^4` if n is large enough.
    Sources: Telek and Heindl, "Matching moments for acyclic discrete and continuous phase-type distributions of second
    order", Int. J. Simulation 3 (2002); Johnson and Taaffe, Comm. Stat. Stoch. Models 5 (1989).

    Parameters
    ----------
    m1, m2, m3 : float
        E X, E X^2, E X^3.
    limit : int
        Largest order.

    Raises
    ------
    MomentError
        If no law on [0, inf) has these moments, or none of that order and of the two forms.

    Examples
    --------
    >>> x = fit_three_moments(1.0, 3.0, 16.0)
    >>> x.order, x.moments(3).round(9)
    (2, array([ 1.,  3., 16.]))
    >>> fit_three_moments(1.0, 1.2, 1.7).order
    12
    """
    check_moments([m1, m2, m3])
    found = _order_two(1.0, m2 / m1**2 / 2, m3 / m1**3 / 6)
    if found is not None:
        return PhaseType(found.initial, found.generator / m1)
    for n in range(1, limit // 2 + 1):
        u2, u3 = m2 / m1**2 * n / (n + 1), m3 / m1**3 * n * n / ((n + 1) * (n + 2))
        if u2 > 1 + 1e-12 and u3 > u2 * u2 * (1 + 1e-12):
            weights, nodes = _two_points(u2, u3)
            return mixture(weights, nodes * m1, [n, n])
    raise MomentError(f"no law of up to {limit} phases of these forms has the moments {m1:.6g}, {m2:.6g}, {m3:.6g}")


def _order_two(r1: float, r2: float, r3: float) -> PhaseType | None:
    """Acyclic law of order 2 with the moments `k! r_k`, if there is one."""
    spread = r2 - r1 * r1
    if abs(spread) < 1e-12:
        return erlang(r1, 1) if abs(r3 - r1**3) < 1e-12 else None
    a = (r3 - r1 * r2) / spread
    b = a * r1 - r2
    if not (a > 0 and b > 0 and a * a - 4 * b > -1e-12 * a * a):
        return None
    x = 0.5 * (a + math.sqrt(max(0.0, a * a - 4 * b)))
    y = b / x
    p = (r1 - y) / x
    if not -1e-12 <= p <= 1 + 1e-12:
        return None
    p = min(max(p, 0.0), 1.0)
    return PhaseType([p, 1 - p], [[-1 / x, 1 / x], [0.0, -1 / y]])


def _two_points(u2: float, u3: float) -> tuple[Floats, Floats]:
    """Weights and points of the law on two points with the moments 1, u2, u3."""
    spread = u2 - 1
    half = 0.5 * (u3 - u2) / spread  # of the sum of the points; their product is 2 half - u2
    gap = math.sqrt(max(0.0, half * half - 2 * half + u2))
    high = half + gap
    low = (2 * half - u2) / high
    share = (1 - low) / (high - low)
    return np.array([share, 1 - share]), np.array([high, low])
