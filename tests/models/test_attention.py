import csv
import doctest
import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.models import attention
from asapmodel.models.evaluation import bind, evaluate, paper_deployment
from asapmodel.models.flops import attended, flops, pairs, topk_operations
from asapmodel.models.parameters import Architecture, Split
from asapmodel.models.reduction import fit_quadratic
from asapmodel.models.symbols import symbols

ARCHITECTURES = Path(__file__).parent.parent / "data" / "architectures.csv"
MODULES = (
    "symbols",
    "evaluation",
    "flops",
    "grouped_query",
    "precision",
    "reduction",
    "attention",
    "imbalance",
    "moe",
    "volumes",
    "point_to_point",
    "link",
    "host",
    "memory",
)
GIVEN = paper_deployment()
ARCHITECTURE, DEVICE, PROFILE, SPLIT = GIVEN
DENSE = (replace(ARCHITECTURE, index_topk=0), DEVICE, PROFILE, SPLIT)

prompts = st.tuples(st.integers(1, 300), st.integers(0, 300)).map(lambda x: (max(x), min(x)))


@pytest.mark.parametrize("name", MODULES)
def test_doctests_pass_and_every_public_function_has_one(name: str) -> None:
    module = importlib.import_module(f"asapmodel.models.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    own = [
        getattr(module, x) for x in module.__all__ if getattr(getattr(module, x), "__module__", "") == module.__name__
    ]
    functions = [x for x in own if not isinstance(x, type) and callable(x)]
    assert all(">>>" in x.__doc__ for x in functions)


def test_defaults_are_the_published_architecture() -> None:
    with ARCHITECTURES.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        row = next(x for x in rows if x["model"] == "DeepSeek-V3.2")
    grouped = ("kv_heads", "head_dim", "window", "windowed_layers")
    for field in ARCHITECTURE.__dataclass_fields__:
        column = "first_dense_layers" if field == "dense_layers" else field
        assert getattr(ARCHITECTURE, field) == (0 if field in grouped else int(row[column])), field


def test_catalogue_models_are_those_of_the_table() -> None:
    with ARCHITECTURES.open() as file:
        rows = {x["model"].lower(): x for x in csv.DictReader(line for line in file if not line.startswith("#"))}
    other = {"kimi-k2": "kimi-k2-instruct", "mixtral-8x22b": "mixtral-8x22b-v0.1"}
    assert {other.get(name, name) for name in catalog.names("models")} == rows.keys() - {"step-3"}
    columns = {"dense_layers": "first_dense_layers", "window": "sliding_window"}
    for name in catalog.names("models"):
        model, row = catalog.load_architecture(name).value, rows[other.get(name, name)]
        for field in Architecture.__dataclass_fields__:
            shown = row.get(columns.get(field, field), "")
            if field in ("windowed_layers",) or (field in ("kv_heads", "head_dim") and not model.grouped):
                continue
            assert getattr(model, field) == (int(shown) if shown else 0), (name, field)


def test_flop_counts_are_those_of_section_2() -> None:
    values = {name: float(evaluate(x, ARCHITECTURE)) for name, x in flops().items()}
    assert values["projections"] == pytest.approx(374.2e6, rel=2e-4)
    assert values["indexer_projections"] == pytest.approx(27.9e6, rel=1e-3)
    assert values["dense_pair"] == 81920
    assert values["absorbed_key"] == 278528
    assert values["indexer_pair"] == 16384
    assert values["absorbed_key"] * 2048 == pytest.approx(570.4e6, rel=1e-4)


def test_projections_agree_with_step3() -> None:
    assert 61 * float(evaluate(flops()["projections"], ARCHITECTURE)) == pytest.approx(2.283e10, rel=5e-4)


@given(prompts, st.integers(0, 300))
def test_closed_sums_equal_brute_force(prompt: tuple[int, int], k: int) -> None:
    s, p = prompt
    architecture = replace(ARCHITECTURE, index_topk=k)
    rows = range(p + 1, s + 1)
    assert float(evaluate(pairs(), s=s, p=p)) == sum(rows)
    assert float(evaluate(attended(), architecture, s=s, p=p)) == sum(min(i, k) for i in rows)
    operations = sum(4.36 * i + 3.32 * k for i in rows if i > k)
    assert float(evaluate(topk_operations(), architecture, s=s, p=p)) == pytest.approx(operations)


@given(prompts)
def test_pairs_are_half_of_n_plus_w(prompt: tuple[int, int]) -> None:
    s, p = prompt
    assert float(evaluate(pairs(), s=s, p=p)) == ((s - p) + (s**2 - p**2)) / 2


def chunks_of(s: int, chunk: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ends = np.append(np.arange(chunk, s, chunk), s)
    return ends, np.append(0, ends[:-1])


@given(st.integers(1, 40000), st.integers(200, 20000))
def test_chunks_add_up_to_the_prompt(s: int, chunk: int) -> None:
    ends, starts = chunks_of(s, chunk)
    assert attention.prompt_time(*DENSE, ends, starts).sum() == pytest.approx(float(attention.prompt_time(*DENSE, s)))
    for name, part in attention.parts().items():
        whole = float(evaluate(part, *GIVEN, s=s, p=0))
        pieces = evaluate(part, *GIVEN, s=ends, p=starts).sum()
        if name == "core":
            # Each piece takes the cheaper form for itself: never dearer than the whole.
            assert pieces <= whole * (1 + 1e-12)
        else:
            assert pieces == pytest.approx(whole, rel=1e-9)


def test_sparse_chunks_add_up_where_all_take_one_form() -> None:
    for s, chunk in ((2000, 500), (6000, 1000)):
        ends, starts = chunks_of(s, chunk)
        total = attention.prompt_time(*GIVEN, ends, starts).sum()
        assert total == pytest.approx(float(attention.prompt_time(*GIVEN, s)))


def test_core_takes_the_cheaper_form() -> None:
    lengths = np.array([1000.0, 12_000.0, 13_000.0, 32768.0])
    core = evaluate(attention.parts()["core"], *GIVEN, s=lengths, p=0) * SPLIT.T * 376e12 * PROFILE.core
    dense = 81920 * lengths * (lengths + 1) / 2
    sparse = 278528 * evaluate(attended(), ARCHITECTURE, s=lengths, p=0)
    np.testing.assert_allclose(core, np.minimum(dense, sparse))
    assert dense[1] < sparse[1]
    assert sparse[2] < dense[2]


def test_time_of_a_prompt_by_hand() -> None:
    s, k = 32768, 2048
    causal = s * (s + 1) / 2
    expected = (
        374210560 * s / 4 / (752e12 * 0.8)
        + 27918336 * s / (752e12 * 0.8)
        + 278528 * (k * (k + 1) / 2 + k * (s - k)) / 4 / (376e12 * 0.65)
        + 16384 * causal / (752e12 * 0.65)
        + sum(4.36 * i + 3.32 * k for i in range(k + 1, s + 1)) / (11e12 * 0.3)
    )
    assert float(attention.prompt_time(*GIVEN, s)) == pytest.approx(expected)


def test_dense_attention_has_no_indexer() -> None:
    parts = {name: float(evaluate(x, *DENSE, s=8192, p=0)) for name, x in attention.parts().items()}
    assert parts["indexer_projections"] == parts["indexer_scores"] == parts["topk"] == 0
    assert parts["core"] == pytest.approx(81920 * 8192 * 8193 / 2 / 4 / (376e12 * 0.65))


def test_indexer_is_not_split_over_the_group() -> None:
    def share(T: int) -> dict[str, float]:
        split = Split(D=4, T=T, E=16)
        return {name: float(evaluate(x, *GIVEN[:3], split, s=8192, p=0)) for name, x in attention.parts().items()}

    one, eight = share(1), share(8)
    for name in ("projections", "core"):
        assert one[name] == pytest.approx(8 * eight[name])
    for name in ("indexer_projections", "indexer_scores", "topk"):
        assert one[name] == eight[name]


@given(st.integers(1, 32767), st.integers(1, 4000), st.integers(0, 4000))
def test_longer_costs_more_and_cached_costs_less(s: int, more: int, cached: int) -> None:
    p = min(cached, s)
    base = float(attention.prompt_time(*GIVEN, s, p))
    assert float(attention.prompt_time(*GIVEN, s + more, p)) > base
    assert base <= float(attention.prompt_time(*GIVEN, s, 0))


def test_a_batch_pays_the_floor_once() -> None:
    lengths = [100, 5000, 20000]
    total = sum(float(attention.prompt_time(*GIVEN, s)) for s in lengths)
    assert attention.batch_time(*GIVEN, lengths) == pytest.approx(PROFILE.attention_overhead + total)
    cached = attention.batch_time(*GIVEN, lengths, cached=[0, 4000, 0])
    assert cached < attention.batch_time(*GIVEN, lengths)


def test_one_long_prompt_is_several_times_dearer_than_many_short_ones() -> None:
    ratio = attention.batch_time(*GIVEN, [32768]) / attention.batch_time(*GIVEN, [1024] * 32)
    assert 3.2 < ratio < 5.5  # sec. 2.2.1 has 4.2, docs/background/hardware.md 1.6 expects at least 3.2


def test_latency_grows_with_order_two_in_the_end() -> None:
    s = np.array([65536.0, 131072.0, 262144.0])
    order = np.diff(np.log(attention.prompt_time(*GIVEN, s))) / np.log(2)
    assert order[0] < order[1] < 2
    assert order[1] > 1.7


def test_reduction_is_exact_for_a_quadratic() -> None:
    lengths = np.geomspace(31, 32768, 40)
    law = attention.reduce(*DENSE, lengths=lengths, weights=1 / lengths)
    assert law.max_relative_error < 1e-9
    assert law.fixed == PROFILE.attention_overhead
    for s, p in ((4096, 0), (4096, 1024)):
        n, w = s - p, s**2 - p**2
        exact = float(attention.prompt_time(*DENSE, s, p))
        assert law.per_token * n + law.per_token2 * w == pytest.approx(exact)


def test_reduction_keeps_mean_and_mean_square_of_the_cost() -> None:
    rng = np.random.default_rng(1)
    lengths, weights = rng.uniform(31, 32768, 200), rng.uniform(0, 1, 200)
    law = attention.reduce(*GIVEN, lengths=lengths, weights=weights)
    exact = attention.prompt_time(*GIVEN, lengths)
    model = law.per_token * lengths + law.per_token2 * lengths**2
    assert weights @ model == pytest.approx(weights @ exact)
    assert weights @ model**2 == pytest.approx(weights @ exact**2)
    assert min(law[:3]) >= 0
    assert law.mean_relative_error == pytest.approx(weights @ abs(model - exact) / (weights @ exact))
    assert law.max_relative_error == pytest.approx(abs(model / exact - 1).max())


@pytest.mark.parametrize(("power", "zero"), [(0.5, 1), (3.0, 0)])
def test_fit_falls_back_to_one_term(power: float, zero: int) -> None:
    s = np.geomspace(10, 1000, 20)
    coefficients = fit_quadratic(s, s**power, np.ones_like(s))
    assert coefficients[zero] == pytest.approx(0.0, abs=1e-12)
    assert (s**power).sum() == pytest.approx((coefficients[0] * s + coefficients[1] * s**2).sum())


def test_reduction_for_one_length_is_exact_there() -> None:
    law = attention.reduce(*GIVEN, lengths=[4096.0])
    assert law.max_relative_error < 1e-12
    assert law.per_token > 0
    assert law.per_token2 > 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: attention.prompt_time(*GIVEN, 100, 101),
        lambda: attention.prompt_time(*GIVEN, 0),
        lambda: attention.prompt_time(*GIVEN, -1),
        lambda: attention.prompt_time(*GIVEN, float("nan")),
        lambda: attention.prompt_time(*GIVEN[:2], replace(PROFILE, gemm=0.0), SPLIT, 100),
        lambda: attention.batch_time(*GIVEN, []),
        lambda: attention.batch_time(*GIVEN, [10, 20], cached=[5]),
        lambda: attention.reduce(*GIVEN, lengths=[10.0, 20.0], weights=[1.0]),
        lambda: attention.reduce(*GIVEN, lengths=[10.0, 20.0], weights=[0.0, 0.0]),
        lambda: attention.reduce(*GIVEN, lengths=[10.0, 20.0], weights=[-1.0, 1.0]),
        lambda: evaluate(pairs(), s=5),
        lambda: evaluate(attention.prompt_expression(), ARCHITECTURE, s=5, p=0),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        call()


def test_unknown_letters_are_refused() -> None:
    with pytest.raises(KeyError):
        symbols("H nonsense")
    with pytest.raises(KeyError):
        bind(nonsense=1.0)
