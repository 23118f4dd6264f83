"""The layer-oblivious super kernel and the per-layer kernels that it replaces (paper, section 3.4.2).

A MoE device serves layers in an order that nobody knows beforehand. A kernel made for one layer can then be dispatched
by the host only when the layer has turned up, and the device waits for the host. The super kernel gets the layer as
data: it finds the weights of any layer through a table of addresses, so it is dispatched once, ahead of time.

Both kernels do the same arithmetic on the same rows in the same tiles; what differs is who prepares it and when. Here
host and device are the same processor, so the split is one of accounting: `Dispatches` counts what the host must do
between learning the layer and starting the kernel, and nothing that happens inside a kernel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.expert_pool import ExpertPool
from asapmodel.reference.layers import swiglu

__all__ = ["TILE_ROWS", "Dispatches", "LayerKernels", "PreparedKernel", "SuperKernel", "super_kernel"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TILE_ROWS = 16
"""Rows of one expert that are multiplied at once."""


def _tiles(counts: Ints) -> Iterator[tuple[int, int, int]]:
    """Cut the rows of every expert into tiles: (local expert, first row, end row)."""
    end = 0
    for expert, count in enumerate(counts.tolist()):
        first, end = end, end + count
        for start in range(first, end, TILE_ROWS):
            yield expert, start, min(start + TILE_ROWS, end)


def _check_counts(pool: ExpertPool, counts: Ints) -> None:
    if counts.shape != pool.addresses[0].shape or (counts < 0).any():
        raise ValueError(
            f"counts is {counts.tolist()}: give one row count for each of {pool.addresses.shape[1]} experts"
        )


def _check_tokens(pool: ExpertPool, tokens: Floats, rows: int) -> None:
    if tokens.shape != (rows, pool.hidden):
        raise ValueError(f"tokens has shape {tokens.shape}: give the {(rows, pool.hidden)} that the counts add up to")


def super_kernel(pool: ExpertPool, layer_id: Ints, counts: Ints, tokens: Floats) -> Floats:
    """Grouped matrix multiplication with the experts of whatever layer `layer_id` holds when the kernel runs.

    Parameters
    ----------
    layer_id
        The layer, a zero-dimensional array: data, like the tokens.
    counts
        Rows of each local expert, `(E_total / E,)`; zero is fine.
    tokens
        The rows, sorted by local expert, `(m, H)` with `m = sum(counts)`.

    Returns
    -------
    NDArray
        Results of the rows, `(m, H)`, in the order of `tokens`.

    Raises
    ------
    ValueError
        If the layer has no experts here or the shapes do not fit.
    """
    row = pool.row(int(layer_id))
    _check_counts(pool, counts)
    _check_tokens(pool, tokens, int(counts.sum()))
    result = np.empty_like(tokens)
    for expert, first, end in _tiles(counts):
        gate_up, down = pool.at(int(row[expert]))
        result[first:end] = swiglu(gate_up, down, tokens[first:end])
    return result


@dataclass(frozen=True, slots=True)
class Dispatches:
    """Kernels dispatched by the host and the seconds that it took."""

    count: int = 0
    host_s: float = 0.0

    def after(self, start: float) -> "Dispatches":
        """One dispatch more, which began at `start` of `perf_counter`."""
        return Dispatches(self.count + 1, self.host_s + perf_counter() - start)


class SuperKernel:
    """The super kernel of one device, dispatched once for all layers and batches.

    Parameters
    ----------
    pool
        Experts of the device.

    Attributes
    ----------
    dispatches
        Stays at one dispatch, made here, before any layer is known.
    """

    def __init__(self, pool: ExpertPool) -> None:
        start = perf_counter()
        self._pool = pool
        self.dispatches = Dispatches().after(start)

    def __call__(self, layer_id: Ints, counts: Ints, tokens: Floats) -> Floats:
        """Run on one batch; see `super_kernel`."""
        return super_kernel(self._pool, layer_id, counts, tokens)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedKernel:
    """A kernel of one layer, dispatched for one batch: arguments, tiles and output are fixed."""

    pool: ExpertPool
    arguments: tuple[tuple[Floats, Floats, int, int], ...]
    """Gate-up, down, first row and end row of every tile."""
    result: Floats

    def __call__(self, tokens: Floats) -> Floats:
        """Compute the rows of the batch; the output is the memory allocated at dispatch."""
        _check_tokens(self.pool, tokens, len(self.result))
        for gate_up, down, first, end in self.arguments:
            self.result[first:end] = swiglu(gate_up, down, tokens[first:end])
        return self.result


class LayerKernels:
    """One kernel for each layer, each dispatched by the host for every batch of its layer.

    Parameters
    ----------
    pool
        Experts of the device.

    Attributes
    ----------
    dispatches
        One more for every layer of every batch. Where the order of layers is not known beforehand, all of `host_s`
        is time in which the device waits.
    """

    def __init__(self, pool: ExpertPool) -> None:
        self._pool = pool
        self._experts = {
            layer: tuple(pool.at(address) for address in row)
            for layer, row in enumerate(pool.addresses.tolist())
            if row[0] >= 0
        }
        self.dispatches = Dispatches()

    def dispatch(self, layer: int, counts: Ints) -> PreparedKernel:
        """Prepare the kernel of a layer for a batch: its arguments, its tiles and memory for its output.

        Raises
        ------
        ValueError
            If the layer has no experts here or `counts` does not fit.
        """
        start = perf_counter()
        if layer not in self._experts:
            raise ValueError(f"layer is {layer}: choose one of the layers with experts")
        _check_counts(self._pool, counts)
        experts = self._experts[layer]
        arguments = tuple((*experts[expert], first, end) for expert, first, end in _tiles(counts))
        kernel = PreparedKernel(self._pool, arguments, np.empty((int(counts.sum()), self._pool.hidden)))
        self.dispatches = self.dispatches.after(start)
        return kernel

    def __call__(self, layer: int, counts: Ints, tokens: Floats) -> Floats:
        """Dispatch the kernel of a layer and run it; the results are those of `super_kernel`, bit for bit."""
        return self.dispatch(layer, counts)(tokens)
