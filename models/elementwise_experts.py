"""Kernels of the experts' part of a layer besides its products, from the residual to the sum of the copies."""

from __future__ import annotations

from functools import cache

from asapmodel.models.elementwise_base import BOTH, CANN, SGLANG, Operation, moved, quantised
from asapmodel.models.symbols import symbols

__all__ = ["expert_operations"]


@cache
def expert_operations() -> tuple[Operation, ...]:
    """Kernels of the experts' part of a layer, for a token at home, a copy, a row on a device that has copies.

    Examples
    --------
    >>> sorted({one.part for one in expert_operations()})
    ['arrived', 'home', 'layer', 'returned', 'routed', 'shared']
    """
    H = symbols("H")[0]
    layer = moved("add residual, norm", "layer", BOTH, 2 * H, "one kernel: sum and norm written, both read")
    return (layer, *_home(), *_shared(), *_routed())


def _home() -> tuple[Operation, ...]:
    """Before the dispatch and after the combine, on the token's own device."""
    import sympy

    H, K, g, b_a, size = symbols("H K g b_a Dsize")
    some = sympy.Min(g, 1)  # whether there are shared experts
    copies = "routing, quantisation and copying in one kernel"
    own = "the combine has summed the copies on the way"
    return (
        quantised("quantise for dispatch", "home", SGLANG, H, "before the copies are made, which the transfer does"),
        Operation("quantise and copy", "home", "token", H * size, K * H * b_a, CANN, copies),
        Operation("widen for the gate", "home", "token", H * size, 2 * H * size, CANN, "a 32-bit gate"),
        Operation("add shared experts", "home", "token", 2 * some * H * size, some * H * size, SGLANG, own),
        Operation(
            "sum copies and shared", "returned", "token", (K + some) * H * size, H * size, CANN, "weighted, one kernel"
        ),
    )


def _shared() -> tuple[Operation, ...]:
    """Shared experts, on the token's own device."""
    H, m, g, b_a, size = symbols("H m g b_a Dsize")
    one = "result of the first product is 32-bit; widening, activation, quantisation in one kernel"
    return (
        quantised("quantise shared input", "shared", BOTH, H, "before the first product"),
        Operation("activation, shared", "shared", "token", 2 * g * m * size, g * m * size, SGLANG, "not fused"),
        quantised("quantise activation, shared", "shared", SGLANG, g * m, "before the second product"),
        Operation("activate and quantise, shared", "shared", "token", 4 * g * m * size, g * m * b_a, CANN, one),
    )


def _routed() -> tuple[Operation, ...]:
    """Routed experts, from the dispatched rows to what is combined."""
    import sympy

    H, m, b_a, size = symbols("H m b_a Dsize")
    zero = sympy.Integer(0)
    read = "every row that arrived is read once, and written for each of its experts"
    out = "every row that arrived gets the weighted sum of its copies"
    one = "result of the first product is 32-bit; widening, activation, quantisation in one kernel"
    return (
        Operation("sort, read", "arrived", "row", H * b_a, zero, SGLANG, read),
        Operation("sort, write", "arrived", "copy", zero, H * b_a, SGLANG, read),
        Operation("sort", "arrived", "copy", H * b_a, H * b_a, CANN, "copies arrive by sender, wanted by expert"),
        Operation("activation", "routed", "copy", 2 * m * size, m * size, SGLANG, "not fused with quantisation"),
        quantised("quantise activation", "routed", SGLANG, m, "before the second product", "copy"),
        Operation("activate and quantise", "routed", "copy", 4 * m * size, m * b_a, CANN, one),
        Operation("gather, read", "routed", "copy", H * size, zero, SGLANG, out),
        Operation("gather, write", "routed", "row", zero, H * size, SGLANG, out),
        Operation("back to the senders' order", "routed", "copy", H * size, H * size, CANN, "a selection by index"),
    )
