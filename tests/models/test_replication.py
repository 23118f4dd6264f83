"""Copies of experts against what they are derived from: counting, and drawn loads."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from asapmodel.models import memory, moe
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.imbalance import expected_maximum, imbalance
from asapmodel.models.replication import with_copies

ARCHITECTURE, DEVICE, PROFILE, SPLIT = paper_deployment()


def test_one_copy_is_the_model_itself() -> None:
    assert with_copies(ARCHITECTURE, 1) == ARCHITECTURE


@pytest.mark.parametrize("copies", [2, 3])
def test_memory_and_reading_count_physical_experts(copies: int) -> None:
    a = with_copies(ARCHITECTURE, copies)
    held = copies * 256 / 16 + 1  # routed and shared experts of a device
    one = 3 * 7168 * 2048  # bytes
    assert float(evaluate(memory.weights()["experts"], a, DEVICE, SPLIT)) == pytest.approx(held * one * 58)
    floor = float(evaluate(moe.floor_expression(), a, DEVICE, PROFILE, SPLIT))
    assert floor == pytest.approx(held * one / (DEVICE.memory_bandwidth * PROFILE.memory))


def test_arithmetic_is_the_same_but_for_padding() -> None:
    n = np.array([4096.0, 16384.0])

    def times(copies: int, padding: float) -> NDArray[np.float64]:
        profile = replace(PROFILE, tile_padding=padding)
        return evaluate(
            moe.arithmetic_expression(), with_copies(ARCHITECTURE, copies), DEVICE, profile, SPLIT, n=n, chi=1.0
        )

    np.testing.assert_allclose(times(2, 0.0), times(1, 0.0), rtol=1e-12)
    for copies in (1, 2):
        np.testing.assert_allclose(
            times(copies, 64.0) / times(copies, 0.0), (n + 64 * copies * 256 / 8) / n, rtol=1e-12
        )


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_imbalance_of_drawn_loads(copies: int) -> None:
    """Copies of an expert share its load and lie on different devices: the formula is an upper bound, and close."""
    E, v, experts = 16, 0.4, 256
    rng = np.random.default_rng(7)
    loads = rng.normal(1.0, v, size=(4000, experts))
    # Every copy goes through the devices in an order of its own, never twice to one device.
    home = np.arange(experts) % E
    devices = np.zeros((4000, E))
    for copy in range(copies):
        shift = 0 if copy == 0 else 1 + (np.arange(experts) // E + 5 * copy) % (E - 1)
        place = (home + shift) % E
        for device in range(E):
            devices[:, device] += loads[:, place == device].sum(axis=1) / copies
    busiest = float((devices.max(axis=1) / (experts / E)).mean())
    profile = replace(PROFILE, expert_load_cv=v)
    formula = imbalance(with_copies(ARCHITECTURE, copies), DEVICE, profile, replace(SPLIT, E=E))
    assert formula == pytest.approx(1 + v * expected_maximum(E) / np.sqrt(copies * experts / E))
    assert busiest - 1 <= 1.02 * (formula - 1)
    assert busiest - 1 >= 0.85 * (formula - 1)


def test_copies_are_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        with_copies(ARCHITECTURE, 0)
