"""Two-level designs: the effects of many factors from few runs, each of which moves all factors at once.

A Hadamard matrix H of order N has entries +1 and -1 and ``H'H = N I``. With a first column of ones the other columns
are the factors of a Plackett-Burman design (Biometrika 33 (1946) 305): N runs, factor j up or down in run i as ``H_ij``
says. Of answers ``y_i`` the effect of a factor is ``sum_i H_ij y_i / N``: every run tells of every factor, so that the
variance of noise is divided by N, where differences one factor at a time divide it by 2.

The price: an effect also holds a part, at most one third where N is no power of two, of the interactions of pairs of
others. Running the *folded* design too, all signs turned, cancels these (Box and Wilson, J. R. Stat. Soc. B 13 (1951)).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["effects", "plackett_burman"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_PRIMES = {4: 3, 8: 7, 12: 11, 20: 19, 24: 23, 32: 31}  # order of H, and q of Paley's construction: q + 1, q = 3 mod 4
_ORDERS = (4, 8, 12, 16, 20, 24, 32)


def plackett_burman(factors: int) -> Ints:
    """Levels of the factors in each run.

    Parameters
    ----------
    factors : int
        From 1 to 31.

    Returns
    -------
    int array, shape (N, factors)
        +1 and -1; columns are orthogonal, each with as many of the one as of the other. N is the smallest order that is
        more than `factors`: at most 8 more.

    Raises
    ------
    ValueError
        If there are too few factors, or too many.

    Examples
    --------
    >>> plackett_burman(3).tolist()
    [[1, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]]
    """
    if not 1 <= factors < _ORDERS[-1]:
        raise ValueError(f"{factors} factors; give 1 to {_ORDERS[-1] - 1}")
    square = _hadamard(next(order for order in _ORDERS if order > factors))
    return (square * square[:, :1])[:, 1 : factors + 1]


def _hadamard(order: int) -> Ints:
    if order not in _PRIMES:  # of twice the size, by Sylvester
        return np.kron(np.array([[1, 1], [1, -1]]), _hadamard(order // 2))
    q = _PRIMES[order]
    squares = {x * x % q for x in range(1, q)}
    character = np.array([0, *(1 if x in squares else -1 for x in range(1, q))])
    places = np.arange(q)
    core = character[(places[None, :] - places[:, None]) % q]
    border = np.ones(q, dtype=np.int64)
    return np.block(
        [[np.ones((1, 1), dtype=np.int64), border[None, :]], [-border[:, None], core + np.eye(q, dtype=int)]]
    )


def effects(levels: Ints, answers: Floats) -> Floats:
    """Mean change of the answers per level.

    Parameters
    ----------
    levels : int array, shape (N, factors)
        Result of `plackett_burman`, or the same folded.
    answers : float64 array, shape (N, ...)
        Of the runs.

    Returns
    -------
    float64 array, shape (factors, ...)
        Half the difference between the mean answers with a factor up and down.

    Examples
    --------
    >>> levels = plackett_burman(2)
    >>> effects(levels, 5.0 + 3.0 * levels[:, 0] - levels[:, 1]).tolist()
    [3.0, -1.0]
    """
    found: Floats = np.tensordot(levels, answers, axes=(0, 0)) / len(levels)
    return found
