"""The steps of groups that each have a queue of their own: what a policy allows, and the bookkeeping of a run."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.policy import Policy
from asapmodel.systems.queues import Batches, new_batches

__all__ = ["StepRules", "Steps", "new_steps", "step_rules"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class StepRules(NamedTuple):
    """`slots` chains a group has; `together` batches it may have active, `locked` if they start at once; `split`."""

    slots: int
    together: int
    locked: bool
    split: bool


class Steps(NamedTuple):
    """Per group: active chains, exclusive holding, whether a step is before its cut and has a second half to follow.

    Per chain: whether it is used. `batches` has the batch of every chain, then, by group, what is formed for the next
    step. `tally`: batches, tokens.
    """

    active: Ints
    exclusive: Ints
    opening: Ints
    used: Ints
    batches: Batches
    tally: Floats


def step_rules(policy: Policy) -> StepRules:
    """Translate the micro-batches of a policy."""
    pair = policy.micro == "pair"
    return StepRules(policy.slots, 2 if pair else 1, policy.pairing == "locked", policy.micro == "split")


def new_steps(groups: int, slots: int) -> Steps:
    """Return the bookkeeping of an idle system."""

    def ints(size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)

    chains = groups * slots
    return Steps(
        active=ints(groups),
        exclusive=ints(groups),
        opening=ints(groups),
        used=ints(chains),
        batches=new_batches(chains + groups),
        tally=np.zeros(2),
    )
