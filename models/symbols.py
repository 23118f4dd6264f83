"""The one table of symbols: letter, meaning, unit, value in the paper's deployment, place where it stands.

Every cost expression of `asapmodel.models` is built from these letters and from nothing else (a test holds it
to that). FLOP, tokens, query-key pairs and vector operations are counts, hence of dimension one. Letters are
the paper's where it has one. What is *not* in the paper says so, and `assumed` marks round figures for
examples: real ones come from the catalogue and its calibrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sympy

__all__ = ["SYMBOLS", "Entry", "symbols"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One symbol.

    `field` is the attribute of the `owner` class in `asapmodel.models.parameters` that holds its value; entries owned
    by ``constant`` keep their default, those owned by ``variable`` are given at each evaluation. `zero` says whether 0
    is a legal value, `optional` that 0 means none is known. `unit` is one of ``1, s, byte, byte/s, flop/s``.
    """

    letter: str
    meaning: str
    unit: str
    default: float
    field: str
    place: str
    owner: str
    zero: bool = False
    optional: bool = False

    @property
    def dimension(self) -> sympy.Expr:
        """`unit` as an expression in `sympy.physics.units` (imported here: most users never need it)."""
        import sympy
        from sympy.physics.units import byte, second

        units = {"1": sympy.S.One, "s": second, "byte": byte, "byte/s": byte / second, "flop/s": 1 / second}
        return units[self.unit]


_CONFIG = "not in the paper: config.json of DeepSeek-V3.2"
_CHIP = "not in the paper: docs/background/hardware.md 1.1"
_ASSUMED = "not in the paper: assumed"
_VLLM = "not in the paper: default of vLLM, docs/background/cost-models.md, Activations"
_FIT = "not in the paper: kernel laws that are fitted to measurements"

_architecture = partial(Entry, owner="Architecture")
_grouped = partial(_architecture, place="not in the paper: grouped-query attention")
_device = partial(Entry, owner="Device", place=_CHIP)
_profile = partial(Entry, owner="Profile")
_copy = partial(_profile, unit="byte", optional=True)
_split = partial(Entry, owner="Split", unit="1", place="Table 1")
_constant = partial(Entry, owner="constant", field="")
_variable = partial(Entry, owner="variable", field="")

_TABLE = (
    _architecture("L", "layers", "1", 61, "layers", "Table 1"),
    _architecture("L_d", "leading dense layers", "1", 3, "dense_layers", _CONFIG, zero=True),
    _architecture("H", "hidden size", "1", 7168, "hidden", "Table 1"),
    _architecture("h", "attention heads", "1", 128, "heads", _CONFIG),
    _architecture("rq", "low rank of the query", "1", 1536, "q_lora_rank", _CONFIG, optional=True),
    _architecture("rk", "low rank of key and value", "1", 512, "kv_lora_rank", _CONFIG, optional=True),
    _architecture("dn", "head width without position", "1", 128, "qk_nope_dim", _CONFIG, optional=True),
    _architecture("dr", "head width of the rotary part", "1", 64, "qk_rope_dim", _CONFIG, optional=True),
    _architecture("dv", "head width of the value", "1", 128, "v_head_dim", _CONFIG, optional=True),
    _architecture("H_d", "width of the dense FFN", "1", 18432, "dense_intermediate", _CONFIG, zero=True),
    _architecture("m", "width of one expert", "1", 2048, "moe_intermediate", _CONFIG),
    _architecture("E_total", "routed experts", "1", 256, "routed_experts", "Table 1"),
    _architecture("K", "routed experts per token", "1", 8, "experts_per_token", "Table 1"),
    _architecture("g", "shared experts", "1", 1, "shared_experts", "sec. 5.1", zero=True),
    _architecture("Hi", "indexer heads", "1", 64, "index_heads", _CONFIG, zero=True),
    _architecture("Di", "indexer head width", "1", 128, "index_head_dim", _CONFIG, zero=True),
    _architecture("k", "keys kept by the indexer (0: dense)", "1", 2048, "index_topk", _CONFIG, zero=True),
    _architecture("N_v", "vocabulary", "1", 129280, "vocab", _CONFIG, zero=True),
    _grouped("h_kv", "key-value heads", "1", 0, "kv_heads", optional=True),
    _grouped("d_h", "head width", "1", 0, "head_dim", optional=True),
    _grouped("W", "window", "1", 0, "window", zero=True),
    _grouped("L_w", "layers with a window", "1", 0, "windowed_layers", zero=True),
    _device("P_16", "BF16 peak", "flop/s", 376e12, "bf16_flops"),
    _device("P_8", "peak of products with weights", "flop/s", 752e12, "product_flops", optional=True),
    _device("P_v", "vector FP32 peak", "flop/s", 11e12, "vector_flops"),
    _device("M", "memory of a device", "byte", 64e9, "memory_bytes"),
    _device("B_m", "memory bandwidth", "byte/s", 1.6e12, "memory_bandwidth"),
    _device("B_l", "link bandwidth one way", "byte/s", 196e9, "link_bandwidth"),
    _device("P_n", "multiprocessors", "1", 0, "multiprocessors", optional=True),
    _device("b_w", "bytes of a weight", "byte", 1, "weight_bytes"),
    _device("b_a", "bytes of a value in a product", "byte", 1, "value_bytes"),
    _profile("eta_g", "share of peak: projections", "1", 0.8, "gemm", _ASSUMED),
    _profile("eta_c", "share of peak: attention core", "1", 0.65, "core", _ASSUMED),
    _profile("eta_i", "share of peak: indexer scores", "1", 0.65, "indexer", _ASSUMED),
    _profile("eta_v", "share of peak: vector work", "1", 0.3, "vector", _ASSUMED),
    _profile("eta_x", "share of peak: grouped GEMM", "1", 0.4, "grouped_gemm", _ASSUMED),
    _profile("r_x", "rows padded per expert", "1", 0.0, "tile_padding", _ASSUMED, zero=True),
    _profile("eta_m", "share of memory bandwidth", "1", 0.84, "memory", _ASSUMED),
    _profile("eta_l", "share of link, asynchronous", "1", 0.9, "link", _ASSUMED),
    _profile("eta_b", "share of link, collective", "1", 0.5, "collective_link", _ASSUMED),
    _profile("eta_p", "share of link, point to point", "1", 0.15, "p2p_link", _ASSUMED),
    _profile("tau_a", "launch floor of attention", "s", 5e-4, "attention_overhead", _ASSUMED, zero=True),
    _profile("tau_s", "latency of a send", "s", 2e-5, "send_latency", _ASSUMED, zero=True),
    _profile("tau_r", "latency of a receive", "s", 1e-5, "recv_latency", _ASSUMED, zero=True),
    _profile("tau_h", "host dispatch of one layer", "s", 220e-6, "host_dispatch", "sec. 5.5.3", zero=True),
    _profile("tau_b", "latency of a collective", "s", 1e-4, "collective_latency", _ASSUMED, zero=True),
    _profile("tau_p", "handshake of one P2P call", "s", 1e-5, "p2p_handshake", _ASSUMED, zero=True),
    _profile("tau_w", "wait for a busy receiver", "s", 0.0, "p2p_receiver_delay", _ASSUMED, zero=True),
    _profile("v", "variation of single experts' load", "1", 0.0, "expert_load_cv", _ASSUMED, zero=True),
    _copy("b_d", "bytes of a dispatched copy", default=7680, field="dispatch_bytes_per_copy", place="sec. 5.4: 63 MB"),
    _copy("b_c", "bytes of a combined copy", default=14336, field="combine_bytes_per_copy", place="Table 1: H Dsize"),
    _profile("c_t", "attention outside products, per token", "s", 0.0, "token_overhead", _ASSUMED, zero=True),
    _profile("eta_e", "share of memory bandwidth: no products", "1", 0, "elementwise", _ASSUMED, optional=True),
    _profile("kappa", "share of copies that cross the link", "1", 1, "copies_sent", _ASSUMED),
    _split("D", "attention groups", default=4, field="D"),
    _split("T", "devices of an attention group", default=4, field="T"),
    _split("E", "devices that hold experts", default=16, field="E"),
    _constant("Dsize", "bytes of an activation", "byte", 2, place="Table 1"),
    _constant("b_i", "bytes of an id, a count, eight flags", "byte", 1, place="Table 2: 64 KB"),
    _constant("b_p", "bytes that an INT8 copy is a multiple of", "byte", 512, place="docs/background/hardware.md 1.3"),
    _constant("b_q", "bytes of a scale", "byte", 4, place="docs/background/hardware.md 1.3"),
    _constant("b_f", "bytes of a score, and of a selected key's index", "byte", 4, place=_VLLM),
    _constant("M_s", "memory for the indexer's scores", "byte", 512 * 2**20, place=_VLLM),
    _constant("c_key", "top-k: vector operations per key seen", "1", 4.36, place="docs/background/hardware.md 1.2"),
    _constant("c_top", "top-k: vector operations per key kept", "1", 3.32, place="docs/background/hardware.md 1.2"),
    _variable("s", "length of a prompt", "1", 32768, place="sec. 2.2.1"),
    _variable("p", "cached or earlier part of it", "1", 0, place="sec. 2.3: prefix cache", zero=True),
    _variable("n", "tokens of a batch", "1", 2048, place="sec. 2.2.2"),
    _variable("S", "most tokens of a batch", "1", 32768, place="Table 1"),
    _variable("N_s", "batches a group holds at once", "1", 2, place="sec. 3.3.2"),
    _variable("N_r", "receivers of a P2P dispatch", "1", 16, place="sec. 5.4"),
    _variable("N_l", "layers over which loads average out", "1", 1, place="sec. 2.2.2"),
    _variable("chi", "load of the busiest device over mean", "1", 1, place="sec. 2.2.2: perfect balance"),
    _variable("N_b", "equal prompts of a batch", "1", 1, place=_FIT),
    _variable("tau_f", "floor of a module: its host's work", "s", 1.5e-3, place=_FIT, zero=True),
    _variable("tau_k", "launch of a kernel", "s", 5e-6, place=_FIT, zero=True),
    _variable("c_m", "time of a token outside the experts' products", "s", 2e-7, place=_FIT, zero=True),
    _variable("tau_q", "a prompt in a head of a dense core, beside its work", "s", 5e-8, place=_FIT, zero=True),
    _variable("k_0", "keys a sparse core pads each query by", "1", 250, place=_FIT, zero=True),
    _variable("h_0", "fewest heads a sparse core works on", "1", 64, place=_FIT),
    _variable("q", "overlap of reading and multiplying", "1", 2, place=_FIT),
    _variable("G", "groups of a grouped GEMM", "1", 16, place=_FIT),
    _variable("N_x", "rows of one group", "1", 128, place=_FIT),
    _variable("N_y", "width of its result", "1", 4096, place=_FIT),
    _variable("N_z", "width it sums over", "1", 7168, place=_FIT),
    _variable("t_x", "rows of a tile", "1", 128, place=_FIT),
    _variable("t_y", "columns of a tile", "1", 128, place=_FIT),
    _variable("N_w", "waves of tiles", "1", 1, place=_FIT),
    _variable("k_z", "start and end of a tile, in steps of depth", "1", 100, place=_FIT, zero=True),
    _variable("B_t", "operands a multiprocessor takes in", "byte/s", 1e11, place=_FIT),
    _variable("b_x", "bytes of a copy on the wire", "byte", 7680, place=_FIT),
    _variable("mu_E", "expected maximum of E standard normals", "1", 1.765991, place=_ASSUMED, zero=True),
)

SYMBOLS: Mapping[str, Entry] = MappingProxyType({entry.letter: entry for entry in _TABLE})
"""The table, by letter."""


@cache
def symbols(letters: str) -> tuple[sympy.Symbol, ...]:
    """SymPy symbols of the letters, in order.

    Parameters
    ----------
    letters : str
        Letters of the table, separated by spaces.

    Returns
    -------
    tuple of sympy.Symbol
        Positive symbols; nonnegative ones where 0 is legal, so that SymPy keeps a case like ``k = 0``.

    Raises
    ------
    KeyError
        A letter is not in the table.

    Examples
    --------
    >>> H, m = symbols("H m")
    >>> SYMBOLS["m"].meaning
    'width of one expert'
    """
    import sympy  # here: numbers can often do without, see `asapmodel.models.formulas`

    entries = [SYMBOLS[letter] for letter in letters.split()]
    return tuple(
        sympy.Symbol(e.letter, nonnegative=True) if e.zero else sympy.Symbol(e.letter, positive=True) for e in entries
    )
