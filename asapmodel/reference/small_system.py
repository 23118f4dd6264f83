"""A system small enough to try every interleaving: the workers without the scheduler, and a few tiny batches.

What is checked is the protocol between attention and MoE devices. Every group has one or two batches at hand, as if the
scheduler had released them, and the system is done when every member has sent the final rows of all of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asapmodel.policy import Layout, Policy
from asapmodel.reference.asynchronous import AsyncSystem
from asapmodel.reference.attention_worker import DONE, Streams, Task, inbox
from asapmodel.reference.buffers import Shape
from asapmodel.reference.devices import Model, make_model
from asapmodel.reference.expert_worker import Order
from asapmodel.reference.primitives import ASYNC, Primitives
from asapmodel.reference.scheduler import Batch, Prompt
from asapmodel.reference.steps import Channel, Receive, Steps
from asapmodel.reference.system import SCHEDULER
from asapmodel.reference.weights import Config

__all__ = ["Name", "SmallSystem", "collect", "small_system"]

Name = tuple[Any, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SmallSystem:
    """Workers, and the batches that they find in their inboxes."""

    system: AsyncSystem
    batches: tuple[Batch, ...]
    model: Model
    first_inbox: str

    @property
    def shape(self) -> Shape:
        """Sizes."""
        return self.system.shape

    @property
    def names(self) -> list[Name]:
        """Names of the workers of all devices."""
        devices = self.system.devices()
        return [name for device, names in devices.items() if device != SCHEDULER for name in names]

    @property
    def messages(self) -> list[tuple[Channel, Task]]:
        """What is in the inboxes at first."""
        members = range(self.shape.T)
        return [(inbox(one.group, j, self.first_inbox), Task(one, 0)) for one in self.batches for j in members]

    @property
    def answers(self) -> int:
        """Messages of final rows when all is done."""
        return len(self.batches) * self.shape.T

    def start(self, name: Name) -> Steps:
        """Start a worker."""
        return self.system.start(name)

    def wrong_rows(self, answers: list[tuple[int, int, Floats]]) -> list[str]:
        """What is wrong with the final rows `(batch, member, rows)`, in words; nothing if they are right."""
        parts = {(number, j): rows for number, j, rows in answers}
        found = []
        for batch in self.batches:
            own = [parts.get((batch.number, j)) for j in range(self.shape.T)]
            there = [rows for rows in own if rows is not None]
            if len(there) < len(own):
                found.append(f"batch {batch.number} has not ended")
                continue
            truth = np.concatenate([self.model.truth(piece.prompt) for piece in batch.pieces])
            error = np.abs(np.concatenate(there) - truth).max()
            if not error <= 1e-10:
                found.append(f"final rows of batch {batch.number} are off by {error:.2g}")
        return found


def small_system(
    D: int,
    T: int,
    E: int,
    *,
    layers: int = 1,
    batches: int = 2,
    tokens: int = 2,
    top: int = 1,
    overlap_attention: bool = False,
    overlap_moe: bool = False,
    order: Order = "oldest",
    primitives: Primitives = ASYNC,
    seed: int = 0,
) -> SmallSystem:
    """Make a system of `D T` attention and E MoE devices with one expert each.

    Parameters
    ----------
    D, T, E : int
        Groups, members of a group, MoE devices.
    layers : int
        L; all of them have experts.
    batches : int
        Of each group, 1 or 2.
    tokens : int
        Of each batch.
    top : int
        K.
    overlap_attention, overlap_moe : bool
        Three streams a device, or one.
    order, primitives
        Of `AsyncSystem`.
    seed : int
        Of weights and tokens.
    """
    config = Config(4, max(T, 1), 2, 2, 1, 2, 2, E, top, layers, 0, 2, 2, 2, 8)
    prompts = [Prompt(k, 0.0, tokens) for k in range(D * batches)]
    model = make_model(config, prompts, seed)
    policy = Policy(
        max_batch_tokens=tokens,
        exclusive_tokens=tokens,
        overlap_attention=overlap_attention,
        overlap_moe=overlap_moe,
    )
    system = AsyncSystem(model, Layout("asap", D, T, E), policy, prompts, order=order, primitives=primitives)
    made = tuple(Batch(k, k // batches, k % batches, (prompt.whole,)) for k, prompt in enumerate(prompts))
    return SmallSystem(system, made, model, Streams.of(overlap_attention).compute)


def collect(count: int, found: list[tuple[int, int, Floats]]) -> Steps:
    """Be the scheduler that takes `count` messages of final rows."""
    for _ in range(count):
        found.append((yield Receive(DONE)))
