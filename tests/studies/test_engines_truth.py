"""The measurement behind the tables of truth, on queues whose answers are known."""

import numpy as np
import pytest

from asapmodel.studies.engines_cases import DEVELOPMENT_SEED, draw
from asapmodel.studies.engines_controls import batched, estimate, surrogate, waits
from asapmodel.studies.engines_errors import spread
from asapmodel.studies.engines_runs import measure, measure_saturation


def test_waits_of_small_example() -> None:
    gap, service = np.array([1.0, 1.0, 1.0]), np.array([3.0, 0.5, 1.0])
    single, many = waits(gap, service, 2)
    assert single.tolist() == [0.0, 2.0, 1.5]
    assert many.tolist() == [0.0, 0.0, 0.0]  # servers half as fast: the first is free again only at 7, the other at 3


@pytest.mark.parametrize(("cv", "wait"), [(1.0, 2.0), (2.0, None)])
def test_mean_wait_of_the_single_server(cv: float, wait: float | None) -> None:
    """M/D/1 at load 0.8 waits 2 services; bursty arrivals more, by about the Kingman factor."""
    simple = surrogate(0.8, cv, np.ones(1), np.ones(1), 2, np.random.default_rng(1), 400_000)
    if wait is not None:
        assert simple.known[3] == pytest.approx(wait)
    else:
        assert 6.0 < simple.known[3] < 9.0
    assert simple.table[:, 3].mean() == pytest.approx(simple.known[3], rel=0.1)


def test_controls_reduce_the_noise_and_keep_the_mean() -> None:
    """Mean sojourn of M/M/1 at load 0.8 is 5 services; controls are its own wait with other noise on top."""
    rng = np.random.default_rng(2)
    law = -np.log1p(-(np.arange(2000) + 0.5) / 2000)
    simple = surrogate(0.8, 1.0, law / law.mean(), np.ones(2000), 2, rng, 400_000)
    gap, service = rng.exponential(1 / 0.8, 20_000), rng.exponential(size=20_000)
    single, many = waits(gap, service, 2)
    sojourn = single + service + rng.normal(size=20_000)
    z = batched(np.stack([service, np.ones(20_000), gap, single, many], axis=1), 40)
    found = estimate(batched(sojourn, 40), z, simple.means)
    plain = 1.96 * batched(sojourn, 40).std() / np.sqrt(40)
    assert found.half_width < 0.3 * plain
    assert abs(found.value - 5.0) < 2 * found.half_width + 0.02


def test_quantile_by_prediction() -> None:
    """The 99th percentile of the sojourn in M/M/1 at load 0.8 is ln(100) / 0.2 services."""
    rng = np.random.default_rng(3)
    law = -np.log1p(-(np.arange(5000) + 0.5) / 5000)
    simple = surrogate(0.8, 1.0, law / law.mean(), np.ones(5000), 2, rng, 400_000)
    pieces = []
    for _ in range(5):
        gap, service = rng.exponential(1 / 0.8, 8000), rng.exponential(size=8000)
        single, many = waits(gap, service, 2)
        columns = np.stack([service, np.ones(8000), gap, single, many], axis=1)
        pieces.append((columns, single + service))
    found = simple.quantile(0.99, np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0]), pieces)
    assert found.value == pytest.approx(np.log(100) / 0.2, rel=0.05)
    assert found.half_width < 0.1 * found.value


def test_spread_counts_infinite_errors() -> None:
    assert spread([0.01, -0.03, 0.02]) == (0.02, 0.03)
    assert spread([0.01] * 18 + [float("inf")] * 2)[1] == float("inf")
    assert all(np.isnan(spread([float("nan")])))


@pytest.mark.parametrize("index", [5, 6])
def test_a_short_measurement_is_consistent(index: int) -> None:
    """One case of each system: parts add up, and more load means more delay."""
    case = draw(DEVELOPMENT_SEED, index + 1)[index]
    level = measure_saturation(case, 0.2)
    low, high = (measure(case, level, share, 0.1) for share in (0.3, 0.8))
    assert low.mean_s < high.mean_s < high.p99_s
    total = high.queueing_s + high.kernel_s + high.waiting_s + case.problem.costs.request_latency
    assert total == pytest.approx(high.mean_s, rel=1e-3)
    assert 0 < high.mean_half_width < 0.1
