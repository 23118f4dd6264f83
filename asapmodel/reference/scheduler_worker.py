"""The request scheduler of the asynchronous system as a worker, and the source of requests.

It acts at every arrival, end of a batch and end of the head's window, one at a time. A batch has ended when all T
members of its group have sent their final rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asapmodel.reference.attention_worker import DONE, Streams, Task, inbox
from asapmodel.reference.buffers import Shape
from asapmodel.reference.scheduler import Batch, Prompt, PullScheduler
from asapmodel.reference.steps import Await, Channel, Condition, Now, Pending, Reached, Receive, Send, Steps

__all__ = ["ARRIVALS", "Journal", "pull_worker", "source"]

Floats = NDArray[np.float64]

ARRIVALS = Channel(("scheduler",), "arrivals")

_EXPIRY, _ARRIVAL = 1, 2  # after what ends at the same instant


@dataclass(slots=True, eq=False)
class Journal:
    """What the scheduler has seen: batches in order of release, when each began and ended, and their final rows."""

    batches: list[Batch] = field(default_factory=list)
    start: dict[int, float] = field(default_factory=dict)
    end: dict[int, float] = field(default_factory=dict)
    rows: dict[int, Floats] = field(default_factory=dict)

    def begin(self, batch: Batch, now: float) -> None:
        """Note a batch that is released."""
        self.batches.append(batch)
        self.start[batch.number] = now

    def finish(self, batch: Batch, parts: Sequence[Floats], now: float) -> None:
        """Note a batch that has ended, with the final rows of all members."""
        self.end[batch.number] = now
        self.rows[batch.number] = np.concatenate(parts)

    def outputs(self) -> dict[int, Floats]:
        """Final hidden states of the tokens computed of each prompt, by its index."""
        found: dict[int, list[Floats]] = {}
        for batch in self.batches:
            at = 0
            for piece in batch.pieces:
                found.setdefault(piece.prompt.index, []).append(self.rows[batch.number][at : at + piece.tokens])
                at += piece.tokens
        return {index: np.concatenate(parts) for index, parts in found.items()}

    def times(self) -> dict[int, tuple[float, float]]:
        """Start of the first and end of the last batch of each prompt, by its index."""
        found: dict[int, tuple[float, float]] = {}
        for batch in self.batches:
            for piece in batch.pieces:
                start = found.get(piece.prompt.index, (self.start[batch.number], 0.0))[0]
                found[piece.prompt.index] = (start, self.end[batch.number])
        return found


def source(prompts: Sequence[Prompt]) -> Steps:
    """Send every prompt to the scheduler when it arrives."""
    for prompt in prompts:
        yield Await((Reached(prompt.arrival, _ARRIVAL),))
        yield Send(ARRIVALS, prompt)


def pull_worker(
    scheduler: PullScheduler, shape: Shape, streams: Streams, count: int, step: bool, journal: Journal
) -> Steps:
    """Release batches until `count` prompts are done.

    Parameters
    ----------
    scheduler : PullScheduler
        The rules.
    shape : Shape
        For the members of a group, and the largest batch.
    streams : Streams
        Of attention devices.
    count : int
        Prompts that will arrive.
    step : bool
        Whether a batch starts with a step's overhead.
    journal : Journal
        Written to.
    """
    running: dict[int, tuple[Batch, dict[int, Floats]]] = {}
    now = -np.inf
    done = 0
    while done < count:
        expiry = scheduler.expiry()
        waits: tuple[Condition, ...] = (Pending(DONE), Pending(ARRIVALS))
        if expiry is not None and expiry > now:
            waits = (*waits, Reached(expiry, _EXPIRY))
        index = yield Await(waits)
        now = yield Now()
        if index == 0:
            number, j, rows = yield Receive(DONE)
            batch, parts = running[number]
            parts[j] = rows
            if len(parts) < shape.T:
                continue
            del running[number]
            journal.finish(batch, [parts[k] for k in range(shape.T)], now)
            scheduler.finish(batch)
            done += sum(piece.completes for piece in batch.pieces)
        elif index == 1:
            scheduler.arrive((yield Receive(ARRIVALS)))
        for batch in scheduler.release(now):
            shape.fits(batch.tokens)
            running[batch.number] = (batch, {})
            journal.begin(batch, now)
            for j in range(shape.T):
                yield Send(inbox(batch.group, j, streams.compute), Task(batch, 0, step=step))
