"""Bytes of a dispatch and a combine, and the paper's two irreconcilable counts of them (sec. 5.4).

Each of the K experts of a token gets its own copy and returns its own result; experts on one device are not
merged. Counted are payload and scales as the profile states them per copy; not the metadata (token counts,
ids), which is below 0.1 %.
"""

from functools import cache

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.evaluation import evaluate
from asapmodel.models.parameters import Architecture, Profile, Split
from asapmodel.models.symbols import symbols

__all__ = ["combine_volume", "dispatch_bytes", "dispatch_bytes_as_printed", "dispatch_volume", "printed_volume"]


@cache
def dispatch_volume() -> sympy.Expr:
    """Bytes of a dispatch of n tokens, ``V = n K b_d``. Exact for unmerged copies; source: sec. 5.4's 63 MB.

    Returns
    -------
    sympy.Expr
        Bytes.

    Examples
    --------
    >>> dispatch_volume()
    K*b_d*n
    """
    n, K, b_d = symbols("n K b_d")
    return n * K * b_d


@cache
def combine_volume() -> sympy.Expr:
    """Bytes of a combine of n tokens, ``V_c = n K b_c``. Exact for unmerged results; source: Table 2, H K S Dsize.

    Returns
    -------
    sympy.Expr
        Bytes.

    Examples
    --------
    >>> combine_volume()
    K*b_c*n
    """
    n, K, b_c = symbols("n K b_c")
    return n * K * b_c


@cache
def printed_volume() -> sympy.Expr:
    """Bytes of a dispatch as sec. 5.4 prints the formula, ``n H E_total/E`` at one byte each; not used in any cost.

    Returns
    -------
    sympy.Expr
        Bytes.

    Examples
    --------
    >>> printed_volume()
    E_total*H*b_w*n/E
    """
    n, H, E_total, E, b_w = symbols("n H E_total E b_w")
    return n * H * E_total / E * b_w


def dispatch_bytes(tokens: ArrayLike, architecture: Architecture, profile: Profile) -> NDArray[np.float64]:
    """Bytes that a dispatch of t tokens moves, ``t K b_d``: what all costs here use.

    Parameters
    ----------
    tokens : float or array
        t, > 0.
    architecture, profile : Architecture, Profile
        Give K and b_d.

    Returns
    -------
    float64 array
        Bytes, shape of `tokens`.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Notes
    -----
    b_d = 7.5 KiB (7168 INT8 values, scales, padding) gives sec. 5.4's stated 63 MB per 1k tokens. So would 9
    INT8 copies without scales, in MiB.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, _, profile, _ = paper_deployment()
    >>> f"{float(dispatch_bytes(1024, architecture, profile)) / 1e6:.1f} MB"
    '62.9 MB'
    """
    return evaluate(dispatch_volume(), architecture, profile, n=tokens)


def dispatch_bytes_as_printed(tokens: ArrayLike, architecture: Architecture, split: Split) -> NDArray[np.float64]:
    """Bytes by the paper's formula, ``t H E_total/E`` at one byte each: contradicts its own 63 MB, not used.

    Parameters
    ----------
    tokens : float or array
        t, > 0.
    architecture, split : Architecture, Split
        Give H, E_total and E.

    Returns
    -------
    float64 array
        Bytes, shape of `tokens`.

    Raises
    ------
    ValueError
        A value is out of its domain.

    Notes
    -----
    Sec. 5.4 prints this product and "63 MB per 1k tokens" in one breath; it gives 117 MB, since
    ``E_total/E = 16`` counts the experts of a device, where the number of copies is K = 8.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, _, _, split = paper_deployment()
    >>> f"{float(dispatch_bytes_as_printed(1024, architecture, split)) / 1e6:.1f} MB"
    '117.4 MB'
    """
    return evaluate(printed_volume(), architecture, split, n=tokens)
