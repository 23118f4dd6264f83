"""The scheduling policy and the layout of a system, with the names of `[policy]` and `[system]`."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Layout", "Policy"]

Kind = Literal["sync", "asap"]


@dataclass(frozen=True, slots=True)
class Layout:
    """`D` attention groups of `T` devices; experts over `E` devices (`sync`: the same `D T` devices)."""

    kind: Kind
    D: int
    T: int
    E: int

    @property
    def devices(self) -> int:
        """Devices of one instance: `D T` (sync) or `D T + E` (asap)."""
        return self.D * self.T if self.kind == "sync" else self.D * self.T + self.E


@dataclass(frozen=True, slots=True)
class Policy:
    """How requests become batches and how batches run; see the scheduling section of the documentation.

    Sizes in tokens, `batch_window` in seconds. `chunk_tokens` 0 means unchunked (sync only). Defaults are those of
    the asynchronous system; the synchronous one has `batch_window = 0`.
    """

    min_batch_tokens: int = 2048
    max_batch_tokens: int = 32768
    exclusive_tokens: int = 16384
    batch_window: float = 0.05
    pairing: Literal["locked", "rolling"] = "locked"
    dual_batch: bool = True
    overlap_moe: bool = True
    overlap_attention: bool = False
    super_kernel: bool = True
    chunk_tokens: int = 0
    balance: Literal["tokens", "work"] = "tokens"

    @property
    def slots(self) -> int:
        """Batches a group may have active at once: 2 with dual batch, else 1."""
        return 2 if self.dual_batch else 1
