"""Kernels without a product, and whose they are: the lines that the tables of `elementwise` are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from asapmodel.models.symbols import symbols

if TYPE_CHECKING:
    import sympy

__all__ = ["BOTH", "CANN", "SGLANG", "Kind", "Operation", "Part", "Stack", "moved", "quantised"]

Kind = Literal["latent", "sparse", "grouped"]
"""Attention: latent with all keys, expanded to heads; latent with the indexer's keys, absorbed; grouped-query."""

Stack = Literal["sglang", "cann"]
"""Whose kernels: SGLang 0.5.6 on NVIDIA GPUs, cann-recipes-infer (DeepSeek-R1, eager) on Ascend dies."""

Part = Literal["layer", "input", "module", "indexer", "home", "returned", "shared", "arrived", "routed"]
"""Where: around a module (residual, norm), before the down-projections, in attention or its indexer; of the experts: on
the token's own device, with the copies that return there, in the shared experts, with the copies that arrive at the
routed ones, in these. Asynchronous receives (`asapmodel.models.link`) move what arrives and returns themselves."""

BOTH: tuple[Stack, ...] = ("sglang", "cann")
SGLANG: tuple[Stack, ...] = ("sglang",)
CANN: tuple[Stack, ...] = ("cann",)


@dataclass(frozen=True, slots=True)
class Operation:
    """A kernel without a product.

    Attributes
    ----------
    name, why : str
        What it does, and why it is one of its own.
    part : Part
        Where it stands.
    per : str
        ``"token"``; of the experts also ``"copy"`` (a token in one of its K experts) and ``"row"`` (a token on a device
        that has at least one of them).
    read, written : sympy.Expr
        Bytes, on one device.
    stacks : tuple of Stack
        Who runs it.
    """

    name: str
    part: Part
    per: Literal["token", "copy", "row"]
    read: sympy.Expr
    written: sympy.Expr
    stacks: tuple[Stack, ...]
    why: str


def moved(name: str, part: Part, stacks: tuple[Stack, ...], values: sympy.Expr, why: str) -> Operation:
    """Values of a token read and written as activations."""
    (size,) = symbols("Dsize")
    return Operation(name, part, "token", values * size, values * size, stacks, why)


def quantised(
    name: str,
    part: Part,
    stacks: tuple[Stack, ...],
    values: sympy.Expr,
    why: str,
    per: Literal["token", "copy"] = "token",
) -> Operation:
    """Activations read, written in the precision of products; nothing where that is the same."""
    import sympy

    size, b_a = symbols("Dsize b_a")
    same = sympy.Eq(b_a, size)
    read, written = (sympy.Piecewise((0, same), (values * bytes_, True)) for bytes_ in (size, b_a))
    return Operation(name, part, per, read, written, stacks, why)
