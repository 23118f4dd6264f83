"""Memory of a device: shared buffers (Table 2), weights, key-value cache, activations, and whether it all fits.

Statically allocated for the largest batch (S tokens), as sec. 3.2 has it. Linear weights have the bytes of the
device's precision (1 in 8 bit), embeddings and head activation width. Activations: `asapmodel.models.activations`. Not
counted: the gate (H E_total per layer, 0.2 GB in all), norms, fragmentation, communication libraries; keep headroom for
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from asapmodel.models import grouped_query
from asapmodel.models.activations import expressions, largest
from asapmodel.models.elementwise import Kind, kind_of
from asapmodel.models.flops import flops
from asapmodel.models.formulas import values
from asapmodel.models.imbalance import expected_maximum
from asapmodel.models.parameters import Architecture, Device, Split
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["MemoryBudget", "attention_buffers", "budget", "cache_bytes", "fits", "moe_buffers", "weights"]


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Bytes per device, by role and item, against `memory_bytes`.

    Roles are ``attention`` and ``moe`` in an asap layout, ``device`` in a sync layout.
    """

    items: Mapping[str, Mapping[str, float]]
    memory_bytes: float

    @property
    def used(self) -> dict[str, float]:
        """Bytes used per role."""
        return {role: sum(items.values()) for role, items in self.items.items()}

    @property
    def headroom(self) -> dict[str, float]:
        """Bytes left per role; negative where it does not fit."""
        return {role: self.memory_bytes - used for role, used in self.used.items()}

    @property
    def fits(self) -> bool:
        """Whether every role has at least its bytes."""
        return min(self.headroom.values()) >= 0


@cache
def attention_buffers() -> Mapping[str, sympy.Expr]:
    """Shared buffers of an attention device, ``K S/T``, ``H K S Dsize/T``, ``ceil(E/8)``: upper half of Table 2.

    Returns
    -------
    mapping of str to sympy.Expr
        ``expert ids`` (one byte each), ``expert results``, ``arrival flags`` (E bits), in bytes. Exact as
        printed; 64 KiB, 0.875 GiB, 2 B.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> {name: int(evaluate(x, *paper_deployment(), S=32768)) for name, x in attention_buffers().items()}
    {'expert ids': 65536, 'expert results': 939524096, 'arrival flags': 2}
    """
    import sympy

    K, S, T, H, E, Dsize, b_i = symbols("K S T H E Dsize b_i")
    return MappingProxyType(
        {
            "expert ids": K * S / T * b_i,
            "expert results": H * K * S * Dsize / T,
            "arrival flags": sympy.ceiling(E / 8) * b_i,
        }
    )


@cache
def moe_buffers() -> Mapping[str, sympy.Expr]:
    """Shared buffers of an MoE device, ``D T E_total/E``, ``D H K S Dsize``, ``ceil(D T/8)``: lower half of Table 2.

    Returns
    -------
    mapping of str to sympy.Expr
        ``token metadata``, ``tokens``, ``arrival flags`` (D T bits), in bytes. Exact as printed; 256 B, 14
        GiB, 2 B. Table 2 gives counts of metadata entries, taken at one byte; counts up to S need two, which
        is still below its "< 1 KB".

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> {name: int(evaluate(x, *paper_deployment(), S=32768)) for name, x in moe_buffers().items()}
    {'token metadata': 256, 'tokens': 15032385536, 'arrival flags': 2}
    """
    import sympy

    D, T, E_total, E, H, K, S, Dsize, b_i = symbols("D T E_total E H K S Dsize b_i")
    return MappingProxyType(
        {
            "token metadata": D * T * E_total / E * b_i,
            "tokens": D * H * K * S * Dsize,
            "arrival flags": sympy.ceiling(D * T / 8) * b_i,
        }
    )


@cache
def weights() -> Mapping[str, sympy.Expr]:
    """Weights on a device, e.g. experts ``(E_total/E + g) 3 H m (L - L_d) b_w``.

    Returns
    -------
    mapping of str to sympy.Expr
        Bytes: ``attention`` ``L projections/2 b_w/T``, ``indexer`` ``L indexer_projections/2 b_w``
        (replicated), ``dense`` ``3 H H_d L_d b_w/T``, ``embeddings`` ``2 N_v H Dsize/T`` (input and output),
        ``experts`` as above.

    Notes
    -----
    A weight costs 2 FLOP per token, hence the halves of `asapmodel.models.flops`. Exact for a split by heads
    except the down-projections to the low ranks, which deployments replicate: too small by
    ``L H (rq + rk + dr) (1 - 1/T) b_w``, 0.7 GB at T = 4. Source: docs/background/hardware.md section 2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> {name: f"{float(evaluate(x, *paper_deployment())) / 1e9:.2f} GB" for name, x in weights().items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'attention': '2.85 GB', 'indexer': '0.85 GB', 'dense': '0.30 GB', 'embeddings': '0.93 GB',
     'experts': '43.42 GB'}
    """
    L, L_d, H, H_d, N_v, m, E_total, g, T, E = symbols("L L_d H H_d N_v m E_total g T E")
    Dsize, b_w = symbols("Dsize b_w")
    flop = flops()
    return MappingProxyType(
        {
            "attention": L * flop["projections"] / 2 * b_w / T,
            "indexer": L * flop["indexer_projections"] / 2 * b_w,
            "dense": 3 * H * H_d * L_d * b_w / T,
            "embeddings": 2 * N_v * H * Dsize / T,
            "experts": (E_total / E + g) * 3 * H * m * (L - L_d) * b_w,
        }
    )


@cache
def cache_bytes() -> sympy.Expr:
    """Key-value cache of a group, on each of its devices, ``S N_s L ((rk + dr) Dsize + Di b_a)``.

    Returns
    -------
    sympy.Expr
        Bytes for N_s batches of S tokens.

    Notes
    -----
    MLA caches one latent of rk + dr per token and layer, shared by all heads, so a split by heads replicates
    it; the indexer adds a key of Di values at the precision of products. The latent is in 16 bit. Exact for keys
    without scales. Source: docs/background/hardware.md section 2.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> f"{float(evaluate(cache_bytes(), *paper_deployment(), S=32768, N_s=2)) / 1e9:.2f} GB"  # 78080 B a token
    '5.12 GB'
    """
    S, N_s, L, rk, dr, Di, Dsize, b_a = symbols("S N_s L rk dr Di Dsize b_a")
    return S * N_s * L * ((rk + dr) * Dsize + Di * b_a)


@cache
def budget(kind: str, grouped: bool = False) -> Mapping[str, Mapping[str, sympy.Expr]]:
    """Items of each device role of a layout, in bytes.

    Parameters
    ----------
    kind : str
        ``"asap"`` (roles attention, moe) or ``"sync"`` (role device).
    grouped : bool
        Whether attention is grouped-query.

    Returns
    -------
    mapping of str to mapping of str to sympy.Expr
        Weights, cache and buffers; activations are a maximum, see `fits`. A sync device holds both kinds of weights
        and, instead of shared buffers, send and receive space of its all-to-alls, ``2 H K S Dsize / T`` (*choice*: the
        paper does not say).

    Raises
    ------
    ValueError
        Another kind.

    Examples
    --------
    >>> list(budget("asap")["moe"])
    ['experts weights', 'token metadata', 'tokens', 'arrival flags']
    """
    weight = {f"{name} weights": expression for name, expression in weights().items()}
    experts = {"experts weights": weight.pop("experts weights")}
    if grouped:
        del weight["indexer weights"]
        weight["attention weights"] = grouped_query.weight_bytes()
    group = {**weight, "key-value cache": grouped_query.cache_bytes() if grouped else cache_bytes()}
    if kind == "asap":
        return {"attention": {**group, **attention_buffers()}, "moe": {**experts, **moe_buffers()}}
    if kind == "sync":
        return {"device": {**group, **experts, "all-to-all buffers": 2 * attention_buffers()["expert results"]}}
    raise ValueError(_unknown(kind))


def fits(
    architecture: Architecture,
    device: Device,
    split: Split,
    kind: str,
    S: int,
    slots: int,
    tokens: int = 0,
    spread: float = 0.0,
) -> MemoryBudget:
    """Memory of every device role against what a device has: `budget` in numbers, and activations.

    Parameters
    ----------
    architecture, device, split : Architecture, Device, Split
        What is held, by which device, split how.
    kind : str
        ``"asap"`` or ``"sync"``.
    S : int
        Most tokens of a batch, with the earlier parts of its prompts.
    slots : int
        Batches whose cache a group holds at once (2 with dual batches).
    tokens : int
        Most tokens that a step computes; 0: S, no prompt is cut into chunks.
    spread : float
        Coefficient of variation of the load of single experts, for their activations; 0: even.

    Returns
    -------
    MemoryBudget
        Items in bytes per role, `used`, `headroom`, `fits`. A lower bound of the need, see the module's
        omissions.

    Raises
    ------
    ValueError
        Unknown kind, or a value out of its domain.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, device, _, split = paper_deployment()
    >>> memory = fits(architecture, device, split, "asap", S=32768, slots=2)
    >>> memory.fits, {role: f"{used / 1e9:.1f} GB" for role, used in memory.used.items()}
    (True, {'attention': '14.5 GB', 'moe': '60.6 GB'})
    """
    if kind not in _ROLES:
        raise ValueError(_unknown(kind))
    law = partial(_sizes, kind, kind_of(architecture))
    sizes = {"n": tokens or S, "S": S, "N_s": slots, "v": spread, "mu_E": expected_maximum(split.E)}
    found = {name: float(number) for name, number in values(law, architecture, device, split, **sizes).items()}
    items: dict[str, dict[str, float]] = {role: {} for role in _ROLES[kind]}
    for name in [one for one in found if _OF in one]:
        role, item = name.split(_OF)
        items[role][item] = found.pop(name)
    for role, alive in largest(kind, found).items():
        items[role]["activations"] = alive
    return MemoryBudget(items, device.memory_bytes)


_ROLES = {"asap": ("attention", "moe"), "sync": ("device",)}
_OF = " / "  # between role and item


def _sizes(kind: str, attention: Kind) -> dict[str, sympy.Expr]:
    """What `fits` adds up: items by role, and activations; one law, since most time goes into checking values."""
    held = budget(kind, attention == "grouped")
    items = {f"{role}{_OF}{item}": x for role, found in held.items() for item, x in found.items()}
    return {**items, **expressions(kind, attention)}


def _unknown(kind: str) -> str:
    return f'kind must be "asap" or "sync", got {kind!r}'
