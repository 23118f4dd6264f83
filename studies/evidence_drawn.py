"""Rows of the groups of measured grouped products: InferSim's, drawn by its benchmark, and DeepGEMM's, all equal.

InferSim's tables state the rows of a group in the mean. Its benchmark (`kernel_benchmark/deepgemm_grouped_gemm_*.py`)
draws those of each group, ``int(stated uniform(0.7, 1.3))``, by Python's generator from seed 0, and divides the
operations of the drawn rows by the time: printed share of peak, time and sizes give their number. So the draws can be
done again, and checked line by line (a test does). They are a matter of the data alone: no law is involved, and no
time is used but in the 15 lines that are named below.

H800, decode: ten draws a product, the last one timed; all 94 totals agree. H20, prefill: rows are padded to 128 a group
and multiplied so; one draw a product and shares that count drawn rows, and for models of 256 experts and more, measured
by a later version, three draws and shares that count padded rows. Widths were rounded up to multiples of 128, which the
table does not say of two models. Two configurations of the model of 512 experts were run and left out of the table;
its last 15 lines are of another run, and their padded rows, whole multiples of 128, are taken from the shares.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.calibration.measurements import Measurements
from asapmodel.models.tiles import Tiles, tiles
from asapmodel.studies.evidence_judging import column_of

__all__ = [
    "DECODE",
    "PREFILL",
    "draws",
    "padded_rows",
    "with_drawn_rows",
    "with_equal_rows",
    "with_multiplied_rows",
    "with_padded_rows",
]

Array = NDArray[np.float64]

DECODE = "infersim_grouped_gemm_decode_h800"
PREFILL = "infersim_grouped_gemm_prefill_h20"

_PAD = 128
_LATER = 256  # experts of models that a later version of the benchmark measured
_OTHER_RUN = 15  # lines at the end of the prefill table
_LEFT_OUT = {0: (512, 20), 4: (256, 40)}  # groups and rows of what ran before these lines of the model of 512 experts


def draws(configurations: Sequence[tuple[int, int]], repeats: int) -> list[Array]:
    """Rows of every group, of the up and the down product of each configuration (groups, stated rows)."""
    generator, found = Random(0), []
    for groups, rows in configurations:
        for _ in ("up", "down"):
            for _ in range(repeats):
                drawn = [int(rows * generator.uniform(0.7, 1.3)) for _ in range(groups)]
            found.append(np.array(drawn, dtype=np.float64))
    return found


def _lines(data: Measurements, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Columns of the table's lines; a line is two products, all up ones stand first."""
    ups = data.take(np.arange(len(data) // 2))
    return list(zip(*(column_of(ups, name, one).tolist() for one in columns), strict=True))


def _up_first(found: Sequence[Any]) -> list[Any]:
    return [*found[0::2], *found[1::2]]


def with_drawn_rows(decode: Measurements) -> Measurements:
    """The whole decode table with the groups that got rows, their mean, and the tiles of the drawn rows."""
    found, chosen, tall = _tiled_draws(decode)
    total = np.array([rows.sum() for rows in found])
    return _of_groups(decode, found, total, chosen, tall)


def with_multiplied_rows(decode: Measurements) -> Measurements:
    """The same with the rows that were multiplied, those of whole tiles, for laws that know no tiles.

    Whole tiles are moved, too: up to 32 stated rows, one tile of 64 a group, times do not change with the rows, and up
    and down products come to the same share of bandwidth only if 64 rows a group are counted (a test).
    """
    found, chosen, tall = _tiled_draws(decode)
    return _of_groups(decode, found, tall * chosen.rows, chosen, tall)


def _tiled_draws(decode: Measurements) -> tuple[list[Array], Tiles, Array]:
    """Rows of every group by product, tiles, and how many of them lie on one another in all groups together.

    The library chose the tile for the stated rows and groups; tiles are those of the rows that there were.
    """
    stated = decode.values
    found = _up_first(draws(_lines(decode, DECODE, ("num_local_experts", "tokens_per_expert")), 10))
    chosen = tiles(stated["N_x"], stated["N_y"], stated["P_n"], stated["G"])
    tall = np.array([np.ceil(rows / t_x).sum() for rows, t_x in zip(found, chosen.rows, strict=True)])
    return found, chosen, tall


def _of_groups(decode: Measurements, found: Sequence[Array], total: Array, chosen: Tiles, tall: Array) -> Measurements:
    """The table with so many rows in total, of the groups that got any."""
    busy = np.array([np.count_nonzero(rows) for rows in found], dtype=np.float64)
    waves = np.ceil(tall * np.ceil(decode.values["N_y"] / chosen.columns) / decode.values["P_n"])
    return _cut(decode, {"G": busy, "N_x": total / busy}, chosen.rows, chosen.columns, waves)


def _cut(data: Measurements, values: dict[str, Array], rows: Array, columns: Array, waves: Array) -> Measurements:
    return replace(data, values={**data.values, **values, "t_x": rows, "t_y": columns, "N_w": waves})


def with_padded_rows(prefill: Measurements) -> Measurements:
    """The whole prefill table with the rows that were multiplied, padded ones among them, real widths, and tiles."""
    width, depth = 2 * _padded(prefill.values["N_y"] / 2), _padded(prefill.values["N_z"])  # of up twice the expert's
    rows = padded_rows(replace(prefill, values={**prefill.values, "N_y": width, "N_z": depth}))
    cut = tiles(rows, width, prefill.values["P_n"], heights=(_PAD,))
    return _cut(prefill, {"N_x": rows / prefill.values["G"], "N_y": width, "N_z": depth}, *cut)


def padded_rows(prefill: Measurements) -> Array:
    """Rows of all groups together that were multiplied, by product, for a table with the real widths."""
    lines = _lines(prefill, PREFILL, ("num_local_experts", "tokens_per_expert", "num_experts", "hidden_size"))
    widths = prefill.values["N_z"][len(lines) :].tolist()
    models = [(*line[2:], width) for line, width in zip(lines, widths, strict=True)]
    found: list[Array] = []
    for model in dict.fromkeys(models):
        ours = [line[:2] for line, other in zip(lines, models, strict=True) if other == model]
        found += _of_model(ours, model[0])
    total = np.array([_padded(rows).sum() for rows in _up_first(found)])
    peak = float(prefill.values["P_8"][0])
    share = np.array(_up_first([x for line in _lines(prefill, PREFILL, ("up_mfu", "down_mfu")) for x in line]))
    printed = share * peak * prefill.seconds / (2 * prefill.values["N_y"] * prefill.values["N_z"])
    other = np.tile(np.arange(len(lines)) >= len(lines) - _OTHER_RUN, 2)
    return np.where(other, _PAD * np.round(printed / _PAD), total)


def _of_model(ours: list[tuple[int, int]], experts: int) -> list[Array]:
    """Draws of the lines of one model, which is one run of the benchmark."""
    left_out = _LEFT_OUT if experts == 512 else {}
    run: list[tuple[int, int]] = []
    kept: list[int] = []
    for place, line in enumerate(ours):
        run += [left_out[place]] if place in left_out else []
        kept += [2 * len(run), 2 * len(run) + 1]
        run.append(line)
    found = draws(run, 3 if experts >= _LATER else 1)
    return [found[k] for k in kept]


def _padded(values: Array) -> Array:
    return np.asarray(_PAD * np.ceil(values / _PAD), dtype=np.float64)


def with_equal_rows(data: Measurements, padded: NDArray[np.bool_]) -> Measurements:
    """Grouped products whose groups have equal rows, with their tiles; some lie padded one after another."""
    v = data.values
    apart = tiles(v["N_x"], v["N_y"], v["P_n"], v["G"])
    joined = tiles(v["G"] * _padded(v["N_x"]), v["N_y"], v["P_n"], heights=(_PAD,))
    return _cut(data, {}, *(np.where(padded, one, other) for one, other in zip(joined, apart, strict=True)))
