"""Prompts, pieces, batches, and the scheduler of the asynchronous system (sections 3.3.1 and 3.3.2 of the paper).

A state machine without a clock and without threads; the caller says what happened and when. Prompts wait in one FIFO
queue. A group that can take work pulls batches of at least `min_batch_tokens` from the head, two at once for dual-batch
interleaving.

Tokens always means tokens to compute: a cached prefix adds nothing to a batch or a queue. Only the exclusive rule looks
at the whole prompt, because attention does.
"""

from collections import deque
from dataclasses import dataclass

from asapmodel.policy import Policy

__all__ = ["Batch", "Piece", "Prompt", "PullScheduler", "append", "at_least_one"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request: `tokens` (s) positions, of which the first `cached` (p) are known; `arrival` in seconds.

    Raises
    ------
    ValueError
        Unless `0 <= cached < tokens`.
    """

    index: int
    arrival: float
    tokens: int
    cached: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.cached < self.tokens:
            raise ValueError(
                f"prompt {self.index} has {self.tokens} tokens of which {self.cached} are cached; "
                "give at least 0 cached tokens and one token to compute"
            )

    @property
    def to_compute(self) -> int:
        """Tokens to compute, `s - p`."""
        return self.tokens - self.cached

    @property
    def whole(self) -> "Piece":
        """All that is to be computed, as one piece."""
        return Piece(self, self.cached, self.tokens)


@dataclass(frozen=True, slots=True)
class Piece:
    """Positions `[first, last)` of a prompt, computed in one batch; they attend to all positions before `last`.

    Raises
    ------
    ValueError
        Unless `cached <= first < last <= tokens` of the prompt.

    Examples
    --------
    >>> piece = Piece(Prompt(0, arrival=0.0, tokens=10), first=4, last=7)
    >>> piece.tokens, piece.work, piece.completes
    (3, 33, False)
    """

    prompt: Prompt
    first: int
    last: int

    def __post_init__(self) -> None:
        if not self.prompt.cached <= self.first < self.last <= self.prompt.tokens:
            raise ValueError(
                f"piece [{self.first}, {self.last}) of prompt {self.prompt.index} must be a part of "
                f"[{self.prompt.cached}, {self.prompt.tokens}) with at least one token"
            )

    @property
    def tokens(self) -> int:
        """Tokens computed, `c = last - first`."""
        return self.last - self.first

    @property
    def work(self) -> int:
        """Attention work in squared tokens, `last**2 - first**2 = c**2 + 2 c q` behind `q = first` tokens."""
        return self.last**2 - self.first**2

    @property
    def completes(self) -> bool:
        """Whether the prompt has its first output token once this piece is done."""
        return self.last == self.prompt.tokens

    def cut(self, tokens: int) -> tuple["Piece", "Piece"]:
        """Cut after `tokens` tokens into two pieces; both must have at least one."""
        middle = self.first + tokens
        return Piece(self.prompt, self.first, middle), Piece(self.prompt, middle, self.last)


@dataclass(frozen=True, slots=True)
class Batch:
    """Pieces that a group computes together; `number` counts the batches of a scheduler in order of release."""

    number: int
    group: int
    slot: int
    pieces: tuple[Piece, ...]

    @property
    def tokens(self) -> int:
        """Tokens to compute, `n`."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def work(self) -> int:
        """Attention work `w` in squared tokens."""
        return sum(piece.work for piece in self.pieces)


class PullScheduler:
    """Asynchronous scheduling: groups pull length-aware batches from one FIFO queue (paper, 3.3.1 and 3.3.2).

    The queue is *due* when it holds `min_batch_tokens` for every slot of a group, when its head is exclusive, or when
    its head has waited for `batch_window`. While it is due and a group can take the head, the group with the fewest
    active batches (ties: lowest index) takes:

    - `pairing = "locked"`: only a group without active batches, which then fills as many slots as the queue allows;
    - `pairing = "rolling"`: one batch into a free slot, the lowest;
    - a prompt longer than `exclusive_tokens` in either case needs a group without active batches and holds all of it.

    The rule of being due is asked before a group takes, not again for the second batch of a locked pair: that one may
    be smaller than `min_batch_tokens`, and is missing where the queue is empty or an exclusive prompt comes next.

    Call `release` after every arrival, every end of a batch, and at `expiry`. Where several things happen in one
    instant, their order is the caller's.

    Parameters
    ----------
    groups
        Attention groups, `D`.
    policy
        Sizes in tokens and the window in seconds.

    Examples
    --------
    >>> scheduler = PullScheduler(2, Policy(min_batch_tokens=100, batch_window=0.5))
    >>> scheduler.arrive(Prompt(0, arrival=1.0, tokens=150))
    >>> scheduler.release(1.0), scheduler.expiry()
    ([], 1.5)
    >>> scheduler.arrive(Prompt(1, arrival=1.2, tokens=60))
    >>> [(batch.group, batch.slot, batch.tokens) for batch in scheduler.release(1.2)]
    [(0, 0, 150), (0, 1, 60)]
    """

    def __init__(self, groups: int, policy: Policy) -> None:
        self._groups = at_least_one(groups)
        self._policy = policy
        self._queue: deque[Prompt] = deque()
        self._queued_tokens = 0
        self._active: dict[int, Batch] = {}
        self._released = 0

    def arrive(self, prompt: Prompt) -> None:
        """Put a prompt at the end of the queue; ValueError if it arrived before the one already there."""
        append(self._queue, prompt)
        self._queued_tokens += prompt.to_compute

    def finish(self, batch: Batch) -> None:
        """Free the slot of a batch that is done; ValueError if the batch is not active."""
        if self._active.get(batch.number) != batch:
            raise ValueError(f"batch {batch.number} is not active; finish each released batch once")
        del self._active[batch.number]

    def expiry(self) -> float | None:
        """When the window of the queue's head ends, in seconds; None if the queue is empty.

        A time in the past means that the head waits for a group and not for its window.
        """
        return self._queue[0].arrival + self._policy.batch_window if self._queue else None

    def release(self, now: float) -> list[Batch]:
        """Batches that start at `now`, in order of release."""
        batches: list[Batch] = []
        while self._due(now):
            able = [group for group in range(self._groups) if self._can_take(group)]
            if not able:
                break
            batches += self._take(min(able, key=lambda group: len(self._of(group))))  # first of the smallest
        return batches

    def _due(self, now: float) -> bool:
        expiry = self.expiry()
        if expiry is None:
            return False
        # `now >= expiry` and not `now - arrival >= window`: rounding must not defer a release called for at expiry
        enough = self._queued_tokens >= self._policy.min_batch_tokens * self._policy.slots
        return enough or self._exclusive(self._queue[0]) or now >= expiry

    def _can_take(self, group: int) -> bool:
        """Whether a group can take the head of the queue."""
        active = self._of(group)
        if not active:
            return True
        if self._policy.pairing == "locked" or self._exclusive(self._queue[0]):
            return False
        return len(active) < self._policy.slots and not self._exclusive(active[0].pieces[0].prompt)

    def _take(self, group: int) -> list[Batch]:
        """Move batches from the head of the queue to a group."""
        alone = self._exclusive(self._queue[0])
        batches = [self._form(group)]
        if self._policy.pairing == "locked" and not alone:
            while len(batches) < self._policy.slots and self._queue and not self._exclusive(self._queue[0]):
                batches.append(self._form(group))
        return batches

    def _form(self, group: int) -> Batch:
        """The next batch of the queue, into the lowest free slot of a group."""
        prompts = [self._queue.popleft()]
        tokens = prompts[0].to_compute
        while self._queue and not self._exclusive(prompts[0]) and self._joins(self._queue[0], tokens):
            tokens += self._queue[0].to_compute
            prompts.append(self._queue.popleft())
        self._queued_tokens -= tokens
        slot = min(set(range(self._policy.slots)) - {batch.slot for batch in self._of(group)})
        batch = Batch(self._released, group, slot, tuple(prompt.whole for prompt in prompts))
        self._active[batch.number] = batch
        self._released += 1
        return batch

    def _joins(self, prompt: Prompt, tokens: int) -> bool:
        """Whether a prompt joins a batch that already has `tokens`."""
        fits = tokens + prompt.to_compute <= self._policy.max_batch_tokens
        return tokens < self._policy.min_batch_tokens and fits and not self._exclusive(prompt)

    def _exclusive(self, prompt: Prompt) -> bool:
        return prompt.tokens > self._policy.exclusive_tokens

    def _of(self, group: int) -> list[Batch]:
        """Active batches of a group."""
        return [batch for batch in self._active.values() if batch.group == group]


def at_least_one(groups: int) -> int:
    """The number of groups; ValueError unless there is one."""
    if groups < 1:
        raise ValueError(f"a system with {groups} attention groups cannot run; give at least 1")
    return groups


def append(queue: deque[Prompt], prompt: Prompt) -> None:
    """Add a prompt to those that wait; ValueError if it arrived before the last of them."""
    if queue and prompt.arrival < queue[-1].arrival:
        raise ValueError(
            f"prompt {prompt.index} arrived at {prompt.arrival} s, before prompt {queue[-1].index} at "
            f"{queue[-1].arrival} s; hand prompts over in order of arrival"
        )
    queue.append(prompt)
