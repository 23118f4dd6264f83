"""Products in tiles: small cases by hand, the library's rule written out again, what must hold for any size."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asapmodel import catalog
from asapmodel.models.evaluation import evaluate
from asapmodel.models.tiles import tile_expression, tiles

H800 = catalog.load_device("h800").value
SIZES = st.integers(1, 40000)
DEPTHS = st.integers(1, 70000)
LETTERS = {"eta_x": 0.75, "eta_m": 0.9, "tau_k": 4e-6, "k_z": 80.0, "B_t": 9e10, "q": 2.0}


def seconds(rows: float, width: float, depth: float, **letters: float) -> float:
    cut = tiles(rows, width, H800.multiprocessors)
    sizes = {"G": 1.0, "N_x": rows, "N_y": width, "N_z": depth}
    tile = {"t_x": float(cut.rows[0]), "t_y": float(cut.columns[0]), "N_w": float(cut.waves[0])}
    return float(evaluate(tile_expression(), H800, **{**sizes, **tile, **LETTERS, **letters}))


def chosen(m: int, n: int, multiprocessors: int) -> tuple[int, int]:
    """DeepGEMM's search, candidate by candidate, each against the best so far."""
    best: tuple[int, int] | None = None

    def waves(x: int, y: int) -> int:
        return ceil(ceil(m / x) * ceil(n / y) / multiprocessors)

    def last(x: int, y: int) -> int:
        return ceil(m / x) * ceil(n / y) % multiprocessors or multiprocessors

    for x in (64, 128, 256):
        for y in [*range(16, 129, 8), 136, 152]:
            if x > 128 and y > 128:
                continue
            if best is None or waves(x, y) < waves(*best):
                best = (x, y)
            elif waves(x, y) == waves(*best):
                equal = last(x, y) == last(*best)
                smaller = (x == best[0] and y < best[1]) or (y == best[1] and x < best[0])
                if last(x, y) > last(*best) or (equal and (smaller or (x != best[0] and y > best[1]))):
                    best = (x, y)
    assert best is not None
    return best


def test_the_library_s_choice() -> None:
    """Five hundred products, among them the shapes of the measured tables."""
    generator = np.random.default_rng(0)
    rows = generator.choice([16, 64, 100, 128, 256, 512, 1000, 4096, 8192, 32768], 500)
    widths, counts = 64 * generator.integers(2, 600, 500), generator.choice([78, 132], 500)
    found = tiles(rows, widths, counts)
    for k, product in enumerate(zip(rows.tolist(), widths.tolist(), counts.tolist(), strict=True)):
        assert (found.rows[k], found.columns[k]) == chosen(*product), product


@pytest.mark.parametrize(
    ("rows", "width", "found"),
    [
        (16, 16, (64, 16, 1)),  # one tile
        (64, 16 * 132, (64, 16, 1)),  # a wave
        (64, 16 * 133, (64, 24, 1)),  # a wave and a tile: wider ones make it a wave again
        (256 * 132, 128, (256, 128, 1)),  # a wave of the largest
        (256 * 132 + 1, 128, (256, 128, 2)),  # and one row more
    ],
)
def test_waves_by_hand(rows: int, width: int, found: tuple[int, int, int]) -> None:
    assert tuple(float(one[0]) for one in tiles(rows, width, 132)) == found


def test_groups_are_cut_one_by_one() -> None:
    """Three groups of 65 rows: 3 x 43 tiles of 128 x 96 in a wave, as if they were padded; eight large groups."""
    found = [float(one[0]) for one in tiles(65, 4096, 132, 3)]
    assert found == [128, 96, 1]
    assert [float(one[0]) for one in tiles(3 * 128, 4096, 132, heights=(128,))] == found
    assert tiles(3 * 128, 4096, 132, heights=(64,)).rows[0] == 64
    assert [float(one[0]) for one in tiles(1024, 4096, 132, 8)] == [256, 128, ceil(8 * 4 * 32 / 132)]


def test_one_small_tile_is_paced_by_its_operands() -> None:
    """Of 16 x 16 results one tile of 64 x 16: 80 bytes a step at 90 GB/s, 80 steps more than it has, and a launch."""
    step = (64 + 16) / 9e10
    assert step > 2 * 64 * 16 * 132 / (0.75 * 1979e12)
    moved = (16 * 1000 + 16 * 1000 + 16 * 16 * 2) / (0.9 * 3.43e12)
    assert seconds(16, 16, 1000) == pytest.approx(4e-6 + np.hypot(moved, 1080 * step), rel=1e-12)


def test_one_large_tile_a_multiprocessor_is_paced_by_arithmetic() -> None:
    """A full wave of 256 x 128: as if the device had no tiles, but for start and end."""
    rows, depth = 256 * 132, 7168
    arithmetic = 2 * rows * 128 * (depth + 80) / (0.75 * 1979e12)
    moved = (128 * depth + rows * depth + 2 * rows * 128) / (0.9 * 3.43e12)
    assert seconds(rows, 128, depth) == pytest.approx(4e-6 + np.hypot(arithmetic, moved), rel=1e-12)


def test_large_products_lose_their_tiles() -> None:
    """The law tends to that without tiles."""
    arithmetic = 2 * 2.0**17 * 2.0**17 * (2.0**16 + 80) / (0.75 * 1979e12)
    assert seconds(2**17, 2**17, 2**16, q=40.0, tau_k=0.0) == pytest.approx(arithmetic, rel=2e-3)


@settings(max_examples=100, deadline=None)
@given(SIZES, SIZES, DEPTHS, SIZES, DEPTHS)
def test_more_takes_longer(rows: int, width: int, depth: int, more: int, deeper: int) -> None:
    """Waves never fall when a product grows; a deeper one takes longer; nothing beats the roofline.

    Time itself may fall when rows are added: the library counts waves, not seconds.
    """
    waves = tiles([rows, rows + more, rows], [width, width, width + more], 132).waves
    assert waves[0] <= min(waves[1], waves[2])
    assert seconds(rows, width, depth) < seconds(rows, width, depth + deeper)
    moved = (width * depth + rows * depth + 2 * rows * width) / (0.9 * 3.43e12)
    assert seconds(rows, width, depth) >= max(moved, 2.0 * rows * width * depth / (0.75 * 1979e12))


def test_sizes_are_positive() -> None:
    with pytest.raises(ValueError, match="multiprocessors of a product in tiles must be finite and positive, got 0"):
        tiles(128, 128, 0)
    with pytest.raises(ValueError, match="rows of a product"):
        tiles([128, np.nan], 128, 132)
