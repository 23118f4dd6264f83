"""Which policies a kind of system can have: keys that contradict each other.

A scenario is checked when it is read, the graph engine checks what it is given; both say it in one line.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from asapmodel.policy import Kind, Policy

__all__ = ["Conflict", "backlogged", "batching_of", "check_policy", "conflict_of", "is_vllm_like"]

_QUEUES = "'round_robin', 'fewest_requests', 'fewest_tokens' or 'least_work'"


class Conflict(NamedTuple):
    """A key of `[policy]`, what is wrong with its value, and what to do."""

    key: str
    problem: str
    remedy: str


def is_vllm_like(policy: Policy) -> bool:
    """Whether a policy goes beyond the paper's two systems: queues per group, or a limit on the prompts of a step."""
    return policy.queue_per_group or policy.max_seqs > 0


def backlogged(policy: Policy) -> Policy:
    """The policy for prompts that are all there at once.

    Counts of the last step would send them to one group, which no stream of arrivals does: they are counted exactly.
    """
    return replace(policy, counts="exact") if policy.counts == "step" else policy


def batching_of(kind: Kind, policy: Policy) -> str:
    """What `batching` and `chunk_tokens` amount to.

    Examples
    --------
    >>> batching_of("sync", Policy()), batching_of("asap", Policy()), batching_of("sync", Policy(chunk_tokens=8192))
    ('prompts', 'min_tokens', 'chunks')
    """
    if policy.batching != "auto":
        return policy.batching
    if policy.chunk_tokens > 0:
        return "chunks"
    return "prompts" if kind == "sync" else "min_tokens"


def conflict_of(kind: Kind, policy: Policy) -> Conflict | None:
    """Return the first contradiction in a policy, or None.

    Switches of the asynchronous system mean nothing to the synchronous one and are accepted there.

    Examples
    --------
    >>> conflict_of("asap", Policy(chunk_tokens=8192)).remedy
    "give routing = 'round_robin', 'fewest_requests', 'fewest_tokens' or 'least_work', or leave chunk_tokens out"
    >>> conflict_of("asap", Policy(chunk_tokens=8192, routing="round_robin", micro_batches="split")) is None
    True
    """
    own = _conflicts_sync if kind == "sync" else _conflicts_asap
    for found in (*_conflicts_of_both(kind, policy), *own(policy)):
        return found
    return None


def check_policy(kind: Kind, policy: Policy) -> None:
    """Refuse a policy that contradicts itself.

    Raises
    ------
    ValueError
        Names the key and the remedy.
    """
    found = conflict_of(kind, policy)
    if found is not None:
        raise ValueError(f"policy.{found.key}: {found.problem}; {found.remedy}")


def _conflicts_of_both(kind: Kind, policy: Policy) -> Iterator[Conflict]:
    batching = batching_of(kind, policy)
    if batching == "chunks" and policy.chunk_tokens == 0:
        yield Conflict("chunk_tokens", "is 0, but batching = 'chunks'", "give the tokens of a step")
    if batching != "chunks" and policy.chunk_tokens > 0:
        problem = f"is {policy.chunk_tokens}, but batching = '{batching}'"
        yield Conflict("chunk_tokens", problem, "leave one of the two out")
    if batching != "chunks" and policy.max_seqs > 0:
        problem = f"is {policy.max_seqs}, but prompts are not cut into chunks"
        yield Conflict("max_seqs", problem, "give chunk_tokens, or leave it out")
    if policy.schedule_ahead and not (policy.queue_per_group and batching == "chunks"):
        problem = "is true, but batches are formed ahead from queues per group, in chunks"
        yield Conflict("schedule_ahead", problem, f"give chunk_tokens and routing = {_QUEUES}, or leave it out")
    if not (policy.hide_overhead or policy.schedule_ahead):
        problem = "is false, but no batch is formed ahead whose overhead could be hidden"
        yield Conflict("hide_overhead", problem, "give schedule_ahead = true, or leave it out")
    for key in ("pad_groups", "idle_steps", "context_parallel"):
        if getattr(policy, key) and not (kind == "sync" and policy.queue_per_group):
            problem = "is true, but it belongs to groups in lockstep with queues of their own"
            yield Conflict(key, problem, f"give kind = 'sync' and routing = {_QUEUES}, or leave it out")
    if policy.counts == "step" and policy.routing != "fewest_requests":
        yield Conflict("counts", "is 'step', but no requests are counted", "give routing = 'fewest_requests'")


def _conflicts_sync(policy: Policy) -> Iterator[Conflict]:
    if policy.routing == "pull":
        remedy = f"give 'iteration', {_QUEUES}, or kind = 'asap'"
        yield Conflict("routing", "is 'pull', but groups in lockstep do not take prompts one by one", remedy)
    if policy.batching == "min_tokens":
        remedy = "give 'prompts' or 'chunks', or kind = 'asap'"
        yield Conflict("batching", "is 'min_tokens', but groups in lockstep do not wait for tokens", remedy)
    if policy.micro_batches in ("pair", "split"):
        problem = f"is '{policy.micro_batches}', but a group in lockstep has one batch"
        yield Conflict("micro_batches", problem, "give 'none' or leave it out, or give kind = 'asap'")
    if policy.queue_per_group and policy.balance == "work":
        problem = f"is 'work', but routing = '{policy.routing}' does not look at it"
        yield Conflict("balance", problem, "leave it out, or give routing = 'least_work'")


def _conflicts_asap(policy: Policy) -> Iterator[Conflict]:
    batching = batching_of("asap", policy)
    if policy.routing == "iteration":
        remedy = f"give 'pull', {_QUEUES}, or kind = 'sync'"
        yield Conflict("routing", "is 'iteration', but the asynchronous system has no iterations", remedy)
    if not policy.queue_per_group:
        if batching == "chunks":
            problem = f"is {policy.chunk_tokens}, but chunks are not available with one queue for all groups"
            remedy = f"give routing = {_QUEUES}, or leave chunk_tokens out"
            yield Conflict("chunk_tokens", problem, remedy)
        if batching == "prompts":
            problem = "is 'prompts', but from one queue groups take 'min_tokens' batches"
            yield Conflict("batching", problem, f"give routing = {_QUEUES}, or leave batching out")
        if policy.micro_batches == "split":
            problem = "is 'split', but from one queue groups take single batches or pairs"
            yield Conflict("micro_batches", problem, f"give routing = {_QUEUES}, or 'pair' or 'none'")
    if policy.micro_batches == "pair" and not policy.dual_batch:
        yield Conflict("micro_batches", "is 'pair', but dual_batch = false", "leave one of the two out")
    if policy.micro_batches == "pair" and batching == "chunks":
        problem = "is 'pair', but the two chunks of a group may be parts of one prompt"
        yield Conflict("micro_batches", problem, "give 'split' or 'none', or leave chunk_tokens out")
