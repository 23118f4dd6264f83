"""Limits, orders and agreements between formulas that were derived in different ways."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers import laws, two_moment
from asapmodel.solvers.deterministic import mdc_mean_wait, mdc_wait_cdf, mdc_wait_probability, mdc_wait_quantile
from asapmodel.solvers.multi_server import erlang_b, erlang_c, mmc_wait, mmck_queue, pooled_number, unequal_servers
from asapmodel.solvers.renewal_arrivals import gimc_wait, gimc_wait_root
from asapmodel.solvers.single_server import mg1_wait, mg1_wait_moments, mm1_wait, n_policy_wait
from asapmodel.solvers.size_based import mm1_size_based
from asapmodel.solvers.tail_decay import decay_rate, mg1_tail

loads = st.floats(0.05, 0.98)
servers = st.integers(1, 40)
scvs = st.floats(0.0, 5.0)


@settings(deadline=None)
@given(loads, st.floats(0.01, 100.0), st.integers(1, 6))
def test_moments_of_the_exponential_wait(rho: float, mean: float, order: int) -> None:
    """P(W > t) = rho exp(-t (1-rho)/mean): E[W^k] = rho k! (mean/(1-rho))^k; times scale as they should."""
    found = mg1_wait_moments(rho / mean, laws.erlang_moments(mean, 1, order + 1))
    exact = [rho * math.factorial(k) * (mean / (1 - rho)) ** k for k in range(1, order + 1)]
    assert found == pytest.approx(exact, rel=1e-10)
    assert mm1_wait(rho / mean, 1 / mean) == pytest.approx(exact[0], rel=1e-10)


@settings(deadline=None)
@given(loads, servers)
def test_poisson_arrivals_are_a_renewal_process(rho: float, c: int) -> None:
    """Takács' sum for GI/M/c gives Erlang's formula."""
    mean = 1 / (rho * c)
    general, special = gimc_wait(laws.erlang_transform(mean, 1), mean, 1.0, c), mmc_wait(rho * c, 1.0, c)
    assert general.waits == pytest.approx(special.waits, rel=1e-9)
    assert general.decay == pytest.approx(special.decay, rel=1e-9)


@pytest.mark.parametrize(("c", "load"), [(2, 1.0), (4, 1.0), (4, 2.0), (4, 3.0), (10, 7.0)])
def test_removable_zero_of_the_sum(c: int, load: float) -> None:
    """c (1 - sigma) is a whole number here."""
    found = gimc_wait(laws.erlang_transform(1 / load, 1), 1 / load, 1.0, c)
    assert found.waits == pytest.approx(erlang_c(c, load), rel=1e-10)


@settings(deadline=None)
@given(loads, st.integers(1, 8))
def test_many_phases_tend_to_constant_arrivals(rho: float, c: int) -> None:
    mean = 1 / (rho * c)
    waits = [gimc_wait(laws.erlang_transform(mean, k), mean, 1.0, c).mean for k in (1, 2, 8, 64, 2**20)]
    constant = gimc_wait(laws.deterministic_transform(mean), mean, 1.0, c).mean
    assert all(a >= b for a, b in pairwise(waits))
    assert waits[-1] == pytest.approx(constant, rel=1e-3, abs=1e-15)


@settings(deadline=None)
@given(loads, servers)
def test_constant_service_waits_about_half(rho: float, c: int) -> None:
    """Between half of M/M/c (Cosmetatos' correction is positive) and all of it; c = 1 is exactly half."""
    constant, exponential = mdc_mean_wait(rho * c, 1.0, c), mmc_wait(rho * c, 1.0, c).mean
    assert 0.5 * (1 - 1e-10) <= constant / exponential < 1
    if c == 1:
        assert constant == pytest.approx(mg1_wait(rho, 1.0, 0.0), rel=1e-11)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.2, 0.95), st.integers(1, 12))
def test_constant_service_distribution_has_the_mean(rho: float, c: int) -> None:
    """Trapezoids over 1/64 of the service between the multiples of it, where the density jumps."""
    x = np.arange(0.0, 64 * 40 + 1) / 64
    tail = np.array([1 - mdc_wait_cdf(rho * c, 1.0, c, float(v)) for v in x])
    last = tail[-1] / math.log(tail[-65] / tail[-1]) if tail[-1] > 1e-11 else 0.0  # the rest falls exponentially
    area = float((tail[1:] + tail[:-1]).sum()) / 128 + last
    assert area == pytest.approx(mdc_mean_wait(rho * c, 1.0, c), rel=2e-3, abs=1e-6)
    assert (np.diff(tail) <= 1e-13).all()


def test_constant_service_queue_lengths_by_another_way() -> None:
    """Queue lengths of M/D/1 from level crossings of the chain at departures, all terms positive."""
    rho, x = 0.9, 7.3
    arrivals = np.array([math.exp(k * math.log(rho) - rho - math.lgamma(k + 1)) for k in range(60)])
    above = np.append(1 - np.cumsum(arrivals), np.zeros(200))  # P(A > k)
    p = [1 - rho]
    for n in range(100):
        p.append((p[0] * above[n] + sum(p[j] * above[n + 1 - j] for j in range(1, n + 1))) / arrivals[0])
    waiting = np.cumsum(p)[1:]  # P(number waiting <= i)
    k = 8
    left = rho * (k - x)
    poisson = [math.exp(j * math.log(left) - left - math.lgamma(j + 1)) for j in range(k)]
    assert mdc_wait_cdf(rho, 1.0, 1, x) == pytest.approx(
        sum(w * waiting[k - 1 - j] for j, w in enumerate(poisson)), abs=1e-13
    )


@given(st.floats(0.1, 0.97), st.integers(1, 20), st.floats(0.0, 0.999))
@settings(max_examples=30, deadline=None)
def test_constant_service_quantile_inverts(rho: float, c: int, p: float) -> None:
    t = mdc_wait_quantile(rho * c / 3, 3.0, c, p)
    if t == 0:
        assert 1 - mdc_wait_probability(rho * c / 3, 3.0, c) >= p - 1e-12
    else:
        assert mdc_wait_cdf(rho * c / 3, 3.0, c, t) == pytest.approx(p, abs=1e-10)


@settings(deadline=None)
@given(st.integers(1, 200), st.floats(0.01, 300.0))
def test_erlang_formulas(c: int, load: float) -> None:
    """Loss falls with servers; C is above B; the loss system is M/M/c/c; a large room tends to none lost."""
    assert erlang_b(c, load) <= erlang_b(c - 1, load)
    assert mmck_queue(load, 1.0, c, c).full == pytest.approx(erlang_b(c, load), rel=1e-10)
    if load < 0.9 * c:
        assert erlang_b(c, load) <= erlang_c(c, load) < 1
        room = mmck_queue(load, 1.0, c, c + 400)
        assert room.mean_wait == pytest.approx(mmc_wait(load, 1.0, c).mean, rel=1e-9)
        assert room.throughput == pytest.approx(load, rel=1e-9)


@settings(deadline=None)
@given(loads, st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6))
def test_unequal_servers(rho: float, rates: list[float]) -> None:
    rate = rho * math.fsum(rates)
    pool = unequal_servers(rate, rates)
    equal = unequal_servers(rate, [math.fsum(rates) / len(rates)] * len(rates))
    assert equal.mean_number == pytest.approx(pooled_number(rate, rates), rel=1e-9)
    assert pool.mean_number >= equal.mean_number * (1 - 1e-9)
    assert pool.mean_wait == pytest.approx(pool.waits / (math.fsum(rates) - rate), rel=1e-9)


def test_unequal_servers_of_the_table_exactly() -> None:
    """The chain over the 32 sets of busy servers, solved, in place of its product form."""
    rates = [10.0, 15.0, 20.0, 20.0, 25.0]
    size, full = 1 << 5, (1 << 5) - 1
    generator = np.zeros((size, size))
    for busy in range(size):
        idle = [i for i in range(5) if not busy >> i & 1]
        for i in range(5):
            if busy >> i & 1:
                generator[busy, busy ^ (1 << i)] += rates[i]
            else:
                generator[busy, busy | 1 << i] += 73.0 / len(idle)
    p = np.linalg.lstsq(
        np.vstack([(generator - np.diag(generator.sum(axis=1))).T, np.ones(size)]), np.append(np.zeros(size), 1.0)
    )[0]
    queue = p[full] * (73 / 90) / (1 - 73 / 90)  # levels above full, each the load times the one below
    number = sum(p[s] * bin(s).count("1") for s in range(size)) + 5 * queue + p[full] * (73 / 90) / (1 - 73 / 90) ** 2
    pool = unequal_servers(73.0, rates)
    assert pool.mean_number == pytest.approx(number / (1 + queue), rel=1e-9)
    assert pooled_number(73.0, rates) / pool.mean_number == pytest.approx(0.987, abs=5e-4)


@settings(deadline=None)
@given(loads, scvs, scvs)
def test_bounds_hold_what_is_exact(rho: float, ca2: float, cs2: float) -> None:
    kingman, daley = two_moment.kingman_bound(rho, 1.0, ca2, cs2), two_moment.daley_bound(rho, 1.0, ca2, cs2)
    assert daley <= kingman * (1 + 1e-12)
    assert two_moment.klb_wait(rho, 1.0, ca2, cs2) <= daley * (1 + 1e-12)
    assert mg1_wait(rho, 1.0, cs2) <= two_moment.daley_bound(rho, 1.0, 1.0, cs2) * (1 + 1e-12)
    even = gimc_wait(laws.deterministic_transform(1 / rho), 1 / rho, 1.0).mean
    assert even <= two_moment.daley_bound(rho, 1.0, 0.0, 1.0) * (1 + 1e-12)


@settings(deadline=None)
@given(loads, servers, scvs)
def test_approximations_are_exact_where_they_say_so(rho: float, c: int, cs2: float) -> None:
    rate, exponential = rho * c, mmc_wait(rho * c, 1.0, c).mean
    for formula in (two_moment.allen_cunneen_wait, two_moment.whitt_wait, two_moment.page_wait, two_moment.kimura_wait):
        assert formula(rate, 1.0, 1.0, 1.0, c) == pytest.approx(exponential, rel=1e-9)
    for formula in (two_moment.page_wait, two_moment.kimura_wait):
        assert formula(rate, 1.0, 1.0, 0.0, c) == pytest.approx(mdc_mean_wait(rate, 1.0, c), rel=1e-9)
        even = gimc_wait(laws.deterministic_transform(1 / rate), 1 / rate, 1.0, c).mean
        assert formula(rate, 1.0, 0.0, 1.0, c) == pytest.approx(even, rel=1e-9)
    assert two_moment.klb_wait(rho, 1.0, 1.0, cs2) == pytest.approx(mg1_wait(rho, 1.0, cs2), rel=1e-9)
    assert two_moment.allen_cunneen_wait(rho, 1.0, 1.0, cs2, 1) == pytest.approx(mg1_wait(rho, 1.0, cs2), rel=1e-9)
    assert two_moment.departure_scv(rho, 1.0, 1.0, c) == pytest.approx(1.0)


def _m_e2_c_wait(rate: float, c: int, levels: int) -> float:
    """M/E2/c from its Markov chain, cut at `levels` customers, solved densely; phases by the number in their first."""
    states = [(n, k) for n in range(levels) for k in range(min(n, c) + 1)]
    index = {state: i for i, state in enumerate(states)}
    q: NDArray[np.float64] = np.zeros((len(states), len(states)))
    for (n, k), i in index.items():
        if n < levels - 1:
            q[i, index[n + 1, k + (n < c)]] += rate
        if k:
            q[i, index[n, k - 1]] += 2.0 * k
        if min(n, c) > k:
            q[i, index[n - 1, k + (n > c)]] += 2.0 * (min(n, c) - k)
    q -= np.diag(q.sum(axis=1))
    q[:, 0] = 1.0
    p = np.linalg.solve(q.T, np.eye(len(states))[0])
    return float(sum(max(n - c, 0) * p[i] for (n, _), i in index.items())) / rate


@pytest.mark.parametrize(("c", "rho"), [(2, 0.5), (2, 0.9), (4, 0.7), (8, 0.5)])
def test_stated_errors_with_poisson_arrivals(c: int, rho: float) -> None:
    exact = _m_e2_c_wait(rho * c, c, c + int(25 / (1 - rho)))
    arguments = (rho * c, 1.0, 1.0, 0.5, c)
    assert -0.007 < two_moment.page_wait(*arguments) / exact - 1 < 0.007
    assert -0.051 < two_moment.kimura_wait(*arguments) / exact - 1 < 0.028
    assert -0.15 < two_moment.whitt_wait(*arguments) / exact - 1 < 0.09
    assert -0.081 < two_moment.allen_cunneen_wait(*arguments) / exact - 1 <= 0


@settings(deadline=None)
@given(loads, st.integers(1, 6), st.integers(1, 6))
def test_decay_rates(rho: float, k: int, c: int) -> None:
    """For exponential service the decay of GI/M/c is c mu (1 - sigma); for M/D/1 the tail falls to it at once."""
    arrivals = laws.erlang_transform(1 / (rho * c), k)
    sigma = gimc_wait_root(arrivals, 1 / (rho * c), 1.0, c)
    assert decay_rate(arrivals, laws.erlang_transform(1.0, 1), 1.0, c) == pytest.approx(c * (1 - sigma), rel=1e-6)


@pytest.mark.parametrize("rho", [0.5, 0.8, 0.95])
def test_tail_of_constant_service(rho: float) -> None:
    law = laws.deterministic_transform(1.0)
    tail = mg1_tail(rho, 1.0, law, law)
    for x in (6.0, 9.5):
        exact = 1 - mdc_wait_cdf(rho, 1.0, 1, x)
        assert tail.constant * math.exp(-tail.decay * x) == pytest.approx(exact, rel=1e-5)
        assert exact <= math.exp(-tail.decay * x)


@settings(deadline=None)
@given(loads)
def test_rules_that_know_sizes(rho: float) -> None:
    """SRPT is the best of all rules; every one gains on first come first served for exponential sizes."""
    mean = mm1_size_based(2 * rho, 2.0)
    assert mean.srpt < min(mean.sjf, mean.psjf)
    assert max(mean.sjf, mean.psjf) < mean.fcfs
    assert mean.fcfs == pytest.approx(0.5 / (1 - rho), rel=1e-12)
    assert mean.srpt > 0.5


@settings(deadline=None)
@given(loads, scvs, st.integers(1, 50))
def test_waiting_for_more_costs_more(rho: float, scv: float, n: int) -> None:
    assert n_policy_wait(rho, 1.0, scv, 1) == mg1_wait(rho, 1.0, scv)
    assert n_policy_wait(rho, 1.0, scv, n + 1) - n_policy_wait(rho, 1.0, scv, n) == pytest.approx(0.5 / rho, rel=1e-6)


@settings(deadline=None)
@given(st.floats(0.1, 5.0), st.floats(0.1, 20.0))
def test_laws_agree_with_their_transforms(mean: float, scv: float) -> None:
    """First two moments from the transform's differences at 0."""
    pairs = [(laws.erlang_transform(mean, 3), laws.erlang_moments(mean, 3, 2))]
    pairs += [(laws.deterministic_transform(mean), laws.deterministic_moments(mean, 2))]
    if scv >= 1:
        phases = laws.balanced_hyperexponential(mean, scv)
        pairs += [(laws.hyperexponential_transform(*phases), laws.hyperexponential_moments(*phases, 2))]
        assert pairs[-1][1][1] == pytest.approx(mean**2 * (1 + scv), rel=1e-9)
    h = 1e-4 / mean / (1 + scv)
    for transform, (first, second) in pairs:
        low, high = transform(h), transform(-h)
        assert (high - low) / (2 * h) == pytest.approx(first, rel=1e-5)
        assert (high + low - 2) / h**2 == pytest.approx(second, rel=1e-2)
