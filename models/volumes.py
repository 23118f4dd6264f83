"""Bytes of a copy, of a dispatch and a combine, and the paper's two irreconcilable counts of them (sec. 5.4).

Each of the K experts of a token gets its own copy and returns its own result; the profile's `copies_sent` says which
share of them crosses the link, 1 unless those to one device or server are merged. Counted are payload and scales, which
follow from the precision; not the metadata (token counts, ids), which is below 0.1 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.models.formulas import value, values
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = [
    "combine_volume",
    "copy_bytes",
    "dispatch_bytes",
    "dispatch_bytes_as_printed",
    "dispatch_volume",
    "printed_volume",
    "with_copy_bytes",
]


@cache
def copy_bytes(scales: str) -> Mapping[str, sympy.Expr]:
    """Bytes of a token sent to one expert, and of its result, ``H b_a`` and scales, and ``H Dsize``.

    Parameters
    ----------
    scales : str
        Of `asapmodel.models.precision.Format`.

    Returns
    -------
    mapping of str to sympy.Expr
        Bytes: ``combine`` as above, ``dispatch``::

            none     H b_a
            token    b_p ceil((H b_a + b_q) / b_p)      one scale of b_q = 4 bytes, padded to a multiple of b_p = 512
            block    H b_a + b_q ceil(H / 128)

    Raises
    ------
    ValueError
        Other scales.

    Notes
    -----
    Exact for the kernels they are taken from: 7168 values are 7680 bytes (7.5 KiB) in INT8 on CloudMatrix384, 7392 in
    FP8 in DeepEP (docs/background/hardware.md 1.3), 14336 in BF16. Results come back in 16 bit at any precision.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> [int(evaluate(copy_bytes(one)["dispatch"], *paper_deployment())) for one in ("none", "token", "block")]
    [7168, 7680, 7392]
    """
    import sympy

    H, b_a, b_q, b_p, Dsize = symbols("H b_a b_q b_p Dsize")
    payload = H * b_a
    sent = {
        "none": payload,
        "token": b_p * sympy.ceiling((payload + b_q) / b_p),
        "block": payload + b_q * sympy.ceiling(H / 128),
    }
    if scales not in sent:
        raise ValueError(f"scales must be one of {', '.join(sent)}, got {scales!r}")
    return MappingProxyType({"dispatch": sent[scales], "combine": H * Dsize})


def with_copy_bytes(profile: Profile, architecture: Architecture, device: Device) -> Profile:
    """The profile with bytes of copies that it does not state, `copy_bytes` at the device's precision.

    Parameters
    ----------
    profile, architecture, device : Profile, Architecture, Device
        What is stated, the model's width, the precision.

    Returns
    -------
    Profile
        With both numbers of bytes above 0.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, device, profile, _ = paper_deployment()
    >>> open_ = replace(profile, dispatch_bytes_per_copy=0.0)
    >>> with_copy_bytes(open_, architecture, replace(device, precision="bf16")).dispatch_bytes_per_copy
    14336.0
    """
    if profile.dispatch_bytes_per_copy and profile.combine_bytes_per_copy:
        return profile
    found = values(partial(copy_bytes, device.format.scales), architecture, device)
    return replace(
        profile,
        dispatch_bytes_per_copy=profile.dispatch_bytes_per_copy or float(found["dispatch"]),
        combine_bytes_per_copy=profile.combine_bytes_per_copy or float(found["combine"]),
    )


@cache
def dispatch_volume() -> sympy.Expr:
    """Bytes of a dispatch of n tokens, ``V = n K kappa b_d``, kappa the share of copies sent; source: sec. 5.4's 63 MB.

    Returns
    -------
    sympy.Expr
        Bytes.

    Examples
    --------
    >>> dispatch_volume()
    K*b_d*kappa*n
    """
    n, K, kappa, b_d = symbols("n K kappa b_d")
    return n * K * kappa * b_d


@cache
def combine_volume() -> sympy.Expr:
    """Bytes of a combine of n tokens, ``V_c = n K kappa b_c``; source: Table 2, H K S Dsize.

    Returns
    -------
    sympy.Expr
        Bytes.

    Examples
    --------
    >>> combine_volume()
    K*b_c*kappa*n
    """
    n, K, kappa, b_c = symbols("n K kappa b_c")
    return n * K * kappa * b_c


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
    E_total*H*b_i*n/E
    """
    n, H, E_total, E, b_i = symbols("n H E_total E b_i")
    return n * H * E_total / E * b_i


def dispatch_bytes(tokens: ArrayLike, architecture: Architecture, profile: Profile) -> NDArray[np.float64]:
    """Bytes that a dispatch of t tokens moves, ``t K kappa b_d``: what all costs here use.

    Parameters
    ----------
    tokens : float or array
        t, > 0.
    architecture, profile : Architecture, Profile
        Give K, kappa and b_d.

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
    return value(dispatch_volume, architecture, profile, n=tokens)


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
    return value(printed_volume, architecture, split, n=tokens)
