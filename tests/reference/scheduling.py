"""What the tests of both schedulers share: small policies, prompts, short forms of batches, random work."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from asapmodel.policy import Policy
from asapmodel.reference.iteration_scheduler import IterationScheduler
from asapmodel.reference.scheduler import Batch, Prompt, PullScheduler

__all__ = ["POLICIES", "ROLLING", "SMALL", "SYNC", "cuts", "placed", "prompts", "pull", "sync", "workloads"]

SMALL = Policy(min_batch_tokens=100, max_batch_tokens=300, exclusive_tokens=200, batch_window=1.0)
ROLLING = replace(SMALL, pairing="rolling")
SYNC = Policy(max_batch_tokens=300, batch_window=0.0)


def prompts(*tokens: int, at: float = 0.0, first: int = 0) -> list[Prompt]:
    return [Prompt(first + k, at, s) for k, s in enumerate(tokens)]


def pull(policy: Policy, waiting: Iterable[Prompt], groups: int = 2) -> PullScheduler:
    scheduler = PullScheduler(groups, policy)
    for prompt in waiting:
        scheduler.arrive(prompt)
    return scheduler


def sync(policy: Policy, waiting: Iterable[Prompt], groups: int = 2, **weights: float) -> IterationScheduler:
    scheduler = IterationScheduler(groups, policy, **weights)
    for prompt in waiting:
        scheduler.arrive(prompt)
    return scheduler


def placed(batches: Iterable[Batch | None]) -> list[tuple[int, int, list[int]]]:
    """Group, slot and prompts of each batch."""
    return [(b.group, b.slot, [p.prompt.index for p in b.pieces]) for b in batches if b is not None]


def cuts(batch: Batch | None) -> list[tuple[int, int, int]]:
    """Prompt and positions of each piece."""
    return [] if batch is None else [(p.prompt.index, p.first, p.last) for p in batch.pieces]


@st.composite
def workloads(draw: st.DrawFn) -> list[Prompt]:
    """Up to 30 prompts on a coarse time grid, so that things happen in one instant; some are exclusive in SMALL."""
    gaps = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 3.0])
    rows = draw(st.lists(st.tuples(gaps, st.integers(1, 320), st.floats(0.0, 0.99)), min_size=1, max_size=30))
    found, now = [], 0.0
    for index, (gap, tokens, share) in enumerate(rows):
        now += gap
        found.append(Prompt(index, now, tokens, int(share * tokens) if index % 3 == 0 else 0))
    return found


POLICIES = st.builds(
    Policy,
    min_batch_tokens=st.sampled_from([1, 100, 250]),
    max_batch_tokens=st.sampled_from([50, 300]),
    exclusive_tokens=st.sampled_from([0, 200, 400]),
    batch_window=st.sampled_from([0.0, 0.5, 1.0]),
    pairing=st.sampled_from(["locked", "rolling"]),
    dual_batch=st.booleans(),
    chunk_tokens=st.sampled_from([0, 1, 90, 1000]),
    balance=st.sampled_from(["tokens", "work"]),
)
