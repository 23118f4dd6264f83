"""Kernels of attention besides its products, for latent, sparse and grouped-query attention.

Heads are split over the T devices of a group; latents, keys and the indexer are on each of them.
"""

from __future__ import annotations

from functools import cache

from asapmodel.models.elementwise_base import BOTH, CANN, SGLANG, Kind, Operation, moved, quantised
from asapmodel.models.symbols import symbols

__all__ = ["attention_operations"]


@cache
def attention_operations(kind: Kind) -> tuple[Operation, ...]:
    """Kernels of attention for a token on one device of a group; heads are split over T devices, the rest is not.

    Parameters
    ----------
    kind : Kind
        Of attention. For ``"sparse"`` and ``"grouped"`` only SGLang's kernels are known here.

    Examples
    --------
    >>> [one.name for one in attention_operations("grouped")][:3]
    ['add residual, norm', 'quantise input', 'copy out of joined projection']
    """
    H, rq = symbols("H rq")
    every = "one kernel before each product with weights"
    layer = moved("add residual, norm", "layer", BOTH, 2 * H, "one kernel: sum and norm written, both read")
    first = quantised("quantise input", "input", BOTH, H, every)
    if kind == "grouped":
        return (layer, first, *_grouped())
    again = quantised("quantise input again", "input", CANN, H, "down-projections of query and key are two products")
    query = moved("query norm", "module", BOTH, rq, "not fused with quantisation")
    latent = quantised("quantise query latent", "module", BOTH, rq, every)
    own = _expanded() if kind == "latent" else (*_absorbed(), *_indexer())
    return (layer, first, again, query, latent, *_key_and_rotary(), *own)


def _key_and_rotary() -> tuple[Operation, ...]:
    """Latent of key and value: norm, rotary embedding of queries and key, cache; quantised output."""
    h, T, rk, dr, dv, size = symbols("h T rk dr dv Dsize")
    fused = "norm, rotary embedding, cache: one kernel, which also hands on its result"
    return (
        moved("key-value norm", "module", SGLANG, rk, "not fused"),
        moved("rotary, queries", "module", BOTH, h / T * dr, "in place, other values untouched"),
        moved("rotary, key", "module", SGLANG, dr, "in the same kernel as queries"),
        moved("write cache", "module", SGLANG, rk + dr, "scattered to the cache's pages, 16 bit"),
        Operation("norm, rotary, cache", "module", "token", (rk + dr) * size, 2 * (rk + dr) * size, CANN, fused),
        quantised("quantise attention output", "module", BOTH, h / T * dv, "one kernel before the output product"),
    )


def _expanded() -> tuple[Operation, ...]:
    """Keys and values expanded to heads."""
    h, T, rk, dn, dr, size = symbols("h T rk dn dr Dsize")
    read, joined = (h / T * dn + dr) * size, h / T * (dn + dr) * size
    repeated = h / T * dr * size
    kept = "the core takes both parts apart, the rotary one for each head"
    return (
        quantised("quantise key-value latent", "module", SGLANG, rk, "16-bit product in cann-recipes"),
        Operation("join keys", "module", "token", read, joined, SGLANG, "the core takes one tensor of keys"),
        Operation("repeat rotary key", "module", "token", dr * size, repeated, CANN, kept),
    )


def _absorbed() -> tuple[Operation, ...]:
    """Heads work on the shared latent."""
    h, T, rk, dn, dr = symbols("h T rk dn dr")
    return (
        quantised("quantise queries", "module", SGLANG, h / T * dn, "before the product with the key's expansion"),
        moved("join queries", "module", SGLANG, h / T * (rk + dr), "the core takes one tensor of queries"),
        quantised("quantise core's result", "module", SGLANG, h / T * rk, "before the product with the value's"),
    )


def _indexer() -> tuple[Operation, ...]:
    """Indexer: a key, and Hi queries that every device computes."""
    rq, H, Hi, Di, dr, b_a = symbols("rq H Hi Di dr b_a")
    head = (Hi + 1) * Di
    twice = "each product quantises its own input"
    return (
        quantised("quantise query latent again", "indexer", SGLANG, rq, twice),
        quantised("quantise input again", "indexer", SGLANG, H, twice),
        moved("key norm", "indexer", SGLANG, Di, "not fused"),
        moved("rotary", "indexer", SGLANG, (Hi + 1) * dr, "in place"),
        moved("Hadamard transform", "indexer", SGLANG, head, "of queries and key, a kernel each"),
        quantised("quantise queries and key", "indexer", SGLANG, head, "scores are taken in the precision of products"),
        Operation("write key", "indexer", "token", Di * b_a, Di * b_a, SGLANG, "to the indexer's cache"),
    )


def _grouped() -> tuple[Operation, ...]:
    """Grouped-query attention with norms of queries and keys, as Qwen3 has them; others have less."""
    import sympy

    h, h_kv, d_h, T, size = symbols("h h_kv d_h T Dsize")
    held = sympy.Max(h_kv / T, 1) * d_h
    both = h / T * d_h + held
    cached = "keys come from the rotary kernel, which also writes the cache"
    return (
        moved("copy out of joined projection", "module", SGLANG, both, "norms want heads side by side"),
        moved("query and key norm", "module", SGLANG, both, "a norm a head"),
        moved("rotary", "module", SGLANG, both, "in place"),
        Operation("write cache", "module", "token", held * size, 2 * held * size, SGLANG, cached),
        quantised("quantise attention output", "module", SGLANG, h / T * d_h, "one kernel before the output product"),
    )
