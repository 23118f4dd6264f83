"""The scheduler of the synchronous system: all groups start an iteration together.

A state machine without a clock; the caller says what happened and when. What has arrived is dealt out to the groups
just before an iteration, so that their queues hold about the same number of tokens.
"""

from collections import deque
from collections.abc import Iterable

from asapmodel.policy import Policy
from asapmodel.reference.scheduler import Batch, Piece, Prompt, append, at_least_one

__all__ = ["IterationScheduler"]


class IterationScheduler:
    """Synchronous scheduling: the groups run iterations in lockstep, each its own batch.

    At the start of an iteration all that has arrived goes, in order of arrival, to the group with the fewest queued
    tokens, or with `balance = "work"` the least `per_token n + per_token2 w` queued (ties: lowest index). A prompt of
    which a part is done counts with what is left. Then each group takes from the head of its own queue: with
    `chunk_tokens = 0` whole prompts while the batch stays within `max_batch_tokens`, at least one; else up to
    `chunk_tokens` tokens, the rest of a cut prompt first, the last prompt cut. Exclusive prompts and
    `min_batch_tokens` play no part, and `max_batch_tokens` none with chunks.

    Call `begin` at the end of every iteration, after the arrivals up to and including that instant. With work it starts
    the next iteration at once. Without, the engine is idle: it starts `batch_window` after the next arrival, at
    `start_at`, with all that has arrived by then.

    Parameters
    ----------
    groups
        Attention groups, `D`.
    policy
        Sizes in tokens and the window in seconds.
    per_token, per_token2
        Attention cost `a1` in s/token and `a2` in s/token^2, for `balance = "work"`.

    Examples
    --------
    >>> scheduler = IterationScheduler(2, Policy(batch_window=0.0, chunk_tokens=100))
    >>> for index, tokens in enumerate([150, 60, 30]):
    ...     scheduler.arrive(Prompt(index, arrival=1.0, tokens=tokens))
    >>> [batch and batch.tokens for batch in scheduler.begin(1.0)]
    [100, 90]
    >>> [batch and batch.tokens for batch in scheduler.begin(1.8)]
    [50, None]
    """

    def __init__(self, groups: int, policy: Policy, per_token: float = 1.0, per_token2: float = 0.0) -> None:
        self._policy = policy
        self._weights = (per_token, per_token2) if policy.balance == "work" else (1.0, 0.0)
        self._arrived: deque[Prompt] = deque()
        self._queues: list[deque[Piece]] = [deque() for _ in range(at_least_one(groups))]
        self._idle = True
        self._start: float | None = None
        self._released = 0

    @property
    def pending(self) -> bool:
        """Whether a prompt has tokens that no iteration has taken yet."""
        return bool(self._arrived) or any(self._queues)

    def arrive(self, prompt: Prompt) -> None:
        """Note an arrival; ValueError if it arrived before the one noted last."""
        append(self._arrived, prompt)
        if self._idle and self._start is None:
            self._start = prompt.arrival + self._policy.batch_window

    def start_at(self) -> float | None:
        """When the idle engine starts, in seconds; None while an iteration runs or nothing has arrived."""
        return self._start

    def begin(self, now: float) -> tuple[Batch | None, ...]:
        """Batch of each group for the iteration that starts at `now`; all None if there is none to start."""
        if self._idle and (self._start is None or now < self._start):
            return (None,) * len(self._queues)
        self._route()
        batches = tuple(self._form(group) if queue else None for group, queue in enumerate(self._queues))
        self._idle = all(batch is None for batch in batches)
        self._start = None
        return batches

    def _route(self) -> None:
        """Deal out all that has arrived."""
        loads = [self._load(queue) for queue in self._queues]
        while self._arrived:
            group = loads.index(min(loads, key=self._cost))
            piece = self._arrived.popleft().whole
            self._queues[group].append(piece)
            loads[group] = (loads[group][0] + piece.tokens, loads[group][1] + piece.work)

    @staticmethod
    def _load(pieces: Iterable[Piece]) -> tuple[int, int]:
        """Tokens and attention work: integers, so that no order of adding makes or breaks a tie."""
        pairs = [(piece.tokens, piece.work) for piece in pieces]
        return sum(n for n, _ in pairs), sum(w for _, w in pairs)

    def _cost(self, load: tuple[int, int]) -> float:
        return self._weights[0] * load[0] + self._weights[1] * load[1]

    def _form(self, group: int) -> Batch:
        take = self._take_chunk if self._policy.chunk_tokens > 0 else self._take_prompts
        batch = Batch(self._released, group, 0, tuple(take(self._queues[group])))
        self._released += 1
        return batch

    def _take_prompts(self, queue: deque[Piece]) -> list[Piece]:
        pieces = [queue.popleft()]
        room = self._policy.max_batch_tokens - pieces[0].tokens
        while queue and queue[0].tokens <= room:
            room -= queue[0].tokens
            pieces.append(queue.popleft())
        return pieces

    def _take_chunk(self, queue: deque[Piece]) -> list[Piece]:
        pieces: list[Piece] = []
        room = self._policy.chunk_tokens
        while queue and room > 0:
            piece = queue.popleft()
            if piece.tokens > room:
                piece, rest = piece.cut(room)
                queue.appendleft(rest)  # part-done prompts come first
            room -= piece.tokens
            pieces.append(piece)
        return pieces
