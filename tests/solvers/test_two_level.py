"""Two-level designs: orthogonal and balanced, exact for linear answers, and what folding cancels."""

import numpy as np
import pytest

from asapmodel.solvers.two_level import effects, plackett_burman


@pytest.mark.parametrize("factors", range(1, 32))
def test_columns_are_orthogonal_and_balanced(factors: int) -> None:
    levels = plackett_burman(factors)
    runs = len(levels)
    assert set(np.unique(levels)) == {-1, 1}
    assert factors < runs <= factors + 8
    assert np.array_equal(levels.T @ levels, runs * np.eye(factors))
    assert np.all(levels.sum(axis=0) == 0)


def test_twelve_runs_are_those_that_were_published() -> None:
    """Plackett and Burman's design of 12 runs is cyclic on the row ++-+++---+-; they differ in order and signs only."""
    levels = plackett_burman(11)
    row = np.array([1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1])
    published = np.vstack([*(np.roll(row, k) for k in range(11)), -np.ones(11, dtype=int)])
    # In both every pair of runs differs in six factors, which makes a Hadamard matrix; of order 12 there is but one.
    for design in (levels, published):
        between = (design[:, None, :] != design[None, :, :]).sum(axis=2)
        assert np.array_equal(between, 6 * (1 - np.eye(12, dtype=int)))


def test_effects_of_a_linear_answer_are_exact_and_noise_is_divided_by_the_runs() -> None:
    rng = np.random.default_rng(0)
    slopes, levels = rng.standard_normal(17), plackett_burman(17)
    assert effects(levels, 4.0 + levels @ slopes) == pytest.approx(slopes, abs=1e-12)
    noise = np.array([effects(levels, rng.standard_normal(20)) for _ in range(2000)])
    assert noise.std() == pytest.approx(1 / np.sqrt(20), rel=0.03)


def test_folding_cancels_interactions_of_pairs() -> None:
    rng = np.random.default_rng(1)
    slopes, pairs, levels = rng.standard_normal(11), rng.standard_normal((11, 11)), plackett_burman(11)

    def answers(x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ slopes + np.einsum("ij,jk,ik->i", x, np.triu(pairs, 1), x))

    alone, folded = effects(levels, answers(levels)), effects(-levels, answers(-levels))
    assert np.abs(alone - slopes).max() > 0.3
    assert (alone + folded) / 2 == pytest.approx(slopes, abs=1e-12)


def test_too_many_factors() -> None:
    with pytest.raises(ValueError, match="32 factors; give 1 to 31"):
        plackett_burman(32)
    with pytest.raises(ValueError, match="0 factors"):
        plackett_burman(0)
