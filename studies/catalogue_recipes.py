"""What each calibrated profile of the catalogue is fitted to, and what it takes from elsewhere.

A recipe is a base of assumed numbers and fits, one after the other. Fields that no table says anything about come from
another profile or a document, with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
import pandas as pd

from asapmodel.calibration.measurements import Measurements
from asapmodel.studies.evidence_drawn import DECODE, PREFILL, with_drawn_rows, with_multiplied_rows, with_padded_rows
from asapmodel.studies.evidence_judging import measured

__all__ = ["RECIPES", "Fit", "Recipe", "merged_share"]

_FP8, _INT8, _BF16 = 7392.0, 7680.0, 14336.0  # bytes of 7168 values as they are sent
_GPU_PEAK_TILES = 132  # tiles of 128 x 128 that occupy every multiprocessor of a Hopper GPU

Table = tuple[str, pd.DataFrame]
"""The comment at the head of a table's file, and rows of it."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One call of `asapmodel calibrate`: rows by table, and which fields are taken, the profile's by the fit's name.

    A `note` on what was read other than stated goes into the source of each field.
    """

    model: str
    tables: Mapping[str, Callable[[], Table]]
    fields: Mapping[str, str]
    device: str
    execution: str = "collective"
    architecture: str = "deepseek-v3.2"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A profile.

    Attributes
    ----------
    title : str
        Of its file.
    fits : sequence of Fit
        In order.
    numbers : mapping of str to (value, unit, kind, source)
        Fields that are stated or assumed here.
    taken : mapping of str to str
        Fields taken from another recipe's profile, by its name.
    own_base : bool
        Whether ``cloudmatrix384-paper``, which gives all other fields, is of the same device.
    """

    title: str
    fits: Sequence[Fit]
    numbers: Mapping[str, tuple[float, str, str, str]] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)
    own_base: bool = False


def merged_share(places: int, copies: int = 8) -> float:
    """Share of a token's copies that cross the link when those to one of the places, or to one's own, are merged.

    ``(x - 1) (1 - (1 - 1/x)^K) / K`` for x places and K copies: docs/background/cost-models.md, Transfers.

    Examples
    --------
    >>> [round(merged_share(x), 3) for x in (2, 4, 8)]
    [0.125, 0.337, 0.574]
    """
    return float((places - 1) * (1 - (1 - 1 / places) ** copies) / copies)


def _read(name: str) -> Table:
    path = files("asapmodel.studies").joinpath(f"data/measured/{name}.csv")
    head = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return head, pd.read_csv(str(path), comment="#")


def _rows(name: str, query: str = "") -> Callable[[], Table]:
    def read() -> Table:
        head, table = _read(name)
        return head, table.query(query) if query else table

    return read


def _filled(name: str) -> Callable[[], Table]:
    """Dense products that occupy every multiprocessor."""

    def read() -> Table:
        head, table = _read(name)
        return head, table[np.ceil(table["m"] / 128) * np.ceil(table["n"] / 128) >= _GPU_PEAK_TILES]

    return read


def _grouped(name: str, device: str, real: Callable[[Measurements], Measurements], field: str, note: str) -> Fit:
    """Grouped products with rows that there really were, which InferSim's tables state in the mean.

    Which rows: a constant holds what the planner's law leaves out, and nothing that the law counts itself. It
    multiplies the rows of a group and `tile_padding`, half a tile as a recipe states; so the share of peak is that of
    all rows multiplied, padded ones among them, or the padding would be counted twice. It reads weights alone; so the
    share of bandwidth is that of the rows that have tokens, and what padded ones move is part of it.
    """

    def read() -> Table:
        data = real(measured(name, "moe", device))
        letters = {"groups": "G", "rows": "N_x", "width": "N_y", "depth": "N_z"}
        products = pd.DataFrame({column: data.values[letter] for column, letter in letters.items()})
        return _read(name)[0], products.assign(quantity="grouped_gemm", seconds=data.seconds)

    return Fit("moe", {name: read}, {field: field}, device, note=f"{note}, drawn as the benchmark does")


def _link(parts: Sequence[tuple[str, pd.Series, pd.Series, float]]) -> pd.DataFrame:
    """Rows of operations in the columns of `calibrate`: name, tokens, seconds, bytes of a copy on the wire."""
    columns = ("quantity", "tokens", "seconds", "bytes_per_copy")
    return pd.concat([pd.DataFrame(dict(zip(columns, part, strict=True))) for part in parts], ignore_index=True)


def _low_latency(nodes: int, share: float) -> Callable[[], Table]:
    """One-sided kernels of DeepEP; `share` of the copies is counted, as in the profile they go to."""

    def read() -> Table:
        head, table = _read("aiconfigurator_deepep_ll_h100")
        rows = table[table["nodes"] == nodes]
        sent, back = (("dispatch", _FP8 * share), ("combine", _BF16 * share))
        tokens = rows["tokens_per_rank"]
        return head, _link([(op, tokens, 1e-6 * rows[f"{op}_us"], size) for op, size in (sent, back)])

    return read


def _ascend_normal() -> Table:
    head, table = _read("deepep_ascend_normal")
    rows = table[table["ep"].isin((16, 32)) & table["version"].str.startswith("b2e9")]
    sizes = (("dispatch", _INT8), ("combine", _BF16))
    bytes_ = {op: rows["tokens"] * 8 * size / (1e9 * rows[f"{op}_gbps"]) for op, size in sizes}
    return head, _link([(op, rows["tokens"], bytes_[op], size) for op, size in sizes])


def _ascend_low_latency() -> Table:
    head, table = _read("deepep_ascend_low_latency")
    rows = table[table["ep"].isin((16, 32))]
    sizes = (("dispatch", _INT8), ("combine", _BF16))
    return head, _link([(op, rows["tokens_per_rank"], 1e-6 * rows[f"{op}_us"], size) for op, size in sizes])


_MODULE = {name: name for name in ("gemm", "core", "indexer", "vector", "attention_overhead", "token_overhead")}
_COLLECTIVE = {name: name for name in ("collective_latency", "collective_link")}
_SEND = {name: name for name in ("send_latency", "link")}
_DSA, _NODE = "aiconfigurator_dsa_context_vllm", "aiconfigurator_deepep_normal_single_node"
_SCORES = "infersim_dsa_prefill_logits_h800"
_NODE_SHARE, _RDMA_SHARE = merged_share(8), merged_share(4)
_HALF_TILE = (
    *(64.0, "1", "assumed"),
    "half a tile of 128 rows, to which DeepGEMM aligns; the groups that the benchmark of H20 draws lack 63 in the mean",
)


def _module(gpu: str) -> Fit:
    """Whole DSA modules of one GPU, and the indexer's scores alone, which tell them apart from top-k."""
    rows = _rows(_DSA, f'system == "{gpu}_sxm" and kv_dtype == "bfloat16"')
    return Fit("attention", {_DSA: rows, _SCORES: _rows(_SCORES)}, _MODULE, "h800")  # h800: of the scores


def _node(gpu: str) -> Fit:
    return Fit("link", {_NODE: _rows(_NODE, f'system == "{gpu}_sxm" and comm_sms == 20')}, _COLLECTIVE, gpu)


def _sends(nodes: int, share: float, device: str) -> Fit:
    return Fit("link", {"aiconfigurator_deepep_ll_h100": _low_latency(nodes, share)}, _SEND, device, "send")


def _experts_h100() -> Fit:
    name = "aiconfigurator_moe_context_h100"
    rows = _rows(name, 'ep > 2 and routing == "uniform"')
    return Fit("moe", {name: rows}, {"grouped_gemm": "grouped_gemm"}, "h100")


def _copies(share: float, places: str) -> tuple[float, str, str, str]:
    return (share, "1", "assumed", f"even routing of 8 copies, merged for one of {places}")


_ON_NODE = {"copies_sent": _copies(_NODE_SHARE, "8 devices of a server"), "tile_padding": _HALF_TILE}
_ON_RDMA = {"copies_sent": _copies(_RDMA_SHARE, "4 servers"), "tile_padding": _HALF_TILE}
_H100_EXPERTS = {"grouped_gemm": "h100-nvlink", "memory": "h800-nvlink"}
_H100_ATTENTION = dict.fromkeys(_MODULE, "h100-nvlink")
_MULTIPLIED = "all rows that were multiplied, those that fill up tiles among them"
_H800_KERNELS = (
    Fit(
        "attention",
        {name: _rows(name) for name in ("infersim_dsa_prefill_attn_h800", _SCORES)},
        {"core": "core", "indexer": "indexer"},
        "h800",
    ),
    Fit("moe", {"infersim_gemm_h800": _filled("infersim_gemm_h800")}, {"grouped_gemm": "gemm"}, "h800"),
    _grouped(DECODE, "h800", with_multiplied_rows, "grouped_gemm", _MULTIPLIED),
    _grouped(DECODE, "h800", with_drawn_rows, "memory", "rows of tokens, without what fills up tiles"),
)
_H20_KERNELS = (
    Fit("attention", {"infersim_mha_prefill_h20": _rows("infersim_mha_prefill_h20")}, {"core": "core"}, "h20"),
    Fit("moe", {"infersim_gemm_h20": _filled("infersim_gemm_h20")}, {"grouped_gemm": "gemm"}, "h20"),
    _grouped(PREFILL, "h20", with_padded_rows, "grouped_gemm", _MULTIPLIED),
)
_H20_INDEXER = (
    0.59,
    "1",
    "assumed",
    "as on H800, whose kernel reaches 0.59 of its peak: no table of the indexer on H20",
)
_LAUNCHES = dict.fromkeys(("vector", "attention_overhead", "token_overhead"), "h100-nvlink")
# The table of H20 says nothing of memory: with 128 rows a group and more, reading takes half as long as multiplying.
_H20_TAKEN = {**_LAUNCHES, "memory": "h800-nvlink"}
_SEND_NVLINK, _SEND_RDMA = dict.fromkeys(_SEND, "h100-nvlink"), dict.fromkeys(_SEND, "h100-rdma")
_COLLECTIVE_RDMA = dict.fromkeys(_COLLECTIVE, "h100-rdma")
_DEEPEP_NVLINK = (0.8, "1", "stated", "DeepEP README: about 160 of 200 GB/s reached over the NVLink of H800")
_FLASHMLA_B200 = (
    *(0.644, "1", "stated"),
    "FlashMLA: sparse prefill at 1450 of 2250 TFLOPS; in the modules the fit ends at its bound, so they do not say",
)
_SWEEP = "aiconfigurator_deepep_normal_h100"
_RDMA_SWEEP = Fit(
    "link",
    {_SWEEP: _rows(_SWEEP, "nodes == 4 and comm_sms == 20 and tokens_per_rank >= 64")},
    _COLLECTIVE,
    "h100-network",
)

RECIPES: Mapping[str, Recipe] = {
    "h800-nvlink": Recipe(
        "H800, kernels of InferSim, NVLink",
        _H800_KERNELS,
        {**_ON_NODE, "collective_link": _DEEPEP_NVLINK},
        {**_LAUNCHES, "collective_latency": "h100-nvlink", **_SEND_NVLINK},
    ),
    "h100-nvlink": Recipe(
        "H100, modules of vLLM and SGLang, NVLink",
        (_module("h100"), _experts_h100(), _node("h100"), _sends(1, _NODE_SHARE, "h100")),
        _ON_NODE,
        {"memory": "h800-nvlink"},
    ),
    "h100-rdma": Recipe(
        "H100, modules of vLLM and SGLang, network cards of 400 Gbit/s, 4 servers",
        (_RDMA_SWEEP, _sends(4, _RDMA_SHARE, "h100-network")),
        _ON_RDMA,
        {**_H100_ATTENTION, **_H100_EXPERTS},
    ),
    "h800-rdma": Recipe(
        "H800, kernels of InferSim, network cards of 400 Gbit/s, 4 servers",
        _H800_KERNELS,
        _ON_RDMA,
        {**_LAUNCHES, **_COLLECTIVE_RDMA, **_SEND_RDMA},
    ),
    "h200-nvlink": Recipe(
        "H200, modules of vLLM, NVLink",
        (_module("h200"), _node("h200")),
        _ON_NODE,
        {**_H100_EXPERTS, **_SEND_NVLINK},
    ),
    "h200-rdma": Recipe(
        "H200, modules of vLLM, network cards of 400 Gbit/s, 4 servers",
        (_module("h200"),),
        _ON_RDMA,
        {**_H100_EXPERTS, **_COLLECTIVE_RDMA, **_SEND_RDMA},
    ),
    "b200-nvlink": Recipe(
        "B200, modules of vLLM, NVLink",
        (_module("b200"), _node("b200")),
        {**_ON_NODE, "core": _FLASHMLA_B200},
        {**_H100_EXPERTS, **_SEND_NVLINK},
    ),
    "gb200-nvl72": Recipe(
        "Blackwell racks of 72 GPUs, modules of B200",
        (),
        {"copies_sent": _copies(merged_share(72), "72 devices of a rack"), "tile_padding": _HALF_TILE},
        {**dict.fromkeys((*_MODULE, *_COLLECTIVE, *_SEND, "grouped_gemm", "memory"), "b200-nvlink")},
    ),
    "h20-nvlink": Recipe(
        "H20, kernels of InferSim, NVLink",
        _H20_KERNELS,
        {**_ON_NODE, "indexer": _H20_INDEXER},
        {**_H20_TAKEN, **dict.fromkeys(_COLLECTIVE, "h200-nvlink"), **_SEND_NVLINK},
    ),
    "h20-rdma": Recipe(
        "H20, kernels of InferSim, network cards of 400 Gbit/s, 4 servers",
        _H20_KERNELS,
        {**_ON_RDMA, "indexer": _H20_INDEXER},
        {**_H20_TAKEN, **_COLLECTIVE_RDMA, **_SEND_RDMA},
    ),
    "cloudmatrix384-measured": Recipe(
        "CloudMatrix384, published kernels of Ascend 910C",
        (
            Fit(
                "link",
                {"deepep_ascend_normal": _ascend_normal, "deepep_ascend_low_latency": _ascend_low_latency},
                _COLLECTIVE,
                "ascend-910c-die",
            ),
        ),
        {
            "core": (0.654, "1", "measured", "CloudMatrix384 paper, arXiv 2506.12708: MLA, compute-bound"),
            "indexer": (0.654, "1", "assumed", "as the core: no table of the indexer on this device"),
            "grouped_gemm": (0.774, "1", "assumed", "lower end of dense INT8 GEMM (CloudMatrix384 paper)"),
        },
        own_base=True,
    ),
}
"""By the profile's name."""
