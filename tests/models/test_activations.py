"""Activations: by hand for a small model, against a tape of a layer's kernels, as published, and where they refuse."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asapmodel as am
from asapmodel import catalog
from asapmodel.costing import check_memory, memory_budget
from asapmodel.errors import InputError
from asapmodel.models import activations, memory
from asapmodel.models.elementwise import kind_of
from asapmodel.models.evaluation import paper_deployment
from asapmodel.models.formulas import values
from asapmodel.models.imbalance import expected_maximum, imbalance
from asapmodel.models.parameters import Architecture, Device, Split
from asapmodel.models.volumes import copy_bytes
from tests.cli.helpers import ask

MODEL, DIE, PROFILE, SPLIT = paper_deployment()
BF16 = replace(DIE, precision="bf16")
MODELS = {name: catalog.load_architecture(name).value for name in catalog.names("models")}
SMALL = Architecture(
    layers=4,
    dense_layers=1,
    hidden=100,
    heads=8,
    q_lora_rank=20,
    kv_lora_rank=10,
    qk_nope_dim=3,
    qk_rope_dim=2,
    v_head_dim=4,
    dense_intermediate=300,
    moe_intermediate=30,
    routed_experts=12,
    experts_per_token=2,
    shared_experts=1,
    index_heads=4,
    index_head_dim=6,
    index_topk=7,
    vocab=1000,
)


def sizes(model: Architecture, split: Split, n: int, device: Device = DIE, **more: float) -> dict[str, float]:
    """Bytes of everything, `more` for S, N_s, v and, as `kind`, 1 for synchronous."""
    law = partial(activations.expressions, "sync" if more.pop("sync", 0) else "asap", kind_of(model))
    variables = {"n": n, "S": n, "N_s": 1, "v": 0.0, "mu_E": expected_maximum(split.E)} | more
    return {name: float(size) for name, size in values(law, model, device, split, **variables).items()}


def test_a_small_model_by_hand() -> None:
    """Ten tokens, two groups' batches each, four of eight heads a device; 8-bit inputs of products."""
    found = sizes(SMALL, Split(D=3, T=2, E=4), 10, N_s=2)
    assert found == {
        "residuals": 2 * 10 * 100 * 2,
        "copies": 3 * 2 * 10 * 2 / 4 * 100 * 2,  # of six batches, five copies of each
        "attention: latents": 10 * (200 + 100 + 40 + 20 + 24),
        # hidden, that in 8 bit, query latent in 8 bit, key-value latent, queries of four heads
        "attention: queries": 10 * (200 + 100 + 20 + 24 + 40),
        "attention: expanded": 10 * (40 + 32) + 10 * 4 * (3 + 2 + 3 + 4) * 2,
        "attention: indexer": 10 * (384 + 48 + 24),
        "attention: scores": 10 * (384 + 24 + 28) + 10 * 10 * 4,
        "attention: absorbed": 10 * (4 * 12 * 2 + 4 * 10 * 2 + 28),
        "attention: values": 10 * 4 * (10 + 4) * 2,
        "attention: output": 10 * (4 * 4 + 200),
        "attention: gate and up": 10 * (100 + 2 * 150 * 2),
        "attention: activation": 10 * 3 * 150 * 2,
        "attention: down": 10 * (150 + 200),
        "attention: dispatch": 10 * 200 + 5 * 2 * 100,
        "attention: combine": 10 * 200 + 5 * 2 * 200,
        "experts: gate and up": 7.5 * (100 + 2 * 30 * 2),
        "experts: activation": 7.5 * 3 * 30 * 2,
        "experts: down": 7.5 * (30 + 200),
    }
    assert activations.largest("asap", found) == {"attention": 4000 + 9000, "moe": 6000 + 7.5 * 230}
    together = sizes(SMALL, Split(D=3, T=2, E=6), 10, sync=1)
    assert together["copies"] == 30 * 2 / 6 * 200
    assert together["experts: down"] == 30 * 3 / 6 * 230
    assert activations.largest("sync", together) == {"device": 2000 + max(9000, 2000 + 3450)}
    without = replace(SMALL, dense_layers=0)
    assert activations.largest("sync", sizes(without, Split(D=3, T=2, E=6), 10, sync=1)) == {"device": 2000 + 5450}


def test_grouped_query_attention_by_hand() -> None:
    latent = dict.fromkeys(("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"), 0)
    none = latent | dict.fromkeys(("index_heads", "index_head_dim", "index_topk"), 0)
    model = replace(SMALL, **none, kv_heads=4, head_dim=16)
    found = sizes(model, Split(D=1, T=2, E=4), 10)
    assert found["attention: projected"] == 10 * (200 + 100 + (4 + 2 + 2) * 16 * 2)
    assert found["attention: core"] == 10 * (8 + 6 + 4) * 16 * 2  # joined, queries and keys once more, result
    assert found["attention: output"] == 10 * (4 * 16 + 200)
    repeated = sizes(model, Split(D=1, T=8, E=4), 10)["attention: core"]  # one of four key-value heads on each of eight
    assert repeated == 10 * 3 * (1 + 1) * 16 * 2


@dataclass
class Tape:
    """Kernels in order, each with what it reads and writes, and the most that is alive at one of them."""

    kernels: list[tuple[set[str], set[str]]] = field(default_factory=list)
    bytes_of: dict[str, float] = field(default_factory=dict)

    def run(self, reads: str, **writes: float) -> None:
        self.kernels.append((set(reads.split()), set(writes)))
        self.bytes_of |= writes

    def alive(self) -> Iterator[float]:
        for k, (reads, writes) in enumerate(self.kernels):
            earlier = {name for _, written in self.kernels[:k] for name in written}
            later = {name for read, _ in self.kernels[k + 1 :] for name in read}
            yield sum(self.bytes_of[name] for name in reads | writes | (earlier & later))


def attention_tape(model: Architecture, T: int, n: int, b: int, form: str) -> Tape:
    """The kernels of latent attention as docs/background/cost-models.md lists them; `b` bytes of a product's input.

    Where products take activations as they are (2 bytes), the input is the activation: nothing is written.
    """
    tape, heads = Tape(), model.heads / T
    own = b != 2
    y, cq = ("y8", "cq8") if own else ("y", "cq")
    tape.run("", y=2 * n * model.hidden)
    if own:
        tape.run("y", y8=b * n * model.hidden)
    latent = model.kv_lora_rank + model.qk_rope_dim
    tape.run(y, cq=2 * n * model.q_lora_rank, ckv=2 * n * latent)
    if own:
        tape.run("cq", cq8=b * n * model.q_lora_rank)
    head = model.qk_nope_dim + model.qk_rope_dim
    tape.run(f"{cq} {y} y", q=2 * n * heads * head)
    if form == "absorbed":
        queries = model.index_heads * model.index_head_dim
        tape.run(cq, iq=2 * n * queries)
        if own:
            tape.run("iq", iq8=b * n * queries)
        tape.run("iq8" if own else "iq", scores=min(4 * n * n, 512 * 2**20), chosen=4 * n * model.index_topk)
        tape.run(f"{cq} {y} y ckv")  # the indexer returns: its arguments are let go, the latent is in the cache
        tape.run("q", ql=2 * n * heads * latent)
        tape.run("ql chosen", ol=2 * n * heads * model.kv_lora_rank)
        tape.run("ol", o=2 * n * heads * model.v_head_dim)
    else:
        tape.run("ckv", kv=2 * n * heads * (model.qk_nope_dim + model.v_head_dim))
        tape.run("kv ckv", k=2 * n * heads * head)
        tape.run("q k kv", o=2 * n * heads * model.v_head_dim)
    if own:
        tape.run("o", o8=b * n * heads * model.v_head_dim)
    tape.run("o8" if own else "o", z=2 * n * model.hidden)
    return tape


LATENT = [name for name, model in MODELS.items() if not model.grouped]


@pytest.mark.parametrize("n", [512, 32768])
@pytest.mark.parametrize("device", [DIE, BF16], ids=["int8", "bf16"])
@pytest.mark.parametrize("T", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("name", LATENT)
def test_the_moments_are_the_worst_of_all_kernels(name: str, T: int, device: Device, n: int) -> None:
    """Last uses found by the tape, not by hand; a moment of the table may be left out, none may be missed."""
    model = MODELS[name]
    found = sizes(model, Split(1, T, 16), n, device)
    moments = {"latents", "queries", "expanded", "output", "indexer", "scores", "absorbed", "values"}
    ours = max(size for key, size in found.items() if key.removeprefix("attention: ") in moments)
    forms = ("absorbed", "expanded") if model.index_topk else ("expanded",)
    tapes = [attention_tape(model, T, n, int(device.value_bytes), form) for form in forms]
    assert ours == pytest.approx(max(max(tape.alive()) for tape in tapes), rel=1e-12)


def ffn_tape(inputs: float, width: float, hidden: float, b: int) -> Tape:
    tape = Tape()
    tape.run("", x=b * inputs)
    tape.run("x", halves=2 * 2 * width)
    tape.run("halves", product=2 * width)
    if b != 2:
        tape.run("product", quantised=b * width)
    tape.run("product" if b == 2 else "quantised", result=2 * hidden)
    return tape


@pytest.mark.parametrize("device", [DIE, BF16], ids=["int8", "bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_moments_of_experts_are_the_worst_of_all_kernels(name: str, device: Device) -> None:
    model, split = MODELS[name], Split(3, 2, 8)
    found = sizes(model, split, 1000, device)
    rows = 1000 * (model.experts_per_token + model.shared_experts) / 8
    tape = ffn_tape(model.hidden, model.moe_intermediate, model.hidden, int(device.value_bytes))
    ours = max(size for key, size in found.items() if key.startswith("experts"))
    assert ours == pytest.approx(rows * max(tape.alive()), rel=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(MODELS)),
    kind=st.sampled_from(["asap", "sync"]),
    D=st.integers(1, 8),
    T=st.sampled_from([1, 2, 4, 8]),
    E=st.integers(1, 32),
    n=st.integers(1, 65536),
    v=st.floats(0.0, 4.0),
)
def test_more_tokens_need_more_and_more_devices_less(
    name: str, kind: str, D: int, T: int, E: int, n: int, v: float
) -> None:
    model, sync = MODELS[name], int(kind == "sync")

    def need(n: int, T: int, E: int, v: float, slots: int = 1) -> Mapping[str, float]:
        degrees = Split(D, T, D * T if sync else E)
        more = {"S": 65536, "N_s": slots, "v": v, "sync": sync}
        return activations.largest(kind, sizes(model, degrees, n, DIE, **more))

    here, more = need(n, T, E, v), need(n + 1, T, E, v)
    uneven = need(n, T, E, v + 0.1)
    spread = need(n, 2 * T, E, 0.0) if sync else need(n, 2 * T, 2 * E, 0.0)
    even = need(n, T, E, 0.0)
    for role in here:
        assert here[role] < more[role]
        assert here[role] <= uneven[role]
        assert spread[role] <= even[role]
        assert even[role] <= 2 * spread[role] or role == "attention"  # what every device of a group holds stays


def test_dual_batches_double_what_lives_across() -> None:
    one, two = sizes(MODEL, SPLIT, 32768), sizes(MODEL, SPLIT, 32768, N_s=2)
    lasting = {"residuals", "copies"}
    assert {name for name in one if two[name] == 2 * one[name]} == lasting
    assert {name for name in one if two[name] == one[name]} == set(one) - lasting
    assert one["residuals"] == 32768 * 7168 * 2
    assert one["copies"] == 4 * 32768 * 8 / 16 * 7168 * 2


def test_uneven_experts() -> None:
    """Rows as the busiest device of one layer, copies as that of as many layers as there are batches."""
    uneven = replace(PROFILE, expert_load_cv=2.3)
    even = sizes(MODEL, SPLIT, 4096, N_s=2)
    found = sizes(MODEL, SPLIT, 4096, N_s=2, v=2.3)
    chi = [imbalance(MODEL, DIE, uneven, SPLIT, layers) for layers in (1, 8)]
    assert 1.4 < chi[0] < 2.1 > chi[0] > chi[1] > 1.3
    assert found["experts: down"] == pytest.approx(chi[0] * even["experts: down"], rel=1e-12)
    assert found["copies"] == pytest.approx(chi[1] * even["copies"], rel=1e-12)
    same = Split(4, 4, 16)
    lockstep = [sizes(MODEL, same, 4096, sync=1, v=v)["copies"] for v in (0.0, 2.3)]
    assert lockstep[1] == pytest.approx(chi[0] * lockstep[0], rel=1e-12)


def test_scores_are_cut_to_what_there_is_room_for() -> None:
    small, large = (sizes(MODEL, SPLIT, n)["attention: scores"] - n * _query_bytes() for n in (8192, 32768))
    assert small == pytest.approx(8192 * 8192 * 4, rel=1e-9)
    assert large == pytest.approx(512 * 2**20, rel=1e-9)


def _query_bytes() -> float:
    """Bytes of a token at that moment without the scores, by hand: D4 T4, 8 bit."""
    queries = 7168 * 3 + 1536 + 576 * 2 + 32 * 192 * 2
    return queries + 64 * 128 + 2048 * 4


def test_chunks_compute_less_than_they_hold() -> None:
    """Of a step of 8k tokens behind up to 32k: dense attention expands all keys, nothing else knows of the earlier."""
    dense = MODELS["deepseek-v3"]
    whole, cut = sizes(dense, SPLIT, 8192), sizes(dense, SPLIT, 8192, S=40960)
    assert {name for name in whole if cut[name] > whole[name]} == {"attention: expanded"}
    assert cut["attention: expanded"] - whole["attention: expanded"] == 32768 * 32 * (2 * 128 + 64 + 128) * 2
    scenario = am.Scenario.load("paper-chunked")
    items = memory_budget(scenario).items["device"]
    longer = memory_budget(scenario.replace(chunk_tokens=16384)).items["device"]
    assert longer["activations"] == pytest.approx(2 * items["activations"], rel=1e-12)  # experts', whatever is held


def test_vllm_measures_1_42_gib() -> None:
    """DeepSeek-R1, T = 16, 8,192 tokens a step: experts are split like attention, so that no copies are sent."""
    model = replace(MODELS["deepseek-v3"], moe_intermediate=2048 // 16)
    found = sizes(model, Split(1, 16, 1), 8192, sync=1)
    rows = found["experts: down"] * 8 / 9  # the shared expert is a product of its own
    tokens = 3 * found["residuals"]  # the layer's input, the shared expert's result, the sum
    assert (found["residuals"] + rows + tokens) / 2**30 == pytest.approx(1.42, rel=0.08)
    assert activations.largest("sync", found)["device"] / 2**30 == pytest.approx(1.98, abs=0.01)  # if they were


def test_buffers_of_cloudmatrix_are_of_the_worst_case_too() -> None:
    """645 MiB a die (CloudMatrix384 paper): room for a copy of each of 96 tokens of 320 ranks, sent and returned."""
    copies = {name: float(x) for name, x in values(partial(copy_bytes, "token"), MODEL, DIE).items()}
    assert 320 * 96 * sum(copies.values()) == 645 * 2**20


SHIPPED = catalog.names("scenarios")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_fit(name: str) -> None:
    check_memory(am.Scenario.load(name))


def test_the_paper_s_deployment_fits_with_little_to_spare() -> None:
    budget = memory_budget(am.Scenario.load("paper-asap"))
    assert {role: round(items["activations"] / 1e9, 1) for role, items in budget.items.items()} == {
        "attention": 3.5,
        "moe": 3.2,
    }
    assert {role: round(used / 1e9, 1) for role, used in budget.used.items()} == {"attention": 14.5, "moe": 61.6}


def test_a_layout_that_only_activations_forbid_is_refused() -> None:
    scenario = am.Scenario.load("paper-asap")
    budget = memory_budget(scenario)
    need, alive = budget.used["moe"], budget.items["moe"]["activations"]
    for spare, fits in ((0.0, True), (-1.0, False), (1.0 - alive, False)):
        device = scenario.replace(**{"cluster.memory_bytes": need + spare})
        assert memory_budget(device).fits is fits
    tight = scenario.replace(**{"cluster.memory_bytes": "60 GB"})  # 58.5 GB without
    with pytest.raises(InputError, match=r"D4 T4 E16 needs 61\.6 GB on an expert device, it has 60\.0 GB") as refused:
        check_memory(tight)
    assert "lower max_batch_tokens or max_prompt_tokens" in str(refused.value)
    assert "\n" not in str(refused.value)
    check_memory(tight.replace(max_batch_tokens=29000, max_prompt_tokens=29000))


def test_the_command_line_shows_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "show", "paper-asap")
    assert shown.status == 0
    lines = [line.split() for line in shown.out.splitlines() if "activations" in line]
    assert [line[-2:] for line in lines] == [["3.49", "5.5"], ["3.16", "4.9"]]
    refused = ask(capsys, "evaluate", "paper-asap", "--rate", "1", "--set", "cluster.memory_bytes=60 GB")
    assert refused.status == 2
    assert "needs 61.6 GB on an expert device, it has 60.0 GB" in refused.error


def test_memory_of_a_device_is_items_and_activations() -> None:
    held = memory.fits(MODEL, DIE, SPLIT, "asap", 8192, 2, 4096, 1.5)
    alive = activations.largest("asap", sizes(MODEL, SPLIT, 4096, S=8192, N_s=2, v=1.5))
    assert {role: items["activations"] for role, items in held.items.items()} == alive
    assert memory.fits(MODEL, DIE, SPLIT, "asap", 8192, 2) == memory.fits(MODEL, DIE, SPLIT, "asap", 8192, 2, 8192)
