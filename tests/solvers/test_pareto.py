"""The Pareto front against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.pareto import pareto_front


def by_definition(costs: NDArray[np.float64]) -> list[bool]:
    """Every pair, one by one."""
    return [not any(all(q <= p) and any(q < p) for q in costs) for p in costs]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        # Few different values make ties and equal points common.
        lambda m: st.lists(st.lists(st.integers(0, 6), min_size=m, max_size=m), min_size=1, max_size=40)
    )
)
def test_front_is_that_of_the_definition(rows: list[list[int]]) -> None:
    costs = np.array(rows, dtype=np.float64)
    assert pareto_front(costs).tolist() == by_definition(costs)


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_front_of_many_random_points(columns: int) -> None:
    costs = np.random.default_rng(3).normal(size=(400, columns))
    assert pareto_front(costs).tolist() == by_definition(costs)


def test_order_and_copies_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    costs = rng.integers(0, 30, size=(300, 3)).astype(np.float64)
    order = rng.permutation(300)
    front = pareto_front(costs)
    assert pareto_front(costs[order]).tolist() == front[order].tolist()
    assert pareto_front(np.vstack([costs, costs])).tolist() == [*front, *front]


def test_infinite_costs_and_empty_sets() -> None:
    assert pareto_front([[np.inf, 0.0], [0.0, np.inf], [np.inf, np.inf]]).tolist() == [True, True, False]
    assert pareto_front([[-np.inf], [0.0]]).tolist() == [True, False]
    assert pareto_front(np.empty((0, 2))).tolist() == []
    assert pareto_front([[0.0, 1.0], [-0.0, 1.0]]).tolist() == [True, True]


@pytest.mark.parametrize(
    ("costs", "words"), [([1.0, 2.0], "shape"), (np.empty((3, 0)), "shape"), ([[0.0, np.nan]], "NaN")]
)
def test_what_is_no_set_of_points(costs: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pareto_front(costs)  # type: ignore[arg-type]
