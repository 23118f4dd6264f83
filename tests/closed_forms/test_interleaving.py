"""Gains of dual batching against the graph engine, and the batch sizes at which they begin."""

import numpy as np
import pytest

from asapmodel.closed_forms.interleaving import dual_gain, halving_gain, halving_pays_tokens, pool_cost_of_halving
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from tests.closed_forms.cycles import constant_costs, measured_cycle, named, pair_policy, random_phases


def random_costs(rng: np.random.Generator) -> LayerCosts:
    """Laws whose transfers are shorter than attention and experts, sending no shorter than receiving."""
    a0, m0 = rng.uniform(0.05, 1.5, 2)
    a1, m1 = rng.uniform(0.005, 0.05, 2)
    parts = [Affine(float(rng.uniform(0.0, 0.04)), float(rng.uniform(0.0, 0.004))) for _ in range(4)]
    send, end = max(parts[:2], key=lambda law: law(1.0)), min(parts[:2], key=lambda law: law(1.0))
    return LayerCosts(Quadratic(a0, a1, 0.0), send, parts[2], Plateau(m0, m1), parts[3], end)


def line(costs: LayerCosts, n: float) -> dict[str, float]:
    a, s, r = costs.attention, costs.dispatch_send, costs.dispatch_recv
    c, e = costs.combine_send, costs.combine_recv
    return {
        "g0": a.fixed + s.fixed + e.fixed,
        "g1": a.per_token + s.per_token + e.per_token,
        "o0": r.fixed + c.fixed,
        "o1": r.per_token + c.per_token,
        "m0": costs.moe.floor,
        "m1": costs.moe.per_token,
        "h": 0.0,
        "n": n,
    }


def test_dual_gain_is_exact() -> None:
    """Two lone cycles over the cycle of the pair, both measured; every limit occurs."""
    rng = np.random.default_rng(2)
    seen = set()
    done = 0
    while done < 250:
        phases = random_phases(rng)
        phases[1] = 0.3 * phases[1]
        values = named(phases)
        if not dual_gain().holds(**values):
            continue
        done += 1
        seen.add(dual_gain().regime(**values))
        pair = measured_cycle(constant_costs(phases), pair_policy(), (1, 1))
        gain = float(dual_gain().numeric(**values))
        assert gain == pytest.approx(2 * phases.sum() / pair, rel=1e-9)
        assert 1.0 - 1e-12 <= gain <= 2.0 + 1e-12
    assert seen == {"attention", "moe", "combine region", "latency"}


def test_halving_gain_is_exact() -> None:
    """One batch of 2 n at a time over a pair of n, both measured."""
    rng = np.random.default_rng(3)
    gains = []
    for _ in range(250):
        costs, n = random_costs(rng), int(rng.integers(2, 80))
        if costs.combine_send(n) > costs.attention(n, 0.0) or costs.dispatch_send(n) <= costs.combine_recv(n):
            continue
        gain = float(halving_gain().numeric(**line(costs, n)))
        pair = measured_cycle(costs, pair_policy(), (n, n))
        whole = measured_cycle(costs, pair_policy(), (2 * n,))
        assert gain == pytest.approx(whole / pair, rel=1e-9)
        gains.append(gain)
    assert len(gains) > 100
    assert min(gains) < 0.9  # halves that the plateau makes dear
    assert max(gains) > 1.3


def test_halving_pays_above_its_threshold() -> None:
    rng = np.random.default_rng(4)
    above_zero = 0
    for _ in range(400):
        costs = random_costs(rng)
        x = line(costs, 1.0)
        n = float(halving_pays_tokens().numeric(**x))
        above_zero += n > 0

        def gain(n: float, costs: LayerCosts = costs) -> tuple[float, str]:
            values = line(costs, n)
            return float(halving_gain().numeric(**values)), halving_gain().regime(**values)

        for size, pays in [(n * 1.001 + 1e-3, True), (n * 0.999, False)]:
            if size > 0:
                value, limit = gain(size)
                if limit == "attention" and (pays or n > 0):
                    assert (value > 1) == pays
    assert 50 < above_zero < 350


def test_pool_cost_of_halving() -> None:
    form = pool_cost_of_halving()
    x = {"m0": 1.0, "m1": 0.01, "h": 0.0}
    assert float(form.numeric(**x, n=50)) == 2.0  # both at most at the inflection of 100
    assert float(form.numeric(**x, n=75)) == pytest.approx(2 / 1.5)
    assert float(form.numeric(**x, n=100)) == pytest.approx(1.0)
    assert float(form.numeric(m0=1.0, m1=0.01, h=1.0, n=100)) == pytest.approx(4 / 3)
    names = [form.regime(**x, n=n) for n in (49, 75, 101)]
    assert names == ["both on the plateau", "halves on the plateau", "both above"]
