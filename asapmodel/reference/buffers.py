"""Shared buffers of the asynchronous system: regions, sizes and names (section 3.2 and Table 2 of the paper).

Each attention device holds, for one batch of up to S tokens of which it owns S / T:

* expert ids, `K S / T` of them: which expert each copy of a token went to;
* expert results, `K S / T` rows of H numbers, cut into E segments, one a MoE device;
* a bitmap of E bits, one a MoE device: its results have arrived.

Each MoE device holds D regions of T rows, one row for each attention device:

* token metadata, `E_total / E` counts a row: tokens for each of its experts;
* tokens, `K S / T` rows of H numbers a row of the region;
* D bitmaps of T bits: the row is complete.

Two things the paper leaves out are needed to make it work. A row's metadata also says which layer it is for, how many
tokens the whole batch has, and where in the results region the device's segment begins (with segments of equal size a
batch whose tokens crowd on one device would not fit); these are `HEADER` numbers more. And expert ids of *two* batches
must be kept when a group has two in flight, for the second is dispatched while the first is away: there is one region
a slot.
"""

import math
from dataclasses import dataclass
from typing import Any

from asapmodel.reference.steps import Flags, Place

__all__ = [
    "HEADER",
    "Shape",
    "Sizes",
    "attention_sizes",
    "combined",
    "dispatched",
    "expert_ids",
    "metadata",
    "moe_sizes",
    "places",
    "results",
    "share",
    "tokens",
]

HEADER = 3
"""Numbers of a metadata row before its counts: layer, tokens of the batch, first slot of the results."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What sizes depend on, with the paper's symbols; `itemsize` is Dsize in bytes.

    Raises
    ------
    ValueError
        If a number is not positive, E does not divide E_total, or T does not divide S.
    """

    D: int
    T: int
    E: int
    E_total: int
    K: int
    H: int
    S: int
    itemsize: int = 8
    slots: int = 2

    def __post_init__(self) -> None:
        for name in ("D", "T", "E", "E_total", "K", "H", "S", "itemsize", "slots"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.E_total % self.E:
            raise ValueError(
                f"E_total = {self.E_total} experts do not divide over E = {self.E} devices; take a divisor"
            )
        if self.S % self.T:
            raise ValueError(f"S = {self.S} tokens cannot be split over T = {self.T} devices; make S a multiple of T")
        if self.K > self.E_total:
            raise ValueError(f"K = {self.K} experts a token, but there are only E_total = {self.E_total}")

    @property
    def experts(self) -> int:
        """Experts of a MoE device, `E_total / E`."""
        return self.E_total // self.E

    @property
    def copies(self) -> int:
        """Copies of tokens that an attention device can send at once, `K S / T`."""
        return self.K * self.S // self.T

    def fits(self, n: int) -> None:
        """Check that a batch fits.

        Raises
        ------
        ValueError
            If the batch has more than S tokens.
        """
        if n > self.S:
            raise ValueError(f"a batch of {n} tokens does not fit into shared buffers for S = {self.S}; enlarge S")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the three regions of one device."""

    index: float
    payload: float
    flags: float


def attention_sizes(shape: Shape) -> Sizes:
    """Bytes on an attention device, by Table 2: `K S / T`, `H K S Dsize / T`, `E / 8`.

    Examples
    --------
    The paper's configuration: 64 KB of expert ids (a byte each), 0.9 GB of results (in fact GiB):

    >>> paper = Shape(D=4, T=4, E=16, E_total=256, K=8, H=7168, S=32768, itemsize=2)
    >>> sizes = attention_sizes(paper)
    >>> sizes.index / 2**10, sizes.payload / 2**30, sizes.flags
    (64.0, 0.875, 2.0)
    """
    return Sizes(shape.copies, shape.H * shape.copies * shape.itemsize, shape.E / 8)


def moe_sizes(shape: Shape) -> Sizes:
    """Bytes on a MoE device, by Table 2: `D T E_total / E` (a byte a count), `D H K S Dsize`, `D T / 8`.

    Examples
    --------
    >>> paper = Shape(D=4, T=4, E=16, E_total=256, K=8, H=7168, S=32768, itemsize=2)
    >>> sizes = moe_sizes(paper)
    >>> sizes.index, sizes.payload / 2**30, sizes.flags
    (256, 14.0, 2.0)
    """
    rows = shape.D * shape.T
    return Sizes(rows * shape.experts, rows * shape.H * shape.copies * shape.itemsize, rows / 8)


def share(n: int, T: int, j: int) -> range:
    """Rows of a batch of `n` tokens that member `j` of T owns: as even as can be, the first ones longer."""
    each, more = divmod(n, T)
    first = j * each + min(j, more)
    return range(first, first + each + (j < more))


def expert_ids(i: int, j: int, slot: int) -> Place:
    """Region 1 of attention device j of group i, for the batch in a slot."""
    return Place(("attention", i, j), "ids", (slot,))


def results(i: int, j: int) -> Place:
    """Region 2 of an attention device."""
    return Place(("attention", i, j), "results", ())


def combined(i: int, j: int) -> Flags:
    """Region 3 of an attention device: E bits."""
    return Flags(("attention", i, j), ())


def metadata(e: int, i: int, j: int) -> Place:
    """Row j of region 1 for group i on MoE device e."""
    return Place(("moe", e), "metadata", (i, j))


def tokens(e: int, i: int, j: int) -> Place:
    """Row j of region 2 for group i on MoE device e."""
    return Place(("moe", e), "tokens", (i, j))


def dispatched(e: int, i: int) -> Flags:
    """Region 3 for group i on MoE device e: T bits."""
    return Flags(("moe", e), (i,))


def places(shape: Shape) -> dict[Any, tuple[str, tuple[int, ...]]]:
    """Every place and bitmap of a system, with its kind (``"ids"``, ``"rows"``, ``"flags"``) and array shape."""
    found: dict[Any, tuple[str, tuple[int, ...]]] = {}
    for i in range(shape.D):
        for j in range(shape.T):
            for slot in range(shape.slots):
                found[expert_ids(i, j, slot)] = ("ids", (shape.copies,))
            found[results(i, j)] = ("rows", (shape.copies, shape.H))
            found[combined(i, j)] = ("flags", (math.ceil(shape.E / 64),))
    for e in range(shape.E):
        for i in range(shape.D):
            for j in range(shape.T):
                found[metadata(e, i, j)] = ("ids", (HEADER + shape.experts,))
                found[tokens(e, i, j)] = ("rows", (shape.copies, shape.H))
            found[dispatched(e, i)] = ("flags", (math.ceil(shape.T / 64),))
    return found
