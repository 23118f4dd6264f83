"""Modules of one team, product by product, from kernels of another: tiles and waves, traffic, launches.

A module is the sum of its kernels, each on its own: products in tiles (`asapmodel.models.tiles`), the attention core,
and element-wise kernels, each with its traffic and a launch. All constants are InferSim's on H800, of 110 dense
products, 5 cores and 94 grouped products; none is fitted to a module. The launch of an element-wise kernel, which no
table has, is that of the dense products. Experts have equal rows, padded to 128 as SGLang's prefill lays them out.
Earlier predictions of these modules had been looked at when this was written: it is no blind test, though no number was
chosen by them.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asapmodel.calibration.measurements import Measurements
from asapmodel.models.elementwise import (
    Operation,
    attention_bytes,
    attention_operations,
    expert_bytes,
    expert_operations,
)
from asapmodel.models.evaluation import prepare
from asapmodel.models.kernels import attention_kernels
from asapmodel.models.symbols import symbols
from asapmodel.models.tiles import Tiles, tile_expression, tiles
from asapmodel.studies.evidence_drawn import with_drawn_rows
from asapmodel.studies.evidence_judging import measured
from asapmodel.studies.evidence_modules import MODULE, ROUTED, SHARE, cross_tables, fitted, seconds_of

__all__ = [
    "attention_by_products",
    "experts_by_products",
    "grouped_seconds",
    "kernel_letters",
    "kernels_of",
    "modules_by_products",
    "product_seconds",
]

Array = NDArray[np.float64]


@cache
def kernel_letters() -> dict[str, dict[str, float]]:
    """Letters of InferSim's kernels on H800: ``dense`` products in tiles, attention ``core``, ``grouped`` products."""
    core = measured("infersim_mla_prefill_h800", "attention", "h800", "deepseek-v3")
    grouped = with_drawn_rows(measured("infersim_grouped_gemm_decode_h800", "moe", "h800"))
    return {
        "dense": fitted(measured("infersim_gemm_h800", "moe", "h800"), "moe"),
        "core": fitted(core, "attention"),
        "grouped": fitted(grouped, "moe"),
    }


def product_seconds(data: Measurements, rows: ArrayLike, width: ArrayLike, depth: ArrayLike) -> Array:
    """Seconds of a dense product on the device of every row of a table, ``rows x depth`` by ``depth x width``."""
    cut = tiles(rows, width, data.values["P_n"])
    return _seconds(data, (1.0, rows, width, depth), cut, kernel_letters()["dense"])


def grouped_seconds(data: Measurements, groups: Array, rows: Array, width: Array, depth: Array) -> Array:
    """Seconds of a grouped product, `rows` of each of the `groups`, padded to 128 one after another."""
    padded = 128 * np.ceil(rows / 128)
    cut = tiles(groups * padded, width, data.values["P_n"], heights=(128,))
    return _seconds(data, (groups, padded, width, depth), cut, kernel_letters()["grouped"])


def _seconds(data: Measurements, sizes: Sequence[ArrayLike], cut: Tiles, given: Mapping[str, float]) -> Array:
    law, names = tile_expression(), ("G", "N_x", "N_y", "N_z", "t_x", "t_y", "N_w")
    needed = {str(x.name) for x in law.free_symbols} - {*given, *names}
    known = {name: x for name, x in data.values.items() if name in needed}
    return prepare(law, list(given), **known, **dict(zip(names, (*sizes, *cut), strict=True)))(list(given.values()))


def kernels_of(operations: tuple[Operation, ...], parts: tuple[str, ...]) -> int:
    """Number of SGLang's element-wise kernels; some are two lines of the table, "rotary, queries" and "rotary, key"."""
    return len({one.name.partition(",")[0] for one in operations if "sglang" in one.stacks and one.part in parts})


def attention_by_products(data: Measurements) -> Array:
    """Seconds of SGLang's modules of latent attention as they were timed: without down-projections."""
    v, letters, launch = data.values, kernel_letters(), kernel_letters()["dense"]["tau_k"]
    tokens, heads = v["N_b"] * (v["s"] - v["p"]), v["h"] / v["T"]
    query = product_seconds(data, tokens, heads * (v["dn"] + v["dr"]), v["rq"])
    expanded = product_seconds(data, tokens, heads * (v["dn"] + v["dv"]), v["rk"])
    output = product_seconds(data, tokens, v["H"], heads * v["dv"])
    core = seconds_of(attention_kernels()["dense_core"], data, letters["core"])
    (B_m,) = symbols("B_m")
    traffic = tokens * seconds_of(attention_bytes("latent", "sglang", MODULE) / (SHARE * B_m), data, {})
    return query + expanded + output + core + traffic + kernels_of(attention_operations("latent"), MODULE) * launch


def experts_by_products(data: Measurements) -> Array:
    """Seconds of SGLang's steps of routed experts as they were timed: every device has a row for every token."""
    v, launch = data.values, kernel_letters()["dense"]["tau_k"]
    groups, rows = v["E_total"] / v["E"], v["n"] * v["K"] / v["E_total"]
    up, down = (
        grouped_seconds(data, groups, rows, 2 * v["m"], v["H"]),
        grouped_seconds(data, groups, rows, v["H"], v["m"]),
    )
    (B_m,) = symbols("B_m")
    traffic = v["n"] * seconds_of(expert_bytes("sglang", ROUTED, True) / (SHARE * B_m), data, {})
    return up + down + traffic + kernels_of(expert_operations(), ROUTED) * launch


@cache
def modules_by_products() -> dict[str, tuple[Array, Array]]:
    """Measured and predicted seconds of the modules of `asapmodel.studies.evidence_modules.cross_tables`."""
    module, steps = cross_tables()
    return {
        "MLA module": (module.seconds, attention_by_products(module)),
        "MoE module": (steps.seconds, experts_by_products(steps)),
    }
