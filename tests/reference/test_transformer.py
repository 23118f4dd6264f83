"""The tiny transformer: the monolithic pass against batches of pieces with caches, and the parts against loops."""

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.reference.attention import LayerCache, attention, empty_cache
from asapmodel.reference.layers import combine, embed, rms_norm, route, sigmoid, swiglu
from asapmodel.reference.transformer import first_token, forward, prefix_caches
from asapmodel.reference.weights import AttentionWeights, Config, FeedForward, MoEWeights, Weights, make_weights

Floats = NDArray[np.float64]
Caches = tuple[LayerCache, ...]  # one a layer

CONFIG = Config(index_top=5, top=3)
WEIGHTS = make_weights(CONFIG, seed=11)
MOE = next(layer.ffn for layer in WEIGHTS.layers if isinstance(layer.ffn, MoEWeights))


def prompt(length: int, seed: int = 0) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, CONFIG.vocabulary, length)]


def new_caches() -> Caches:
    return (empty_cache(CONFIG),) * CONFIG.layers


def close(found: Floats, truth: Floats) -> None:
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-12 * np.abs(truth).max())


def experts_by_group(moe: MoEWeights, x: Floats) -> Floats:
    """What the distributed system does: the rows of each expert together, results back into (token, column)."""
    experts, weights = route(moe, CONFIG, x)
    results = np.full((len(x), CONFIG.top, CONFIG.hidden), np.nan)
    for number, expert in enumerate(moe.experts):
        token, column = np.nonzero(experts == number)
        results[token, column] = swiglu(expert.gate_up, expert.down, x[token])
    return combine(results, weights) + swiglu(moe.shared.gate_up, moe.shared.down, x)


def run_batch(pieces: Sequence[Sequence[int]], caches: Sequence[Caches]) -> tuple[list[Floats], list[Caches]]:
    """Pieces of several prompts through all layers with the functions that the workers use, heads in two halves."""
    ends = np.cumsum([0, *map(len, pieces)]).tolist()
    rows = [range(a, b) for a, b in pairwise(ends)]
    x = np.concatenate([embed(WEIGHTS, piece) for piece in pieces])
    grown: list[list[LayerCache]] = [[] for _ in pieces]
    for index, layer in enumerate(WEIGHTS.layers):
        normed, half = rms_norm(x, layer.attention.gain), CONFIG.heads // 2
        behind = [own[index] for own in caches]
        low, after = attention(layer.attention, CONFIG, normed, rows, behind, range(half))
        high, _ = attention(layer.attention, CONFIG, normed, rows, behind, range(half, CONFIG.heads))
        x = x + low + high
        for own, cache in zip(grown, after, strict=True):
            own.append(cache)
        normed, ffn = rms_norm(x, layer.ffn_gain), layer.ffn
        if isinstance(ffn, FeedForward):
            x = x + swiglu(ffn.gate_up, ffn.down, normed)
        else:
            x = x + experts_by_group(ffn, normed)
    x = rms_norm(x, WEIGHTS.final_gain)
    return [x[part.start : part.stop] for part in rows], [tuple(own) for own in grown]


@given(length=st.integers(1, 24), cuts=st.sets(st.integers(1, 23)), seed=st.integers(0, 1000))
@settings(max_examples=25)
def test_any_cutting_into_chunks_is_the_whole(length: int, cuts: set[int], seed: int) -> None:
    tokens, bounds = prompt(length, seed), [0, *sorted(cut for cut in cuts if cut < length), length]
    caches, found = new_caches(), []
    for first, last in pairwise(bounds):
        (hidden,), (caches,) = run_batch([tokens[first:last]], [caches])
        found.append(hidden)
    truth = forward(WEIGHTS, CONFIG, tokens)
    close(np.concatenate(found), truth)
    assert first_token(WEIGHTS, found[-1][-1]) == first_token(WEIGHTS, truth[-1])


@pytest.mark.parametrize("cached", [0, 1, 7, 19])
def test_prompt_behind_a_cached_prefix(cached: int) -> None:
    tokens = prompt(20)
    caches = prefix_caches(WEIGHTS, CONFIG, tokens[:cached])
    assert [len(cache) for cache in caches] == [cached] * CONFIG.layers
    (hidden,), (after,) = run_batch([tokens[cached:]], [caches])
    close(hidden, forward(WEIGHTS, CONFIG, tokens)[cached:])
    for own, truth in zip(after, prefix_caches(WEIGHTS, CONFIG, tokens), strict=True):
        close(own.latent, truth.latent)
        close(own.keys, truth.keys)


def test_prompts_in_a_batch_are_each_alone() -> None:
    prompts = [prompt(9, 1), prompt(1, 2), prompt(14, 3), prompt(6, 1)]
    cached = [4, 0, 0, 5]
    caches = [prefix_caches(WEIGHTS, CONFIG, tokens[:p]) for tokens, p in zip(prompts, cached, strict=True)]
    hidden, _ = run_batch([tokens[p:] for tokens, p in zip(prompts, cached, strict=True)], caches)
    for own, tokens, p in zip(hidden, prompts, cached, strict=True):
        close(own, forward(WEIGHTS, CONFIG, tokens)[p:])


@given(keep=st.integers(1, 15), seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_later_tokens_do_not_change_earlier_outputs(keep: int, seed: int) -> None:
    tokens = prompt(16, seed)
    changed = tokens[:keep] + [(token + 1) % CONFIG.vocabulary for token in tokens[keep:]]
    truth, other = forward(WEIGHTS, CONFIG, tokens), forward(WEIGHTS, CONFIG, changed)
    assert np.array_equal(truth[:keep], other[:keep])
    assert np.abs(truth[keep] - other[keep]).max() > 1e-6
    close(forward(WEIGHTS, CONFIG, tokens[:keep]), truth[:keep])  # other shapes, so other rounding


def test_earlier_tokens_and_their_order_reach_the_last() -> None:
    """Within the reach of the indexer every earlier token counts."""
    tokens = prompt(5)
    last = forward(WEIGHTS, CONFIG, tokens)[-1]
    for position in range(4):
        changed = tokens.copy()
        changed[position] = (changed[position] + 1) % CONFIG.vocabulary
        assert np.abs(forward(WEIGHTS, CONFIG, changed)[-1] - last).max() > 1e-6
    swapped = [tokens[1], tokens[0], *tokens[2:]]
    assert np.abs(forward(WEIGHTS, CONFIG, swapped)[-1] - last).max() > 1e-6


def test_activations_stay_of_order_one() -> None:
    deep = Config(layers=12)
    hidden = forward(make_weights(deep, seed=0), deep, prompt(30))
    assert 0.5 < np.sqrt((hidden**2).mean()) < 2.0
    caches = prefix_caches(make_weights(deep, seed=0), deep, prompt(30))
    assert all(0.5 < np.sqrt((cache.keys**2).mean()) < 2.0 for cache in caches)


def test_empty_prompt() -> None:
    assert forward(WEIGHTS, CONFIG, []).shape == (0, CONFIG.hidden)


def test_first_token_takes_the_lowest_of_equals() -> None:
    hidden = rms_norm(embed(WEIGHTS, [3]), WEIGHTS.final_gain)[0]
    logits = [float(np.dot(hidden, column)) for column in WEIGHTS.unembedding.T]
    assert first_token(WEIGHTS, hidden) == logits.index(max(logits))
    assert first_token(WEIGHTS, np.zeros(CONFIG.hidden)) == 0


def loop_moe(moe: MoEWeights, token: Floats) -> Floats:
    """Routing, experts and combination of one token, number by number."""
    scores = [1.0 / (1.0 + math.exp(-sum(token * moe.router[:, e]))) for e in range(CONFIG.experts)]
    chosen = sorted(sorted(range(CONFIG.experts), key=lambda e: -scores[e])[: CONFIG.top])
    total = np.zeros(CONFIG.hidden)
    for expert, weight in [(moe.experts[e], scores[e] / sum(scores[i] for i in chosen)) for e in chosen] + [
        (moe.shared, 1.0)
    ]:
        size = len(expert.down)
        for f in range(size):
            gate, up = sum(token * expert.gate_up[:, f]), sum(token * expert.gate_up[:, size + f])
            total += weight * gate / (1.0 + math.exp(-gate)) * up * expert.down[f]
    return total


def test_experts_against_a_loop_over_tokens_and_experts() -> None:
    x = np.random.default_rng(5).standard_normal((10, CONFIG.hidden))
    close(experts_by_group(MOE, x), np.array([loop_moe(MOE, token) for token in x]))


@given(seed=st.integers(0, 1000), count=st.integers(0, 20))
@settings(max_examples=30)
def test_router(seed: int, count: int) -> None:
    x = np.random.default_rng(seed).standard_normal((count, CONFIG.hidden))
    experts, weights = route(MOE, CONFIG, x)
    scores = sigmoid(x @ MOE.router)
    assert experts.shape == weights.shape == (count, CONFIG.top)
    assert (np.diff(experts, axis=1) > 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-14)
    for row, own, weight in zip(scores, experts, weights, strict=True):
        others = np.delete(row, own)
        assert row[own].min() > others.max()
        np.testing.assert_allclose(weight, row[own] / row[own].sum(), rtol=1e-14)


def test_router_ties_go_to_the_lowest_expert() -> None:
    flat = MoEWeights(np.zeros_like(MOE.router), MOE.shared, MOE.experts)
    experts, weights = route(flat, CONFIG, np.ones((2, CONFIG.hidden)))
    assert experts.tolist() == [[0, 1, 2]] * 2
    assert weights.tolist() == [[1 / 3] * 3] * 2


def test_combination_adds_in_the_order_of_columns() -> None:
    """Numbers whose sum depends on the order."""
    results = np.array([[[1e16], [1.0], [-1e16]], [[1e16], [-1e16], [1.0]]])
    assert combine(results, np.ones((2, 3))).tolist() == [[0.0], [1.0]]
    assert combine(np.ones((1, 2, 3)), np.array([[0.25, 0.5]])).tolist() == [[0.75] * 3]


def test_sigmoid_far_out() -> None:
    assert sigmoid(np.array([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]
    assert sigmoid(np.array([1.5]))[0] == pytest.approx(1 / (1 + math.exp(-1.5)), rel=1e-15)


def flat(weights: Weights) -> Floats:
    """All numbers of a model."""
    parts = [weights.embedding, weights.final_gain, weights.unembedding]
    for layer in weights.layers:
        parts += [getattr(layer.attention, field.name) for field in fields(AttentionWeights)]
        parts.append(layer.ffn_gain)
        networks = [layer.ffn] if isinstance(layer.ffn, FeedForward) else [*layer.ffn.experts, layer.ffn.shared]
        for network in networks:
            parts += [network.gate_up, network.down]
        if isinstance(layer.ffn, MoEWeights):
            parts.append(layer.ffn.router)
    return np.concatenate([part.ravel() for part in parts])


def test_weights_follow_the_seed() -> None:
    numbers = flat(WEIGHTS)
    assert np.array_equal(flat(make_weights(CONFIG, seed=11)), numbers)
    assert not np.isin(flat(make_weights(CONFIG, seed=12)), numbers).any()
    assert len(np.unique(numbers)) == len(numbers)  # no two matrices share a draw


def test_expert_lookup() -> None:
    layer = WEIGHTS.layers[2].ffn
    assert isinstance(layer, MoEWeights)
    assert WEIGHTS.expert(2, 5) is layer.experts[5]
    for place, message in [
        ((0, 5), "dense"),
        ((4, 0), "layer is 4"),
        ((-1, 0), "layer is -1"),
        ((2, 8), "expert is 8"),
    ]:
        with pytest.raises(ValueError, match=message):
            WEIGHTS.expert(*place)


@pytest.mark.parametrize("field", [field.name for field in fields(Config)])
def test_sizes_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is -1: choose"):
        Config(**{field: -1})
    if field != "dense_layers":
        with pytest.raises(ValueError, match=f"{field} is 0: choose 1 or more"):
            Config(**{field: 0})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"head_size": 7}, "head_size is 7: choose an even size"),
        ({"index_size": 3}, "index_size is 3: choose an even size"),
        ({"top": 9}, "top is 9 but there are 8 experts"),
        ({"dense_layers": 5}, "dense_layers is 5 but there are 4 layers"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**sizes)


@pytest.mark.parametrize("token", [-1, 64])
def test_unknown_tokens_are_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"token id is {token}: choose 0 to 63"):
        forward(WEIGHTS, CONFIG, [1, token])
