"""How the wait builds up from empty: against exact M/M/c transients, and runs of a queue with long-tailed service."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers import laws
from asapmodel.solvers.queue_errors import MomentError, QueueError
from asapmodel.solvers.transient_queue import ArrivingWork, average_share, backlog_mean, fit_tail, work_from_decays
from asapmodel.solvers.wait_distribution import mg1_wait_bracket
from tests.solvers.transient_mmc import birth_death, stationary_wait_tail, wait_tail

Floats = NDArray[np.float64]


def statistics(time: Floats, tail: Floats) -> tuple[float, float, float]:
    quantiles = np.interp([-0.05, -0.01], -tail, time)
    return float(np.trapezoid(tail, time)), float(quantiles[0]), float(quantiles[1])


@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("load", [0.7, 0.85, 0.95, 1.0, 1.05, 1.2])
@pytest.mark.parametrize("horizon", [100.0, 600.0])
def test_build_up_of_the_wait_in_mmc(servers: int, load: float, horizon: float) -> None:
    """Stationary tail times share below saturation; at and above it the tail that is left at decay 0."""
    rate = load * servers
    states = servers + int(max(load - 1, 0.0) * servers * horizon + 12 * np.sqrt(2 * servers * horizon))
    far = states / servers
    time = np.linspace(0, far, 1200)
    law = birth_death(rate, 1.0, servers, horizon, states)[1]
    exact = statistics(time, wait_tail(law, 1.0, servers, time))

    work = work_from_decays(servers, (0.8 * servers, 0.9 * servers), (0.2 * servers, 0.1 * servers))
    assert (work.square, work.skew) == pytest.approx((2 / servers**2, 1 / servers))
    known = min(load, 0.9)  # the stationary law may be asked up to there
    tail = stationary_wait_tail(known * servers, 1.0, servers, time)
    shift = fit_tail(time, tail)[1]
    growth = np.exp(((1 - known) * servers - max(work.decay(rate), 0.0)) * (time + shift))
    found = statistics(time, np.minimum(tail * growth, 1) * average_share(work, rate, time + shift, horizon))
    assert found == pytest.approx(exact, rel=0.03)


def test_long_tailed_service_above_and_below_saturation() -> None:
    """M/G/1, service a truncated lognormal as prompt lengths are: 3000 runs of 300 mean services."""
    rng = np.random.default_rng(3)
    raw = np.exp(1.445 * rng.standard_normal(400_000))
    service = raw[raw < 13]
    service /= service.mean()
    points = np.sort(service)
    below = np.concatenate([[0.0], np.cumsum(points)]) / len(points)

    def limited_mean(x: Floats) -> Floats:
        k = np.searchsorted(points, x)
        return np.asarray(below[k] + x * (1 - k / len(points)), dtype=np.float64)

    time = 0.05 * np.arange(1600, dtype=np.float64)
    tails = {load: mg1_wait_bracket(load, 1.0, limited_mean, 0.05, 1600).estimate for load in (0.8, 0.9)}
    decays = tuple(fit_tail(time, tails[load])[0] for load in (0.8, 0.9))
    work = work_from_decays(1.0, (0.8, 0.9), (decays[0], decays[1]))
    assert work.square == pytest.approx(float(np.mean(service**2)), rel=0.03)
    shift = fit_tail(time, tails[0.9])[1]
    for load in (0.8, 0.9, 1.1):
        mean = lindley_mean(rng, load, 300.0, 3000, service)
        wide = np.linspace(0, 200, 2000)
        known = np.interp(wide, time, tails[min(load, 0.9)], right=0.0)
        if load > 0.9:  # nothing stationary: only the build-up counts
            known = np.ones_like(wide)
        found = statistics(wide, known * average_share(work, load, wide + shift, 300.0))
        assert found[0] == pytest.approx(mean, rel=0.04)


def lindley_mean(rng: np.random.Generator, rate: float, horizon: float, runs: int, service: Floats) -> float:
    """Mean wait of all arrivals in [0, horizon] of runs from empty."""
    wait, clock = np.zeros(runs), rng.exponential(1 / rate, runs)
    total = count = 0.0
    while (inside := clock <= horizon).any():
        total += float(wait[inside].sum())
        count += float(inside.sum())
        gap = rng.exponential(1 / rate, runs)
        wait = np.maximum(wait + rng.choice(service, runs) - gap, 0)
        clock = clock + gap
    return total / count


def test_fluid_limit_far_above_saturation() -> None:
    """Mean level of a run is half of what its end has; its backlog grows at load - 1."""
    for skew in (0.0, 0.3, 3.0):
        work = ArrivingWork(1.0, 2.0, skew)
        y = np.linspace(0, 12000, 12001)
        for load in (1.3, 2.0, 4.0):
            mean = float(np.trapezoid(average_share(work, load, y, 3000.0), y))
            assert mean == pytest.approx(1500 * (load - 1), rel=0.03)
            assert backlog_mean(work, load, 3000.0) == pytest.approx(3000 * (load - 1), rel=0.02)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 30), st.floats(0.01, 4), st.floats(0, 1.5), st.floats(0.2, 3), st.floats(1, 1e4))
def test_share_is_a_probability_and_monotone(
    limit: float, scv: float, skew: float, load: float, horizon: float
) -> None:
    work = ArrivingWork(limit, (1 + scv) / limit**2, skew * (1 + scv) / limit)
    y = np.linspace(-1, 40, 120) / limit
    share = average_share(work, load * limit, y, horizon / limit)
    assert ((share >= 0) & (share <= 1)).all()
    assert (np.diff(share) <= 1e-9).all()
    assert (share <= average_share(work, load * limit, y, 1.2 * horizon / limit) + 1e-9).all()
    if load < 1:
        assert average_share(work, load * limit, y, 1e9 / limit / (1 - load) ** 2) == pytest.approx(1.0, abs=1e-4)


def test_share_is_continuous_at_saturation() -> None:
    work, y = ArrivingWork(2.0, 0.6, 0.2), np.linspace(0, 10, 50)
    below, at, above = (average_share(work, rate, y, 50.0) for rate in (2 - 1e-7, 2.0, 2 + 1e-7))
    assert below == pytest.approx(at, abs=1e-5)
    assert above == pytest.approx(at, abs=1e-5)


def test_mdg1_cumulants_from_decays() -> None:
    """M/D/1: E S^2 = 1, E S^3 / (3 E S^2) = 1/3."""
    time = np.linspace(0, 40, 2001)
    decays = []
    for load in (0.85, 0.95):
        tail = mg1_wait_bracket(load, 1.0, laws.deterministic_limited_mean(1.0), 0.02, 2001).estimate
        decays.append(fit_tail(time, tail)[0])
    work = work_from_decays(1.0, (0.85, 0.95), (decays[0], decays[1]))
    assert (work.square, work.skew) == pytest.approx((1.0, 1 / 3), rel=0.05)


def test_noisy_decays_do_not_break_it() -> None:
    """A decay that does not fall with the rate, or falls too fast: the nearer rate's is kept."""
    for decays in ((0.1, 0.1), (0.05, 0.1), (3.0, 0.1), (0.2, 0.1)):
        work = work_from_decays(1.0, (0.8, 0.9), decays)
        assert work.decay(0.9) == pytest.approx(0.1)
        assert 0 <= work.skew <= 1.5 * work.square * (1 + 1e-9)


def test_refusals() -> None:
    with pytest.raises(MomentError, match="below a limit"):
        work_from_decays(1.0, (0.8, 1.0), (0.2, 0.1))
    with pytest.raises(MomentError, match="below a limit"):
        work_from_decays(1.0, (0.8, 0.9), (np.inf, 0.1))
    with pytest.raises(QueueError, match="extent"):
        fit_tail(np.array([1.0]), np.array([0.0]))
    with pytest.raises(QueueError, match="extent"):
        fit_tail(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    with pytest.raises(MomentError, match="horizon"):
        average_share(ArrivingWork(1.0, 2.0, 1.0), 0.5, np.array([1.0]), 0.0)
