"""Measurements of one kind of kernel, whatever table they come from: letters of the laws, seconds, noise, origin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asapmodel import catalog
from asapmodel.models.parameters import Architecture, Device
from asapmodel.models.symbols import SYMBOLS

__all__ = ["QUANTITIES", "Measurements", "facts", "join"]

Array = NDArray[np.float64]

QUANTITIES: Mapping[str, tuple[str, ...]] = {
    "attention": ("module", "sparse_core", "dense_core", "grouped_core", "indexer", "projections"),
    "moe": ("module", "grouped_gemm"),
    "link": ("dispatch", "combine"),
}
"""What can be measured, by the model it calibrates."""

NOISE = 0.03
"""Relative standard deviation of a measurement that states none: about that of repeated public ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Rows of tables in the letters of the cost models.

    Attributes
    ----------
    quantity : array of str, shape (N,)
        What was measured, of `QUANTITIES`.
    values : dict of str to float64 array, shape (N,)
        Letters of `asapmodel.models.symbols` by row: lengths, tokens, degrees, facts of device and model.
    seconds, noise : float64 array, shape (N,)
        What was measured, and its relative standard deviation.
    nodes : int64 array, shape (N,)
        Servers that take part; 1 but for links.
    origin : tuple of str
        File and line of every row, for messages.
    """

    quantity: NDArray[np.str_]
    values: dict[str, Array]
    seconds: Array
    noise: Array
    nodes: NDArray[np.int64]
    origin: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.seconds.size)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Measurements":
        """Return some of the rows, in their order."""
        index = np.arange(len(self))[rows]
        return Measurements(
            self.quantity[index],
            {letter: value[index] for letter, value in self.values.items()},
            self.seconds[index],
            self.noise[index],
            self.nodes[index],
            tuple(self.origin[k] for k in index),
        )

    def tables(self) -> tuple[str, ...]:
        """Names of the files the rows come from, in order."""
        return tuple(dict.fromkeys(one.rpartition(":")[0] for one in self.origin))


def facts(device: str, model: str, where: str) -> dict[str, float]:
    """Letters of a catalogue device and model, for every row of a table.

    Raises
    ------
    InputError
        If there is no such entry; `where` is the file to name.
    """
    records: tuple[Device, Architecture] = (
        catalog.load_device(device, where, "device").value,
        catalog.load_architecture(model, where, "architecture").value,
    )
    owners = {type(record).__name__: record for record in records}
    return {
        letter: float(getattr(owners[entry.owner], entry.field))
        for letter, entry in SYMBOLS.items()
        if entry.owner in owners and hasattr(owners[entry.owner], entry.field)
    }


def join(parts: Sequence[Measurements]) -> Measurements:
    """Return the rows of all parts, one after the other; letters that a part lacks are NaN in its rows."""
    letters = dict.fromkeys(letter for part in parts for letter in part.values)
    return Measurements(
        np.concatenate([part.quantity for part in parts]),
        {x: np.concatenate([part.values.get(x, np.full(len(part), np.nan)) for part in parts]) for x in letters},
        np.concatenate([part.seconds for part in parts]),
        np.concatenate([part.noise for part in parts]),
        np.concatenate([part.nodes for part in parts]),
        tuple(origin for part in parts for origin in part.origin),
    )
