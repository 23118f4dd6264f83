"""Matrix-analytic queues against closed forms, against each other and against direct solutions."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.solvers.ph_ages import fluid_return, qbd_sojourn
from asapmodel.solvers.ph_queues import map_map_1, mmap_ph_1
from asapmodel.solvers.ph_servers import Queue, map_ph_c, server_levels
from asapmodel.solvers.phase_arrivals import MarkovianArrivals, mmpp2_from, poisson, renewal
from asapmodel.solvers.phase_tail import TailLaw
from asapmodel.solvers.phase_type import PhaseType, erlang, exponential, hyperexponential, mixture
from asapmodel.solvers.qbd import first_passage, solve_qbd
from asapmodel.solvers.qbd_blocks import Floor
from asapmodel.solvers.qbd_mg1 import mg1_passage, mg1_stationary
from asapmodel.solvers.queue_errors import MomentError, QueueError, UnstableError
from tests.solvers.table import Row, rows, where

Floats = NDArray[np.float64]
ONE = np.ones((1, 1))
MMC = [pytest.param(r, id=f"{r.index}-{r.quantity}") for r in rows() if {"mu", "c", "rho"} == set(r.given)]
LAWS = {"M": (1.0, 1), "E2": (1.0, 2), "E4": (1.0, 4)}


def law_of(name: str) -> PhaseType:
    return hyperexponential(1.0, 4.0) if name == "H2bal_scv4" else erlang(*LAWS[name])


def wait_value(queue: Queue, quantity: str) -> float:
    """What the rows of multi-server and single-server waits ask for."""
    if quantity in ("P(wait)", "sigma=P(wait)"):
        return float(queue.wait.left @ queue.wait.right)
    if quantity.startswith("wait_quantile_"):
        return queue.wait.quantile(float(quantity.rpartition("_")[2]))
    return float(queue.wait.moments(2)[{"mean_wait_Wq": 0, "second_moment_wait": 1}[quantity]])


@pytest.mark.parametrize("row", MMC)
def test_exponential_servers_are_erlang_c(row: Row) -> None:
    servers, mu = int(row.number("c")), row.number("mu")
    row.check(
        wait_value(map_ph_c(poisson(row.number("rho") * servers * mu), exponential(1 / mu), servers), row.quantity)
    )


@pytest.mark.parametrize("row", where("M/E2/1", "M/E4/1", "M/H2bal_scv4/1"))
def test_one_server_is_pollaczek_khinchine(row: Row) -> None:
    row.check(wait_value(map_ph_c(poisson(row.number("rho")), law_of(row.system.split("/")[1]), 1), row.quantity))


@pytest.mark.parametrize("row", where("E2/M/1", "H2bal_scv4/M/1"))
def test_renewal_arrivals(row: Row) -> None:
    interval = law_of(row.system.split("/")[0])
    slowed = PhaseType(interval.initial, interval.generator * row.number("rho"))
    row.check(wait_value(map_ph_c(renewal(slowed), exponential(1.0), 1), row.quantity))


@pytest.mark.parametrize("row", where("M/D/2", "M/D/4"))
def test_more_and_more_phases_approach_constant_service(row: Row) -> None:
    """The wait falls towards that of M/D/c, its distance roughly like 1/k: two steps of extrapolation come close."""
    servers = int(row.number("c"))
    phases, close = ((1, 2, 4, 8), 1e-2) if servers == 2 else ((1, 2, 4), 3e-2)
    arrivals = poisson(row.number("rho") * servers)
    waits = [map_ph_c(arrivals, erlang(1.0, k), servers).wait.mean for k in phases]
    exact = float(row.value)
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] > exact
    once = [2 * b - a for a, b in pairwise(waits)]
    twice = [(4 * b - a) / 3 for a, b in pairwise(once)]
    assert twice[-1] == pytest.approx(exact, rel=close)


def arrival_processes() -> list[MarkovianArrivals]:
    return [poisson(1.0), mmpp2_from(1.0, 1.4, 5.0), renewal(erlang(1.0, 3)), renewal(hyperexponential(1.0, 3.0))]


@pytest.mark.parametrize("arrivals", arrival_processes())
@pytest.mark.parametrize("servers", [1, 2, 5])
@pytest.mark.parametrize("scv", [0.5, 1.0, 6.0])
@pytest.mark.parametrize("load", [0.3, 0.97])
def test_wait_and_number_agree(arrivals: MarkovianArrivals, servers: int, scv: float, load: float) -> None:
    """Little's law for queue and system; the mass of the wait is that of the levels that arrivals see."""
    unit = {0.5: erlang(1.0, 2), 1.0: exponential(1.0), 6.0: hyperexponential(1.0, 6.0)}[scv]
    service = PhaseType(unit.initial, unit.generator / (load * servers))
    queue = map_ph_c(arrivals, service, servers)
    assert queue.number.rho == pytest.approx(load, rel=1e-10)
    assert queue.sojourn.mean == pytest.approx(queue.number.mean, rel=1e-9)
    busy = queue.number.above
    seen = busy @ np.tile(arrivals.d1.sum(axis=1), len(busy) // arrivals.order)
    assert 1 - queue.wait.atom == pytest.approx(seen, rel=1e-9)
    assert queue.number.probabilities(servers + 1)[:servers].sum() + busy.sum() == pytest.approx(1, rel=1e-12)
    assert queue.sojourn.tail(queue.sojourn.quantile(0.99)) == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("servers", [1, 4, 16])
@pytest.mark.parametrize(
    "service", [hyperexponential(1.0, 6.0), erlang(1.0, 2), mixture([0.6, 0.4], [0.4, 1.9], [1, 2])]
)
def test_higher_moments_of_the_wait(servers: int, service: PhaseType) -> None:
    """Poisson arrivals, first come first served: those waiting behind one are those who came during its wait, so
    `E Q (Q - 1) ... (Q - k + 1) = rate^k E W^k` of the queue Q without those in service."""
    if service.order == 3 and servers == 16:
        servers = 8
    rate = 0.85 * servers
    queue = map_ph_c(poisson(rate), service, servers)
    waiting = queue.number.probabilities(4000)[servers:]
    counts = np.arange(len(waiting), dtype=np.float64)
    factorial = np.ones_like(counts)
    for k, moment in enumerate(queue.wait.moments(4)):
        factorial = factorial * (counts - k)
        assert waiting @ factorial == pytest.approx(rate ** (k + 1) * moment, rel=1e-9)


def test_mmpp_return_is_the_riccati_solution() -> None:
    """For Poisson arrivals the return matrix is G; in general it solves its equation with row sums 1."""
    busy = server_levels(hyperexponential(1.0, 5.0), 4)[-1]
    restart, eye = busy.leave @ busy.start, np.eye(5)
    for rate, close in ((2.0, 1e-12), (3.99, 1e-10)):
        g, _ = first_passage(rate * eye, busy.local - rate * eye, restart)
        np.testing.assert_allclose(fluid_return(busy.local, restart, -rate * eye, rate * eye), g, atol=close)


def test_service_in_any_order_of_phases() -> None:
    service = mixture([0.3, 0.5, 0.2], [0.4, 1.0, 2.5], [1, 1, 1])
    turned = mixture([0.2, 0.3, 0.5], [2.5, 0.4, 1.0], [1, 1, 1])
    one, other = (map_ph_c(poisson(3.0), law, 4) for law in (service, turned))
    np.testing.assert_allclose(one.wait.moments(3), other.wait.moments(3), rtol=1e-10)
    np.testing.assert_allclose(one.number.moments(3), other.number.moments(3), rtol=1e-10)


def test_sixteen_servers() -> None:
    queue = map_ph_c(poisson(15.2), hyperexponential(1.0, 4.0), 16)
    allen_cunneen = map_ph_c(poisson(15.2), exponential(1.0), 16).wait.mean * 2.5
    assert queue.wait.mean == pytest.approx(allen_cunneen, rel=0.12)
    assert len(queue.number.first) == 17


def direct(floors: list[Floor], up: Floats, local: Floats, down: Floats, levels: int) -> list[Floats]:
    """Stationary vector of the chain cut at a high level, by a dense solve."""
    blocks = [*floors, *([Floor(local, up, down)] * (levels - len(floors)))]
    edges = np.cumsum([0, *(len(b.local) for b in blocks)])
    q = np.zeros((edges[-1], edges[-1]))
    for k, block in enumerate(blocks):
        here = slice(edges[k], edges[k + 1])
        q[here, here] = block.local
        if k + 1 < len(blocks):
            above = slice(edges[k + 1], edges[k + 2])
            q[here, above], q[above, here] = block.up, block.down
    np.fill_diagonal(q, 0.0)
    np.fill_diagonal(q, -q.sum(axis=1))
    q[:, -1] = 1.0
    x = np.linalg.solve(q.T, np.eye(len(q))[-1])
    return [x[a:b] for a, b in pairwise(edges)]


def random_levels(seed: int) -> tuple[list[Floor], Floats, Floats, Floats]:
    """Random blocks: up to six floors of different sizes, then levels with a downward drift."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(1, 5)) for _ in range(rng.integers(2, 8))]
    ups = [rng.exponential(size=(a, b)) for a, b in pairwise(sizes)]
    downs = [rng.exponential(size=(b, a)) for a, b in pairwise(sizes)]
    n = sizes[-1]
    up, down = 0.3 * rng.exponential(size=(n, n)), 1.5 * rng.exponential(size=(n, n))
    down *= (downs[-1].sum(axis=1) / down.sum(axis=1))[:, None]  # leaves level L as fast as those above it
    up *= 0.5 * down.sum(axis=1).min() / up.sum(axis=1).max()
    floors = []
    for k, size in enumerate(sizes):
        local = rng.exponential(size=(size, size))
        out = (ups[k] if k < len(ups) else up).sum(axis=1) + (downs[k - 1].sum(axis=1) if k else 0.0)
        np.fill_diagonal(local, 0.0)
        np.fill_diagonal(local, -local.sum(axis=1) - out)
        if k < len(ups):
            floors.append(Floor(local, ups[k], downs[k]))
    return floors, up, local, down


@given(st.integers(0, 100_000))
@settings(max_examples=30, deadline=None)
def test_level_dependent_against_direct(seed: int) -> None:
    floors, up, local, down = random_levels(seed)
    law = solve_qbd(floors, up, local, down)
    exact = direct(floors, up, local, down, 90)
    for level in range(20):
        np.testing.assert_allclose(law.vector(level), exact[level], atol=1e-11)
    masses = np.array([v.sum() for v in exact])
    np.testing.assert_allclose(law.probabilities(20), masses[:20], atol=1e-11)
    for k, moment in enumerate(law.moments(3), 1):
        assert moment == pytest.approx(np.arange(90.0) ** k @ masses, rel=1e-8)


def test_many_floors_with_far_apart_probabilities() -> None:
    """A birth-death chain of 400 levels: every probability to many digits, over 200 decades."""
    rates = [50.0 * ONE] * 400
    floors = [Floor(-(50.0 + 0.5 * k) * ONE, rates[k], 0.5 * (k + 1) * ONE) for k in range(400)]
    law = solve_qbd(floors, 50.0 * ONE, -250.0 * ONE, 200.0 * ONE)
    logs = np.concatenate([[0.0], np.cumsum([math.log(50.0 / (0.5 * (k + 1))) for k in range(399)])])
    expected = np.exp(logs - logs[100]) * float(law.vector(100)[0])
    np.testing.assert_allclose(law.probabilities(400), expected, rtol=1e-11)
    assert law.probabilities(400).sum() == pytest.approx(1.0, rel=1e-12)


def test_speeds_make_a_flow_equivalent_server() -> None:
    """Exponential service at level-dependent speeds is a birth-death chain."""
    speeds = [1.0, 0.8, 0.7]
    queue = map_ph_c(poisson(1.5), exponential(1.0), 3, speeds)
    weights = [1.0, 1.5 / 1.0, 1.5**2 / 1.6, 1.5**3 / 1.6 / 2.1]
    total = sum(weights) + weights[-1] * (1.5 / 2.1) / (1 - 1.5 / 2.1)
    np.testing.assert_allclose(queue.number.probabilities(4), np.array(weights) / total, rtol=1e-12)
    assert queue.wait.mean == pytest.approx((weights[-1] / total) / (1 - 1.5 / 2.1) / (2.1 - 1.5), rel=1e-12)
    with pytest.raises(MomentError, match="speed"):
        queue.sojourn  # noqa: B018
    for bad in ([1.0], [1.0, 1.0, 0.0], [1.0, 1.0, math.nan]):
        with pytest.raises(MomentError):
            map_ph_c(poisson(1.5), exponential(1.0), 3, bad)


def test_classes_of_one_kind_are_the_plain_queue() -> None:
    arrivals, service = mmpp2_from(0.8, 1.5, 4.0), hyperexponential(1.0, 3.0)
    plain = map_ph_c(arrivals, service, 1)
    classes = mmap_ph_1(arrivals.d0, [arrivals.d1 * 0.25, arrivals.d1 * 0.75], [service, service])
    for times in classes:
        np.testing.assert_allclose(times.wait.moments(3), plain.wait.moments(3), rtol=1e-9)
        np.testing.assert_allclose(
            times.sojourn.tail([0.0, 1.0, 20.0]), plain.sojourn.tail([0.0, 1.0, 20.0]), rtol=1e-9
        )


def test_classes_and_work() -> None:
    """Poisson classes: the wait is that of M/G/1 with the mixture, the sojourn adds the own service."""
    services = [erlang(1.0, 2), hyperexponential(0.5, 3.0)]
    rates = [0.3, 0.8]
    second = sum(r * s.moments(2)[1] for r, s in zip(rates, services, strict=True))
    for times, service in zip(mmap_ph_1([[-1.1]], [[[r]] for r in rates], services), services, strict=True):
        assert times.wait.mean == pytest.approx(second / 2 / (1 - 0.7), rel=1e-11)
        assert times.sojourn.mean == pytest.approx(second / 2 / (1 - 0.7) + service.mean, rel=1e-11)


def test_map_map_1_with_renewal_services() -> None:
    arrivals, service = mmpp2_from(0.8, 1.5, 4.0), hyperexponential(1.0, 3.0)
    dependent, plain = map_map_1(arrivals, renewal(service)), map_ph_c(arrivals, service, 1)
    np.testing.assert_allclose(dependent.number.moments(3), plain.number.moments(3), rtol=1e-9)
    np.testing.assert_allclose(dependent.wait.moments(3), plain.wait.moments(3), rtol=1e-9)
    np.testing.assert_allclose(dependent.sojourn.moments(3), plain.sojourn.moments(3), rtol=1e-9)


def test_qbd_queue_of_another_edition() -> None:
    """The example of butools doc/source/QBDQueue.rst at 5736c24, which prints nine digits (Python)."""
    down = np.array([[6.0, 1, 0], [0, 4, 1], [2, 0, 0]])
    up = np.array([[0.0, 0, 0], [5, 0, 0], [1, 3, 0]])
    local = np.array([[-12.0, 3, 2], [0, -14, 4], [3, 1, -10]])
    law = solve_qbd([Floor(local + down, up, down)], up, local, down)
    expected = [0.79557486412722223, 2.0220155167474432, 7.3005182911938462, 35.016977690335295, 210.00771130457002]
    np.testing.assert_allclose(law.moments(5), expected, rtol=1e-12)
    np.testing.assert_allclose(law.probabilities(2), [5.51311116e-01, 2.52423571e-01], rtol=2e-9)
    sojourn = qbd_sojourn(law, up, local, down)
    expected = [0.3341414429334334, 0.23413101066642131, 0.24868918524065425, 0.35296597190069118, 0.62644746533901619]
    np.testing.assert_allclose(sojourn.moments(5), expected, rtol=1e-11)
    np.testing.assert_allclose(1 - sojourn.tail([0.1, 1.0]), [0.28193629, 0.94463731], atol=6e-9)


def test_mg1_chain_against_a_cut_one() -> None:
    rng = np.random.default_rng(2)
    raw = rng.random((5, 3, 3)) * np.array([6.0, 1.0, 0.6, 0.4, 0.3])[:, None, None]
    a = raw / raw.sum(axis=(0, 2))[:, None]
    b = np.concatenate([a[:1] + a[1:2], a[2:]])  # level 0 does not go down
    law = mg1_stationary(list(b), list(a), 12)
    cut, n = 150, 3
    p = np.zeros((cut, n, cut, n))
    for level in range(cut):
        for k, block in enumerate(b if level == 0 else a):
            p[level, :, min(cut - 1, level + k - (level > 0)), :] += block
    q = p.reshape(cut * n, cut * n) - np.eye(cut * n)
    q[:, -1] = 1.0
    x = np.linalg.solve(q.T, np.eye(cut * n)[-1]).reshape(cut, n)
    np.testing.assert_allclose(law, x[:12], atol=1e-9)


def test_unstable() -> None:
    for load in (1.0, 1.2):
        with pytest.raises(UnstableError) as error:
            map_ph_c(poisson(2 * load), exponential(1.0), 2)
        assert error.value.rho == pytest.approx(load)
        with pytest.raises(UnstableError):
            map_map_1(poisson(load), renewal(erlang(1.0, 2)))
        with pytest.raises(UnstableError):
            mmap_ph_1([[-load]], [[[load]]], [exponential(1.0)])
    with pytest.raises(UnstableError):
        mg1_passage([[[0.2]], [[0.3]], [[0.5]]])
    with pytest.raises(UnstableError):
        first_passage(ONE, -ONE, 0 * ONE)


def test_near_saturation() -> None:
    """M/M/1 at load 1 - 1e-9 has all its digits but those that the load itself loses."""
    queue = map_ph_c(poisson(1 - 1e-9), exponential(1.0), 1)
    assert queue.wait.mean == pytest.approx(1e9, rel=1e-6)
    service = hyperexponential(1.0, 4.0)
    assert map_ph_c(poisson(1 - 1e-6), service, 1).wait.mean == pytest.approx(2.5e6, rel=1e-5)


def test_blocks_that_are_none() -> None:
    good = Floor(-ONE, ONE, 2 * ONE)
    with pytest.raises(QueueError, match="level 0 needs"):
        solve_qbd([], ONE, -3 * ONE, 2 * ONE)
    for floors, up, local, down in (
        ([good], ONE, -2 * ONE, 2 * ONE),  # rows of the repeating part
        ([Floor(-2 * ONE, ONE, 2 * ONE)], ONE, -3 * ONE, 2 * ONE),  # rows of the floor
        ([Floor(-ONE, np.ones((1, 2)), 2 * ONE)], ONE, -3 * ONE, 2 * ONE),  # shapes
        ([good], -ONE, -ONE, 2 * ONE),  # negative
        ([good], ONE * math.nan, -3 * ONE, 2 * ONE),
        ([Floor(-ONE, ONE, 0 * ONE)], ONE, -3 * ONE, 2 * ONE),
    ):
        with pytest.raises(QueueError):
            solve_qbd(floors, up, local, down)
    two = solve_qbd([good, Floor(-3 * ONE, ONE, 2 * ONE)], ONE, -3 * ONE, 2 * ONE)
    with pytest.raises(QueueError, match="one floor"):
        qbd_sojourn(two, ONE, -3 * ONE, 2 * ONE)
    for blocks in ([[[1.0]]], [[[0.5]], [[0.4]]], [[[1.5]], [[-0.5]]], [[[math.nan]], [[1.0]]]):
        with pytest.raises(QueueError):
            mg1_passage(blocks)
    with pytest.raises(QueueError, match="fit"):
        mg1_stationary([np.eye(2) / 2, np.eye(2) / 2], [[[0.6]], [[0.2]], [[0.2]]], 2)
    with pytest.raises(QueueError):
        mmap_ph_1([[-1.0]], [[[1.0]]], [])
    with pytest.raises(QueueError, match="never arrives"):
        mmap_ph_1([[-1.0]], [[[1.0]], [[0.0]]], [exponential(0.5)] * 2)
    with pytest.raises(MomentError):
        map_ph_c(poisson(1.0), exponential(0.5), 0)
    assert TailLaw(np.zeros(1), -ONE, np.ones(1)).quantile(0.999) == 0.0
