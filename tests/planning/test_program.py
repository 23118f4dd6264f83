"""The fleet program against enumeration of all fleets, on programs small enough for it."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from asapmodel.planning.candidates import Pool
from asapmodel.planning.program import FleetProblem, pack, solve, undominated, with_fewer_pools
from asapmodel.solvers.integer_program import Infeasible

MOST = 4  # instances of a pool that are enumerated


def random_problem(seed: int) -> FleetProblem:
    """Two segments, three or four pools of two types, two hours."""
    rng = np.random.default_rng(seed)
    sets = [(0,), (1,), (0, 1)]
    every = [Pool(kind, chosen) for chosen in sets for kind in ("a", "b")]
    pools = [every[k] for k in sorted(rng.choice(6, 4, replace=False))]
    need = rng.uniform(0.3, 3.0, (4, 2)).round(2)
    if seed % 3 == 0:
        need[rng.integers(4), rng.integers(2)] = np.inf
    return FleetProblem(
        pools=pools,
        need=need,
        active=np.ones((2, 2), dtype=bool),
        weights={"a": 3.0, "b": float(rng.uniform(2.0, 6.0))},
        sizes={"a": 3, "b": 5},
        available={"a": int(rng.integers(1, 5))} if seed % 2 else {},
        reserve=int(seed % 4 == 1),
        supernode=11 if seed % 2 else None,
        max_supernodes=2 if seed % 2 else None,
        whole=seed % 5 == 2,
    )


def bins(threes: int, fives: int) -> int:
    """Fewest bins of 11, by trying all ways to fill them."""
    best = threes + fives
    for full in range(min(fives // 2, best) + 1):
        for mixed in range(fives - 2 * full + 1):
            alone = fives - 2 * full - mixed  # bins with one five and no three
            rest = max(threes - 2 * mixed, 0)
            best = min(best, full + mixed + alone + -(-rest // 3))
    return best


def servable(problem: FleetProblem, counts: tuple[int, ...]) -> bool:
    """Whether a fleet serves every hour."""
    return all(_hour(problem, counts, h) for h in range(problem.need.shape[1]))


def _hour(problem: FleetProblem, counts: tuple[int, ...], h: int) -> bool:
    """Shares of pools that serve both segments count for each: together with the segment's own they must reach 1."""
    most = dict.fromkeys(((0,), (1,), (0, 1)), 0.0)
    for pool, need, count in zip(problem.pools, problem.need[:, h], counts, strict=True):
        carrying = count - problem.reserve
        most[pool.segments] += min(1.0, carrying / need) if carrying > 0 and np.isfinite(need) else 0.0
    return all(most[own] + most[0, 1] >= 1.0 - 1e-9 for own in ((0,), (1,)))


def whole_servable(problem: FleetProblem, counts: tuple[int, ...]) -> bool:
    """The same where each segment goes to one pool."""
    for chosen in itertools.product((False, True), repeat=len(counts)):
        served = [s for one, pool in zip(chosen, problem.pools, strict=True) if one for s in pool.segments]
        enough = all(
            problem.need[p].max() <= count - problem.reserve + 1e-9
            for p, (one, count) in enumerate(zip(chosen, counts, strict=True))
            if one
        )
        if sorted(served) == [0, 1] and enough:
            return True
    return False


def fleets(problem: FleetProblem) -> Iterator[tuple[float, tuple[int, ...]]]:
    """All fleets within the limits with their objective, the best first."""
    found = []
    for counts in itertools.product(range(MOST + 1), repeat=len(problem.pools)):
        of = dict.fromkeys(problem.weights, 0)
        for count, pool in zip(counts, problem.pools, strict=True):
            of[pool.kind] += count
        within = all(of[kind] <= limit for kind, limit in problem.available.items())
        if problem.max_supernodes is not None:
            within = within and bins(of["a"], of["b"]) <= problem.max_supernodes
        if within:
            found.append((sum(problem.weights[kind] * count for kind, count in of.items()), counts))
    yield from sorted(found)


@pytest.mark.parametrize("seed", range(40))
def test_equals_enumeration(seed: int) -> None:
    problem = random_problem(seed)
    serves = whole_servable if problem.whole else servable
    best = next((value for value, counts in fleets(problem) if serves(problem, counts)), None)
    if best is None:
        with pytest.raises(Infeasible):
            solve(problem)
        return
    fleet = solve(problem, gap=0.0)
    assert fleet.solved.value == pytest.approx(best)
    assert fleet.solved.bound == pytest.approx(best)
    tidy = with_fewer_pools(problem, fleet)
    for one in (fleet, tidy):
        counts = tuple(int(n) for n in one.instances)
        assert sum(problem.weights[p.kind] * n for p, n in zip(problem.pools, counts, strict=True)) == pytest.approx(
            best
        )
        check(problem, one.instances, one.share)
    assert np.count_nonzero(tidy.instances) <= np.count_nonzero(fleet.instances)


def check(problem: FleetProblem, instances: np.ndarray, share: np.ndarray) -> None:
    """A solution satisfies what the program says in words."""
    for s, h in np.argwhere(problem.active):
        served = sum(share[p, h] for p, pool in enumerate(problem.pools) if s in pool.segments)
        assert served == pytest.approx(1.0)
    for p, h in np.argwhere(share > 0):
        assert problem.need[p, h] * share[p, h] <= instances[p] - problem.reserve + 1e-6


def test_enumeration_covers_both_outcomes() -> None:
    outcomes = []
    for seed in range(40):
        problem = random_problem(seed)
        serves = whole_servable if problem.whole else servable
        outcomes.append(any(serves(problem, counts) for _, counts in fleets(problem)))
    assert 4 <= outcomes.count(False) <= 20


@pytest.mark.parametrize("seed", [0, 4, 6, 8, 10])
def test_more_traffic_never_needs_less(seed: int) -> None:
    problem = random_problem(seed)
    values = [solve(replace(problem, need=factor * problem.need)).solved.value for factor in (0.5, 0.9, 1.0, 1.3, 2.0)]
    assert values == sorted(values)


@pytest.mark.parametrize("seed", [0, 4, 8, 10])
def test_a_reserve_adds_an_instance_at_least(seed: int) -> None:
    problem = random_problem(seed)
    values = [solve(replace(problem, reserve=k)).solved.value for k in range(3)]
    assert all(b - a >= min(problem.weights.values()) - 1e-6 for a, b in itertools.pairwise(values))


def test_dividing_a_class_saves_what_whole_instances_waste() -> None:
    """1.5 instances of a and 1.5 of b: divided three are enough, undivided four."""
    problem = FleetProblem(
        pools=[Pool("a", (0,)), Pool("a", (1,)), Pool("b", (0, 1))],
        need=np.array([[1.5], [1.5], [3.0]]),
        active=np.ones((2, 1), dtype=bool),
        weights={"a": 1.0, "b": 1.01},
        sizes={"a": 1, "b": 1},
    )
    assert solve(problem).solved.value == pytest.approx(2 * 1.0 + 1.01)
    assert solve(replace(problem, whole=True)).solved.value == pytest.approx(3 * 1.01)


@pytest.mark.parametrize(("threes", "fives"), list(itertools.product(range(8), range(6))))
def test_packing_is_exact(threes: int, fives: int) -> None:
    packing = pack({3: threes, 5: fives}, 11)
    assert sum(times for _, times in packing) == bins(threes, fives)
    for size, count in ((3, threes), (5, fives)):
        assert sum(times * filled.get(size, 0) for filled, times in packing) >= count
    assert all(sum(size * count for size, count in filled.items()) <= 11 for filled, _ in packing)


def test_instances_do_not_span_supernodes() -> None:
    """Devices would suffice for 7 of 5 on 4 bins of 11 (35 of 44), but only two fit one."""
    problem = FleetProblem(
        pools=[Pool("a", (0,))],
        need=np.array([[7.0]]),
        active=np.ones((1, 1), dtype=bool),
        weights={"a": 5.0},
        sizes={"a": 5},
        supernode=11,
        max_supernodes=3,
    )
    with pytest.raises(Infeasible):
        solve(problem)
    assert solve(replace(problem, max_supernodes=4)).instances.tolist() == [7]
    fewest = solve(replace(problem, max_supernodes=None, weights={"a": 0.0}, supernode_weight=1.0))
    assert fewest.solved.value == pytest.approx(4.0)


def test_a_type_that_is_worse_at_every_hour_is_left_out() -> None:
    problem = FleetProblem(
        pools=[Pool("a", (0,)), Pool("b", (0,)), Pool("a", (1,)), Pool("b", (1,)), Pool("c", (0,))],
        need=np.array([[1.0, 2.0], [1.0, 2.5], [1.0, 2.0], [0.9, 2.5], [9.0, 9.0]]),
        active=np.ones((2, 2), dtype=bool),
        weights={"a": 1.0, "b": 1.0, "c": 1.0},
        sizes={"a": 1, "b": 1, "c": 2},
    )
    assert undominated(problem) == {0, 2, 3, 4}
    assert undominated(replace(problem, available={"a": 7})) == {0, 1, 2, 3, 4}
    assert undominated(replace(problem, weights={"a": 2.0, "b": 1.0, "c": 1.0})) == {0, 1, 2, 3, 4}
    equal = replace(problem, need=np.ones((5, 2)))
    assert undominated(equal) == {1, 3, 4}
