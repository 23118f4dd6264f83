"""Integer programs against enumeration, and what HiGHS says of them."""

import itertools
import subprocess
import sys

import pulp
import pytest

from asapmodel.solvers.integer_program import Infeasible, Solved, maximal_patterns, minimise


def knapsack(values: list[int], weights: list[int], room: int) -> pulp.LpProblem:
    program = pulp.LpProblem("knapsack", pulp.LpMinimize)
    taken = [program.add_variable(f"x{k}", 0, 1, cat=pulp.LpInteger) for k in range(len(values))]
    program += pulp.lpSum([-value * one for value, one in zip(values, taken, strict=True)])
    program += pulp.lpSum([weight * one for weight, one in zip(weights, taken, strict=True)]) <= room
    return program


def test_a_knapsack_equals_enumeration() -> None:
    values, weights, room = [60, 100, 120, 75, 31, 48], [10, 20, 30, 17, 5, 12], 52
    best = max(
        sum(v for v, one in zip(values, taken, strict=True) if one)
        for taken in itertools.product((0, 1), repeat=6)
        if sum(w for w, one in zip(weights, taken, strict=True) if one) <= room
    )
    solved = minimise(knapsack(values, weights, room), gap=0.0)
    assert (solved.value, solved.bound) == pytest.approx((-best, -best))
    assert solved.gap == pytest.approx(0.0, abs=1e-9)


def test_the_bound_is_below_the_value() -> None:
    """Even where the search stops early."""
    program = knapsack([60, 100, 120, 75, 31, 48], [10, 20, 30, 17, 5, 12], 52)
    loose = minimise(program, gap=0.9)
    assert loose.bound <= minimise(program, gap=0.0).value <= loose.value


def test_gap() -> None:
    assert Solved(100.0, 99.0).gap == pytest.approx(0.01)
    assert Solved(-100.0, -101.0).gap == pytest.approx(0.01)
    assert Solved(0.0, 0.0).gap == 0.0


def test_infeasible() -> None:
    program = pulp.LpProblem("none", pulp.LpMinimize)
    x = program.add_variable("x", 0, 1, cat=pulp.LpInteger)
    program += x
    program += 2 * x == 1
    with pytest.raises(Infeasible, match="program 'none' has no solution"):
        minimise(program)


def test_nothing_on_standard_output() -> None:
    """HiGHS greets once a process; an answer must not be preceded by it."""
    code = (
        "import pulp; from asapmodel.solvers.integer_program import minimise\n"
        "print('before'); p = pulp.LpProblem('p', pulp.LpMinimize); x = p.add_variable('x', 0.5, cat='Integer')\n"
        "p += 1 * x; p += x >= 0.5; print(minimise(p).value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "before\n1.0\n"


@pytest.mark.parametrize(
    ("sizes", "capacity"), [([5, 3], 11), ([3, 5], 11), ([32, 48, 24], 384), ([7], 20), ([2, 3, 4], 9)]
)
def test_patterns_are_all_fillings_to_which_nothing_can_be_added(sizes: list[int], capacity: int) -> None:
    ranges = [range(capacity // size + 1) for size in sizes]
    expected = []
    for counts in itertools.product(*ranges):
        left = capacity - sum(size * count for size, count in zip(sizes, counts, strict=True))
        if 0 <= left < min(sizes):
            expected.append(counts)
    found = maximal_patterns(sizes, capacity)
    assert sorted(found) == sorted(expected)
    assert len(found) == len(set(found))


def test_patterns_refused() -> None:
    with pytest.raises(ValueError, match="size 12 does not fit a bin of 11; give larger bins"):
        maximal_patterns([3, 12], 11)
    with pytest.raises(ValueError, match="more than 50,000 ways to fill a bin of 384; use fewer sizes"):
        maximal_patterns([1, 2, 3, 5, 7], 384)
