"""Inputs of the cost models: what a model is, what a device is, how well it is used, how work is split.

Plain numbers in SI units (seconds, bytes, flop, flop/s, bytes/s); where they come from is the catalogue's business.
"""

from dataclasses import dataclass

__all__ = ["Architecture", "Device", "Profile", "Split"]


@dataclass(frozen=True, slots=True)
class Architecture:
    """A mixture-of-experts transformer with multi-head latent attention, with or without a sparse indexer.

    Symbols: H hidden, h heads, rq and rk low ranks of query and key-value, dn, dr, dv head widths (no position, rotary,
    value), Hi, Di indexer heads and width, k top-k of the indexer (0: dense attention), m expert width,
    E_total routed experts, K experts per token, g shared experts, L layers, of which `dense_layers` are dense.
    """

    layers: int
    dense_layers: int
    hidden: int
    heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_dim: int
    qk_rope_dim: int
    v_head_dim: int
    dense_intermediate: int
    moe_intermediate: int
    routed_experts: int
    experts_per_token: int
    shared_experts: int
    index_heads: int
    index_head_dim: int
    index_topk: int
    vocab: int


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator (die): peaks in flop/s, memory in bytes and bytes/s, link one way in bytes/s."""

    bf16_flops: float
    int8_flops: float
    vector_flops: float
    memory_bytes: float
    memory_bandwidth: float
    link_bandwidth: float


@dataclass(frozen=True, slots=True)
class Profile:
    """How much of a peak is reached, and the latencies that no peak explains. Fractions of peak, seconds, bytes.

    `tile_padding` is the number of rows by which a grouped GEMM pads each expert's tokens, on average (half a tile).
    `expert_load_cv` is the coefficient of variation of the load of single experts (0: perfectly balanced).
    The `collective_*` and `p2p_*` fields are of blocking transfers.
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
    dispatch_bytes_per_copy: float
    combine_bytes_per_copy: float
    collective_latency: float
    collective_link: float
    p2p_handshake: float
    p2p_receiver_delay: float
    p2p_link: float
    request_latency: float = 0.0
    step_overhead: float = 0.0
    tile_padding: float = 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """Parallel degrees: `D` attention groups of `T` devices, experts over `E` devices."""

    D: int
    T: int
    E: int
