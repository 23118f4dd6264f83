"""Outside a formula's domain it refuses, with the error that says why."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from asapmodel.solvers import bulk, deterministic, fork_join, laws, multi_server, polling, single_server, two_moment
from asapmodel.solvers.bulk_chain import bulk_service_chain, gamma_services, point_services
from asapmodel.solvers.queue_errors import MomentError, NoConvergence, QueueError, UnstableError, bisect, check_moments
from asapmodel.solvers.renewal_arrivals import gimc_wait, gimc_wait_root
from asapmodel.solvers.size_based import mm1_size_based
from asapmodel.solvers.tail_decay import decay_rate, mg1_tail
from asapmodel.solvers.wait_distribution import mg1_wait_bracket

ONE = np.ones(1)
WAITS: dict[str, Callable[[float], object]] = {  # all have load = argument
    "mm1": lambda rho: single_server.mm1_wait(rho, 1.0),
    "mm1 quantile": lambda rho: single_server.mm1_wait_quantile(rho, 1.0, 0.9),
    "mg1": lambda rho: single_server.mg1_wait(rho, 1.0, 1.0),
    "vacation": lambda rho: single_server.vacation_wait(rho, 1.0, 1.0, 1.0, 0.0),
    "n policy": lambda rho: single_server.n_policy_wait(rho, 1.0, 1.0, 3),
    "size based": lambda rho: mm1_size_based(rho, 1.0),
    "tail": lambda rho: mg1_tail(rho, 1.0, laws.deterministic_transform(1.0), laws.deterministic_transform(1.0)),
    "bracket": lambda rho: mg1_wait_bracket(rho, 1.0, laws.deterministic_limited_mean(1.0), 0.1, 10),
    "gim1": lambda rho: gimc_wait(laws.erlang_transform(1 / rho, 2) if rho > 0 else abs, 1 / rho if rho else 0, 1.0),
    "mdc": lambda rho: deterministic.mdc_mean_wait(4 * rho, 1.0, 4),
    "mdc cdf": lambda rho: deterministic.mdc_wait_cdf(4 * rho, 1.0, 4, 1.0),
    "mmc": lambda rho: multi_server.mmc_wait(3 * rho, 1.0, 3),
    "unequal": lambda rho: multi_server.unequal_servers(3 * rho, [1.0, 2.0]),
    "pooled": lambda rho: multi_server.pooled_number(3 * rho, [1.0, 2.0]),
    "kingman": lambda rho: two_moment.kingman_bound(rho, 1.0, 1.0, 1.0),
    "daley": lambda rho: two_moment.daley_bound(rho, 1.0, 1.0, 1.0),
    "klb": lambda rho: two_moment.klb_wait(rho, 1.0, 1.0, 1.0),
    "allen": lambda rho: two_moment.allen_cunneen_wait(2 * rho, 1.0, 1.0, 1.0, 2),
    "whitt": lambda rho: two_moment.whitt_wait(2 * rho, 1.0, 1.0, 1.0, 2),
    "page": lambda rho: two_moment.page_wait(2 * rho, 1.0, 1.0, 1.0, 2),
    "kimura": lambda rho: two_moment.kimura_wait(2 * rho, 1.0, 1.0, 1.0, 2),
    "batch": lambda rho: bulk.batch_arrival_wait(rho / 2, 2.0, 4.0, 1.0, 0.0),
    "bulk": lambda rho: bulk.bulk_service_queue(3 * rho, 1.0, 1, 3),
    "chain": lambda rho: bulk_service_chain(gamma_services(2 * rho, np.ones(2), np.ones(2), 64), 1.0),
    "polling": lambda rho: polling.exhaustive_wait(2, rho, 1.0, 1.0, 0.1),
    "gated": lambda rho: polling.gated_wait(2, rho, 1.0, 1.0, 0.1),
    "limited": lambda rho: polling.limited_wait(2, rho, 1.0, 1.0, 0.0),
    "fork": lambda rho: fork_join.fork_join_response(rho, 1.0, 4),
    "merge": lambda rho: fork_join.split_merge_response(rho * 0.48, 1.0, 4),
}


@pytest.mark.parametrize("name", WAITS)
def test_at_and_above_capacity(name: str) -> None:
    for rho in (1.0 + 1e-12, 1.5):
        with pytest.raises(UnstableError) as caught:
            WAITS[name](rho)
        assert caught.value.rho == pytest.approx(rho)
    WAITS[name](0.7)


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("rate", [0.0, -0.5, math.nan])
def test_rates_that_are_none(name: str, rate: float) -> None:
    with pytest.raises(MomentError):
        WAITS[name](rate)


def test_waits_too_short_for_floats_are_none() -> None:
    assert two_moment.klb_wait(0.1, 1.0, 5e-324, 0.0) == 0.0
    assert two_moment.whitt_wait(0.2, 1.0, 0.0, 0.0, 2) == 0.0
    assert gimc_wait(laws.deterministic_transform(1.0), 1.0, 1.0, 100).mean == 0.0
    assert two_moment.kimura_wait(1.0, 1.0, 0.5, 0.5, 100) == 0.0
    assert two_moment.page_wait(1.0, 1.0, 0.0, 1.0, 100) == 0.0


def test_limited_polling_is_full_before_the_server() -> None:
    with pytest.raises(UnstableError) as caught:
        polling.limited_wait(4, 0.8, 1.0, 1.0, 0.5)
    assert caught.value.rho == pytest.approx(1.2)


@pytest.mark.parametrize(
    "moments", [[], [1.0, 0.9], [1.0, 2.0, 3.9], [-1.0, 2.0], [1.0, math.inf], [math.nan, 1.0], [0.0, 0.0]]
)
def test_moments_of_no_law(moments: list[float]) -> None:
    with pytest.raises(MomentError):
        check_moments(moments)
    with pytest.raises(MomentError):
        single_server.mg1_wait_moments(0.1, moments)


def test_one_moment_says_nothing_of_a_wait() -> None:
    with pytest.raises(MomentError, match="two moments"):
        single_server.mg1_wait_moments(0.1, [1.0])


def test_no_exponential_tail() -> None:
    """A heavy tail has no root, nor an inverse Gaussian one at light load, nor any law at a load from 1 on."""
    poisson = laws.erlang_transform(5.0, 1)
    with pytest.raises(NoConvergence, match="exponentially"):
        decay_rate(poisson, lambda s: 1 / (1 + s), limit=0.0)
    with pytest.raises(NoConvergence, match="exponentially"):
        decay_rate(poisson, lambda s: math.exp(1 - math.sqrt(1 + 2 * s)), limit=0.5)
    for load in (1.0, 1.3):
        with pytest.raises(NoConvergence, match="not below 1"):
            decay_rate(poisson, laws.deterministic_transform(5.0 * load))


def test_transform_with_another_mean() -> None:
    with pytest.raises(QueueError, match="has mean"):
        gimc_wait_root(laws.deterministic_transform(2.0), 3.0, 1.0)


def test_too_near_saturation_for_floats() -> None:
    with pytest.raises(NoConvergence):
        gimc_wait_root(laws.deterministic_transform(1 + 1e-9), 1 + 1e-9, 1.0)
    with pytest.raises(NoConvergence, match="queue lengths"):
        deterministic.mdc_wait_cdf(1 - 1e-7, 1.0, 1, 1.0)
    with pytest.raises(NoConvergence, match="beyond the accuracy"):
        deterministic.mdc_wait_quantile(0.5, 1.0, 1, 1 - 1e-12)


@pytest.mark.parametrize("p", [-0.1, 1.0, math.nan])
def test_quantiles_of_no_probability(p: float) -> None:
    with pytest.raises(QueueError):
        single_server.mm1_wait_quantile(0.5, 1.0, p)
    with pytest.raises(QueueError):
        multi_server.mmc_wait(0.5, 1.0, 2).quantile(p)
    with pytest.raises(QueueError):
        deterministic.mdc_wait_quantile(0.5, 1.0, 1, p)


def test_chain_with_too_few_states() -> None:
    with pytest.raises(NoConvergence, match="last of 64 states"):
        bulk_service_chain(gamma_services(1.9, np.ones(2), np.ones(2), 64))
    with pytest.raises(NoConvergence, match="states: between"):
        bulk_service_chain(gamma_services(1.0, np.ones(8), np.ones(8), 16))


def test_odd_arguments() -> None:
    with pytest.raises(QueueError):
        single_server.n_policy_wait(0.5, 1.0, 1.0, 0)
    with pytest.raises(QueueError):
        bulk.bulk_service_queue(1.0, 1.0, 3, 2)
    with pytest.raises(MomentError):
        bulk.batch_arrival_wait(0.1, 0.5, 1.0, 1.0, 0.0)
    with pytest.raises(MomentError):
        multi_server.mmck_queue(1.0, 1.0, 3, 2)
    with pytest.raises(MomentError):
        multi_server.erlang_b(-1, 1.0)
    with pytest.raises(QueueError):
        multi_server.unequal_servers(1.0, [])
    with pytest.raises(QueueError, match="scv 0 and 1"):
        two_moment.page_wait(1.0, 1.0, 1.0, 2.0, 2)
    with pytest.raises(QueueError):
        two_moment.kimura_wait(1.0, 1.0, 2.0, 1.0, 2)
    with pytest.raises(MomentError):
        laws.balanced_hyperexponential(1.0, 0.5)
    with pytest.raises(MomentError):
        fork_join.max_of_independent([np.array([math.nan])])
    with pytest.raises(MomentError):
        point_services(1.0, [np.array([-1.0])], [ONE], 8)
    with pytest.raises(QueueError):
        mg1_wait_bracket(0.5, 1.0, laws.deterministic_limited_mean(2.0), 0.1, 30)


def test_bisection_needs_a_change_of_sign() -> None:
    with pytest.raises(NoConvergence, match="change of sign"):
        bisect(lambda x: 1 + x * x, -1.0, 1.0)
    with pytest.raises(NoConvergence, match="not a number"):
        bisect(lambda x: math.nan if abs(x) < 0.5 else x, -1.0, 1.0)
    assert bisect(lambda x: 0.3 - x, 0.0, 1.0) == pytest.approx(0.3, abs=1e-16)
