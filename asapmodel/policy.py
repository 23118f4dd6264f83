"""The scheduling policy and the layout of a system, with the names of `[policy]` and `[system]`."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["AT_ARRIVAL", "Layout", "Policy"]

Kind = Literal["sync", "asap"]
Routing = Literal["auto", "iteration", "pull", "round_robin", "fewest_requests", "fewest_tokens", "least_work"]

AT_ARRIVAL: tuple[Routing, ...] = ("round_robin", "fewest_requests", "fewest_tokens", "least_work")
"""Routings that send a prompt, when it arrives, to the queue of one group."""


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

    Sizes in tokens, `batch_window` in seconds. `chunk_tokens` 0 means whole prompts, `max_seqs` 0 any number of prompts
    in a step. With `schedule_ahead` a group forms the batch of its next step when the present one starts, and with
    `hide_overhead` (if it forms ahead) that step has its overhead behind it when it starts. In lockstep,
    `pad_groups` lets every group compute as many tokens as the largest, `idle_steps` runs empty iterations while there
    is no work, and `context_parallel` cuts the tokens of a batch, not the heads, among a group's devices. Defaults are
    those of the asynchronous system; the synchronous one has `batch_window = 0`.
    ``"auto"`` is what the kind of system has by default: routing by iteration (sync) or pull (asap); chunks where
    `chunk_tokens` is given, else whole prompts (sync) or a minimum of tokens (asap); the micro-batches that
    `dual_batch` says, none with chunks from queues per group. What goes together is checked by
    `asapmodel.policy_rules`.
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
    routing: Routing = "auto"
    counts: Literal["exact", "step"] = "exact"
    batching: Literal["auto", "prompts", "chunks", "min_tokens"] = "auto"
    max_seqs: int = 0
    schedule_ahead: bool = False
    hide_overhead: bool = True
    pad_groups: bool = False
    idle_steps: bool = False
    context_parallel: bool = False
    micro_batches: Literal["auto", "none", "pair", "split"] = "auto"

    @property
    def queue_per_group(self) -> bool:
        """Whether prompts are sent to the queue of a group when they arrive."""
        return self.routing in AT_ARRIVAL

    @property
    def micro(self) -> Literal["none", "pair", "split"]:
        """What `micro_batches` and `dual_batch` amount to."""
        if self.micro_batches != "auto":
            return self.micro_batches
        alternate = self.dual_batch and not (self.queue_per_group and self.chunk_tokens > 0)
        return "pair" if alternate else "none"

    @property
    def slots(self) -> int:
        """Batches, or parts of a step, that a group may have active at once: 1 or 2."""
        return 1 if self.micro == "none" else 2
