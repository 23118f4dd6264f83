"""Inputs of the cost models: what a model is, what a device is, how well it is used, how work is split.

Plain numbers in SI units (seconds, bytes, flop, flop/s, bytes/s); where they come from is the catalogue's business.
"""

from dataclasses import dataclass
from typing import Literal

from asapmodel.models.precision import PRECISIONS, Format

__all__ = ["Architecture", "Collectives", "Device", "Profile", "Split"]

Collectives = Literal["senders", "contention"]
"""What paces blocking collectives: the senders alone, or the busiest receiver too, `asapmodel.models.collectives`."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A mixture-of-experts transformer, with latent or with grouped-query attention.

    Symbols: H hidden, h heads, m expert width, E_total routed experts, K experts per token, g shared experts, L layers,
    of which `dense_layers` are dense. Latent attention (MLA): rq and rk low ranks of query and key-value, dn, dr, dv
    head widths (no position, rotary, value), Hi, Di indexer heads and width, k top-k of the indexer (0: dense
    attention). Grouped-query attention (`kv_heads` > 0): h_kv key-value heads, d_h head width, L_w layers with a window
    of W tokens. Fields of the other kind are 0.
    """

    layers: int
    dense_layers: int
    hidden: int
    heads: int
    dense_intermediate: int
    moe_intermediate: int
    routed_experts: int
    experts_per_token: int
    shared_experts: int
    vocab: int
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_dim: int = 0
    qk_rope_dim: int = 0
    v_head_dim: int = 0
    index_heads: int = 0
    index_head_dim: int = 0
    index_topk: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    window: int = 0
    windowed_layers: int = 0

    @property
    def grouped(self) -> bool:
        """Whether attention is grouped-query."""
        return self.kv_heads > 0


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator (die): peaks in flop/s, memory in bytes and bytes/s, link one way in bytes/s.

    A peak of 0 says that the device has no units for that format. `multiprocessors` are the units that each work on one
    tile of a product, `asapmodel.models.tiles`; 0: not known. `precision` is the one of `PRECISIONS` in which
    products with weights are computed; ``""``: FP8 if the device has it, else INT8, else BF16.
    """

    bf16_flops: float
    vector_flops: float
    memory_bytes: float
    memory_bandwidth: float
    link_bandwidth: float
    int8_flops: float = 0.0
    fp8_flops: float = 0.0
    multiprocessors: int = 0
    precision: str = ""

    @property
    def peaks(self) -> dict[str, float]:
        """Peaks by number format, of the formats that the device has."""
        peaks = {"fp8": self.fp8_flops, "int8": self.int8_flops, "bf16": self.bf16_flops}
        return {name: peak for name, peak in peaks.items() if peak > 0}

    @property
    def format(self) -> Format:
        """The format of products with weights.

        Examples
        --------
        >>> Device(376e12, 11e12, 64e9, 1.6e12, 196e9, int8_flops=752e12).format.peak
        'int8'
        """
        return PRECISIONS[self.precision or next(iter(self.peaks))]

    @property
    def product_flops(self) -> float:
        """Peak of products with weights, flop/s; 0 if the device has none in `format`."""
        return self.peaks.get(self.format.peak, 0.0)

    @property
    def weight_bytes(self) -> float:
        """Bytes of a weight."""
        return self.format.weight_bytes

    @property
    def value_bytes(self) -> float:
        """Bytes of a value that goes into a product with weights."""
        return self.format.value_bytes


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of a peak is reached, and the latencies that no peak explains. Fractions of peak, seconds, bytes.

    `tile_padding` is the number of rows by which a grouped GEMM pads each expert's tokens, on average (half a tile).
    `expert_load_cv` is the coefficient of variation of the load of single experts (0: perfectly balanced).
    `token_overhead` is what attention spends on each token of a layer outside products (norms, rotary embedding,
    quantisation, writing the cache), on every device of the group.
    `copies_sent` is the share of a token's copies that cross the link, less than 1 where those to one device or server
    are merged. Bytes of a copy of 0 mean those of the model at the precision used, `volumes.with_copy_bytes`.
    The `collective_*` and `p2p_*` fields are of blocking transfers; `collectives` says which law of them holds.
    `elementwise` is the share of the memory bandwidth that kernels without products reach
    (`asapmodel.models.elementwise`); 0: they are not counted. Where they are, `token_overhead` is what else there is.
    """

    gemm: float
    core: float
    indexer: float
    vector: float
    grouped_gemm: float
    memory: float
    link: float
    attention_overhead: float
    send_latency: float
    recv_latency: float
    host_dispatch: float
    expert_load_cv: float
    collective_latency: float
    collective_link: float
    p2p_handshake: float
    p2p_receiver_delay: float
    p2p_link: float
    request_latency: float = 0.0
    step_overhead: float = 0.0
    tile_padding: float = 0.0
    dispatch_bytes_per_copy: float = 0.0
    combine_bytes_per_copy: float = 0.0
    copies_sent: float = 1.0
    token_overhead: float = 0.0
    elementwise: float = 0.0
    collectives: Collectives = "senders"


@dataclass(frozen=True, slots=True)
class Split:
    """Parallel degrees: `D` attention groups of `T` devices, experts over `E` devices."""

    D: int
    T: int
    E: int
