"""Precision of products with weights: peaks, bytes of weights and of copies, by hand."""

from dataclasses import replace
from typing import get_args

import pytest

from asapmodel.models import attention, link, memory, moe, volumes
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Device, Profile, Split
from asapmodel.models.precision import PRECISIONS, Precision

MODEL, DIE, PROFILE, SPLIT = paper_deployment()
GPU = Device(989e12, 67e12, 80e9, 3.43e12, 200e9, fp8_flops=1979e12)
OPEN = replace(PROFILE, dispatch_bytes_per_copy=0.0, combine_bytes_per_copy=0.0)


def at(precision: str, device: Device = DIE) -> tuple[Device, Profile]:
    used = replace(device, precision=precision)
    return used, volumes.with_copy_bytes(OPEN, MODEL, used)


def test_names() -> None:
    assert tuple(PRECISIONS) == get_args(Precision)


@pytest.mark.parametrize(
    ("precision", "peak", "weight", "value", "sent"),
    [
        ("int8", 752e12, 1, 1, 7680),  # 7168 + 4, padded to 15 x 512
        ("bf16", 376e12, 2, 2, 14336),  # 2 x 7168
        ("w8a16", 376e12, 1, 2, 14336),
        ("fp8", 0, 1, 1, 7392),  # 7168 + 56 x 4; the die cannot
    ],
)
def test_what_a_precision_decides(precision: str, peak: float, weight: int, value: int, sent: int) -> None:
    device, profile = at(precision)
    assert (device.product_flops, device.weight_bytes, device.value_bytes) == (peak, weight, value)
    assert (profile.dispatch_bytes_per_copy, profile.combine_bytes_per_copy) == (sent, 14336)


def test_without_a_choice_it_is_the_format_of_the_device() -> None:
    assert (DIE.precision, DIE.format.peak, GPU.format.peak) == ("", "int8", "fp8")
    both = replace(GPU, int8_flops=1979e12)
    assert both.format.peak == "fp8"
    assert Device(312e12, 20e12, 80e9, 2e12, 2e11).format.peak == "bf16"
    assert replace(DIE, precision="int8").product_flops == DIE.product_flops


def test_stated_bytes_stay() -> None:
    stated = replace(PROFILE, dispatch_bytes_per_copy=7000.0)
    assert volumes.with_copy_bytes(stated, MODEL, replace(DIE, precision="bf16")) is stated
    with pytest.raises(ValueError, match=r"no value for b_d \(bytes of a dispatched copy\)"):
        link.asynchronous(MODEL, DIE, OPEN, SPLIT)
    with pytest.raises(ValueError, match="scales must be one of none, token, block, got 'row'"):
        volumes.copy_bytes("row")


def test_expert_weights_of_16_dies_are_read_in_044_or_088_ms() -> None:
    # 16 experts of 3 x 7168 x 2048 weights at 1.6 TB/s, without the shared one
    full = replace(PROFILE, memory=1.0)
    routed = replace(MODEL, shared_experts=0)
    for precision, milliseconds in (("int8", 0.4404), ("w8a16", 0.4404), ("bf16", 0.8808)):
        device, _ = at(precision)
        floor = float(evaluate(moe.floor_expression(), routed, device, full, SPLIT))
        assert 1e3 * floor == pytest.approx(milliseconds, abs=1e-4)


def test_parts_of_attention_that_slow_down() -> None:
    given = (MODEL, PROFILE, SPLIT)
    times = {
        precision: {
            name: float(evaluate(part, *given, at(precision)[0], s=4096, p=0))
            for name, part in attention.parts().items()
        }
        for precision in ("int8", "bf16", "w8a16")
    }
    for name in times["int8"]:
        factor = 1 if name in ("core", "topk") else 2
        assert times["bf16"][name] == pytest.approx(factor * times["int8"][name], rel=1e-12)
        assert times["w8a16"][name] == times["bf16"][name]
    # 374.2 MFLOP of a token at four dies of 376 TFLOPS, 80 % of it reached
    assert times["bf16"]["projections"] == pytest.approx(4096 * 374210560 / (4 * 376e12 * 0.8), rel=1e-12)


def test_experts_far_out_take_twice_as_long_in_16_bit() -> None:
    slow, fast = (float(moe.batch_time(MODEL, at(one)[0], PROFILE, SPLIT, 65536)) for one in ("bf16", "int8"))
    assert slow == pytest.approx(2 * fast, rel=1e-12)
    widened = replace(DIE, precision="w8a16")
    assert moe.reduce(MODEL, widened, PROFILE, SPLIT).inflection_tokens == pytest.approx(3382 / 2, abs=1)


def test_bytes_of_a_dispatch() -> None:
    per_token = {}
    for precision in ("int8", "bf16"):
        device, profile = at(precision)
        laws = link.synchronous(MODEL, device, profile, SPLIT)
        per_token[precision] = laws["dispatch_send"].per_token, laws["combine_send"].per_token
    assert per_token["bf16"][0] / per_token["int8"][0] == pytest.approx(14336 / 7680, rel=1e-12)
    assert per_token["bf16"][1] == per_token["int8"][1]
    device, profile = at("int8")
    half = link.synchronous(MODEL, device, replace(profile, copies_sent=0.5), SPLIT)
    assert half["combine_send"].per_token == pytest.approx(per_token["int8"][1] / 2, rel=1e-12)


def test_memory_of_weights_and_cache() -> None:
    used = {one: memory.fits(MODEL, at(one)[0], SPLIT, "asap", S=32768, slots=2) for one in ("int8", "bf16", "w8a16")}
    for name in ("attention weights", "indexer weights", "dense weights"):
        assert used["bf16"].items["attention"][name] == 2 * used["int8"].items["attention"][name]
    experts = 17 * 3 * 7168 * 2048 * 58
    assert used["bf16"].items["moe"]["experts weights"] == 2 * experts == 86_847_258_624
    assert used["w8a16"].items["moe"]["experts weights"] == experts
    assert [used[one].fits for one in used] == [True, False, True]
    # latent in 16 bit at any precision, an indexer key of 128 values as products take it
    for one, key in (("int8", 128), ("bf16", 256), ("w8a16", 256)):
        assert used[one].items["attention"]["key-value cache"] == 2 * 32768 * 61 * (576 * 2 + key)


def test_a_narrow_model_is_padded_too() -> None:
    small = replace(MODEL, hidden=2048)
    assert volumes.with_copy_bytes(OPEN, small, DIE).dispatch_bytes_per_copy == 2560  # 2052 in 5 x 512
    assert volumes.with_copy_bytes(OPEN, small, GPU).dispatch_bytes_per_copy == 2048 + 16 * 4
    assert volumes.with_copy_bytes(OPEN, small, GPU).combine_bytes_per_copy == 4096


def test_split_is_not_changed_by_precision() -> None:
    times = [
        float(evaluate(moe.read_expression(), MODEL, at("bf16")[0], PROFILE, Split(1, 1, E), n=1e6)) for E in (16, 32)
    ]
    assert times[0] / times[1] == pytest.approx(17 / 9)
