import numpy as np
import pytest

from asapmodel.solvers.sample import batch_means_interval, mean_interval, student_quantile


@pytest.mark.parametrize(("degrees", "value"), [(1, 12.706), (4, 2.776), (9, 2.262), (30, 2.042)])
def test_student_table(degrees: int, value: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(value, abs=5e-4)


def test_interval_covers_at_its_level() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        low, high = mean_interval(rng.normal(1.0, 2.0, size=6))
        hits += low <= 1.0 <= high
    assert 0.93 <= hits / 2000 <= 0.97


def test_batch_means_of_an_autoregression() -> None:
    """AR(1) with phi = 0.8: naive intervals cover far too seldom, batch means nearly at their level."""
    rng = np.random.default_rng(4)
    hits = naive = 0
    for _ in range(300):
        noise = rng.normal(size=5000)
        series = np.empty(5000)
        level = 0.0
        for k in range(5000):
            level = 0.8 * level + noise[k]
            series[k] = level
        low, high = batch_means_interval(series)
        hits += low <= 0.0 <= high
        low, high = mean_interval(series)
        naive += low <= 0.0 <= high
    assert hits / 300 > 0.9
    assert naive / 300 < 0.6


def test_too_few_values_say_nothing() -> None:
    assert mean_interval(np.array([1.0])) == (-np.inf, np.inf)
    assert batch_means_interval(np.arange(15.0)) == (-np.inf, np.inf)
