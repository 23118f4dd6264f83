"""The components of TTFT, system by system: what each one is, and which part of `asapmodel.result.Parts` it belongs to.

Within one system the components of a request add up to its TTFT. `part` says how they add up to the three parts::

    queueing   arrival to start: why the prompt was not in a batch yet
    kernel     its own batches alone, on idle resources
    waiting    the rest, inside: barriers, contention, blocked buffers
    latency    outside the system
"""

from typing import Literal, NamedTuple

__all__ = ["FREE", "FREE_QUEUES", "LOCKSTEP", "LOCKSTEP_QUEUES", "Component", "Part", "members"]

Part = Literal["latency", "queueing", "kernel", "waiting"]
"""Names of the parts."""


class Component(NamedTuple):
    """The part a component belongs to, and what it is in words."""

    part: Part
    meaning: str


_LATENCY = Component("latency", "network and tokenizer; occupies nothing")

FREE: dict[str, Component] = {
    "request_latency": _LATENCY,
    "formation": Component("queueing", "a group could take the batch, but tokens were too few and the window open"),
    "locked": Component("queueing", "a group had a free slot, but a locked pair is not refilled"),
    "exclusive": Component("queueing", "a slot was free, but a long prompt needs, or has, its group to itself"),
    "group_slots": Component("queueing", "every slot of every group was taken"),
    "attention": Component("kernel", "own attention, dense layers and step overhead"),
    "transfers": Component("kernel", "own four transfers of every layer"),
    "experts": Component("kernel", "own tokens through the experts"),
    "host": Component("kernel", "host dispatch that is not hidden"),
    "wait_group": Component("waiting", "the group's stream was with the other batch of the group"),
    "wait_pool": Component("waiting", "the compute stream of the expert devices was with other batches"),
    "wait_transfer": Component("waiting", "a stream that only transfers was with other batches"),
    "wait_buffer": Component("waiting", "the region was still held by the other batch of the group"),
}
"""Asynchronous system. Without streams of their own the transfers of a side queue for its one stream, and count as
`wait_group` or `wait_pool`."""

LOCKSTEP: dict[str, Component] = {
    "request_latency": _LATENCY,
    "window": Component("queueing", "the idle engine waited for its batch window"),
    "engine_busy": Component("queueing", "an iteration was running; until it ended"),
    "own_queue": Component("queueing", "iterations in which the prompt's group worked on prompts before it"),
    "attention": Component("kernel", "attention of its group's batches, dense layers and step overhead"),
    "transfers": Component("kernel", "transfers at its group's tokens"),
    "experts": Component("kernel", "experts at its group's tokens"),
    "barrier_attention": Component("waiting", "attention of the slowest group beyond its own group's"),
    "barrier_transfers": Component("waiting", "transfers of the largest batch beyond its own group's"),
    "shared_experts": Component("waiting", "experts at all groups' tokens beyond its own group's"),
}
"""Synchronous system."""


_QUEUE = {
    "formed_ahead": Component("queueing", "the next step's batch had been formed before the prompt came"),
    "own_queue": Component("queueing", "steps in which the prompt's group worked on prompts before it"),
    "prompt_limit": Component("queueing", "steps of its group with room for tokens, but not for one more prompt"),
}

FREE_QUEUES: dict[str, Component] = {
    "request_latency": _LATENCY,
    "group_busy": Component("queueing", "the prompt's group was in steps begun before; until it began the next"),
    **_QUEUE,
    "locked": Component("queueing", "its group had a free slot, but a locked pair is not refilled"),
    "exclusive": Component("queueing", "its group had a free slot, but a long prompt needs, or has, it to itself"),
    **{name: one for name, one in FREE.items() if one.part in ("kernel", "waiting")},
}
"""Asynchronous system with queues per group. Own are the steps that compute the prompt, both halves of each."""

LOCKSTEP_QUEUES: dict[str, Component] = {
    "request_latency": _LATENCY,
    "window": LOCKSTEP["window"],
    "idle_step": Component("queueing", "the idle engine ran an empty iteration; until it ended"),
    "engine_busy": LOCKSTEP["engine_busy"],
    **_QUEUE,
    "attention": LOCKSTEP["attention"],
    "transfers": LOCKSTEP["transfers"],
    "experts": LOCKSTEP["experts"],
    "padding": Component("kernel", "experts at idle groups' dummy tokens, as many as its own group has"),
    **{name: one for name, one in LOCKSTEP.items() if one.part == "waiting"},
}
"""Synchronous system with queues per group, or with a limit on the prompts of an iteration; a step is an iteration.
Where groups are padded to the largest, its dummy tokens are waiting for others."""


def members(components: dict[str, Component], part: Part) -> list[str]:
    """Names of the components of one part, in order.

    Examples
    --------
    >>> members(LOCKSTEP, "queueing")
    ['window', 'engine_busy', 'own_queue']
    """
    return [name for name, one in components.items() if one.part == part]
