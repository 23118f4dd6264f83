"""Blocking point-to-point dispatch against async-dispatch-send (sec. 5.4).

One attention device hands its share of a batch to N_r expert devices, one after another, each with a
handshake; the asynchronous primitive writes to all at once. The paper prints two ratios of their latencies,
which fix two unknowns. Not modelled: fluctuation of a busy receiver.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.formulas import value
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import symbols
from asapmodel.models.volumes import dispatch_bytes, dispatch_volume

if TYPE_CHECKING:
    import sympy

__all__ = [
    "P2PFit",
    "async_dispatch_expression",
    "async_dispatch_time",
    "fit_p2p",
    "p2p_expression",
    "p2p_time",
]

_KILO = 1024  # the paper's "1k tokens": 63 MB / (8 x 7.5 KiB) = 1024, not 1000


class P2PFit(NamedTuple):
    """Handshake plus receiver delay of one call in s, and the share of the link."""

    per_receiver: float
    link: float


@cache
def p2p_expression() -> sympy.Expr:
    """Time of a blocking dispatch to N_r receivers, ``N_r (tau_p + tau_w) + n K kappa b_d / T / (B_l eta_p)``.

    Returns
    -------
    sympy.Expr
        Seconds, n the tokens of the group.

    Notes
    -----
    Sec. 5.4: handshake (constant), transfer (linear), extra delay (here its mean), all of it once per
    receiver; the share of a sender is 1/T of the batch, and its parts to all receivers add up to that share.
    Approximation: the mean stands for a fluctuating delay.

    Examples
    --------
    >>> sorted(x.name for x in p2p_expression().free_symbols)
    ['B_l', 'K', 'N_r', 'T', 'b_d', 'eta_p', 'kappa', 'n', 'tau_p', 'tau_w']
    """
    N_r, tau_p, tau_w, T, B_l, eta_p = symbols("N_r tau_p tau_w T B_l eta_p")
    return N_r * (tau_p + tau_w) + dispatch_volume() / T / (B_l * eta_p)


@cache
def async_dispatch_expression() -> sympy.Expr:
    """Time of async-dispatch-send, ``tau_s + n K kappa b_d max(1/T, 1/E) / (B_l eta_l)``, one of the four of `link`.

    Returns
    -------
    sympy.Expr
        Seconds. Source, exactness and error as in `asapmodel.models.link.asynchronous_expressions`.

    Examples
    --------
    >>> "N_r" in {x.name for x in async_dispatch_expression().free_symbols}
    False
    """
    import sympy

    T, E, B_l, eta_l, tau_s = symbols("T E B_l eta_l tau_s")
    return tau_s + dispatch_volume() * sympy.Max(1 / T, 1 / E) / (B_l * eta_l)


def p2p_time(
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
    n: ArrayLike,
    receivers: int | None = None,
) -> NDArray[np.float64]:
    """Time of a blocking dispatch, `p2p_expression` in numbers.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        What is sent, over which link, how well, between how many devices.
    n : float or array
        Tokens of the group, > 0.
    receivers : int, optional
        Devices that are served one after another; all E by default.

    Returns
    -------
    float64 array
        Seconds, shape of n. Exactness and error as in `p2p_expression`.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> f"{float(p2p_time(*paper_deployment(), 1024)) * 1e6:.0f} us"
    '695 us'
    """
    count = split.E if receivers is None else receivers
    return value(p2p_expression, architecture, device, profile, split, n=n, N_r=count)


def async_dispatch_time(
    architecture: Architecture, device: Device, profile: Profile, split: Split, n: ArrayLike
) -> NDArray[np.float64]:
    """Time of async-dispatch-send, `async_dispatch_expression` in numbers.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `p2p_time`.
    n : float or array
        Tokens of the group, > 0.

    Returns
    -------
    float64 array
        Seconds, shape of n. Exactness and error as in the expression.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> f"{float(async_dispatch_time(*paper_deployment(), 512)) * 1e6:.0f} us"  # sec. 5.4: less than 0.1 ms
    '65 us'
    """
    return value(async_dispatch_expression, architecture, device, profile, split, n=n)


def fit_p2p(
    architecture: Architecture,
    device: Device,
    profile: Profile,
    split: Split,
    ratio_1k: float = 4.0,
    ratio_8k: float = 5.8,
    receivers: int | None = None,
) -> P2PFit:
    """Solve ``N_r x + V_j/T y / B_l = ratio_j A_j`` at 1k and 8k tokens for the delay x and the inverse link share y.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        As in `p2p_time`; the profile's own P2P fields are not read.
    ratio_1k, ratio_8k : float
        Latency of blocking P2P over async-dispatch at 1024 and 8192 tokens (sec. 5.4).
    receivers : int, optional
        N_r; all E by default.

    Returns
    -------
    P2PFit
        x in s (handshake + receiver delay of one call) and 1/y, the share of the link.

    Raises
    ------
    ValueError
        The solution has a negative delay or rate: such ratios cannot hold with this async-dispatch. A
        parameter is out of its domain.

    Notes
    -----
    Two linear equations, two unknowns; exact. With A = f + a n/1k the delay is ``(3.743 f - 2.057 a) / N_r``
    for the paper's ratios: a ratio that *rises* with the batch asks for ``f >= 0.55 a``, a latency of
    async-dispatch of at least half its transfer time at 1k tokens (49 us here), while "less than 0.1 ms" for
    512 tokens asks for ``f + a/2 < 100 us`` (55 us here). Only such send latencies agree with both.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, device, profile, split = paper_deployment()
    >>> slow = replace(profile, send_latency=52e-6)
    >>> fit = fit_p2p(architecture, device, slow, split)
    >>> f"{fit.per_receiver * 1e6:.2f} us per receiver, link at {fit.link:.3f}"
    '0.70 us per receiver, link at 0.145'
    """
    tokens = np.array([_KILO, 8.0 * _KILO])
    given = (architecture, device, profile, split)
    wanted = np.array([ratio_1k, ratio_8k]) * async_dispatch_time(*given, tokens)
    share = dispatch_bytes(tokens, architecture, profile) / split.T / device.link_bandwidth
    inverse = (wanted[1] - wanted[0]) / (share[1] - share[0])
    delay = wanted[0] - inverse * share[0]
    if delay < 0 or inverse <= 0:
        raise ValueError(
            f"no blocking transfer is {ratio_1k:g} and {ratio_8k:g} times this async-dispatch: it would have a "
            f"latency of {delay * 1e6:.0f} us; raise profile.send_latency (now {profile.send_latency * 1e6:.0f} us)"
        )
    return P2PFit(float(delay / (split.E if receivers is None else receivers)), float(1.0 / inverse))
