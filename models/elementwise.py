"""Memory traffic of a layer besides its products: norms, rotary embedding, quantisation, copies, activation, sums.

Between its products a layer passes its tokens through kernels that compute next to nothing and move everything they
touch: their time is bytes over memory bandwidth. Each such kernel is an `Operation`, a line of a table: what it reads,
what it writes, how often. What is a kernel of its own, and what is fused, is a matter of the software; it was read off
the sources of two systems (`Stack`), which docs/background/cost-models.md names. Inputs and results of products are
read and written by the products and are not counted again here.

Left out, 2 % in all: scales, indices, tables of angles, scores of the gate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from asapmodel.models.elementwise_attention import attention_operations
from asapmodel.models.elementwise_base import Kind, Operation, Part, Stack
from asapmodel.models.elementwise_experts import expert_operations
from asapmodel.models.formulas import value
from asapmodel.models.parameters import Architecture, Device, Profile, Split
from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = [
    "Kind",
    "Operation",
    "Part",
    "Stack",
    "attention_bytes",
    "attention_operations",
    "attention_seconds",
    "expert_bytes",
    "expert_operations",
    "expert_seconds",
    "kind_of",
    "per_token",
]

_ATTENTION: tuple[Part, ...] = ("layer", "input", "module", "indexer")
_HOME: tuple[Part, ...] = ("layer", "home", "returned")
_AWAY: tuple[Part, ...] = ("shared", "arrived", "routed")
_RECEIVED: tuple[Part, ...] = ("returned", "arrived")


def kind_of(architecture: Architecture) -> Kind:
    """Kind of a model's attention.

    Examples
    --------
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> kind_of(paper_deployment()[0])
    'sparse'
    """
    if architecture.grouped:
        return "grouped"
    return "sparse" if architecture.index_topk else "latent"


def attention_bytes(kind: Kind, stack: Stack, parts: Collection[Part] = _ATTENTION) -> sympy.Expr:
    """Bytes that a token moves besides products in attention of one layer, on one device of its group.

    Parameters
    ----------
    kind : Kind
        Of attention.
    stack : Stack
        Whose kernels.
    parts : collection of Part
        What to count.

    Returns
    -------
    sympy.Expr
        Bytes a token; divided by a share of the memory bandwidth, the time. A lower bound: caches that hold what the
        last kernel wrote would make it less, launches and small batches make the time more.

    Raises
    ------
    ValueError
        The kernels of that stack are not known for that kind.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> from asapmodel.models.parameters import Split
    >>> architecture, die, *_ = paper_deployment()
    >>> given = (architecture, die, Split(1, 1, 1))
    >>> [int(evaluate(attention_bytes(kind, "sglang"), *given)) for kind in ("latent", "sparse")]
    [259712, 818560]
    """
    if stack != "sglang" and kind != "latent":
        raise ValueError(f"kernels of {stack} are known for latent attention only, not for {kind}; take sglang's")
    return _sum(attention_operations(kind), stack, parts, {"token": 1})


def expert_bytes(stack: Stack, parts: Collection[Part] = _HOME + _AWAY, every_row: bool = False) -> sympy.Expr:
    """Bytes that a token of the batch costs one of the E devices besides products, experts spread evenly.

    Parameters
    ----------
    stack : Stack
        Whose kernels.
    parts : collection of Part
        What to count.
    every_row : bool
        Whether every device gets a row for every token, as in a benchmark without transfers; else a device gets the
        tokens that have one of their K experts there, ``1 - (1 - 1/E)^K`` of them.

    Returns
    -------
    sympy.Expr
        Bytes, ``tokens/E + copies K/E + rows (1 - (1 - 1/E)^K)``.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> from asapmodel.models.parameters import Split
    >>> architecture, die, *_ = paper_deployment()
    >>> [int(evaluate(expert_bytes(x), architecture, die, Split(8, 4, 32)) * 32) for x in ("sglang", "cann")]
    [635627, 846848]
    """
    E, K = symbols("E K")
    rows = 1 if every_row else 1 - (1 - 1 / E) ** K
    return _sum(expert_operations(), stack, parts, {"token": 1 / E, "copy": K / E, "row": rows})


def attention_seconds(kind: Kind, stack: Stack) -> sympy.Expr:
    """Seconds of a token in attention besides products, ``attention_bytes / (B_m eta_e)``.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> law = attention_seconds("latent", "cann")
    >>> f"{float(evaluate(law, *paper_deployment(), T=1, eta_e=0.84)) * 1e9:.0f} ns"  # 213 kB
    '158 ns'
    """
    return attention_bytes(kind, stack) / _rate()


def expert_seconds(stack: Stack, parts: tuple[Part, ...] = _HOME + _AWAY) -> sympy.Expr:
    """Seconds that a token of the batch costs one of E devices besides products, ``expert_bytes / (B_m eta_e)``.

    Examples
    --------
    >>> from asapmodel.models.evaluation import evaluate, paper_deployment
    >>> law = expert_seconds("cann")
    >>> f"{float(evaluate(law, *paper_deployment(), E=32, eta_e=0.84)) * 32e9:.0f} ns"  # 847 kB on all of 32
    '630 ns'
    """
    return expert_bytes(stack, parts) / _rate()


def _rate() -> sympy.Expr:
    B_m, eta_e = symbols("B_m eta_e")
    return B_m * eta_e


def per_token(
    architecture: Architecture, device: Device, profile: Profile, split: Split, blocking: bool
) -> tuple[float, float]:
    """Seconds of a token between products of one layer: of a group's on its T devices, of the batch's on E devices.

    Parameters
    ----------
    architecture, device, profile, split : Architecture, Device, Profile, Split
        What is computed, where, how well, over how many devices.
    blocking : bool
        Whether transfers are blocking collectives; asynchronous receives move the copies that arrive and return, and
        have that in their own law.

    Returns
    -------
    tuple of float
        For attention's law and for the experts'; 0 where the profile's `elementwise` is 0.

    Notes
    -----
    Kernels are those of cann-recipes-infer where products are in INT8, else SGLang's; of attention that is not
    latent and dense SGLang's are the only ones known. What is done on a token's own device around the experts is
    split over the T devices of its group and stands with attention.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from asapmodel.models.evaluation import paper_deployment
    >>> architecture, die, profile, split = paper_deployment()
    >>> per_token(architecture, die, profile, split, blocking=False)
    (0.0, 0.0)
    >>> measured = replace(profile, elementwise=0.84)
    >>> [f"{t * 1e9:.0f} ns" for t in per_token(architecture, die, measured, split, blocking=False)]
    ['294 ns', '19 ns']
    """
    if not profile.elementwise:
        return 0.0, 0.0
    given, kind = (architecture, device, profile), kind_of(architecture)
    stack: Stack = "cann" if device.format.peak == "int8" else "sglang"
    known: Stack = stack if kind == "latent" else "sglang"
    home, away = (tuple(x for x in parts if blocking or x not in _RECEIVED) for parts in (_HOME, _AWAY))
    own = value(partial(attention_seconds, kind, known), *given, split)
    around = value(partial(expert_seconds, stack, home), *given, Split(split.D, split.T, split.T))
    return float(own + around), float(value(partial(expert_seconds, stack, away), *given, split))


def _sum(
    operations: tuple[Operation, ...], stack: Stack, parts: Collection[Part], counts: Mapping[str, sympy.Expr | int]
) -> sympy.Expr:
    import sympy

    ours = [one for one in operations if stack in one.stacks and one.part in parts]
    return sympy.Add(*(counts[one.per] * (one.read + one.written) for one in ours))
