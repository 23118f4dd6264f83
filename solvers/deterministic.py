"""The M/D/c queue: constant service, Poisson arrivals, c servers; M/D/1 is the case c = 1.

What is computed rests on the roots of Crommelin: with a = rate * service, `z_k = -W(-rho exp(-rho) w_k) / rho`, w_k the
c-th roots of unity and W Lambert's function, are the c - 1 roots of `z^c = exp(a (z-1))` inside the unit disc.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from asapmodel.solvers.queue_errors import NoConvergence, at_least_one, bisect, positive, probability, stable

__all__ = ["mdc_mean_wait", "mdc_wait_cdf", "mdc_wait_probability", "mdc_wait_quantile"]

Floats = NDArray[np.float64]

_LONGEST = 1 << 21  # entries of a queue-length distribution


def _roots(servers: int, rho: float) -> NDArray[np.complex128]:
    from scipy.special import lambertw

    unit = np.exp(2j * np.pi * np.arange(1, servers) / servers)
    return np.asarray(-lambertw(-rho * math.exp(-rho) * unit) / rho, dtype=np.complex128)


def mdc_mean_wait(rate: float, service: float, servers: int = 1) -> float:
    """Mean wait of the M/D/c queue; exact.

    `Lq = sum_k 1/(1 - z_k) + (a^2 - c(c-1)) / (2 (c - a))` (Crommelin 1932); where that difference cancels, Spitzer's
    `Lq = sum_n E[(Poisson(n a) - n c)^+] / n`, all terms positive. Relative error below 1e-12.
    Source: Crommelin, "Delay probability formulae when the holding times are constant", P.O. Elect. Engrs. J. 25
    (1932); Spitzer, "A combinatorial lemma and its application to probability theory", Trans. AMS 82 (1956).

    Parameters
    ----------
    rate, service : float
        Arrivals per unit of time; service time, in the unit of the result.
    servers : int
        c; tried up to 200.

    Raises
    ------
    UnstableError
        If `rate * service >= servers`.
    MomentError
        If an argument is not positive.

    Examples
    --------
    >>> round(mdc_mean_wait(1.8, 1.0, 2), 11)
    2.14692321472
    """
    c = at_least_one("servers", servers)
    load = positive("rate", rate) * positive("service", service)
    rho = stable(load / c)
    terms = (1 / (1 - _roots(c, rho))).real
    closed = (load * load - c * (c - 1)) / (2 * (c - load))
    queue = float(terms.sum()) + closed
    if queue < 1e-2 * (float(np.abs(terms).sum()) + abs(closed)):
        queue = _spitzer(c, load)
    return queue / rate


def _spitzer(servers: int, load: float) -> float:
    """Mean number waiting as a series of positive terms; the ratio of terms tends to (rho exp(1-rho))^c."""
    from scipy.special import gammaln, pdtrc

    rho = load / servers
    rate = servers * (rho - 1 - math.log(rho))  # terms fall as exp(-rate n)
    count = int(45 / rate) + 10
    if count > _LONGEST:
        raise NoConvergence(f"{count} terms needed at load {rho}")
    n = np.arange(1, count + 1, dtype=np.float64)
    mean, level = n * load, n * servers
    point = np.exp(level * np.log(mean) - mean - gammaln(level + 1))
    ratio = mean / (level + 1)
    plain = mean * point + (mean - level) * pdtrc(level, mean)
    # far out the two parts cancel: sum the first 60 masses above the level instead, ratio < 0.6 there
    masses = point[:, None] * np.cumprod(mean[:, None] / (level[:, None] + np.arange(1, 61)), axis=1)
    summed = masses @ np.arange(1.0, 61.0)
    return float((np.where(ratio < 0.5, summed, plain) / n).sum())


@lru_cache(maxsize=16)
def _cumulative_queue(servers: int, load: float) -> Floats:
    """P(waiting <= i), i = 0, 1, ..., until it is 1 to rounding; absolute error about 1e-15.

    Coefficients of `(c-a)(z-1)/(z^c - exp(a(z-1))) prod_k (z-z_k)/(1-z_k)` from its values on the unit circle.
    """
    rho = load / servers
    pole = -math.log(rho)
    while math.log1p(pole) > rho * pole:
        pole *= 2
    pole = bisect(lambda y: math.log1p(y) - rho * y, 0.5 * (1 / rho - 1), pole)  # the first pole is at 1 + y
    size = 40 / math.log1p(pole) + 4 * servers
    if size > _LONGEST:
        raise NoConvergence(f"a distribution of {size:.3g} queue lengths is needed at load {rho}")
    size = 1 << int(size).bit_length()
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    z = np.exp(1j * angle[1:])
    away = -2 * np.sin(angle[1:] / 2) ** 2 + 1j * np.sin(angle[1:])  # z - 1 without cancellation
    image = (servers - load) * away / (np.exp(1j * servers * angle[1:]) - np.exp(load * away))
    for root in _roots(servers, rho):
        image *= (z - root) / (1 - root)
    return np.minimum(np.cumsum(np.fft.irfft(np.append(1.0, image.conj()), size)), 1.0)


def mdc_wait_cdf(rate: float, service: float, servers: int, x: float) -> float:
    """P(W <= x) of the M/D/c queue, first come first served; exact, absolute error about 1e-14.

    `P(W <= x) = sum_j P(waiting <= kc - 1 - j) Poisson(j; rate (kD - x))` for `(k-1) D <= x < kD`: sums of positive
    terms, unlike Erlang's alternating series of 1909, which loses all digits from about x = 20 D on.
    Source: Franx, "A simple solution for the M/D/c waiting time distribution", Oper. Res. Letters 29 (2001).

    Raises as `mdc_mean_wait`; `NoConvergence` above a load of about 0.99999.

    Examples
    --------
    >>> round(mdc_wait_cdf(0.8, 1.0, 1, 10.0), 12)
    0.988342891735
    """
    c = at_least_one("servers", servers)
    load = positive("rate", rate) * positive("service", service)
    stable(load / c)
    return _franx(c, load, x / service) if x >= 0 else 0.0


def _franx(servers: int, load: float, x: float) -> float:
    """P(W <= x), x in units of the service time."""
    from scipy.special import gammaln

    full = _cumulative_queue(servers, load)
    k = math.floor(x) + 1
    count = min(k * servers, int(load + 12 * math.sqrt(load) + 40))
    j = np.arange(count)
    left = load * (k - x)
    poisson = np.exp(j * math.log(left) - left - gammaln(j + 1))
    return min(1.0, float(poisson @ full[np.minimum(k * servers - 1 - j, len(full) - 1)]))


def mdc_wait_probability(rate: float, service: float, servers: int = 1) -> float:
    """P(W > 0) of the M/D/c queue; exact. Raises as `mdc_wait_cdf`.

    Examples
    --------
    >>> round(mdc_wait_probability(0.8, 1.0, 1), 12)
    0.8
    """
    return 1 - mdc_wait_cdf(rate, service, servers, 0.0)


def mdc_wait_quantile(rate: float, service: float, servers: int, p: float) -> float:
    """Quantile of the M/D/c wait, 0 <= p <= 1 - 1e-9; exact, to about `1e-14 / (1 - p)` relative.

    Raises as `mdc_wait_cdf`.

    Examples
    --------
    >>> round(mdc_wait_quantile(0.9, 1.0, 1, 0.95), 10)
    14.1286738302
    """
    if mdc_wait_cdf(rate, service, servers, 0.0) >= probability("p", p):
        return 0.0
    if p > 1 - 1e-9:
        raise NoConvergence(f"the {p} quantile is beyond the accuracy of the distribution")
    load = rate * service
    high = 1.0
    while _franx(servers, load, high) <= p:
        high *= 2
    return service * bisect(lambda x: _franx(servers, load, x) - p, 0.0, high)
