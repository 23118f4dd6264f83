"""Throughput bounds and the batch sizes at which the limit changes, against the graph engine."""

from dataclasses import replace

import numpy as np
import pytest

from asapmodel.closed_forms.form import ClosedForm
from asapmodel.closed_forms.pair import pair_cycle
from asapmodel.closed_forms.saturation import (
    group_limit_tokens,
    groups_at_balance,
    hidden_pool_tokens,
    prompt_rate,
    saturation,
)
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.policy import Layout
from tests.closed_forms.cycles import (
    backlog_policy,
    constant_costs,
    measured_cycle,
    measured_throughput,
    named,
    pair_policy,
    random_phases,
)

SETTINGS = [(True, False), (True, True), (False, True), (False, False)]


def reached(pool: bool, group: bool, pairing: str, count: int = 60) -> list[float]:
    """Measured throughput over the bound, on random systems of one to five groups."""
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(count):
        phases, D = random_phases(rng), int(rng.integers(1, 6))
        policy = backlog_policy(pool, group, pairing)
        prompts = np.ones(160 * D, dtype=np.int64)
        measured = measured_throughput(constant_costs(phases), Layout("asap", D, 1, 1), policy, prompts, 16)
        shares.append(measured / float(saturation(pool, group).numeric(**named(phases), D=D, N_s=2)))
    return shares


def test_rolling_batches_on_separate_streams_meet_the_bound() -> None:
    shares = reached(True, True, "rolling")
    assert shares == pytest.approx([1.0] * len(shares), abs=1e-6)


@pytest.mark.parametrize(("pool", "group"), SETTINGS)
def test_bound_is_never_exceeded(pool: bool, group: bool) -> None:
    """Locked pairs end in bursts, which the window of the measurement sees within 1 %."""
    shares = np.array(reached(pool, group, "locked", 40))
    assert shares.max() < 1.01
    assert 0.4 < shares.min() < 0.95
    assert np.median(shares) > 0.97


def test_one_slot_is_limited_by_latency_or_the_pool() -> None:
    """One batch at a time on each of two groups: 2 / S, or the experts."""
    for phases, name in [(np.array([5, 1, 1, 2, 1, 1.0]), "latency"), (np.array([1, 0.5, 0.5, 5, 0.5, 0.5]), "moe")]:
        form, values = saturation(), named(phases) | {"D": 2, "N_s": 1}
        assert form.regime(**values) == name
        policy = replace(backlog_policy(), dual_batch=False)
        prompts = np.ones(200, dtype=np.int64)
        measured = measured_throughput(constant_costs(phases), Layout("asap", 2, 1, 1), policy, prompts, 16)
        assert measured == pytest.approx(float(form.numeric(**values)), rel=1e-6)


def test_prompt_rate_counts_dense_layers_and_overhead() -> None:
    """Attention-bound: a group is busy for L G + F a batch; checked on the engine with dense layers."""
    phases = np.array([5.0, 0.5, 0.1, 1.0, 0.1, 0.4])
    costs = replace(constant_costs(phases), layers=12, dense_layers=4, dense=Affine(2.0, 0.0), step_overhead=3.0)
    values = named(phases) | {"D": 3, "N_s": 2, "L": 8, "F": 4 * 7.0 + 3.0, "k": 1}
    assert prompt_rate().regime(**values) == "attention"
    prompts = np.ones(600, dtype=np.int64)
    measured = measured_throughput(costs, Layout("asap", 3, 1, 1), backlog_policy(), prompts, 12) / 12
    assert float(prompt_rate().numeric(**values)) == pytest.approx(3 / (8 * 5.9 + 31.0), rel=1e-12)
    assert measured == pytest.approx(3 / (8 * 5.9 + 31.0), rel=2e-3)


@pytest.mark.parametrize(("pool", "group"), SETTINGS)
def test_regime_is_the_largest_limit(pool: bool, group: bool) -> None:
    rng = np.random.default_rng(6)
    for _ in range(100):
        phases, D = random_phases(rng), float(rng.integers(1, 9))
        values = named(phases) | {"D": D, "N_s": 2.0}
        A, t1, t2, M, t4, t5 = phases
        own = {"attention": A, "dispatch send": t1, "combine receive": t5} if group else {"attention": A + t1 + t5}
        own |= {"dispatch region": t1 + t2, "combine region": t4 + t5, "latency": phases.sum() / 2}
        shared = {"moe": M, "dispatch receive": t2, "combine send": t4} if pool else {"moe": t2 + M + t4}
        numbers = {name: time / D for name, time in own.items()} | shared
        assert saturation(pool, group).regime(**values) == max(numbers, key=lambda name: numbers[name])
        assert float(saturation(pool, group).numeric(**values)) == pytest.approx(1 / max(numbers.values()), rel=1e-12)


def test_groups_at_balance() -> None:
    """Below it the groups limit, above it the pool."""
    phases = np.array([6.0, 1.0, 0.3, 1.5, 0.4, 0.5])
    balance = float(groups_at_balance().numeric(**named(phases)))
    assert balance == 5.0
    for D, name in [(4, "attention"), (6, "moe")]:
        assert saturation().regime(**named(phases), D=D, N_s=2) == name


def lines(rng: np.random.Generator) -> dict[str, float]:
    g0, o0, m0, h = rng.exponential(1.0, 4) * np.array([0.5, 0.3, 2.0, 0.3])
    g1, o1, m1 = rng.exponential(1.0, 3) * np.array([1.5, 0.2, 0.3])
    return {"g0": g0, "g1": g1, "o0": o0, "o1": o1, "m0": m0, "m1": m1, "h": h, "D": float(rng.integers(1, 5))}


@pytest.mark.parametrize(("form", "way"), [(group_limit_tokens(), False), (hidden_pool_tokens(), True)])
def test_boundaries_in_tokens(form: ClosedForm, way: bool) -> None:
    """Just below the boundary the other side is longer, just above it is not."""
    rng = np.random.default_rng(12)
    done = 0
    while done < 300:
        x = lines(rng)
        if not form.holds(**x):
            continue
        done += 1
        n = float(form.numeric(**x))

        def excess(n: float, x: dict[str, float] = x) -> float:
            group, experts = x["g0"] + x["g1"] * n, max(x["m0"], x["m1"] * n) + x["h"]
            return group - experts - x["o0"] - x["o1"] * n if way else group - x["D"] * experts

        assert excess(n + 1e-6) > 0
        assert n == 0 or excess(n * (1 - 1e-6)) < 0


def test_hidden_pool_on_the_engine() -> None:
    """A pair takes 2 G above the boundary and longer below it."""
    costs = LayerCosts(
        Quadratic(0.2, 0.02, 0.0), Affine(0.1, 0.01), Affine(0.1, 0.002), Plateau(2.0, 0.005), Affine(0.1, 0.002),
        Affine(0.05, 0.005),
    )  # fmt: skip
    x = {"g0": 0.35, "g1": 0.035, "o0": 0.2, "o1": 0.004, "m0": 2.0, "m1": 0.005, "h": 0.0}
    boundary = float(hidden_pool_tokens().numeric(**x))
    assert boundary == pytest.approx(1.85 / 0.031)
    for n in (40, 59, 60, 100):
        measured = measured_cycle(costs, pair_policy(), (n, n))
        group = 0.35 + 0.035 * n
        assert measured == pytest.approx(float(pair_cycle().numeric(**named(np.array(costs.phases(n, 0.0))))), rel=1e-9)
        assert (measured > 2 * group * (1 + 1e-9)) == (n < boundary)
