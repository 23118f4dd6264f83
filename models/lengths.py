"""From a law of lengths to prompts of whole tokens.

The laws are continuous because formulas want them so; a scheduler counts tokens. Rounding moves the mean of
a smooth law by less than half a token, which is below 0.1 % at the lengths where prefill time matters.
"""

import math

import numpy as np
from numpy.typing import NDArray

from asapmodel.models.distributions import Distribution

__all__ = ["token_bounds", "token_lengths"]


def token_bounds(distribution: Distribution) -> tuple[int, float]:
    """Fewest and most whole tokens a prompt of this law can have; the most may be infinite.

    The support, shrunk to whole numbers and to at least 1 token.

    Raises
    ------
    ValueError
        If the support holds no whole number of at least 1.

    Examples
    --------
    >>> from asapmodel.models.distributions import Exponential, TruncatedLognormal
    >>> token_bounds(TruncatedLognormal(7.0, 1.0, 30.5, 32768.9))
    (31, 32768)
    >>> token_bounds(Exponential(1000.0))
    (1, inf)
    """
    low, high = distribution.support
    fewest = max(1, math.ceil(low))
    most = math.floor(high) if math.isfinite(high) else high
    if fewest > most:
        raise ValueError(f"no whole number of tokens in the support [{low}, {high}]; at least 1 token is needed")
    return fewest, most


def token_lengths(distribution: Distribution, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Draw prompt lengths in whole tokens.

    Values are rounded half to even, then brought inside `token_bounds`.

    Parameters
    ----------
    distribution : Distribution
        Law of the length, tokens.
    rng : numpy.random.Generator
        Source of randomness; `size` uniforms are taken from it.
    size : int
        Number of prompts.

    Returns
    -------
    ndarray of int64, shape (size,)
        Prefix-stable, as `Distribution.sample` is.

    Raises
    ------
    ValueError
        If the support holds no whole number of at least 1.

    Examples
    --------
    >>> from asapmodel.models.distributions import Empirical
    >>> token_lengths(Empirical([0.2, 2.5, 3.5, 9.0]), np.random.default_rng(1), 6).tolist()
    [4, 9, 1, 9, 2, 2]
    """
    fewest, most = token_bounds(distribution)
    values = np.rint(distribution.sample(rng, size))
    return np.clip(values, fewest, most).astype(np.int64)
