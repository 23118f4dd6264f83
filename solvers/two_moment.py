"""Mean waits from two moments: GI/G/1 and GI/G/c, and the variability of departures. Bounds and approximations.

Arguments throughout: `rate` of arrivals, `mean` service time, squared coefficients of variation `arrival_scv` and
`service_scv`, `servers`. Waits exclude service, in the unit of `mean`. All raise `UnstableError` for
`rate * mean >= servers` and `MomentError` for rates not positive or negative scv. The errors stated as *measured* were
taken here against exact PH/PH/c chains with E2, M and balanced H2 (scv 2 and 4) laws at loads 0.5 to 0.95.
"""

import math

from asapmodel.solvers.deterministic import mdc_mean_wait
from asapmodel.solvers.laws import deterministic_transform
from asapmodel.solvers.multi_server import mmc_wait
from asapmodel.solvers.queue_errors import QueueError, at_least_one, nonnegative, positive, stable
from asapmodel.solvers.renewal_arrivals import gimc_wait

__all__ = [
    "allen_cunneen_wait",
    "daley_bound",
    "departure_scv",
    "heavy_traffic_wait",
    "kimura_wait",
    "kingman_bound",
    "klb_wait",
    "page_wait",
    "whitt_wait",
]


def _load(rate: float, mean: float, arrival_scv: float, service_scv: float, servers: int = 1) -> float:
    nonnegative("arrival scv", arrival_scv)
    nonnegative("service scv", service_scv)
    return stable(positive("rate", rate) * positive("mean", mean) / at_least_one("servers", servers))


def kingman_bound(rate: float, mean: float, arrival_scv: float, service_scv: float) -> float:
    """Upper bound on the mean wait of GI/G/1: `lambda (var A + var S) / (2 (1-rho))`.

    Sure for every pair of laws with these moments; tight as rho tends to 1.
    Source: Kingman, "Some inequalities for the queue GI/G/1", Biometrika 49 (1962).

    Examples
    --------
    >>> kingman_bound(0.5, 1.0, 0.25, 0.25)
    0.625
    """
    rho = _load(rate, mean, arrival_scv, service_scv)
    return (arrival_scv + rho * rho * service_scv) / (2 * rate * (1 - rho))


def daley_bound(rate: float, mean: float, arrival_scv: float, service_scv: float) -> float:
    """Upper bound on the mean wait of GI/G/1, below Kingman's: `(rho (2-rho) ca2 + rho^2 cs2) / (2 lambda (1-rho))`.

    Source: Daley, "Inequalities for moments of tails of random variables, with a queueing application",
    Z. Wahrscheinlichkeitstheorie 41 (1977).

    Examples
    --------
    >>> daley_bound(0.5, 1.0, 0.25, 0.25)
    0.5
    """
    rho = _load(rate, mean, arrival_scv, service_scv)
    return (rho * (2 - rho) * arrival_scv + rho * rho * service_scv) / (2 * rate * (1 - rho))


def heavy_traffic_wait(rate: float, mean: float, arrival_scv: float, service_scv: float) -> float:
    """Approximate mean wait of GI/G/1: `rho/(1-rho) mean (ca2+cs2)/2`; exact for M/G/1 and as rho tends to 1.

    Known error: none for Poisson arrivals; for smoother arrivals too high, without limit (relative) at light load.
    Source: Kingman, "The single server queue in heavy traffic", Proc. Camb. Phil. Soc. 57 (1961).

    Examples
    --------
    >>> heavy_traffic_wait(0.5, 1.0, 2.0, 2.0)
    2.0
    """
    rho = _load(rate, mean, arrival_scv, service_scv)
    return rho / (1 - rho) * mean * (arrival_scv + service_scv) / 2


def klb_wait(rate: float, mean: float, arrival_scv: float, service_scv: float) -> float:
    """Approximate mean wait of GI/G/1 of Kraemer and Langenbach-Belz: `heavy_traffic_wait` times a factor.

    `exp(-2 (1-rho) (1-ca2)^2 / (3 rho (ca2+cs2)))` for ca2 <= 1, `exp(-(1-rho) (ca2-1) / (ca2 + 4 cs2))` above
    (QNA takes 1 there). Exact for M/G/1. Known error: measured 0 to +9 % for ca2 0.5 (+1.3 % at most from load 0.9), -9
    to 0 % for ca2 2 and 4 (-4 % at most from load 0.9).
    Source: Kraemer and Langenbach-Belz, "Approximate formulae for the delay in the queueing system GI/G/1",
    8th ITC (1976).

    Examples
    --------
    >>> round(klb_wait(0.5, 1.0, 0.25, 0.25), 12)
    0.118091638185
    """
    rho = _load(rate, mean, arrival_scv, service_scv)
    if arrival_scv + service_scv < 1e-300:  # the limit, as nothing varies
        return 0.0
    if arrival_scv <= 1:
        power = 2 * (1 - rho) * (1 - arrival_scv) ** 2 / (3 * rho * (arrival_scv + service_scv))
    else:
        power = (1 - rho) * (arrival_scv - 1) / (arrival_scv + 4 * service_scv)
    return heavy_traffic_wait(rate, mean, arrival_scv, service_scv) * math.exp(-power)


def allen_cunneen_wait(rate: float, mean: float, arrival_scv: float, service_scv: float, servers: int) -> float:
    """Approximate mean wait of GI/G/c: the M/M/c wait times `(ca2+cs2)/2`; exact for M/M/c and M/G/1.

    Known error: measured, c up to 8: within 12 % from load 0.9 on, within 52 % from 0.7; at 0.5 from -56 to +147 %,
    where waits are short. With Poisson arrivals and scv 0.5: -8 % at most.
    Source: Allen, "Probability, statistics and queueing theory" (1990), 5.3.6, with Erlang's C exact.

    Examples
    --------
    >>> round(allen_cunneen_wait(1.0, 1.0, 0.25, 0.25, 2), 12)
    0.083333333333
    """
    _load(rate, mean, arrival_scv, service_scv, servers)
    return mmc_wait(rate, 1 / mean, servers).mean * (arrival_scv + service_scv) / 2


def whitt_wait(rate: float, mean: float, arrival_scv: float, service_scv: float, servers: int) -> float:
    """Approximate mean wait of GI/G/c by Whitt 1993: Allen-Cunneen times a factor.

    Equations (2.16) to (2.25): the factor interpolates M/D/c, D/M/c and M/M/c with Cosmetatos' `gamma`. Exact for
    M/M/c; not exact for M/D/c.
    Known error: measured, c up to 8: within 10 % from load 0.9 on, -28 to +18 % from 0.7; at 0.5 from -46 to +59 %.
    With Poisson arrivals -15 to +9 %; not exact for M/G/1 with scv above 1.
    Source: Whitt, "Approximations for the GI/G/m queue", Production and Operations Management 2 (1993).

    Examples
    --------
    >>> round(whitt_wait(1.8, 1.0, 1.0, 0.0, 2), 4), round(mdc_mean_wait(1.8, 1.0, 2), 4)
    (2.1445, 2.1469)
    """
    rho = _load(rate, mean, arrival_scv, service_scv, servers)
    if arrival_scv + service_scv < 1e-300:  # the limit, as nothing varies
        return 0.0
    a, s, m = arrival_scv, service_scv, servers
    gamma = min(0.24, (1 - rho) * (m - 1) * (math.sqrt(4 + 5 * m) - 2) / (16 * m * rho))
    few = 1 + gamma
    even = (1 - 4 * gamma) * math.exp(-2 * (1 - rho) / (3 * rho))
    psi = math.pow(min(1.0, (few + even) / 2), max(0.0, 2 - a - s))
    if a >= s:
        factor = (4 * (a - s) * few + s * psi) / (4 * a - 3 * s)
    else:
        factor = ((s - a) * even + (s + 3 * a) * psi) / (2 * (a + s))
    return factor * allen_cunneen_wait(rate, mean, a, s, m)


def _corners(rate: float, mean: float, servers: int) -> tuple[float, float, float]:
    """Exact mean waits of M/M/c, M/D/c and D/M/c."""
    even = gimc_wait(deterministic_transform(1 / rate), 1 / rate, 1 / mean, servers)
    return mmc_wait(rate, 1 / mean, servers).mean, mdc_mean_wait(rate, mean, servers), even.mean


def _box(arrival_scv: float, service_scv: float) -> None:
    if arrival_scv > 1 or service_scv > 1:
        raise QueueError(f"an interpolation between scv 0 and 1, asked for {arrival_scv:.4g} and {service_scv:.4g}")


def page_wait(rate: float, mean: float, arrival_scv: float, service_scv: float, servers: int) -> float:
    """Approximate mean wait of GI/G/c, straight between M/M/c, M/D/c and D/M/c, which here are exact.

    `ca2 cs2 W(M/M/c) + ca2 (1-cs2) W(M/D/c) + (1-ca2) cs2 W(D/M/c)`, 0 for D/D/c. Domain: both scv up to 1, else
    `QueueError`. Known error: measured, c up to 8: M/E2/c within 0.7 %; E2 arrivals 0 to +4 % from load 0.9 on, to
    +23 % from 0.7, to +102 % at 0.5.
    Source: Page, "Tables of waiting times for M/M/n, M/D/n and D/M/n and their use", J. Opl. Res. Soc. 33 (1982).

    Examples
    --------
    >>> round(page_wait(1.8, 1.0, 1.0, 0.0, 2), 11)
    2.14692321472
    """
    _load(rate, mean, arrival_scv, service_scv, servers)
    _box(arrival_scv, service_scv)
    both, constant, even = _corners(rate, mean, servers)
    a, s = arrival_scv, service_scv
    return a * s * both + a * (1 - s) * constant + (1 - a) * s * even


def kimura_wait(rate: float, mean: float, arrival_scv: float, service_scv: float, servers: int) -> float:
    """Approximate mean wait of GI/G/c, harmonic between M/M/c, M/D/c and D/M/c, which here are exact.

    `(ca2+cs2) / ((1-ca2)/W(D/M/c) + (1-cs2)/W(M/D/c) + 2 (ca2+cs2-1)/W(M/M/c))`; Kimura took approximations of the
    corners. Domain: ca2 up to 1 and the denominator positive, else `QueueError`. Known error: measured, c up to 8:
    Poisson arrivals, scv 0.5 to 4, -5.1 to +2.8 %; E2 arrivals down to -6 % from load 0.9 on, -24 % from 0.7, -65 % at
    0.5.
    Source: Kimura, "A two-moment approximation for the mean waiting time in the GI/G/s queue", Mgmt. Sci. 32 (1986),
    the form without his correction factor, as quoted in later surveys.

    Examples
    --------
    >>> round(kimura_wait(1.8, 1.0, 1.0, 0.0, 2), 11)
    2.14692321472
    """
    _load(rate, mean, arrival_scv, service_scv, servers)
    if arrival_scv > 1:
        raise QueueError(f"arrival scv up to 1 only, not {arrival_scv:.4g}")
    both, constant, even = _corners(rate, mean, servers)
    a, s = arrival_scv, service_scv
    below = _over(1 - a, even) + _over(1 - s, constant) + _over(2 * (a + s - 1), both)
    if not below > 0:
        raise QueueError(f"the interpolation has no positive value at scv {a:.4g} and {s:.4g}")
    return (a + s) / below


def _over(weight: float, wait: float) -> float:
    """`weight / wait`, where at light load a wait may be 0 to the last float."""
    if weight == 0 or wait > 0:
        return weight / wait if wait > 0 else 0.0
    return math.copysign(math.inf, weight)


def departure_scv(rho: float, arrival_scv: float, service_scv: float, servers: int = 1, floor: float = 0.0) -> float:
    """Approximate squared coefficient of variation of the times between departures of GI/G/c.

    `1 + (1-rho^2)(ca2-1) + rho^2 (max(cs2, floor) - 1)/sqrt(c)`; one server and no floor: `rho^2 cs2 + (1-rho^2) ca2`,
    from Marshall's exact relation with the heavy-traffic wait. QNA takes `floor = 0.2` for several servers. Exact for
    M/M/c and M/G/1. Known error: departures are correlated, which one number cannot show; nothing general is known.
    Source: Whitt, "The queueing network analyzer", Bell Syst. Tech. J. 62 (1983), (38) and (39).

    Examples
    --------
    >>> round(departure_scv(0.8, 1.0, 4.0), 12), round(departure_scv(0.8, 1.0, 0.25, servers=4, floor=0.2), 12)
    (2.92, 0.76)
    """
    rho = stable(rho)
    service = max(nonnegative("service scv", service_scv), floor)
    spread = rho * rho * (service - 1) / math.sqrt(at_least_one("servers", servers))
    return 1 + (1 - rho * rho) * (nonnegative("arrival scv", arrival_scv) - 1) + spread
