"""Mean response of M/M/1 when short jobs go first: SJF, preemptive SJF, and shortest remaining time.

With F the service law, `rho(x) = lambda int_0^x t dF(t)` and `m(x) = int_0^x t^2 dF(t)`, each response is one integral
over job sizes; here by Gauss-Legendre quadrature on panels, which is exact to about 1e-11 up to a load of 0.999.
Source: Phipps, "Machine repair as a priority waiting-line problem", Oper. Res. 4 (1956); Schrage and Miller, "The queue
M/G/1 with the shortest remaining processing time discipline", Oper. Res. 14 (1966).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.queue_errors import positive, stable

__all__ = ["SizeBasedResponses", "mm1_size_based"]

_PANELS = 256
_ORDER = 16
_LONGEST = 64.0  # mean services; the mass beyond is 1e-28


@dataclass(frozen=True, slots=True)
class SizeBasedResponses:
    """Mean time in the system under each rule, and under first come first served for comparison."""

    fcfs: float
    sjf: float
    psjf: float
    srpt: float


def mm1_size_based(rate: float, service_rate: float) -> SizeBasedResponses:
    """Mean responses of M/M/1 under rules that know the sizes; exact up to quadrature.

    SJF (not preemptive): `E[S] + int lambda E[S^2]/2 / (1-rho(x))^2 dF`. Preemptive, by original size:
    `int lambda m(x)/2 / (1-rho(x))^2 + x/(1-rho(x)) dF`. SRPT: `int lambda (m(x) + x^2 P(S>x))/2 / (1-rho(x))^2 dF
    + int P(S>x)/(1-rho(x)) dx`.

    Parameters
    ----------
    rate, service_rate : float
        lambda and mu, `rate < service_rate`.

    Returns
    -------
    SizeBasedResponses
        Times in the unit of 1/rate.

    Raises
    ------
    UnstableError
        If `rate >= service_rate`.
    MomentError
        If a rate is not positive.

    Examples
    --------
    >>> r = mm1_size_based(0.9, 1.0)
    >>> round(r.sjf, 8), round(r.psjf, 7), round(r.srpt, 7)
    (4.19691259, 4.0517732, 3.5521251)
    """
    rho = stable(positive("rate", rate) / positive("service rate", service_rate))
    x, weight = _nodes()
    beyond = np.exp(-x)  # P(S > x) and the density, in mean services
    below = 1 - rho * (-np.expm1(-x) - x * beyond)  # 1 - rho(x)
    second = 2 * (-np.expm1(-x)) - (x * x + 2 * x) * beyond
    wait = rho / 2 / below**2
    sjf = 1 + float(weight @ (2 * wait * beyond))
    psjf = float(weight @ ((wait * second + x / below) * beyond))
    srpt = float(weight @ ((wait * (second + x * x * beyond) + 1 / below) * beyond))
    return SizeBasedResponses(*(t / service_rate for t in (1 / (1 - rho), sjf, psjf, srpt)))


def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights of the quadrature on [0, _LONGEST]."""
    node, weight = np.polynomial.legendre.leggauss(_ORDER)
    width = _LONGEST / _PANELS
    left = width * np.arange(_PANELS)[:, None]
    return (left + 0.5 * width * (1 + node)).ravel(), np.tile(0.5 * width * weight, _PANELS)
