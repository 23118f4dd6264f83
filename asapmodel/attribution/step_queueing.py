"""Asynchronous system with queues per group: why a prompt was not in a step yet, from its arrival to its first step.

A group with nothing to do takes a prompt at once, so whoever waits, waits for launches of its group: for the next one
after its arrival, then for one after the other up to its own. The wait for the launch of a step lasts from the launch
of the group's step before, or from the arrival if that is later. In it all slots of the group are taken; with pairs
one may be free at last that the head of the queue cannot have.

Until the first launch the prompt waits for steps that were there before it. After it:

    formed_ahead   the step just launched was formed when the one before it was launched, before the arrival
    own_queue      it was formed with the prompt in the queue, and is full: of prompts before it
    prompt_limit   likewise, but it has room for tokens: the limit on prompts (`max_seqs`) kept the prompt out

With `schedule_ahead` step `j` is formed when `j - 1` is launched if its first prompt could be taken then: it had been
cut, or it was in the queue and fewer than `max_seqs` prompts are in step `j - 1`. All that have begun and not ended
are in that step, because one that is cut is the head of the next batch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.attribution.pieces import sum_between
from asapmodel.attribution.step_trace import StepTrace
from asapmodel.policy import Policy
from asapmodel.policy_rules import batching_of
from asapmodel.systems.arrays import Requests
from asapmodel.systems.steps import step_rules

__all__ = ["formed_before", "queueing_components"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class _Waits(NamedTuple):
    """Of the wait for the launch of each step: its begin, when a slot became free in it, and its end, seconds.

    Without a free slot `free` is the end. `exclusive`: it is a long prompt that keeps the slot empty. `roomy`: the step
    before could have computed more tokens.
    """

    since: Floats
    free: Floats
    until: Floats
    exclusive: Bools
    roomy: Bools


def queueing_components(policy: Policy, requests: Requests, trace: StepTrace) -> dict[str, Floats]:
    """Seconds from arrival to the launch of the first own step, by request.

    Parameters
    ----------
    policy, requests
        The rules and what arrived.
    trace : StepTrace
        The run.

    Returns
    -------
    dict of arrays, shape (requests,)
        The queueing components of `asapmodel.attribution.components.FREE_QUEUES`.
    """
    waits = _waits(policy, requests, trace)
    first, until = trace.first, waits.until
    coming = np.minimum(_next_launch(requests, trace), first)
    formed = np.where(formed_before(policy, requests, trace)[coming], np.minimum(coming + 1, first), coming)
    free = np.clip(waits.free[coming], requests.arrival, until[coming])
    taken, idle = waits.free - waits.since, until - waits.free

    def later(seconds: Floats, where: Bools) -> Floats:
        return sum_between(np.where(where, seconds, 0.0), formed + 1, first + 1)

    alone = waits.exclusive[coming]
    return {
        "group_busy": free - requests.arrival,
        "formed_ahead": until[formed] - until[coming],
        "own_queue": later(taken, ~waits.roomy),
        "prompt_limit": later(taken, waits.roomy),
        "locked": np.where(alone, 0.0, until[coming] - free) + later(idle, ~waits.exclusive),
        "exclusive": np.where(alone, until[coming] - free, 0.0) + later(idle, waits.exclusive),
    }


def formed_before(policy: Policy, requests: Requests, trace: StepTrace) -> Bools:
    """Whether the batch of each step was formed when the step before was launched."""
    out = np.zeros(len(trace.group), dtype=np.bool_)
    if not policy.schedule_ahead:
        return out
    head, here = trace.head[1:], np.arange(1, len(trace.group))
    in_line = trace.launch[1:] == trace.step_end[:-1]
    cut = trace.first[head] < here
    change = np.bincount(trace.first, minlength=len(out) + 1) - np.bincount(trace.last, minlength=len(out) + 1)
    prompts = np.cumsum(change)[: len(out) - 1]
    allowed = prompts < policy.max_seqs if policy.max_seqs else np.ones(len(prompts), dtype=np.bool_)
    waiting = (requests.arrival[head] < trace.launch[:-1]) & allowed
    out[1:] = (trace.group[1:] == trace.group[:-1]) & in_line & (cut | waiting)
    return out


def _waits(policy: Policy, requests: Requests, trace: StepTrace) -> _Waits:
    launch, same = trace.launch, np.append(False, trace.group[1:] == trace.group[:-1])

    def of_step_before(values: Floats) -> Floats:
        return np.where(same, np.append(0.0, values[:-1]), launch)

    long = np.zeros(len(launch), dtype=np.bool_)
    batching = batching_of("asap", policy)
    if batching == "min_tokens":
        long = requests.prompt[trace.head] > policy.exclusive_tokens
    since = of_step_before(launch)
    free = np.clip(of_step_before(_first_free_slot(policy, trace)), since, launch)
    room = trace.tokens < (policy.chunk_tokens if batching == "chunks" else 0)
    return _Waits(since, free, launch, long | np.append(False, long[:-1]), np.append(False, room[:-1]))


def _first_free_slot(policy: Policy, trace: StepTrace) -> Floats:
    """When a group has a free slot again after the launch of each step, if it launches nothing more."""
    slots = step_rules(policy).together
    out = np.zeros(len(trace.launch))
    ends: list[float] = []
    here = -1
    for j, group in enumerate(trace.group.tolist()):
        now = float(trace.launch[j])
        ends = [end for end in ends if end > now] if group == here else []
        here = group
        ends.append(float(trace.step_end[j]))
        out[j] = now if len(ends) < slots else min(ends)
    return out


def _next_launch(requests: Requests, trace: StepTrace) -> Ints:
    """First step that its group launches after the arrival of each request, if there is one.

    At equal instants launches come first: they are due to steps that end, or to prompts that arrived before.
    """
    out = np.zeros(len(requests.arrival), dtype=np.int64)
    group = trace.group[trace.first]
    for one in np.unique(group):
        begin, end = np.searchsorted(trace.group, [one, one + 1])
        mine = group == one
        out[mine] = begin + np.searchsorted(trace.launch[begin:end], requests.arrival[mine], side="right")
    return out
