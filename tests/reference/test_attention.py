"""Attention of pieces: heads, causality, positions and the indexer, against a plain loop."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.reference.attention import LayerCache, attend_mask, attention, empty_cache, index_scores
from asapmodel.reference.layers import rms_norm, rotate
from asapmodel.reference.weights import AttentionWeights, Config, make_weights

Floats = NDArray[np.float64]

CONFIG = Config(heads=6, index_top=3)
LAYER = make_weights(CONFIG, seed=3).layers[0].attention
ALL = range(CONFIG.heads)


def rows(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal((count, CONFIG.hidden))


def alone(x: Floats, config: Config = CONFIG, heads: range = ALL, cache: LayerCache | None = None) -> Floats:
    """One piece behind one cache."""
    return attention(LAYER, config, x, [range(len(x))], [cache or empty_cache(config)], heads)[0]


def turn(vector: Floats, position: int) -> list[float]:
    """Rotation of one row, pair by pair as complex numbers."""
    half = len(vector) // 2
    turned = [
        complex(vector[i], vector[i + half]) * complex(math.cos(a), math.sin(a))
        for i, a in ((i, position * 10_000 ** (-i / half)) for i in range(half))
    ]
    return [z.real for z in turned] + [z.imag for z in turned]


def dense_loop(layer: AttentionWeights, x: Floats) -> Floats:
    """Causal attention over all earlier positions, without an indexer, head by head and position by position."""
    out = np.zeros_like(x)
    raw = x @ layer.compress
    latent = [row / math.sqrt(sum(row * row) / len(row) + 1e-6) * layer.latent_gain for row in raw]
    for h in ALL:
        for t in range(len(x)):
            query = turn(x[t] @ layer.query[h], t)
            logits = [np.dot(query, turn(latent[s] @ layer.key[h], s)) / math.sqrt(len(query)) for s in range(t + 1)]
            share = [math.exp(logit) for logit in logits]
            mixed = sum(p * (latent[s] @ layer.value[h]) for s, p in enumerate(share)) / sum(share)
            out[t] += mixed @ layer.output[h]
    return out


@pytest.mark.parametrize("index_top", [12, 100])
def test_indexer_that_keeps_everything_is_dense_attention(index_top: int) -> None:
    x = rows(12)
    np.testing.assert_allclose(alone(x, Config(heads=6, index_top=index_top)), dense_loop(LAYER, x), rtol=0, atol=1e-12)


def test_top_positions_change_the_result() -> None:
    x = rows(12)
    difference = np.abs(alone(x) - dense_loop(LAYER, x)).max(axis=1)
    assert (difference[: CONFIG.index_top] < 1e-12).all()  # nothing to drop yet
    assert (difference[CONFIG.index_top :] > 1e-3).all()


def test_dropped_positions_have_no_influence() -> None:
    """The last row reads the latents of exactly the positions that its mask shows."""
    before, last = rows(9), rows(1, seed=1)
    cache = attention(LAYER, CONFIG, before, [range(9)], [empty_cache(CONFIG)], ALL)[1][0]
    longer = attention(LAYER, CONFIG, last, [range(1)], [cache], ALL)[1][0]
    attended = attend_mask(index_scores(LAYER, last, longer.keys), CONFIG.index_top)[0]
    assert attended.sum() == 3
    truth = alone(last, cache=cache)
    for s in range(9):
        changed = cache.latent.copy()
        changed[s] += 1.0
        same = np.array_equal(alone(last, cache=LayerCache(changed, cache.keys)), truth)
        assert same != attended[s]


def test_index_scores_by_the_formula() -> None:
    x = rows(7)
    keys = rotate(x @ LAYER.index_key, np.arange(7))
    scores = index_scores(LAYER, x, keys)
    weight = x @ LAYER.index_weight
    for t in range(7):
        for s in range(7):
            terms = [
                weight[t, j] * max(float(np.dot(turn(x[t] @ matrix, t), keys[s])), 0.0)
                for j, matrix in enumerate(LAYER.index_query)
            ]
            assert scores[t, s] == (pytest.approx(sum(terms), abs=1e-12) if s <= t else -math.inf)


@given(seed=st.integers(0, 1000), count=st.integers(1, 12), top=st.integers(1, 14))
@settings(max_examples=50)
def test_mask_keeps_the_highest_with_ties_to_the_earliest(seed: int, count: int, top: int) -> None:
    scores = np.random.default_rng(seed).integers(-2, 3, (count, count)).astype(np.float64)
    scores[np.triu_indices(count, 1)] = -np.inf
    mask = attend_mask(scores, top)
    for t in range(count):
        best = sorted(range(t + 1), key=lambda s: (-scores[t, s], s))[:top]
        assert np.flatnonzero(mask[t]).tolist() == sorted(best)


@given(cuts=st.sets(st.integers(1, CONFIG.heads - 1)), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_head_ranges_add_up(cuts: set[int], seed: int) -> None:
    x, bounds = rows(11, seed), [0, *sorted(cuts), CONFIG.heads]
    parts = [alone(x, heads=range(a, b)) for a, b in pairwise(bounds)]
    np.testing.assert_allclose(sum(parts), alone(x), rtol=0, atol=1e-12)


def test_caches_are_the_same_for_all_heads_and_inputs_stay() -> None:
    x, cache = rows(4), attention(LAYER, CONFIG, rows(3, 1), [range(3)], [empty_cache(CONFIG)], ALL)[1][0]
    kept, given_x = (cache.latent.copy(), cache.keys.copy()), x.copy()
    first = attention(LAYER, CONFIG, x, [range(4)], [cache], range(0, 1))[1][0]
    other = attention(LAYER, CONFIG, x, [range(4)], [cache], range(3, 6))[1][0]
    assert len(first) == 7
    assert np.array_equal(first.latent, other.latent)
    assert np.array_equal(first.keys, other.keys)
    assert np.array_equal(first.latent[:3], kept[0])
    assert np.array_equal(first.keys[:3], kept[1])
    assert len(cache) == 3
    assert np.array_equal(x, given_x)


def test_later_rows_do_not_reach_earlier_ones() -> None:
    x = rows(10)
    changed = x.copy()
    changed[6:] = rows(4, seed=9)
    assert np.array_equal(alone(changed)[:6], alone(x)[:6])
    assert not np.array_equal(alone(changed)[6], alone(x)[6])


def test_positions_matter() -> None:
    """The last row sees the same other rows in another order; without rotation the result would not change."""
    wide = Config(heads=6, index_top=100)
    x = rows(6)
    assert np.abs(alone(x[[1, 0, 3, 2, 4, 5]], wide)[5] - alone(x, wide)[5]).max() > 1e-3


@given(distance=st.integers(0, 50), position=st.integers(0, 1000))
@settings(max_examples=30)
def test_rotation_depends_on_distance(distance: int, position: int) -> None:
    a, b = rows(2)[:, None, :8]
    near = rotate(a, np.array([distance])) @ rotate(b, np.array([0])).T
    far = rotate(a, np.array([position + distance])) @ rotate(b, np.array([position])).T
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-10)
    np.testing.assert_allclose(rotate(a, np.array([position]))[0], turn(a[0], position), rtol=0, atol=1e-12)


def test_pieces_are_independent() -> None:
    """Pieces of several prompts in one batch get bit for bit what each gets alone."""
    sizes, behind = [3, 1, 5], [0, 4, 2]
    caches = [
        attention(LAYER, CONFIG, rows(q, q), [range(q)], [empty_cache(CONFIG)], ALL)[1][0] if q else empty_cache(CONFIG)
        for q in behind
    ]
    x = rows(9)
    whole, extended = attention(LAYER, CONFIG, x, [range(0, 3), range(3, 4), range(4, 9)], caches, ALL)
    assert [len(cache) for cache in extended] == [3, 5, 7]
    first = 0
    for size, cache in zip(sizes, caches, strict=True):
        own = x[first : first + size]
        assert np.array_equal(whole[first : first + size], alone(own, cache=cache))
        first += size


@pytest.mark.parametrize(
    ("pieces", "caches", "heads", "message"),
    [
        ([range(0, 2)], 2, ALL, "there are 1 pieces and 2 caches"),
        ([range(0, 2), range(3, 4)], 2, ALL, "the next from row 2"),
        ([range(0, 2), range(2, 2)], 2, ALL, "pieces of one row or more"),
        ([range(0, 3)], 1, ALL, "end at row 3 of 4"),
        ([range(0, 4)], 1, range(2, 2), "choose a range of one or more of 6 heads"),
        ([range(0, 4)], 1, range(2, 7), "choose a range of one or more of 6 heads"),
    ],
)
def test_bad_batches_are_refused(pieces: list[range], caches: int, heads: range, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attention(LAYER, CONFIG, rows(4), pieces, [empty_cache(CONFIG)] * caches, heads)


def test_norm() -> None:
    x = 50.0 * rows(5)
    np.testing.assert_allclose((rms_norm(x, np.ones(CONFIG.hidden)) ** 2).mean(axis=1), 1.0, rtol=1e-8)
    assert np.array_equal(rms_norm(x, np.full(CONFIG.hidden, 2.0)), 2.0 * rms_norm(x, np.ones(CONFIG.hidden)))
    assert not rms_norm(np.zeros((1, 3)), np.ones(3)).any()
