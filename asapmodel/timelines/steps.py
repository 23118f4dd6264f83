"""What the launches of a run with queues per group hold: whole steps, or the parts of steps in two halves."""

import numpy as np
from numpy.typing import NDArray

from asapmodel.engines.graph import Run
from asapmodel.policy import Policy
from asapmodel.systems.arrays import Requests
from asapmodel.systems.logs import StepLog
from asapmodel.timelines.tasks import Batches

__all__ = ["Piece", "pieces_of", "shades", "step_parts"]

Ints = NDArray[np.int64]
Piece = tuple[int, int, int]
"""A request, and the tokens from and up to which it is computed."""


def pieces_of(noted: StepLog, follow: Ints, requests: Requests, step: int) -> list[Piece]:
    """What a step computes, in the order of its queue.

    Parameters
    ----------
    noted, follow
        Of a run, see `asapmodel.engines.graph.Run`.
    requests : Requests
        Of that run.
    step : int
        Counted from 0, in the order in which steps are taken.
    """
    k, begin, left = int(noted.first[step]), int(noted.before[step]), int(noted.n[step])
    pieces = []
    while left > 0:
        end = min(int(requests.prompt[k]), begin + left)
        pieces.append((k, begin, end))
        left -= end - begin
        k = int(follow[k])
        begin = int(requests.cached[k]) if left > 0 else 0
    return pieces


def step_parts(policy: Policy, requests: Requests, run: Run) -> Batches:
    """One row per launch, `number` counts the steps.

    The part of a step before its cut has the whole step's tokens; its halves have a launch each, with different shades.
    """
    noted, follow = run.steps, run.follow
    assert noted is not None
    assert follow is not None
    step = noted.launch[: int(np.count_nonzero(noted.launch >= 0))]
    parts: dict[int, list[int]] = {}
    for launch, number in enumerate(step.tolist()):
        parts.setdefault(number, []).append(launch)
    rows = np.zeros((len(step), 3))  # prompts, tokens, work
    shade = np.zeros(len(step), dtype=np.int64)
    for number, launches in parts.items():
        pieces = pieces_of(noted, follow, requests, number)
        if len(launches) == 1:
            rows[launches[0]] = _sums(pieces)
            continue
        first, second = _halves(pieces, int(noted.n[number]) // 2)
        rows[launches[-2:]] = _sums(first), _sums(second)
        rows[launches[:-2]] = _sums(pieces)
        shade[launches[-1]] = 1
    group = noted.group[step]
    if policy.micro != "split":
        shade = _shades_of_steps(policy.slots, noted, run)
    prompts, tokens = rows[:, :2].astype(np.int64).T
    return Batches(step, group, shade, prompts, tokens, rows[:, 2])


def _sums(pieces: list[Piece]) -> tuple[int, int, int]:
    """Prompts, tokens, attention work."""
    return len(pieces), sum(end - begin for _, begin, end in pieces), sum(end**2 - begin**2 for _, begin, end in pieces)


def _halves(pieces: list[Piece], tokens: int) -> tuple[list[Piece], list[Piece]]:
    """Cut behind so many tokens."""
    first, second = [], []
    for k, begin, end in pieces:
        middle = min(begin + tokens, end)
        tokens -= middle - begin
        first += [(k, begin, middle)] if middle > begin else []
        second += [(k, middle, end)] if end > middle else []
    return first, second


def _shades_of_steps(slots: int, noted: StepLog, run: Run) -> Ints:
    """Steps in one piece: those of a group in turn; of pairs, which hold whole prompts, by who is active at once."""
    found = np.zeros(run.batches, dtype=np.int64)
    count = int(run.log.recorded[0])
    known, where = np.unique(run.log.run[:count], return_index=True)
    first = noted.first[known]
    chain = run.log.chain[where]
    found[known] = shades(chain, slots, run.outcome.start[first], run.outcome.end[first])
    return found


def shades(chain: Ints, slots: int, launch: NDArray[np.float64], end: NDArray[np.float64]) -> list[int]:
    """0 or 1 by batch: another one than the group's other active batch has, or else than the one before."""
    shades: list[int] = []
    newest: dict[int, int] = {}  # the last batch of a group
    latest: dict[int, int] = {}  # that of a chain
    for b, one in enumerate(chain.tolist()):
        group, slot = divmod(one, slots)
        other = latest.get(group * slots + 1 - slot) if slots > 1 else None
        if other is None or end[other] <= launch[b]:
            other = newest.get(group)
        shades.append(0 if other is None else 1 - shades[other])
        newest[group] = latest[one] = b
    return shades
