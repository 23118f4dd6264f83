"""Each cost is a time or a size: substitute a quantity with its unit for every letter and see what is left."""

import dataclasses
import subprocess
import sys
from typing import get_args

import pytest
import sympy
from sympy.physics.units import byte, convert_to, second

from asapmodel.models import (
    activations,
    attention,
    collectives,
    elementwise,
    flops,
    grouped_query,
    host,
    imbalance,
    kernels,
    link,
    memory,
    moe,
    point_to_point,
    tiles,
    volumes,
)
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import SYMBOLS

TIMES = {
    **{f"attention {name}": x for name, x in attention.parts().items()},
    **{f"grouped {name}": x for name, x in grouped_query.parts().items()},
    "prompt": attention.prompt_expression(),
    "moe read": moe.read_expression(),
    "moe floor": moe.floor_expression(),
    "moe arithmetic": moe.arithmetic_expression(),
    "moe": moe.time_expression(),
    **{f"asynchronous {name}": x for name, x in link.asynchronous_expressions().items()},
    **{f"synchronous {name}": x for name, x in link.synchronous_expressions().items()},
    **{f"contended {name}": x for name, x in collectives.contended_expressions().items()},
    "busiest device": collectives.busiest_expression(),
    **{f"between products, {x}": elementwise.attention_seconds(x, "sglang") for x in ("latent", "sparse", "grouped")},
    "between products, experts": elementwise.expert_seconds("sglang"),
    "p2p": link.p2p_expression(),
    "async dispatch": point_to_point.async_dispatch_expression(),
    "host": host.total_expression(),
    **{f"kernel {name}": x for name, x in kernels.attention_kernels().items() if name != "module"},
    "kernel module, detailed": kernels.attention_kernels(detail=True)["module"],
    "kernel experts, detailed": kernels.moe_kernels(detail=True)["module"],
    "kernel experts": kernels.moe_kernels()["module"],
    "kernel grouped GEMM": kernels.gemm_expression(),
    "kernel product in tiles": tiles.tile_expression(),
    "kernel message": kernels.message_expression(),
}
SIZES = {
    "dispatch": volumes.dispatch_volume(),
    "combine": volumes.combine_volume(),
    "printed": volumes.printed_volume(),
    "cache": memory.cache_bytes(),
    **{f"copy, scales {one}": volumes.copy_bytes(one)["dispatch"] for one in ("none", "token", "block")},
    "copy back": volumes.copy_bytes("none")["combine"],
    **{
        f"{kind} {role} {name}{' grouped' * grouped}": x
        for kind in ("asap", "sync")
        for grouped in (False, True)
        for role, items in memory.budget(kind, grouped).items()
        for name, x in items.items()
    },
    **{
        f"{kind} alive, {attention} {name}": x
        for kind in ("asap", "sync")
        for attention in get_args(elementwise.Kind)
        for name, x in activations.expressions(kind, attention).items()
    },
}
COUNTS = {
    **flops.flops(),
    **{f"grouped {name}": x for name, x in grouped_query.flops().items()},
    "grouped keys": grouped_query.keys(),
    "pairs": flops.pairs(),
    "attended": flops.attended(),
    "topk": flops.topk_operations(),
    "moe flop": moe.flop_per_token(),
    "imbalance": imbalance.imbalance_expression(),
}
EVERYTHING = {**TIMES, **SIZES, **COUNTS}


def with_units(expression: sympy.Expr, prompt: int = 32768) -> sympy.Expr:
    """Substitute value times unit for every letter; zeros become 3, lest they hide a term."""
    values = {x: SYMBOLS[x.name] for x in expression.free_symbols}
    numbers = {x: sympy.nsimplify(e.default or 3) for x, e in values.items()} | {
        sympy.Symbol("s", positive=True): prompt
    }
    return expression.subs({x: numbers[x] * e.dimension for x, e in values.items()}, simultaneous=True)


def left_over(expression: sympy.Expr, unit: sympy.Expr) -> sympy.Expr:
    return sympy.simplify(convert_to(expression, unit) / unit)


@pytest.mark.parametrize("prompt", [1024, 32768])
@pytest.mark.parametrize("name", TIMES)
def test_times_reduce_to_seconds(name: str, prompt: int) -> None:
    rest = left_over(with_units(TIMES[name], prompt), second)
    assert rest.is_number
    assert rest > 0 or (prompt == 1024 and "topk" in name)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_reduce_to_bytes(name: str) -> None:
    rest = left_over(with_units(SIZES[name]), byte)
    assert rest.is_number
    assert rest > 0


@pytest.mark.parametrize("name", COUNTS)
def test_counts_have_no_dimension(name: str) -> None:
    assert with_units(COUNTS[name]).is_number


def test_a_wrong_dimension_is_noticed() -> None:
    wrong = TIMES["moe floor"] * sympy.Symbol("b_w", positive=True)
    assert not left_over(with_units(wrong), second).is_number


def test_every_free_symbol_is_in_the_table_with_its_assumption() -> None:
    used = set().union(*(x.free_symbols for x in EVERYTHING.values()))
    for x in used:
        assert x.name in SYMBOLS
        assert bool(x.is_positive) is not SYMBOLS[x.name].zero


def test_every_letter_of_the_table_is_used() -> None:
    used = {x.name for expression in EVERYTHING.values() for x in expression.free_symbols}
    assert set(SYMBOLS) - used == {"M"}  # the memory of a device is compared with sums


def test_the_table_covers_every_parameter() -> None:
    elsewhere = {"request_latency", "step_overhead"}  # per batch and request, not per layer
    # The precision chooses one of the peaks, the last one of two laws.
    elsewhere |= {"int8_flops", "fp8_flops", "precision", "collectives"}
    chosen = {"product_flops", "weight_bytes", "value_bytes"}
    for owner in (Architecture, Device, Profile, Split):
        fields = {x.name for x in dataclasses.fields(owner)} - elsewhere | (chosen if owner is Device else set())
        assert {e.field for e in SYMBOLS.values() if e.owner == owner.__name__} == fields
    assert all(e.meaning and e.place and e.unit for e in SYMBOLS.values())


def test_import_is_cheap() -> None:
    code = (
        "import sys; from asapmodel.models import attention, moe, link, host, memory;"
        "print([x for x in ('scipy', 'sympy.physics.units') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
