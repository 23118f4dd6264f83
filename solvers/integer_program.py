"""Integer programs: solved by HiGHS through PuLP, with the bound that certifies the answer; and packing into bins.

A program is a `pulp.LpProblem` to be minimised. `minimise` leaves the values in its variables and returns the value
with the bound of branch and bound: no solution is below the bound, so `gap` is how much better one could be at most.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pulp

__all__ = ["Infeasible", "NotSolved", "Solved", "maximal_patterns", "minimise"]

_MOST_PATTERNS = 50_000


class Infeasible(ValueError):
    """No point satisfies the constraints."""


class NotSolved(ValueError):
    """The time was over before any solution was found."""


@dataclass(frozen=True, slots=True)
class Solved:
    """Objective of the solution found, and a lower bound of the objective of every solution."""

    value: float
    bound: float

    @property
    def gap(self) -> float:
        """`(value - bound) / |value|`; 0 where both are 0."""
        return 0.0 if self.value <= self.bound else (self.value - self.bound) / abs(self.value or 1.0)


def minimise(program: pulp.LpProblem, gap: float = 1e-4, time_limit: float = 60.0) -> Solved:
    """Solve a program whose sense is minimisation.

    Parameters
    ----------
    program : pulp.LpProblem
        Afterwards its variables hold the solution.
    gap : float
        Stop when the solution is known to be within this share of the optimum.
    time_limit : float
        Stop after so many seconds with the best solution so far.

    Raises
    ------
    Infeasible
        If there is no solution.
    NotSolved
        If none was found in time.

    Examples
    --------
    >>> program = pulp.LpProblem("coins", pulp.LpMinimize)
    >>> fives, twos = (program.add_variable(name, 0, cat="Integer") for name in ("fives", "twos"))
    >>> program += fives + twos
    >>> program += 5 * fives + 2 * twos == 16
    >>> minimise(program).value, fives.value(), twos.value()
    (5.0, 2.0, 3.0)
    """
    _greeted()
    program.solve(pulp.HiGHS(msg=False, gapRel=gap, timeLimit=time_limit, threads=1))
    # An empty objective and a solution found in time are both "optimal" here; the bound tells them apart.
    if program.status == pulp.LpStatusInfeasible:
        raise Infeasible(f"program '{program.name}' has no solution")
    if program.status != pulp.LpStatusOptimal:
        raise NotSolved(f"program '{program.name}': no solution within {time_limit:g} s")
    value = float(pulp.value(program.objective) or 0.0)
    if not any(variable.cat == pulp.LpInteger for variable in program.variables()):
        return Solved(value, value)
    return Solved(value, min(value, float(program.solverModel.getInfo().mip_dual_bound)))


@cache
def _greeted() -> bool:
    """Let HiGHS say its name, which it does once a process, where nobody reads it: standard output is for answers."""
    with _silence():
        import highspy

        highspy.Highs()  # type: ignore[no-untyped-call]
    return True


@contextmanager
def _silence() -> Iterator[None]:
    """Send what compiled code writes to standard output nowhere."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def maximal_patterns(sizes: Sequence[int], capacity: int) -> list[tuple[int, ...]]:
    """All ways to fill a bin so that nothing more fits: how many items of each size.

    Bins that hold at least the wanted counts in sum hold the items, whatever pattern has room to spare; so the fewest
    bins for counts `n` are `min sum_j z_j` over integers `z_j` with `sum_j z_j a_ij >= n_i`: exact, the cutting-stock
    formulation of Gilmore and Gomory (1961).

    Parameters
    ----------
    sizes : sequence of int
        Different sizes, positive.
    capacity : int
        Of a bin.

    Raises
    ------
    ValueError
        If an item is larger than a bin, or there are more than 50,000 patterns.

    Examples
    --------
    >>> maximal_patterns([5, 3], 11)
    [(2, 0), (1, 2), (0, 3)]
    """
    for size in sizes:
        if not 0 < size <= capacity:
            raise ValueError(f"an item of size {size} does not fit a bin of {capacity}; give larger bins")
    order = sorted(range(len(sizes)), key=lambda k: -sizes[k])
    ordered = [sizes[k] for k in order]
    found: list[tuple[int, ...]] = []
    for counts in _fill(ordered, capacity):
        found.append(tuple(counts[order.index(k)] for k in range(len(sizes))))
        if len(found) > _MOST_PATTERNS:
            raise ValueError(f"more than {_MOST_PATTERNS:,} ways to fill a bin of {capacity}; use fewer sizes")
    return found


def _fill(sizes: Sequence[int], room: int) -> Iterator[tuple[int, ...]]:
    """Fillings of `room`, sizes descending: the smallest takes all that is left, so that nothing more fits."""
    if not sizes:
        yield ()
    elif len(sizes) == 1:
        yield (room // sizes[0],)
    else:
        for count in range(room // sizes[0], -1, -1):
            yield from ((count, *rest) for rest in _fill(sizes[1:], room - count * sizes[0]))
