"""Cycle times of a pair against the graph engine."""

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.closed_forms.pair import lone_cycle, pair_bound, pair_cycle
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from tests.closed_forms.cycles import constant_costs, measured_cycle, named, pair_policy, random_phases

SETTINGS = [(True, False), (True, True), (False, True), (False, False)]


@pytest.mark.parametrize(("pool", "group"), SETTINGS)
def test_cycle_of_equal_batches_is_exact(pool: bool, group: bool) -> None:
    """Every regime of the order occurs, and the engine agrees to 1e-9 in each."""
    rng = np.random.default_rng(11)
    form = pair_cycle(pool, group)
    seen = dict.fromkeys(form.conditions, 0)
    done = 0
    while done < 500:
        phases = random_phases(rng)
        A, _, t2, M, _, t5 = phases
        if (not group and t2 > A) or (not pool and t5 > M):
            continue
        done += 1
        values = named(phases)
        seen[form.regime(**values)] += 1
        measured = measured_cycle(constant_costs(phases), pair_policy(pool, group), (1, 1))
        assert measured == pytest.approx(float(form.numeric(**values)), rel=1e-9), values
    assert min(seen.values()) >= 5, seen


def test_interleaving_costs_more_than_the_bound() -> None:
    """The case by hand: attention 4, combine receive 2, the rest 1, long experts."""
    phases = np.array([4.0, 1.0, 1.0, 5.5, 1.0, 2.0])
    values = named(phases)
    assert pair_cycle().regime(**values) == "interleaved on the group"
    assert float(pair_cycle().numeric(**values)) == 16.5  # S + t5, where twice the group's time is 14
    assert measured_cycle(constant_costs(phases), pair_policy(), (1, 1)) == pytest.approx(16.5, rel=1e-12)


def test_a_blocked_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="t2 = 2"):
        pair_cycle().numeric(A=1.0, t1=1.0, t2=2.0, M=1.0, t4=1.0, t5=1.0)


def two_batches(one: NDArray[np.float64], two: NDArray[np.float64]) -> LayerCosts:
    """Costs whose phases are `one` for one token and `two >= one` for two."""
    slope = two - one
    laws = [Affine(float(a - d), float(d)) for a, d in zip(one, slope, strict=True)]
    attention = Quadratic(laws[0].fixed, laws[0].per_token, 0.0)
    return LayerCosts(attention, laws[1], laws[2], Plateau(float(one[3]), float(two[3]) / 2), laws[4], laws[5])


@pytest.mark.parametrize(("pool", "group"), SETTINGS)
def test_bound_of_unequal_batches(pool: bool, group: bool) -> None:
    """Never above the engine; equal to it where every stream is of its own."""
    rng = np.random.default_rng(5)
    form = pair_bound(pool, group)
    ratios = []
    for _ in range(400):
        one = random_phases(rng)
        two = one * (1.0 + rng.uniform(0.0, 1.0, 6))
        two[0] = one[0] * (1.0 + 3.0 * rng.random())
        measured = measured_cycle(two_batches(one, two), pair_policy(pool, group), (1, 2))
        values = named(one) | named(two, "_b")
        bound = float(form.numeric(**values))
        ratios.append(measured / bound)
    assert min(ratios) > 1 - 1e-9
    if pool and group:
        assert max(ratios) < 1 + 1e-9
    else:
        assert 1.2 < max(ratios) < 1.7
        assert 0.5 < np.mean(np.array(ratios) < 1 + 1e-9) < 0.8


def test_lone_batch_takes_the_sum_of_its_phases() -> None:
    phases = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert float(lone_cycle().numeric(**named(phases))) == 21.0
    assert measured_cycle(constant_costs(phases), pair_policy(), (1,)) == pytest.approx(21.0, rel=1e-12)


@pytest.mark.parametrize(("pool", "group"), SETTINGS)
def test_regime_of_the_bound_is_the_largest_term(pool: bool, group: bool) -> None:
    rng = np.random.default_rng(3)
    form = pair_bound(pool, group)
    for _ in range(200):
        one, two = random_phases(rng), random_phases(rng)
        A, t1, t2, M, t4, t5 = one + two
        terms = {
            "attention": A if group else A + t1 + t5,
            "moe": M if pool else t2 + M + t4,
            "dispatch region": t1 + t2,
            "combine region": t4 + t5,
            "latency": one.sum(),
            "latency of the second": two.sum(),
        }
        assert form.regime(**named(one), **named(two, "_b")) == max(terms, key=lambda name: terms[name])
