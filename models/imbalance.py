"""Uneven routing: the load of the busiest expert device over the mean.

Single experts draw different shares of the tokens, a device's share is the sum over its experts, and a layer
ends with its busiest device. Assumed: experts are independent and their sums normal. Not modelled: hot
experts that persist and are replicated (EPLB); measure the coefficient of variation after such balancing.
Skew across groups of tokens is not modelled either.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from asapmodel.models.formulas import value
from asapmodel.models.normal import log_cdf
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["expected_maximum", "imbalance", "imbalance_expression"]


@cache
def expected_maximum(count: int) -> float:
    """Expected maximum of independent standard normals, ``m(N) = int x N phi(x) Phi(x)^(N-1) dx`` over all x.

    Parameters
    ----------
    count : int
        N >= 1.

    Returns
    -------
    float
        Dimension one.

    Raises
    ------
    ValueError
        N < 1.

    Notes
    -----
    The maximum has the distribution ``Phi^N``. The integrand is analytic and falls off on both sides, so the
    trapezoidal rule converges exponentially in its step (Trefethen and Weideman, SIAM Review 56 (2014)): of step 1/20
    on [-12, 12] it is exact to rounding up to N = 1e4, and to 1e-9 up to 1e6.
    Source: David & Nagaraja, Order Statistics, 3rd ed., sec. 3.1; N = 2 is ``1/sqrt(pi)``.

    Examples
    --------
    >>> [round(expected_maximum(N), 5) for N in (2, 16, 32)]
    [0.56419, 1.76599, 2.06967]
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    x, log_phi, log_below = _normal()
    # Powers by logarithms: accurate for large N.
    mean = _STEP * float(x @ np.exp(math.log(count) + log_phi + (count - 1) * log_below))
    return max(0.0, mean)  # rounding must not make the maximum of one variable (0) negative


_STEP, _FAR = 0.05, 240  # of the quadrature: step, and steps on either side


@cache
def _normal() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points of the quadrature, and the logarithms of density and distribution there."""
    x = _STEP * np.arange(-_FAR, _FAR + 1, dtype=np.float64)
    return x, -0.5 * x**2 - 0.5 * math.log(2.0 * math.pi), log_cdf(x)


@cache
def imbalance_expression() -> sympy.Expr:
    """Load of the busiest device over the mean, ``1 + v mu_E / sqrt(N_l E_total/E)``.

    Returns
    -------
    sympy.Expr
        Dimension one, in v, E, E_total, N_l and mu_E (`expected_maximum` of E). Derivation and error: see
        `imbalance`.

    Examples
    --------
    >>> sorted(x.name for x in imbalance_expression().free_symbols)
    ['E', 'E_total', 'N_l', 'mu_E', 'v']
    """
    import sympy

    v, mu_E, E, E_total, N_l = symbols("v mu_E E E_total N_l")
    return 1 + v * mu_E / sympy.sqrt(N_l * E_total / E)


def imbalance(architecture: Architecture, device: Device, profile: Profile, split: Split, layers: int = 1) -> float:
    """Load of the busiest of E devices over the mean, ``1 + v m(E) / sqrt(N_l r)``, ``r = E_total / E``.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        Only E_total, `expert_load_cv` v and E are read.
    layers : int
        N_l: 1 where every layer waits for its busiest device (lockstep: a barrier behind each layer), all layers where
        devices run ahead of one another and only the sum of their loads counts (free execution).

    Returns
    -------
    float
        At least 1; exactly 1 for v = 0 (sec. 2.2.2: perfect balance).

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Notes
    -----
    A device holds r experts, so its load over the mean has standard deviation ``v / sqrt(r)`` if experts are
    independent, and the largest of E such loads exceeds the mean by m(E) standard deviations. Exact for
    independent normal loads. Approximation otherwise: the loads of E devices add up to a constant (the
    largest is then ``sqrt(E/(E-1))`` further out, 3 % at E = 16, if v was measured around the batch mean) and
    skewed laws have larger maxima for few experts per device. Meant for ``v < sqrt(r)``.

    With N_l layers of independent loads the sum has 1/sqrt(N_l) of the relative deviation. Evidence: with natural
    routing on 16 devices the busiest device has 1.4 to 1.9 times the mean in a layer (median) and 1.05 to 1.10 times
    summed over all layers (ShwStone/afd-plugin, STAGE_REPORT section 8, 61-layer DeepSeek-V3.2); their middle, 1.65,
    gives 1 + 0.65/sqrt(58) = 1.09. For free execution it is the load that limits throughput; a lone batch still waits
    for its busiest device in each layer, which this factor leaves out.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, device, profile, split = paper_deployment()
    >>> round(imbalance(architecture, device, replace(profile, expert_load_cv=0.4), split), 4)
    1.1766
    """
    expected = expected_maximum(split.E)
    return float(value(imbalance_expression, architecture, device, profile, split, mu_E=expected, N_l=layers))
