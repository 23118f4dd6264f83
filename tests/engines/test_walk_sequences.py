"""The fixed sequences of the queueing engine."""

import numpy as np
import pytest

from asapmodel.engines.walk_sequences import even_deck, prompt_rows, unit_gaps


@pytest.mark.parametrize("rows", [100, 600, 1024])
def test_an_even_deck_holds_every_row_equally_often_and_stretches_are_even(rows: int) -> None:
    deck = even_deck(rows, 3)
    assert (np.bincount(deck, minlength=rows) == 3).all()
    stretches = deck[: len(deck) // 128 * 128].reshape(-1, 128) if rows == 1024 else deck.reshape(3, -1)
    # 128 independent rows would have a mean that scatters by 2.6 %.
    assert np.abs(stretches.mean(axis=1) / (rows - 1) - 0.5).max() < 0.001
    assert abs(float(np.corrcoef(deck[:-1], deck[1:])[0, 1])) < 0.06


@pytest.mark.parametrize("start", [1000, 4_001_000])
def test_rows_and_gaps_are_stratified_and_unrelated(start: int) -> None:
    rows, gaps = prompt_rows(1024, 4096, start), unit_gaps(1.0, 4096, start)
    assert (np.bincount(rows, minlength=1024) == 4).all()
    assert gaps.mean() == pytest.approx(1.0)
    assert gaps.var() == pytest.approx(1.0, rel=0.02)
    for a, b in ((rows[:-1], rows[1:]), (gaps[:-1], gaps[1:]), (rows, gaps)):
        assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.06
