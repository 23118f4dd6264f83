"""Bounds of the throughput with queues per group or a limit on the prompts of a step, however prompts become steps.

Which prompts share a step depends on when they arrive and where they are sent, so nothing but totals is used. `P`
prompts with `N` tokens to compute and attention work `W`: pieces of a prompt add up to its `n` and `w`, whatever they
are, and a step holds at most `B` tokens and `S` prompts (`chunk_tokens`; without chunks `max_batch_tokens`, or one
longer prompt; `max_seqs`). So there are at least

    K = max(N / B, P / S) steps,        C >= max(K, N / ceil(B / 2)) halves of them where steps are split,

and a law `c0 + c1 n + c2 w` takes at least `c0 C + c1 N + c2 W` seconds in all, experts at least `max(floor C, m N)`. A
batch formed ahead has no overhead: the bound counts none then (unless `hide_overhead = false`).

*Free execution.* A stream serves one task at a time, a region holds one batch, a batch has one of the slots for at
least its own phases (a split step all slots of its group before its cut): what is asked of the groups' things cannot
exceed the time of D groups, nor what is asked of the pool its time.

*Lockstep.* The parts of an iteration stand one after another; the slowest group is no faster than the mean one, the
largest batch no smaller, and there are at least `K / D` iterations. So the sum of the parts is a bound as well.

How far a group can fall behind is not bounded here: an uneven routing leaves groups idle while others have work. So
there is no lower bound but 0.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asapmodel.circuits.bounds import Bounds
from asapmodel.circuits.follow import COMBINE_REGION, DISPATCH_REGION, stream_names
from asapmodel.circuits.free_bounds import IN_FLIGHT
from asapmodel.circuits.lockstep_bounds import ATTENTION, EXPERTS, ITERATION, TRANSFERS
from asapmodel.costs import Affine, LayerCosts
from asapmodel.engines.graph import exposed_host_dispatch
from asapmodel.policy import Layout, Policy
from asapmodel.policy_rules import batching_of

__all__ = ["Totals", "queue_bounds", "totals_of"]

Ints = NDArray[np.int64]

_POOL = {2, 3, 4}


class Totals(NamedTuple):
    """Prompts, tokens and attention work (tokens^2) in all; the fewest steps, and the fewest parts of steps."""

    prompts: int
    tokens: float
    work: float
    steps: float
    parts: float


def totals_of(layout: Layout, policy: Policy, prompt: Ints, cached: Ints) -> Totals:
    """What prompts ask for, and into how few steps they may go.

    Examples
    --------
    >>> policy = Policy(routing="round_robin", chunk_tokens=1000, max_seqs=2, micro_batches="split")
    >>> totals_of(Layout("asap", 2, 1, 1), policy, np.array([3000, 500, 500, 500]), np.zeros(4, dtype=np.int64))
    Totals(prompts=4, tokens=4500.0, work=9750000.0, steps=4.5, parts=9.0)
    """
    n = (prompt - cached).astype(np.float64)
    tokens, work = float(n.sum()), float((n * (prompt + cached)).sum())
    chunks = batching_of(layout.kind, policy) == "chunks"
    most = policy.chunk_tokens if chunks else max(policy.max_batch_tokens, int(n.max()))
    steps = max(tokens / most, len(n) / policy.max_seqs if policy.max_seqs else 0.0)
    parts = max(steps, tokens / math.ceil(most / 2)) if policy.micro == "split" else steps
    return Totals(len(n), tokens, work, steps, parts)


def queue_bounds(layout: Layout, policy: Policy, costs: LayerCosts, prompt: Ints, cached: Ints) -> Bounds:
    """Upper bounds in prompts/s by constraint; the prompts are equally likely, in any order.

    Over any run of T seconds in which all of them are served from beginning to end, `len(prompt) / T` does not exceed
    any of the bounds.

    Parameters
    ----------
    layout, policy, costs
        Either system.
    prompt, cached : array of int, shape (prompts,)
        Lengths and cached prefixes, tokens.

    Returns
    -------
    Bounds
        A batch of it is a prompt, and its lower bound is 0.

    Examples
    --------
    >>> from asapmodel.costs import Plateau, Quadratic
    >>> none = Affine(0.0, 0.0)
    >>> costs = LayerCosts(Quadratic(0.0, 2e-6, 0.0), none, none, Plateau(0.0, 1e-6), none, none, layers=10)
    >>> policy = Policy(routing="round_robin", chunk_tokens=1000)
    >>> found = queue_bounds(Layout("asap", 4, 1, 1), policy, costs, np.full(9, 5000), np.zeros(9, dtype=np.int64))
    >>> round(found.upper["attention stream of the group"]), round(found.upper["MoE compute"])
    (40, 20)
    """
    all_ = totals_of(layout, policy, prompt, cached)
    if layout.kind == "sync":
        seconds = _lockstep_seconds(layout, policy, costs, all_)
    else:
        seconds = _free_seconds(layout, policy, costs, all_)
    upper = {name: all_.prompts / time for name, time in seconds.items() if time > 0}
    return Bounds(upper, 0.0, 0.0, all_.tokens / all_.prompts, 1.0)


def _head(policy: Policy, costs: LayerCosts, all_: Totals) -> float:
    """Overheads and dense layers of all steps, seconds."""
    dense, hidden = costs.dense_layer, policy.schedule_ahead and policy.hide_overhead
    each = dense.fixed * all_.steps + dense.per_token * all_.tokens + dense.per_token2 * all_.work
    return costs.dense_layers * each + (0.0 if hidden else costs.step_overhead * all_.steps)


def _phases(costs: LayerCosts, host: float, all_: Totals) -> list[float]:
    """The six phases of all parts of steps through all MoE layers, seconds."""
    a, m = costs.attention, costs.moe

    def moved(law: Affine) -> float:
        return law.fixed * all_.parts + law.per_token * all_.tokens

    layer = [
        a.fixed * all_.parts + a.per_token * all_.tokens + a.per_token2 * all_.work,
        moved(costs.dispatch_send),
        moved(costs.dispatch_recv),
        max(m.floor * all_.parts, m.per_token * all_.tokens) + host * all_.parts,
        moved(costs.combine_send),
        moved(costs.combine_recv),
    ]
    return [costs.moe_layers * time for time in layer]


def _free_seconds(layout: Layout, policy: Policy, costs: LayerCosts, all_: Totals) -> dict[str, float]:
    """The least time of a run by constraint."""
    head = _head(policy, costs, all_)
    phases = _phases(costs, exposed_host_dispatch(layout, policy, costs), all_)
    names = stream_names(policy.overlap_attention, policy.overlap_moe)
    pool = {names[phase] for phase in _POOL}
    asked = dict.fromkeys(names, 0.0)
    for name, time in zip(names, phases, strict=True):
        asked[name] += time
    asked[names[0]] += head
    asked |= {DISPATCH_REGION: phases[1] + phases[2], COMBINE_REGION: phases[4] + phases[5]}
    before = head if policy.micro == "split" else head / policy.slots
    asked[IN_FLIGHT] = before + sum(phases) / policy.slots
    return {name: time if name in pool else time / layout.D for name, time in asked.items()}


def _lockstep_seconds(layout: Layout, policy: Policy, costs: LayerCosts, all_: Totals) -> dict[str, float]:
    """Likewise; the parts of an iteration, and their sum."""
    iterations = all_._replace(steps=all_.steps / layout.D, parts=all_.steps / layout.D)
    mean = iterations._replace(tokens=all_.tokens / layout.D, work=all_.work / layout.D)
    attention, send, receive, _, back, end = _phases(costs, 0.0, mean)
    parts = {
        ATTENTION: _head(policy, costs, mean) + attention,
        TRANSFERS: send + receive + back + end,
        EXPERTS: _phases(costs, 0.0, iterations)[3],
    }
    return parts | {ITERATION: sum(parts.values())}
