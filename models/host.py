"""Host dispatch: what the CPU needs to launch the kernels of one MoE layer, and when it shows.

Launching ahead hides it. It is exposed, once per layer and batch, only where the next layer is not known
before it runs: asynchronous MoE devices without the super kernel (sec. 3.4.2). Not modelled: jitter of the
host.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from asapmodel.models.formulas import value
from asapmodel.models.parameters import Architecture, Profile
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["exposed", "total", "total_expression"]


@cache
def total_expression() -> sympy.Expr:
    """Exposed dispatch of a batch through all layers, ``L tau_h``, in seconds.

    Returns
    -------
    sympy.Expr
        Exact for batches that never wait for another (low load): sec. 5.5.3, 61 x 220 us = 13.4 ms.

    Examples
    --------
    >>> total_expression()
    L*tau_h
    """
    L, tau_h = symbols("L tau_h")
    return L * tau_h


def total(architecture: Architecture, profile: Profile) -> float:
    """Exposed dispatch of a batch through all layers, ``L tau_h`` in numbers.

    Parameters
    ----------
    architecture, profile : Architecture, Profile
        `layers` counts all of them, as the paper does.

    Returns
    -------
    float
        Seconds. Source and exactness as in `total_expression`.

    Raises
    ------
    ValueError
        A parameter is out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, _, profile, _ = paper_deployment()
    >>> f"{total(architecture, profile) * 1e3:.2f} ms"
    '13.42 ms'
    """
    return float(value(total_expression, architecture, profile))


def exposed(profile: Profile, order_known: bool) -> float:
    """Dispatch time added to each MoE layer, ``0 if order_known else tau_h``.

    Parameters
    ----------
    profile : Profile
        Holds `host_dispatch`.
    order_known : bool
        True in lockstep execution and with the super kernel.

    Returns
    -------
    float
        Seconds. Source: sec. 3.4.2. Exact.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> exposed(paper_deployment()[2], order_known=False), exposed(paper_deployment()[2], order_known=True)
    (0.00022, 0.0)
    """
    return 0.0 if order_known else profile.host_dispatch
