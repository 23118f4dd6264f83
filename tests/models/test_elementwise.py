"""Traffic besides products: arrays of the right sizes are passed through each kernel, and their bytes are added up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics.units import byte

from asapmodel import catalog
from asapmodel.models.elementwise import (
    Kind,
    Part,
    Stack,
    attention_bytes,
    attention_operations,
    expert_bytes,
    expert_operations,
    kind_of,
)
from asapmodel.models.evaluation import evaluate, paper_deployment
from asapmodel.models.parameters import Architecture, Device, Split
from asapmodel.models.symbols import SYMBOLS

V32, DIE, *_ = paper_deployment()
V3 = replace(V32, index_heads=0, index_head_dim=0, index_topk=0)
QWEN = catalog.load_architecture("qwen3-235b-a22b").value
SMALL = replace(V3, hidden=256, heads=4, q_lora_rank=96, kv_lora_rank=64, moe_intermediate=80, routed_experts=16)
KINDS: dict[Kind, Architecture] = {"latent": V3, "sparse": V32, "grouped": QWEN}
ROUTED: tuple[Part, ...] = ("arrived", "routed")
INDEXER: tuple[Part, ...] = ("indexer",)


class Traffic:
    """Counts the bytes that kernels read and write."""

    def __init__(self) -> None:
        self.bytes = 0

    def run(self, *arrays: np.ndarray) -> None:
        """Run a kernel that touches these arrays once each."""
        self.bytes += sum(array.nbytes for array in arrays)


def wide(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float16)


def narrow(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int8)


def attention_of(architecture: Architecture, stack: Stack, T: int, tokens: int) -> int:
    """Bytes of latent attention's kernels for some tokens, by the tensors that the sources pass around."""
    a, seen = architecture, Traffic()
    h, rq, rk, dn, dr, dv = a.heads // T, a.q_lora_rank, a.kv_lora_rank, a.qk_nope_dim, a.qk_rope_dim, a.v_head_dim
    x, residual = wide(tokens, a.hidden), wide(tokens, a.hidden)
    seen.run(x, residual, wide(*x.shape), wide(*x.shape))  # the sum, its norm
    for _ in range(1 if stack == "sglang" else 2):
        seen.run(x, narrow(*x.shape))
    latent, q, k = wide(tokens, rq), wide(tokens, h, dn + dr), wide(tokens, rk + dr)
    seen.run(latent, wide(*latent.shape))
    seen.run(latent, narrow(*latent.shape))
    seen.run(q[..., dn:], q[..., dn:])
    if stack == "sglang":
        seen.run(k[:, rk:], k[:, rk:])
        seen.run(k[:, :rk], wide(tokens, rk))
        seen.run(k, wide(*k.shape))
        seen.run(k[:, :rk], narrow(tokens, rk))
        expanded = wide(tokens, h, dn + dv)
        seen.run(expanded[..., :dn], k[:, rk:], wide(tokens, h, dn + dr))
    else:
        seen.run(k, wide(*k.shape), wide(*k.shape))
        seen.run(k[:, rk:], wide(h, tokens, dr))
    out = wide(tokens, h, dv)
    seen.run(out, narrow(*out.shape))
    return seen.bytes


@pytest.mark.parametrize("architecture", [V3, SMALL])
@pytest.mark.parametrize("T", [1, 2, 4])
@pytest.mark.parametrize("stack", ["sglang", "cann"])
def test_latent_attention_by_its_tensors(architecture: Architecture, stack: Stack, T: int) -> None:
    found = evaluate(attention_bytes("latent", stack), architecture, DIE, Split(1, T, 1))
    assert 3 * float(found) == attention_of(architecture, stack, T, 3)


def experts_of(architecture: Architecture, stack: Stack, chosen: np.ndarray, devices: int, every_row: bool) -> int:
    """Bytes of the experts' kernels on all devices, for tokens with these experts each."""
    a, seen = architecture, Traffic()
    H, m, K, tokens = a.hidden, a.moe_intermediate, a.experts_per_token, len(chosen)
    x = wide(tokens, H)
    seen.run(x, x, x, x)
    seen.run(x, narrow(tokens, H))  # shared input
    gate = wide(tokens, 2 * m)
    if stack == "sglang":
        seen.run(x, narrow(tokens, H))
        seen.run(x, x, x)  # shared and routed, and their sum
        seen.run(gate, gate[:, :m])
        seen.run(gate[:, :m], narrow(tokens, m))
    else:
        seen.run(x, narrow(tokens * K, H))
        seen.run(x, np.zeros((tokens, H), np.float32))
        seen.run(wide(tokens * K, H), x, x)
        seen.run(np.zeros((tokens, 2 * m), np.int32), narrow(tokens, m))
    for device in range(devices):
        here = chosen // (a.routed_experts // devices) == device
        copies, rows = int(here.sum()), tokens if every_row else int(here.any(axis=1).sum())
        gate = wide(copies, 2 * m)
        if stack == "sglang":
            seen.run(narrow(rows, H), narrow(copies, H))
            seen.run(gate, gate[:, :m])
            seen.run(gate[:, :m], narrow(copies, m))
            seen.run(wide(copies, H), wide(rows, H))
        else:
            seen.run(narrow(copies, H), narrow(copies, H))
            seen.run(np.zeros((copies, 2 * m), np.int32), narrow(copies, m))
            seen.run(wide(copies, H), wide(copies, H))
    return seen.bytes


@pytest.mark.parametrize("devices", [1, 4, 8])
@pytest.mark.parametrize("every_row", [False, True])
@pytest.mark.parametrize("stack", ["sglang", "cann"])
def test_experts_by_their_tensors(stack: Stack, every_row: bool, devices: int) -> None:
    """Copies are exact under any routing; rows are expected values, so many tokens choose at random."""
    a = replace(SMALL, experts_per_token=4)
    chosen = np.random.default_rng(7).integers(a.routed_experts, size=(20000, a.experts_per_token))
    law = expert_bytes(stack, every_row=every_row)
    found = devices * 20000 * float(evaluate(law, a, DIE, Split(1, 1, devices)))
    exact = every_row or stack == "cann" or devices == 1
    assert found == pytest.approx(experts_of(a, stack, chosen, devices, every_row), rel=1e-12 if exact else 2e-3)


def test_sparse_and_grouped_attention_by_hand() -> None:
    """DeepSeek-V3.2 on 4 devices and Qwen3-235B-A22B on 8, value by value."""
    H, h, rq, rk, dn, dr, dv, heads, width = 7168, 32, 1536, 512, 128, 64, 128, 64, 128
    moved = 2 * H + rq + rk + h * dr + dr + (rk + dr) + h * (rk + dr) + width + 65 * dr + 65 * width
    narrowed = H + rq + h * dn + h * rk + h * dv + rq + H + 65 * width
    by_hand = 4 * moved + 3 * narrowed + 2 * width
    assert heads == V32.index_heads
    assert float(evaluate(attention_bytes("sparse", "sglang"), V32, DIE, Split(1, 4, 1))) == by_hand
    both, held = (8 + 1) * 128, 128  # 64 query heads over 8 devices, 4 key-value heads: one each
    grouped = 4 * 2 * 4096 + 3 * 4096 + 3 * 4 * both + 2 * held + 4 * held + 3 * 8 * 128
    assert float(evaluate(attention_bytes("grouped", "sglang"), QWEN, DIE, Split(1, 8, 1))) == grouped


@pytest.mark.parametrize("kind", KINDS)
def test_parts_add_up_and_heads_are_split(kind: Kind) -> None:
    """The whole is the sum of its parts; what is not of heads stays on every device."""
    given = (KINDS[kind], DIE)

    every: tuple[Part, ...] = ("layer", "input", "module", "indexer")

    def count(T: int, *parts: Part) -> float:
        return float(evaluate(attention_bytes(kind, "sglang", parts or every), *given, Split(1, T, 1)))

    assert count(1) == sum(count(1, part) for part in every)
    for part in every:
        assert part == "module" or count(1, part) == count(4, part)
    split = count(1, "module") - count(2, "module")
    assert count(2, "module") - count(4, "module") == pytest.approx(split / 2)


@given(kind=st.sampled_from(list(KINDS)), T=st.sampled_from([1, 2, 4]))
def test_sixteen_bit_products_need_no_quantisation(kind: Kind, T: int) -> None:
    """In BF16 exactly the lines that quantise vanish; others that move products' values move more of them."""
    bf16 = Device(376e12, 11e12, 64e9, 1.6e12, 196e9)
    for one in attention_operations(kind):
        for expression in (one.read, one.written):
            size = float(evaluate(expression, KINDS[kind], bf16, Split(1, T, 1)))
            assert (size == 0) == one.name.startswith("quantise")


def test_fewer_rows_arrive_than_tokens_exist() -> None:
    """Rows: all of them on one device, K/E of them on many; copies not at all affected."""
    given = (V3, DIE)
    for E in (1, 8, 256):
        rows, every = (
            float(evaluate(expert_bytes("sglang", ROUTED, flag), *given, Split(1, 1, E))) for flag in (False, True)
        )
        share = 1 - (1 - 1 / E) ** 8
        assert every - rows == pytest.approx((1 - share) * 3 * 7168)
    assert share == pytest.approx(8 / 256, rel=0.02)


def test_the_page_s_totals() -> None:
    """Numbers of docs/background/cost-models.md, kB of a token."""
    page = (Path(__file__).resolve().parents[2] / "docs/background/cost-models.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    whole, many = Split(1, 1, 1), Split(32, 1, 32)
    found = {
        "attention moves {} kB a token (SGLang)": evaluate(attention_bytes("latent", "sglang"), V3, DIE, whole),
        "or {} kB (cann) in a layer": evaluate(attention_bytes("latent", "cann"), V3, DIE, whole),
        "its experts {} kB or": 32 * evaluate(expert_bytes("sglang"), V3, DIE, many),
        "or {} kB on all of 32": 32 * evaluate(expert_bytes("cann"), V3, DIE, many),
        "sparse attention moves {} kB": evaluate(attention_bytes("sparse", "sglang"), V32, DIE, whole),
        "of which {} kB are its indexer's": evaluate(attention_bytes("sparse", "sglang", INDEXER), V32, DIE, whole),
        "Qwen3-235B-A22B's attention moves {} kB": evaluate(attention_bytes("grouped", "sglang"), QWEN, DIE, whole),
    }
    for words, size in found.items():
        assert words.format(f"{float(size) / 1e3:.0f}") in text


def test_refusals_and_kinds() -> None:
    with pytest.raises(ValueError, match="cann are known for latent attention only, not for sparse"):
        attention_bytes("sparse", "cann")
    assert {kind: kind_of(one) for kind, one in KINDS.items()} == {kind: kind for kind in KINDS}


def test_lines_are_bytes_and_named_once() -> None:
    """Every line has the unit of bytes and a reason; a stack has no name twice in a part."""
    for table in (*(attention_operations(kind) for kind in KINDS), expert_operations()):
        for one in table:
            assert one.why
            assert one.stacks
            units = {x: 3 * SYMBOLS[x.name].dimension for x in (one.read + one.written).free_symbols}
            assert ((one.read + one.written).subs(units, simultaneous=True) / byte).simplify().is_number
        for stack in ("sglang", "cann"):
            names = [(one.part, one.name) for one in table if stack in one.stacks]
            assert len(set(names)) == len(names)
