"""The super kernel: the right weights through the address table, and how often the host is needed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel.reference.expert_pool import ExpertPool, expert_range
from asapmodel.reference.super_kernel import TILE_ROWS, Dispatches, LayerKernels, SuperKernel, super_kernel
from asapmodel.reference.weights import Config, make_weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONFIG = Config(layers=5, dense_layers=2, experts=12, hidden=10, expert_size=6)
WEIGHTS = make_weights(CONFIG, seed=4)
DEVICES = 3
POOL = ExpertPool.load(WEIGHTS, CONFIG, device=1, devices=DEVICES)  # experts 4 to 7
ROUTED = [2, 3, 4]

layers = st.sampled_from(ROUTED)
counts_of_experts = st.lists(st.integers(0, 3 * TILE_ROWS), min_size=4, max_size=4)


def layer_id(layer: int) -> Ints:
    return np.array(layer, dtype=np.int64)


def batch(counts: list[int], seed: int = 0) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(seed)
    return np.array(counts, dtype=np.int64), rng.standard_normal((sum(counts), CONFIG.hidden))


def loop(layer: int, counts: Ints, tokens: Floats) -> Floats:
    """Row by row with the weights of the model itself."""
    owner = np.repeat(np.arange(4, 8), counts)
    out = []
    for expert, row in zip(owner, tokens, strict=True):
        one = WEIGHTS.expert(layer, int(expert))
        both = [float(np.dot(row, column)) for column in one.gate_up.T]
        inner = [gate / (1 + math.exp(-gate)) * up for gate, up in zip(both[:6], both[6:], strict=True)]
        out.append([float(np.dot(inner, column)) for column in one.down.T])
    return np.array(out).reshape(tokens.shape)


def test_addresses_point_to_the_right_weights() -> None:
    seen = np.zeros(len(POOL.values), dtype=np.int64)
    for device in range(DEVICES):
        pool = ExpertPool.load(WEIGHTS, CONFIG, device, DEVICES)
        assert pool.addresses.shape == (5, 4)
        assert (pool.addresses[:2] == -1).all()
        for layer in ROUTED:
            for local, address in enumerate(pool.addresses[layer].tolist()):
                gate_up, down = pool.at(address)
                truth = WEIGHTS.expert(layer, 4 * device + local)
                assert np.array_equal(gate_up, truth.gate_up)
                assert np.array_equal(down, truth.down)
                assert np.shares_memory(gate_up, pool.values)  # views, not copies
                assert np.shares_memory(down, pool.values)
                if device == 1:
                    seen[address : address + gate_up.size + down.size] += 1
    assert (seen == 1).all()  # the pool holds the experts and nothing else


@given(layer=layers, counts=counts_of_experts, seed=st.integers(0, 1000))
@settings(max_examples=40)
def test_equal_bitwise_to_the_layer_kernels_and_near_a_loop(layer: int, counts: list[int], seed: int) -> None:
    rows, tokens = batch(counts, seed)
    result = super_kernel(POOL, layer_id(layer), rows, tokens)
    assert np.array_equal(LayerKernels(POOL)(layer, rows, tokens), result)
    np.testing.assert_allclose(result, loop(layer, rows, tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize("counts", [[0, 0, 0, 0], [0, 5, 0, 0], [1, 0, 0, 1], [0, 0, TILE_ROWS + 1, 0]])
def test_experts_without_rows(counts: list[int]) -> None:
    rows, tokens = batch(counts)
    result = super_kernel(POOL, layer_id(3), rows, tokens)
    assert result.shape == tokens.shape
    np.testing.assert_allclose(result, loop(3, rows, tokens), rtol=0, atol=1e-12)


def test_layer_is_read_when_the_kernel_runs() -> None:
    """One kernel, one buffer for the layer: what the buffer holds at the time decides."""
    kernel, buffer = SuperKernel(POOL), layer_id(2)
    rows, tokens = batch([3, 1, 0, 2])
    results = []
    for layer in ROUTED:
        buffer[...] = layer
        results.append(kernel(buffer, rows, tokens))
        np.testing.assert_allclose(results[-1], loop(layer, rows, tokens), rtol=0, atol=1e-12)
    assert np.abs(results[0] - results[1]).max() > 1e-3


@given(order=st.lists(st.tuples(layers, counts_of_experts), max_size=6))
@settings(max_examples=20)
def test_any_order_of_layers_and_the_dispatches_it_takes(order: list[tuple[int, list[int]]]) -> None:
    one, many = SuperKernel(POOL), LayerKernels(POOL)
    ahead = one.dispatches
    assert ahead.count == 1
    assert many.dispatches == Dispatches(0, 0.0)
    for seed, (layer, counts) in enumerate(order):
        rows, tokens = batch(counts, seed)
        before = many.dispatches
        assert np.array_equal(one(layer_id(layer), rows, tokens), many(layer, rows, tokens))
        assert many.dispatches.count == before.count + 1
        assert many.dispatches.host_s > before.host_s
    assert one.dispatches == ahead  # nothing asked of the host since
    assert many.dispatches.count == len(order)


def test_dispatch_prepares_and_launch_computes() -> None:
    kernels = LayerKernels(POOL)
    rows, tokens = batch([TILE_ROWS + 1, 0, 2 * TILE_ROWS, 1])
    kernel = kernels.dispatch(4, rows)
    spent = kernels.dispatches
    assert [(first, end) for _, _, first, end in kernel.arguments] == [(0, 16), (16, 17), (17, 33), (33, 49), (49, 50)]
    for (_, down, _, _), expert in zip(kernel.arguments, [4, 4, 6, 6, 7], strict=True):
        assert np.array_equal(down, WEIGHTS.expert(4, expert).down)
    assert kernel(tokens) is kernel.result
    assert np.array_equal(kernel.result, super_kernel(POOL, layer_id(4), rows, tokens))
    assert kernels.dispatches == spent  # computing is not host time


def test_batches_keep_their_own_results() -> None:
    kernels = LayerKernels(POOL)
    rows, tokens = batch([2, 2, 2, 2])
    first = kernels(2, rows, tokens)
    kept = first.copy()
    kernels(2, rows, -tokens)
    assert np.array_equal(first, kept)


def test_devices_share_the_experts() -> None:
    assert [expert_range(CONFIG, device, 4) for device in range(4)] == [range(3 * d, 3 * d + 3) for d in range(4)]
    for devices in (0, 5, 24):
        with pytest.raises(ValueError, match=f"devices is {devices}: choose a divisor of the 12 experts"):
            ExpertPool.load(WEIGHTS, CONFIG, 0, devices)
    for device in (-1, 3):
        with pytest.raises(ValueError, match=f"device is {device}: choose 0 to 2"):
            expert_range(CONFIG, device, 3)


@pytest.mark.parametrize("layer", [-1, 0, 1, 5])
def test_layers_without_experts_are_refused(layer: int) -> None:
    rows, tokens = batch([1, 1, 1, 1])
    with pytest.raises(ValueError, match=f"layer is {layer}: choose one of the layers with experts"):
        super_kernel(POOL, layer_id(layer), rows, tokens)
    with pytest.raises(ValueError, match=f"layer is {layer}: choose one of the layers with experts"):
        LayerKernels(POOL)(layer, rows, tokens)


def test_shapes_that_do_not_fit_are_refused() -> None:
    rows, tokens = batch([1, 1, 1, 1])
    for wrong in ([1, 1, 2], [2, -1, 2, 1]):
        bad = np.array(wrong, dtype=np.int64)
        with pytest.raises(ValueError, match="give one row count for each of 4 experts"):
            super_kernel(POOL, layer_id(2), bad, tokens)
        with pytest.raises(ValueError, match="give one row count for each of 4 experts"):
            LayerKernels(POOL).dispatch(2, bad)
    for short in (tokens[:3], tokens[:, :9]):
        with pytest.raises(ValueError, match="tokens has shape"):
            super_kernel(POOL, layer_id(2), rows, short)
        with pytest.raises(ValueError, match="tokens has shape"):
            LayerKernels(POOL)(2, rows, short)
