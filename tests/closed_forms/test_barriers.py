"""Variability of batches, the slowest group, and the break-even of the two systems."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from asapmodel.closed_forms.catalogue import BY_NAME
from asapmodel.costs import Affine, LayerCosts, Plateau, Quadratic
from asapmodel.engines.analysis import Problem, Prompts
from asapmodel.engines.free_backlog import backlog_of, reduced
from asapmodel.engines.lockstep_backlog import under_backlog
from asapmodel.models.imbalance import expected_maximum
from asapmodel.policy import Layout, Policy
from asapmodel.typical import backlog_batches

BUDGET = 8192
Floats = NDArray[np.float64]


def number(name: str, **values: float) -> float:
    return float(BY_NAME[name].numeric(**values))


@pytest.mark.parametrize("count", [1, 2, 4, 8, 32])
def test_largest_normal(count: int) -> None:
    """Two integrals, two quadratures; two normals by hand."""
    assert number("largest_normal", D=count) == pytest.approx(expected_maximum(count), abs=1e-8)
    assert number("largest_normal", D=2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-12)


def test_slowest_group_against_order_statistics() -> None:
    """Exact for normal times; for exponential ones, sums of k, the error falls with k: H_D is exact for k = 1."""
    harmonic = sum(1 / j for j in range(1, 9))
    normal = number("slowest_group", A_m=1.0, c_B=1.0, kappa_D=expected_maximum(8))
    assert normal == pytest.approx(2.4236, abs=1e-4)
    assert normal / harmonic - 1 == pytest.approx(-0.108, abs=0.001)
    rng = np.random.default_rng(0)
    for k, error in [(4, 0.06), (16, 0.02)]:
        sums = rng.gamma(k, 1 / k, (200_000, 8)).max(axis=1).mean()
        predicted = number("slowest_group", A_m=1.0, c_B=1 / math.sqrt(k), kappa_D=expected_maximum(8))
        assert -error < predicted / sums - 1 < 0


def test_moments_of_lognormal_lengths() -> None:
    """Closed moments against Gauss-Hermite quadrature."""
    x, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / weight.sum()
    mu, v, a1, a2 = 1500.0, 1.8, 3e-7, 2.6e-11
    s = mu / math.sqrt(v) * np.exp(math.sqrt(math.log(v)) * x)
    assert weight @ s == pytest.approx(mu)
    own = a1 * s + a2 * s**2
    variance = float(weight @ own**2 - (weight @ own) ** 2)
    assert number("attention_variance_lognormal", a1=a1, a2=a2, mu=mu, v=v) == pytest.approx(variance, rel=1e-9)
    q = mu * v
    rest = float(weight @ (s**2 - q * s) ** 2)
    assert number("unexplained_variance_lognormal", mu=mu, v=v) == pytest.approx(rest, rel=1e-8)


def test_variation_of_batches_of_k_prompts() -> None:
    rng = np.random.default_rng(1)
    v, mu = 1.5, 1000.0
    s = mu / math.sqrt(v) * np.exp(math.sqrt(math.log(v)) * rng.standard_normal((400_000, 6)))
    times = (1e-4 + 3e-7 * s.sum(axis=1)) + 2e-11 * (s**2).sum(axis=1)
    own = number("attention_variance_lognormal", a1=3e-7, a2=2e-11, mu=mu, v=v)
    predicted = number("batch_cv_prompts", a0=1e-4, a1=3e-7, a2=2e-11, k=6, mu=mu, v=v, V_a=own)
    assert predicted == pytest.approx(times.std() / times.mean(), rel=0.01)


def lengths(cv: float, law: str) -> Floats:
    """512 equally likely lengths of mean 1500: log-normal, or a tenth long ones."""
    share = (np.arange(512) + 0.5) / 512
    if law == "lognormal":
        s = np.exp(math.sqrt(math.log(1 + cv * cv)) * norm.ppf(share))
        s *= 1500 / s.mean()
    else:
        s = np.where(share < 0.9, 1500 * (1 - cv / 3), 1500 * (1 + 3 * cv))
    rounded: Floats = np.clip(np.rint(s), 16, BUDGET)
    return rounded


def test_variation_of_filled_batches() -> None:
    """Greedy filling of 300,000 prompts: tokens, their variance, and the variation of attention."""
    s = lengths(0.8, "lognormal")
    order = np.random.default_rng(2).permutation(np.tile(s, 600))
    sums, squares, taken, work = [], [], 0.0, 0.0
    for one in order:
        if taken + one > BUDGET:
            sums.append(taken)
            squares.append(work)
            taken = work = 0.0
        taken += one
        work += one * one
    n = np.array(sums)
    q, u = (s**2).sum() / s.sum(), (s**3).sum() / s.sum()
    tokens = number("filled_tokens", n_max=BUDGET, q=q)
    spread = number("filled_variance", q=q, u=u)
    assert tokens == pytest.approx(n.mean(), rel=0.01)
    assert math.sqrt(spread) == pytest.approx(n.std(), rel=0.1)
    times = 1e-4 + 3.08e-7 * n + 2.6e-11 * np.array(squares)
    x = {"a0": 1e-4, "a1": 3.08e-7, "a2": 2.6e-11, "n": tokens, "mu": s.mean(), "q": q}
    cv = number("batch_cv_tokens", **x, V_r=np.var(s**2 - q * s), V_n=spread)
    assert cv == pytest.approx(times.std() / times.mean(), rel=0.1)


@dataclass
class Compared:
    """Both systems on as many devices: measured and predicted requests/s, variation and break-even."""

    synchronous: float
    asynchronous: float
    predicted_synchronous: float
    predicted_asynchronous: float
    cv: float
    break_even: float


def layer(E: int, work: float, experts: float = 8.7e-7) -> LayerCosts:
    t = [Affine(5.2e-5, 8.7e-8), Affine(1e-5, 2.2e-8), Affine(5.2e-5, 4.1e-8), Affine(1e-5, 4.3e-8)]
    return LayerCosts(
        Quadratic(1e-4, 3.08e-7, work), t[0], t[1], Plateau(3333 * experts / E, experts / E), t[2], t[3], layers=61
    )


def compared(s: Floats, groups: int, work: float, experts: float = 8.7e-7) -> Compared:
    """Batches of 8192 tokens in both: `groups` of 4 in lockstep against half of them and as many expert devices."""
    prompts = Prompts(np.sort(s).astype(np.int64), np.zeros(len(s), dtype=np.int64))
    lock, free = Layout("sync", groups, 4, 4 * groups), Layout("asap", groups // 2, 4, 2 * groups)
    filled = Policy(min_batch_tokens=BUDGET, max_batch_tokens=BUDGET, exclusive_tokens=10**9, pairing="rolling")
    ours, theirs = layer(free.E, work, experts), layer(lock.E, work, experts)
    measured = under_backlog(Problem(lock, Policy(max_batch_tokens=BUDGET, batch_window=0.0), theirs, prompts))
    apart = backlog_of(reduced(Problem(free, filled, ours, prompts)))
    n, kappa = float(backlog_batches(free, filled, s).mean()), expected_maximum(groups)
    q, u = (s**2).sum() / s.sum(), (s**3).sum() / s.sum()
    spread = number("filled_variance", q=q, u=u)
    law = {"a0": 1e-4, "a1": 3.08e-7, "a2": work, "n": n, "mu": s.mean(), "q": q}
    cv = number("batch_cv_tokens", **law, V_r=float(np.var(s**2 - q * s)), V_n=spread)
    largest = min(BUDGET, n + kappa * math.sqrt(spread))
    transfers = (theirs.dispatch_send, theirs.dispatch_recv, theirs.combine_send, theirs.combine_recv)
    names = ("A", "t1", "t2", "M", "t4", "t5")
    phases = dict(zip(names, ours.phases(n, q * n), strict=True))
    x = {"A_m": theirs.attention(n, q * n), "c_B": cv, "kappa_D": kappa, "k": n / s.mean(), "D": groups}
    x |= {"tau": sum(one(largest) for one in transfers), "M_s": theirs.moe(groups * n)}
    x["X_a"] = x["k"] * number("saturation_pool", **phases, D=groups / 2, N_s=2)
    return Compared(
        measured.saturation,
        apart.saturation,
        number("lockstep_rate", **x) / 61,
        x["X_a"] / 61,
        cv,
        number("break_even_cv", **x),
    )


@pytest.mark.parametrize("groups", [4, 8, 16])
def test_saturation_with_lognormal_lengths(groups: int) -> None:
    """Lockstep within 3 %, the asynchronous bound within 2 %, over length CVs of 0.3 to 1.6."""
    for cv in (0.3, 0.6, 0.9, 1.2, 1.6):
        one = compared(lengths(cv, "lognormal"), groups, 2.6e-11)
        assert one.predicted_synchronous == pytest.approx(one.synchronous, rel=0.03)
        assert one.predicted_asynchronous == pytest.approx(one.asynchronous, rel=0.02)


@pytest.mark.parametrize("groups", [4, 16])
def test_saturation_with_two_lengths(groups: int) -> None:
    """A lattice of lengths fills batches better than assumed: lockstep is 1 to 9 % better than predicted."""
    for cv in (0.5, 1.0, 1.4):
        one = compared(lengths(cv, "two points"), groups, 2.6e-11)
        assert -0.09 < one.predicted_synchronous / one.synchronous - 1 < -0.01
        assert one.predicted_asynchronous == pytest.approx(one.asynchronous, rel=0.03)


@pytest.mark.parametrize(("law", "least", "most"), [("lognormal", 0.85, 1.15), ("two points", 0.4, 0.75)])
@pytest.mark.parametrize("experts", [1.3e-6, 1.6e-6])
def test_break_even(law: str, least: float, most: float, experts: float) -> None:
    """The variation of attention where the rates cross: predicted within 15 %; with a lattice, too early by half."""
    found = [compared(lengths(float(cv), law), 8, 6e-11, experts) for cv in np.linspace(0.2, 1.3, 12)]
    lead = np.array([one.synchronous / one.asynchronous - 1 for one in found])
    excess = np.array([one.break_even - one.cv for one in found])
    assert lead[0] > 0 > lead[-1]
    assert excess[0] > 0 > excess[-1]
    measured = float(np.interp(0.0, -lead, [one.cv for one in found]))
    predicted = float(np.interp(0.0, -excess, [one.cv for one in found]))
    assert least < predicted / measured < most


def test_break_even_solves_the_two_rates() -> None:
    x = {"A_m": 3.0, "tau": 1.0, "M_s": 2.0, "D": 8.0, "k": 5.0, "kappa_D": expected_maximum(8)}
    cv = number("break_even_cv", **x, X_a=5.0)
    assert cv > 0
    assert number("lockstep_rate", **x, c_B=cv) == pytest.approx(5.0, rel=1e-12)
    assert number("lockstep_rate", **x, c_B=0.9 * cv) > 5.0 > number("lockstep_rate", **x, c_B=1.1 * cv)
